"""``quorum explore`` and ``quorum kb … --triplets`` on the command line; and a search that is killed."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from quorum.knowledge.triplets import Explored
from quorum.tools.triplet_store import load_explored
from tests.quorum.conftest import quorum as run
from tests.quorum.forked import OUTPUT, Forked

OFFLINE = ("--model", "offline")


def learned(home: Path) -> Explored:
    return load_explored(next((home / "explored").glob("*")))


def test_it_says_what_it_learned_and_goes_on_when_told_to(shop: str, workplace: Path) -> None:
    first = run("explore", "--db", shop, *OFFLINE, "--attempts", "1", "--branches", "1")
    assert first.exit_code == 0, first.output
    assert "All attempts are used up." in first.stdout
    assert "1 triplet of 1 attempt (100% worked); 3 model calls" in first.stdout
    assert "covered, 1 triplet of 1 tried" in first.stderr
    spent = run(
        "explore", "--db", shop, *OFFLINE, "--budget-calls", "4", "--branches", "1", "--home", "spent"
    )
    assert (spent.exit_code, "Stopped by max_calls; go on with --resume." in spent.stdout) == (3, True)
    assert len(learned(workplace / "spent").triplets) == 1
    again = run("explore", "--db", shop, *OFFLINE)
    assert again.exit_code == 2
    assert "was explored before: 1 triplets" in again.output
    assert "--resume" in again.output
    for wrong in ("--coverage=0", "--coverage=2", "--attempts=0", "--branches=99", "--budget-calls=0"):
        assert run("explore", "--db", shop, *OFFLINE, wrong).exit_code == 2
    on = run("explore", "--db", shop, *OFFLINE, "--resume", "--json")
    assert on.exit_code == 0, on.output
    told = json.loads(on.stdout)
    assert (told["ended"], told["coverage"]) == ("coverage", 1.0)
    assert told["triplets"] == len(learned(workplace / ".quorum").triplets)


def _rows(home: Path) -> list[Any]:
    found = learned(home)
    return [*found.expansions, *found.triplets]


@pytest.mark.heavy
def test_killed_at_ten_random_moments_it_loses_and_doubles_nothing(workplace: Path, root: Path) -> None:
    """Every triplet that was kept stays, none is there twice, and each of them still runs."""
    chance, given, broken = random.Random(1), ("--db", "sample", *OFFLINE, "-q"), workplace / "broken"
    with Forked(workplace, root) as quorum:
        kept: list[Any] = []
        for _ in range(10):
            moment = chance.randint(1, 14)
            quorum.start("explore", *given, "--home", "broken", "--resume", events=moment)
            assert quorum.wait() == -signal.SIGKILL, (workplace / OUTPUT).read_text()
            now = _rows(broken) if (broken / "explored").exists() else []
            assert {repr(row) for row in kept} <= {repr(row) for row in now}
            kept = now
        assert kept, "some of them died behind a round"
        quorum.start("explore", *given, "--home", "broken", "--resume", events=100_000)
        assert quorum.wait() == 0, (workplace / OUTPUT).read_text()
    found = learned(broken)
    assert [each.id for each in found.expansions] == list(range(1, len(found.expansions) + 1))
    shapes = [triplet.shape for triplet in found.triplets]
    assert len(shapes) == len(set(shapes)) >= 15
    assert run("explore", *given, "--home", "broken", "--resume", "--json").exit_code == 0
    exported = run("kb", "export", "--triplets", "--db", "sample", "--home", "broken").stdout.splitlines()
    assert {*json.loads(exported[0])} == {"id", "question", "sql", "tables"}
    assert len(exported) == len(shapes)
    with sqlite3.connect(f"file:{next(broken.glob('sample/*.db'))}?mode=ro", uri=True) as database:
        assert all(database.execute(json.loads(line)["sql"]).fetchone() for line in exported)
    database.close()
