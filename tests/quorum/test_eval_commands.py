"""``quorum eval`` report, compare, score, export and verify-gold: output, files, errors."""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.graph.trace import Trace
from tests.evals import test_export as exports
from tests.evals.evaluations import asked, manifest, record, write, write_gold
from tests.evals.shop import write_spider1
from tests.quorum.conftest import HOSTILE
from tests.quorum.conftest import quorum as command

IDS = "abcd"
quorum = partial(command, "eval")


def evaluation(folder: Path, right: str, answer: dict[str, Any], *, traced: str = IDS, **values: Any) -> Path:
    """An evaluation of ``IDS`` with the traces of its runs."""
    records = [record(id, match=id in right, reason="" if id in right else HOSTILE) for id in IDS]
    write(folder, manifest([asked(id) for id in IDS], **values), records)
    for id in traced:
        trace = Trace.create(folder, id, {"question": f"What is {id}?", "options": {}})
        trace.finish(answer)
        trace.close()
    return folder


@pytest.fixture
def pair(workplace: Path, answer: dict[str, Any]) -> tuple[Path, Path]:
    return (
        evaluation(workplace / "evals" / "base # 1", "ab", answer),
        evaluation(workplace / "evals" / "new", "bcd", answer),
    )


@pytest.fixture
def data(workplace: Path) -> Path:
    """Two questions in Spider 1.0's layout."""
    return write_spider1(workplace / "spider1")


@pytest.fixture
def gold(workplace: Path) -> Path:
    return write_gold(workplace / "gold", q1=1, q2=2, q3=3)


@pytest.fixture
def pred(workplace: Path) -> Path:
    """Predictions for ``gold``: q1 right, q2 wrong, q3 as SQL, which nothing runs, and one of no question."""
    folder = workplace / "pred"
    folder.mkdir()
    for name, number in {"q1.csv": 1, "q2.csv": 9, "q7.csv": 1}.items():
        (folder / name).write_text(f"n\n{number}\n")
    (folder / "q3.sql").write_text("SELECT 3")
    return folder


MISUSED = [
    (["report", "nowhere"], "There is no folder nowhere"),
    (["report", "evals/new", "--html", "evals"], "is a folder, not a file"),
    (["compare", "evals/new", "nowhere"], "There is no folder nowhere."),
    (["compare", "evals/new", "other"], "different suites"),
    (["verify-gold", "spider1"], "--data is missing"),
    (["score", "spider2", "--pred", "pred"], "--gold is missing"),
    (["score", "spider2", "--pred", "pred", "--gold", "pred"], "no Spider 2.0 gold folder"),
    (["score", "spider2-lite", "--pred", "pred", "--gold", "gold"], "gold of Spider 2.0-Snow, not of -Lite"),
    (["score", "spider3", "--pred", "pred", "--gold", "gold"], "no suite 'spider3'"),
    (["score", "spider2", "--pred", "pred", "--gold", "gold", "--ids", "ids"], "no question 'q8'"),
    (["score", "spider1", "--pred", "pred", "--db", "sample", "--gold", "gold"], "brings its databases"),
]


@pytest.mark.usefixtures("data", "gold", "pred")
def test_what_is_wrong_is_said_with_exit_code_2(
    workplace: Path, pair: tuple[Path, Path], answer: dict[str, Any], subtests: pytest.Subtests
) -> None:
    (workplace / "empty").mkdir()
    (workplace / "ids").write_text("q8\n")
    (workplace / "mine.jsonl").write_text(json.dumps({"id": "q1", "question": "?", "sql": "SELECT 1"}) + "\n")
    evaluation(workplace / "other", "a", answer, suite="other")
    for arguments, said in MISUSED:
        with subtests.test(arguments=arguments):
            result = quorum(*arguments)
            assert result.exit_code == 2
            assert said in " ".join(result.stderr.split())
    assert json.loads(quorum("compare", pair[0], "other", "--json").stdout)["error"]["kind"] == (
        "ConfigurationError"
    )
    (pair[0] / "results.jsonl").write_text("{}\n", encoding="utf-8")
    assert "Line 1 of" in quorum("report", pair[0]).stderr


# report


def test_a_report_is_markdown_or_json(pair: tuple[Path, Path]) -> None:
    shown = quorum("report", pair[0]).stdout
    assert shown.startswith("# 1 evaluation\n")
    assert "| EX, % | 50.0 ± 28.9 of 4 |" in shown
    (found,) = json.loads(quorum("report", pair[0], "--json").stdout, parse_constant=pytest.fail)
    assert (found["suite"], found["figures"]["ex"]["mean"]) == ("shops", 0.5)


