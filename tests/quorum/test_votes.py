"""``quorum votes replay``: the table, the JSON, the curves, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.evals.records import CandidateRow
from quorum.graph.confidence import load
from tests.evals.evaluations import asked, manifest, record, write
from tests.evals.recordings import write_candidates, write_gold


def quorum(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["votes", "replay", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


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
def test_json_is_a_list_of_rows_and_nothing_else(runs: str, gold: str) -> None:
    result = quorum(runs, "--gold", gold, "--json", "--orders", "3")
    rows = json.loads(result.stdout)
    assert result.exit_code == 0
    names = "model strategy stopping questions ex ex_low ex_high pass_at_k ties samples_mean"
    assert set(names.split()) <= set(rows[0])
    assert {row["model"] for row in rows} == {"strong", "weak", "pooled"}
    (majority,) = [
        r for r in rows if (r["model"], r["strategy"], r["stopping"]) == ("strong", "majority", "never")
    ]
    assert (majority["ex"], majority["questions"], majority["samples_mean"]) == (1.0, 2, 2.5)
    (final,) = [r for r in rows if (r["model"], r["strategy"]) == ("strong", "final")]
    assert (final["ex"], final["pass_at_k"], final["ties"]) == (0.5, 1.0, None)


@pytest.mark.heavy
def test_the_table_marks_the_best_of_each_model_and_curves_are_drawn(
    runs: str, gold: str, workplace: Path
) -> None:
    pytest.importorskip("vl_convert")
    result = quorum(runs, "--gold", gold)
    assert result.exit_code == 0
    tables = re.split(r"^ *(strong|weak|pooled): ", result.stdout, flags=re.MULTILINE)[1:]
    assert tables[::2] == ["strong", "weak", "pooled"]
    assert [len(re.findall(r" \* ", table)) for table in tables[1::2]] == [1, 1, 1]
    first = tables[1].splitlines()[4]
    assert re.search(r"\* +\S+ +100.0 +100.0-100.0 +0.0 +2.50 ", first)
    curves = workplace / ".quorum" / "replay"
    assert sorted(path.name for path in curves.iterdir()) == [
        f"{name}.{kind}" for name in ("error", "regret", "weights") for kind in ("png", "svg")
    ]
    assert str(Path(".quorum/replay/weights.svg")) in result.stderr
    assert "2 questions" in result.stderr


@pytest.mark.heavy
def test_where_no_bound_is_printed_the_reason_is(runs: str, gold: str) -> None:
    several = quorum(runs, "--gold", gold, "--json", "--orders", "1").stderr
    assert "(bound" not in several
    assert "Where no bound is shown, none holds: an expert has several candidates" in several
    first = quorum(runs, "--gold", gold, "--json", "--orders", "1", "--paper").stderr
    assert re.search(
        r"mistakes in 2 questions with gold and all experts: \S+ wma, \S+ an expert drawn", first
    )
    assert "none holds: of so few questions epsilon is above 1/2" in first


@pytest.mark.heavy
def test_curves_go_where_one_wants_them(runs: str, gold: str, workplace: Path) -> None:
    pytest.importorskip("vl_convert")
    assert quorum(runs, "--gold", gold, "--json", "--out", "pictures").exit_code == 0
    assert len(list((workplace / "pictures").iterdir())) == 6
    assert not (workplace / ".quorum" / "replay").exists()


def test_without_the_extra_the_table_is_printed_and_the_extra_named(
    runs: str, gold: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = quorum(runs, "--gold", gold)
    assert result.exit_code == 0
    assert "majority" in result.stdout
    assert "needs the package vl_convert." in result.stderr
    assert not (workplace / ".quorum" / "replay").exists()


def test_without_gold_accuracy_is_unknown_and_said_to_be(runs: str) -> None:
    rows = json.loads(quorum(runs, "--json").stdout)
    assert {(row["ex"], row["pass_at_k"]) for row in rows} == {(None, None)}
    shown = quorum(runs)
    assert "(no --gold, or" in shown.stderr
    assert " * " not in shown.stdout
    assert "Curves" not in shown.stderr


@pytest.mark.heavy
def test_questions_that_the_gold_lacks_are_named(runs: str, workplace: Path) -> None:
    result = quorum(runs, "--gold", str(write_gold(workplace / "less", q1=1)), "--json")
    assert "lacks 1 question, which count as wrong: q2" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "There is no folder"),
        (["runs/weak"], "holds no recorded candidates"),
        (["runs", "--gold", "nowhere"], "no Spider 2.0 gold folder"),
        (["runs", "--gold", "runs"], "no Spider 2.0 gold folder"),
        (["runs", "--gold", "foreign"], "knows none of the 2 questions"),
        (["runs", "--gold", "gold", "--dialect", "klingon"], "klingon"),
        (["runs", "--orders", "0"], "orders"),
    ],
)
def test_what_is_wrong_is_said_and_ends_with_2(
    runs: str, gold: str, workplace: Path, arguments: list[str], said: str
) -> None:
    write_gold(workplace / "foreign", other=1)
    result = quorum(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    result = quorum(*arguments, "--json")
    assert result.exit_code == 2
    assert said in json.loads(result.stdout)["error"]["message"]


def calibrate(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["votes", "calibrate", *arguments])


def test_a_calibration_is_shown_before_and_after_and_written(runs: str, gold: str, workplace: Path) -> None:
    out = workplace / "made" / "confidence.json"
    shown = calibrate(runs, "--gold", gold, "--out", str(out))
    assert shown.exit_code == 0
    told = [line.split()[:2] for line in shown.stdout.splitlines() if re.search(r"0\.\d{3}", line)]
    assert told == [[source, first] for source in ("all,", "candidates,") for first in ("as", "refitted")]
    values = json.loads(calibrate(runs, "--gold", gold, "--json").stdout)
    assert set(values["before"]) == set(values["after"]) == {"brier", "auroc"}
    made = load(out)
    assert made.votes
    assert (made.votes, made.brier) == (values["votes"], round(values["after"]["brier"], 4))


def test_evaluations_are_calibrated_on_and_candidates_need_gold(runs: str, workplace: Path) -> None:
    rows = (CandidateRow("c1", "m", "SELECT 1"), CandidateRow("c2", "m", "SELECT 1"))
    vote = {"winner": "c1", "clusters": [{"candidates": ["c1", "c2"], "share": 1.0}]}
    records = [record(id, match=id != "b", candidates=rows, vote=vote) for id in "abcd"]
    folder = write(workplace / "all" / "one", manifest([asked(id) for id in "abcd"]), records)
    for named in (folder, folder.parent):
        assert json.loads(calibrate(str(named), "--json").stdout)["votes"] == 4
    lacking = calibrate(runs)
    assert lacking.exit_code == 2
    assert "--gold" in lacking.stderr
