"""``quorum explore`` and ``quorum kb … --triplets`` on the command line; and a search that is killed."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.knowledge.triplets import Explored
from quorum.tools.triplet_store import load_explored
from tests.graph.shop import make_shop
from tests.quorum.forked import OUTPUT, Forked

OFFLINE = ("--model", "offline")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def shop(workplace: Path) -> str:
    return f"sqlite:///{make_shop(workplace / 'shop.db')}"


def learned(home: Path) -> Explored:
    return load_explored(next((home / "explored").glob("*")))


def test_it_says_what_it_learned_and_goes_on_when_told_to(shop: str, workplace: Path) -> None:
    first = run("explore", "--db", shop, *OFFLINE, "--attempts", "1", "--branches", "1")
    assert first.exit_code == 0, first.output
    assert "All attempts are used up." in first.stdout
    assert "1 triplet of 1 attempt (100% worked); 3 model calls" in first.stdout
    assert "covered, 1 triplet of 1 tried" in first.stderr
    again = run("explore", "--db", shop, *OFFLINE)
    assert again.exit_code == 2
    assert "was explored before: 1 triplets" in again.output
    assert "--resume" in again.output
    on = run("explore", "--db", shop, *OFFLINE, "--resume", "--json")
    assert on.exit_code == 0, on.output
    told = json.loads(on.stdout)
    assert (told["ended"], told["coverage"]) == ("coverage", 1.0)
    assert told["triplets"] == len(learned(workplace / ".quorum").triplets)


def test_a_budget_ends_it_with_3_and_nothing_is_lost(shop: str, workplace: Path) -> None:
    found = run("explore", "--db", shop, *OFFLINE, "--budget-calls", "4", "--branches", "1")
    assert found.exit_code == 3
    assert "Stopped by max_calls; go on with --resume." in found.stdout
    assert len(learned(workplace / ".quorum").triplets) == 1
    assert run("explore", "--db", shop, *OFFLINE, "--resume").exit_code == 0


@pytest.mark.parametrize(
    "wrong", [("--coverage", "2"), ("--attempts", "0"), ("--branches", "0"), ("--budget-calls", "0")]
)
def test_a_limit_that_makes_no_sense_is_refused(shop: str, wrong: tuple[str, str]) -> None:
    found = run("explore", "--db", shop, *OFFLINE, *wrong)
    assert found.exit_code == 2
    assert "Traceback" not in found.output


def test_triplets_are_listed_shown_searched_exported_verified_and_forgotten(shop: str) -> None:
    assert run("explore", "--db", shop, *OFFLINE, "-q").exit_code == 0
    given = ("--triplets", "--db", shop)
    listed = json.loads(run("kb", "show", *given, "--json").stdout)
    assert {"id", "question", "sql", "tables"} == listed[0].keys()
    assert "nobody has checked them" in run("kb", "show", *given).stderr
    assert listed[0]["sql"].split("\n")[0] in run("kb", "show", str(listed[0]["id"]), *given).stdout
    found = json.loads(run("kb", "search", "orders by total", *given, "--json").stdout)
    assert found[0]["tables"] == ["orders"]
    assert len(run("kb", "export", *given).stdout.splitlines()) == len(listed)
    assert run("kb", "verify", *given).stderr.strip() == f"{len(listed)} of {len(listed)} queries held."
    assert run("kb", "forget", "99", *given).exit_code == 2
    assert run("kb", "forget", str(listed[0]["id"]), *given).exit_code == 0
    assert len(json.loads(run("kb", "show", *given, "--json").stdout)) == len(listed) - 1
    again = run("explore", "--db", shop, *OFFLINE, "--resume", "--json")
    assert json.loads(again.stdout)["triplets"] >= len(listed) - 1


def test_verify_says_what_holds_no_more(shop: str, workplace: Path) -> None:
    import sqlite3

    assert run("explore", "--db", shop, *OFFLINE, "-q").exit_code == 0
    with sqlite3.connect(workplace / "shop.db") as database:
        database.execute("ALTER TABLE orders RENAME COLUMN total TO amount")
    database.close()
    found = run("kb", "verify", "--triplets", "--db", shop)
    assert found.exit_code == 1
    assert "total" in found.stdout
    asked = run("ask", "How many orders are there?", "--db", shop, *OFFLINE, "--recipe", "sqlagent", "--json")
    assert "triplets are of tables that changed" in " ".join(json.loads(asked.stdout)["warnings"])


def test_a_damaged_store_is_refused_in_words(shop: str, workplace: Path) -> None:
    assert run("explore", "--db", shop, *OFFLINE, "-q").exit_code == 0
    path = next((workplace / ".quorum" / "explored").glob("*/triplets.sqlite"))
    path.write_bytes(b"no database" * 1000)
    for arguments in (("explore", *OFFLINE, "--resume"), ("kb", "show", "--triplets")):
        found = run(*arguments, "--db", shop)
        assert found.exit_code == 2
        assert "Traceback" not in found.output
        assert "What was explored cannot be" in found.output


def test_two_explorations_of_one_database_do_not_mix(shop: str, workplace: Path) -> None:
    from quorum.knowledge.catalog import Catalog
    from quorum.tools.triplet_store import TripletStore

    assert run("explore", "--db", shop, *OFFLINE, "-q").exit_code == 0
    folder = next((workplace / ".quorum" / "explored").glob("*"))
    store = TripletStore.open(folder, Catalog("shop", "sqlite", ()))
    try:
        found = run("explore", "--db", shop, *OFFLINE, "--resume")
    finally:
        store.close()
    assert found.exit_code == 2
    assert "is being explored by another process" in found.output


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
    verified = run("kb", "verify", "--triplets", "--db", "sample", "--home", "broken")
    assert verified.stderr.strip() == f"{len(shapes)} of {len(shapes)} queries held."