def test_the_page_links_every_question_to_its_trace(
    workplace: Path, run: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda found: [])  # drawing takes time
    folder = workplace / "run"
    records = [record(id, run=f"runs/{id}") for id in "abc"]
    write(folder, manifest([asked(id) for id in "abc"]), records)
    for id in "ab":
        shutil.copytree(run.folder, folder / "runs" / id)
    result = quorum("report", folder, "--html", "page.html")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "Question c has no trace to link to. " in result.stderr
    links = re.findall(r'href="([^"]+)"', Path("page.html").read_text(encoding="utf-8"))
    assert links == ["run/runs/a/trace.html", "run/runs/b/trace.html"]
    first, second = (Path(link) for link in links)
    assert "<title>What is the average rating?" in first.read_text(encoding="utf-8")
    first.write_text("as new as the run")
    second.write_text("old")
    os.utime(second, (1, 1))
    quorum("report", folder, "--html", "page.html")
    assert first.read_text() == "as new as the run"
    assert second.read_text(encoding="utf-8") != "old"
    for id in "ab":
        shutil.rmtree(folder / "runs" / id)
    lacking = quorum("report", folder, "--html", "page.html")
    assert "3 questions have no trace to link to (a, b, c). " in lacking.stderr


# compare


def test_its_json_names_the_runs_of_what_flipped_and_no_place(pair: tuple[Path, Path]) -> None:
    found = json.loads(quorum("compare", *pair, "--json").stdout)
    assert {flip["id"]: (flip["change"], flip["a"]["run"]) for flip in found["flips"]} == {
        "a": ("lost", "runs/a"), "c": ("gained", "runs/c"), "d": ("gained", "runs/d"),
    }  # fmt: skip
    text = quorum("compare", *pair).stdout
    assert text.startswith("# shops: base \\# 1 against new\n")
    assert not re.search(r"(?<!\\)<script|\x1b", text)
    assert str(pair[0]) not in text


# score


@pytest.mark.parametrize("suite", ["spider2", "spider2-snow"])
def test_scores_are_json_by_id_or_a_table(suite: str, pred: Path, gold: Path, workplace: Path) -> None:
    given = ("score", suite, "--pred", pred, "--gold", gold)
    result = quorum(*given, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"q1": 1, "q2": 0, "q3": 0}
    assert "the gold knows no such question: q7.csv (1)." in result.stderr
    assert "Not read: q3.sql (1)." in result.stderr
    table = quorum(*given, "--verbose").stdout
    for said in (
        f"{suite}: 2 of 3 questions answered",
        "33.3 ± 33.3 %",
        "right  q1  q1.csv",
        "wrong  q2  q2.csv: no column matches column 0 (n)",
        "wrong  q3  there is no prediction",
    ):
        assert said in table
    (workplace / "ids").write_text("# two\nq3\n\nq1\n")
    (pred / "q1.csv").write_bytes(b"n\n\xff\n")
    (pred / "\x1b[31mred.csv").write_text("n\n1\n")
    some = quorum(*given, "--ids", "ids", "--json")
    assert json.loads(some.stdout) == {"q1": 0, "q3": 0}
    assert "1 prediction of questions that were not asked for." in some.stderr
    assert "Results that cannot be read score 0: q1 (1)." in some.stderr
    assert ("red.csv" in some.stderr, "\x1b" in some.stderr) == (True, False)


# export


def test_an_export_says_what_was_written(workplace: Path) -> None:
    answers = {
        "q0": (pa.table({"n": [1]}), {}),
        "q1": (pa.table({"n": [2]}), {"status": "stopped"}),
    }
    done = exports.evaluation(workplace / "eval", [f"q{number}" for number in range(30)], answers)
    given = ("export", done, "--format", "spider2-csv", "--out", "sub")
    result = quorum(*given)
    assert (result.exit_code, result.stdout) == (0, "sub: 2 of 30 questions written as spider2-csv.\n")
    assert sorted(path.name for path in (workplace / "sub").glob("*.csv")) == ["q0.csv", "q1.csv"]
    for said in ("Among them: 1 best effort", "Without an answer: 28 questions.", "  q29: it has not been"):
        assert said in result.stderr
    assert "sub is not empty" in quorum(*given).stderr
    assert "these are 30 entries" in quorum("export", done, "--format", "bird", "--out", "bird").stderr
    assert len(json.loads((workplace / "bird" / "predict_dev.json").read_text())) == 30


# verify-gold


def test_gold_is_checked_and_what_fails_is_named(data: Path, workplace: Path) -> None:
    whole = quorum("verify-gold", "spider1", "--data", data)
    assert (whole.exit_code, whole.stdout.startswith("spider1: the gold of 2 questions\n")) == (0, True)
    entries = json.loads((data / "dev.json").read_text())
    entries[1]["query"] = "SELECT nope FROM users"
    entries.append({"db_id": "shops", "question": "?", "query": "SELECT 1"})
    (data / "dev.json").write_text(json.dumps(entries))
    result = quorum("verify-gold", "spider1", "--data", data)
    assert result.exit_code == 1
    assert re.search(r"^fails +0001 .*nope", result.stdout, re.MULTILINE)
    assert "shops" in result.stderr, "what could not be checked"
    found = json.loads(quorum("verify-gold", "spider1", "--data", data, "--json").stdout)
    assert (found["0000"], found["0001"]["state"]) == ({"state": "ok", "reason": "", "rows": 1}, "fails")
    (workplace / "ids").write_text("0000\n")
    some = quorum("verify-gold", "spider1", "--data", data, "--ids", "ids", "--json")
    assert (some.exit_code, list(json.loads(some.stdout))) == (0, ["0000"])
