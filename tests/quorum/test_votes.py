"""``quorum votes``: the table, the JSON, the curves, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from quorum.evals.records import CandidateRow
from quorum.graph.confidence import load
from tests.evals.evaluations import asked, manifest, record, write, write_candidates, write_gold
from tests.quorum.conftest import quorum

votes = partial(quorum, "votes")


@pytest.fixture
def runs(workplace: Path) -> str:
    folder = workplace / "runs"
    write_candidates(folder, "weak", {"q1": [9, 9, 1], "q2": [9, 8]}, q1=9, q2=9)
    write_candidates(folder, "strong", {"q1": [1, 1, 1], "q2": [2, None]}, q1=1)
    return str(folder)


@pytest.fixture
def gold(workplace: Path) -> str:
    return str(write_gold(workplace / "gold", q1=1, q2=2))


@pytest.mark.heavy
def test_the_table_marks_the_best_of_each_model_and_curves_are_drawn(
    runs: str, gold: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vl_convert")
    curves = workplace / ".quorum" / "replay"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "vl_convert", None)
        lacking = votes("replay", runs, "--gold", gold)
    assert (lacking.exit_code, curves.exists()) == (0, False)
    assert "needs the package vl_convert." in lacking.stderr
    result = votes("replay", runs, "--gold", gold)
    assert (result.exit_code, result.stdout) == (0, lacking.stdout)
    tables = re.split(r"^ *(strong|weak|pooled): ", result.stdout, flags=re.MULTILINE)[1:]
    assert tables[::2] == ["strong", "weak", "pooled"]
    assert [len(re.findall(r" \* ", table)) for table in tables[1::2]] == [1, 1, 1]
    assert re.search(r"\* +\S+ +100.0 +100.0-100.0 +0.0 +2.50 +0.213", tables[1].splitlines()[4])
    assert sorted(path.name for path in curves.iterdir()) == [
        f"{name}.{kind}" for name in ("error", "regret", "weights") for kind in ("png", "svg")
    ]
    for said in (".quorum/replay/weights.svg", "none holds: an expert has several candidates"):
        assert said in result.stderr


def test_what_the_pipeline_chose_has_a_row_of_its_own(runs: str, gold: str) -> None:
    rows = json.loads(votes("replay", runs, "--gold", gold, "--json", "--orders", "3").stdout)
    chosen = [row for row in rows if row["strategy"] == "final" and row["model"] != "pooled"]
    found = {row["model"]: (row["ex"], row["pass_at_k"], row["ties"]) for row in chosen}
    assert found == {"strong": (0.5, 1.0, None), "weak": (0.0, 0.5, None)}


def test_without_gold_accuracy_is_unknown_and_said_to_be(runs: str) -> None:
    shown = votes("replay", runs, "--json")
    assert {(row["ex"], row["pass_at_k"]) for row in json.loads(shown.stdout)} == {(None, None)}
    assert "(no --gold, or" in shown.stderr
    assert "Curves" not in shown.stderr


def test_what_is_wrong_is_said_and_ends_with_2(runs: str, gold: str, workplace: Path) -> None:
    write_gold(workplace / "foreign", other=1)
    for arguments, said in (
        ("replay nowhere", "There is no folder"),
        ("replay runs --gold nowhere", "no Spider 2.0 gold folder"),
        ("replay runs --gold foreign", "knows none of the 2 questions"),
        ("replay runs --gold gold --dialect klingon", "klingon"),
        ("calibrate runs", "--gold"),
    ):
        result = votes(*arguments.split())
        assert (result.exit_code, said in result.stderr) == (2, True)


def test_a_calibration_is_shown_before_and_after_and_written(runs: str, gold: str, workplace: Path) -> None:
    out = workplace / "made" / "confidence.json"
    shown = votes("calibrate", runs, "--gold", gold, "--out", str(out))
    told = [line.split()[:2] for line in shown.stdout.splitlines() if re.search(r"0\.\d{3}", line)]
    assert told == [[source, first] for source in ("all,", "candidates,") for first in ("as", "refitted")]
    assert shown.stdout.split()[0] == f"{load(out).votes:,}"
    rows = (CandidateRow("c1", "m", "SELECT 1"), CandidateRow("c2", "m", "SELECT 1"))
    vote = {"winner": "c1", "clusters": [{"candidates": ["c1", "c2"], "share": 1.0}]}
    records = [record(id, match=id != "b", candidates=rows, vote=vote) for id in "abcd"]
    folder = write(workplace / "all" / "one", manifest([asked(id) for id in "abcd"]), records)
    for named in (folder, folder.parent):
        assert votes("calibrate", str(named)).stdout.startswith("4 votes; ")
