"""Scoring what somebody else produced: results and queries."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.running.databases import GOLD_LIMITS
from quorum.evals.scorers.base import GoldCheck, Prediction
from quorum.evals.scoring import gold_suite, score_suite, verify_gold
from quorum.evals.submissions import BIRD_MARK, bird_file, find_predictions, read_bird
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import write_gold
from tests.evals.shop import GOLDS, small_suite


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    folder = tmp_path / "pred"
    folder.mkdir()
    return folder


def write(folder: Path, **texts: str) -> None:
    """Files by question: a query where the text begins with SELECT, else a result of one number."""
    for id, text in texts.items():
        if text.startswith("SELECT"):
            (folder / f"{id}.sql").write_text(text)
        else:
            (folder / f"{id}.csv").write_text(f"n\n{text}\n")


async def test_a_missing_result_scores_0_and_all_of_the_gold_are_asked(tmp_path: Path, pred: Path) -> None:
    suite = gold_suite(write_gold(tmp_path / "gold", q1=1, q2=2, q3=3, q4=4))
    write(pred, q1="1", q2="7", q9="1")
    scores = await score_suite(suite, pred)
    assert scores.as_json() == {"q1": 1, "q2": 0, "q3": 0, "q4": 0}
    assert scores.answered == {"q1", "q2"}
    assert scores.predictions.unknown == ("q9.csv",)
    reasons = [verdict.reason for verdict in scores.verdicts.values()]
    assert reasons[::2] == ["q1.csv", "there is no prediction"]
    mean = scores.mean("ex")
    assert (mean.mean, mean.n, mean.se) == (0.25, 4, pytest.approx(0.25))  # sqrt(0.25 / 4)
    assert (await score_suite(suite, pred, ["q2", "q1"])).as_json() == {"q1": 1, "q2": 0}
    with pytest.raises(ConfigurationError, match=r"The gold in .* no question 'q7' \(and 1 more"):
        await score_suite(suite, pred, ["q1", "q7", "q8"])


def test_the_gold_may_be_named_by_the_benchmarks_folder(tmp_path: Path) -> None:
    write_gold(tmp_path / "snow" / "evaluation_suite" / "gold", q1=1)
    for edition in ("", "snow"):
        assert [question.id for question in gold_suite(tmp_path / "snow", edition).questions] == ["q1"]
    with pytest.raises(ConfigurationError, match=r"2\.0-Snow, not of -Lite"):
        gold_suite(tmp_path / "snow", "lite")


async def test_queries_run_results_are_read_and_failing_gold_is_in_no_mean(
    tmp_path: Path, pred: Path
) -> None:
    more = {"q4": "SELECT 4", "q5": "SELECT 5", "q6": "SELECT 6", "q7": "SELECT nope FROM users"}
    suite = small_suite(tmp_path, GOLDS | more)
    write(pred, q1="99", q2="Ada", q3="7", q4="SELECT nope FROM users", zz="1")
    write(pred, q1="SELECT 4", q7="SELECT nada FROM users")  # where both are there, the query counts
    (pred / "q5.sql").write_text("DROP TABLE users")
    (pred / "q6.sql").write_text("")
    scores = await score_suite(suite, pred)
    assert scores.as_json() == {"q1": 1, "q2": 1, "q3": 0, "q4": 0, "q5": 0, "q6": 0, "q7": None}
    assert list(scores.unscorable) == ["q7"]
    assert "no column nope" in scores.unscorable["q7"].reason
    assert scores.predictions.unknown == ("zz.csv",)
    assert (scores.mean("contains").mean, scores.mean("ex").n) == (pytest.approx(2 / 6), 6)
    reasons = [scores.verdicts[id].reason for id in ("q4", "q5", "q6")]
    assert reasons[0].startswith("the query fails: ")
    assert "nope" in reasons[0]
    assert reasons[1].startswith("the query fails: ")
    assert reasons[2] == "there is no prediction"
    assert scores.answered == {"q1", "q2", "q3", "q4", "q5", "q7"}


async def test_a_part_of_a_result_is_no_match(
    tmp_path: Path, pred: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.evals.scoring.GOLD_LIMITS", dataclasses.replace(GOLD_LIMITS, rows=1))
    write(pred, q2="SELECT name FROM users WHERE age > 30 UNION ALL SELECT 'Cy'", q3="SELECT 1")
    scores = await score_suite(small_suite(tmp_path), pred, ["q2", "q3"])
    assert scores.as_json() == {"q2": 0, "q3": 1}


async def test_a_database_that_cannot_be_opened_leaves_the_others_alone(tmp_path: Path, pred: Path) -> None:
    suite = small_suite(tmp_path)
    lost = dataclasses.replace(suite.questions[0], url=f"sqlite:///{tmp_path}/nowhere.sqlite")
    here, other = suite.questions[1:]
    apart = EvalQuestion("q4", "Here?", "shop", "schema://shop", "sqlite", ("SELECT 4",))
    write(pred, q1="3", q2="Ada", q3="1", q4="4")
    scores = await score_suite(dataclasses.replace(suite, questions=(lost, here, other, apart)), pred)
    assert scores.as_json() == {"q1": None, "q2": 1, "q3": 1, "q4": None}
    assert "nowhere.sqlite" in scores.verdicts["q1"].reason
    assert scores.verdicts["q4"].reason == "the database is not here"
    wrong = dataclasses.replace(here, url="nosuch://x")
    with pytest.raises(ConfigurationError, match="no connector for nosuch"):
        await score_suite(dataclasses.replace(suite, questions=(wrong,)), pred)


def test_files_belong_to_questions_by_their_names(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "q3.csv").mkdir(parents=True)  # a folder is no prediction
    for name in ("q1.csv", "q2.csv", "q9.csv", "notes.txt", ".hidden.csv"):
        (files / name).write_text("n\n1\n")
    (files / "q1.sql").write_text("\ufeffSELECT 1\n")
    (files / "q8.sql").write_text("SELECT 8")
    found = find_predictions(files, ["q1", "q2", "q3"])
    assert found.found == {"q1": Prediction("", files / "q1.csv"), "q2": Prediction("", files / "q2.csv")}
    assert (found.unknown, found.unread) == (("q9.csv",), ("notes.txt", "q1.sql", "q8.sql"))
    found = find_predictions(files, ["q1", "q2", "q3"], sql=True)
    assert found.found["q1"] == Prediction("SELECT 1", files / "q1.csv")
    assert found.unknown == ("q8.sql", "q9.csv")
    assert found.remarks == ("1 questions have both a query and a result: the query counts.",)
    with pytest.raises(ConfigurationError, match=r"no folder .*nowhere"):
        find_predictions(tmp_path / "nowhere", [])
    (files / "q1.sql").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match=r"q1\.sql cannot be read"):
        find_predictions(files, ["q1"], sql=True)


def test_birds_entries_go_by_the_questions_place(tmp_path: Path) -> None:
    questions = small_suite(tmp_path).questions
    file = tmp_path / "predict_dev.json"
    entries = {
        "0": f" SELECT 1 {BIRD_MARK}shop",
        "1": "SELECT 2",  # BIRD's program takes an entry without a database for a query
        "2": 0,  # and what is no text for none
        "3": f"SELECT 3{BIRD_MARK}shop",
        "x": "SELECT 4",
    }
    file.write_text(json.dumps(entries))
    found = read_bird(file, questions)
    assert found.found == {"q1": Prediction("SELECT 1"), "q2": Prediction("SELECT 2"), "q3": Prediction()}
    assert found.unknown == ("3", "x")
    assert found.remarks == ()
    file.write_text(json.dumps({"1": f"SELECT 1{BIRD_MARK}pets"}))
    assert "1 (pets, not shop)" in read_bird(file, questions).remarks[0]
    for text in ("[]", "{", '"SELECT 1"'):
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=r"predict_dev\.json (cannot be read|is no JSON object)"):
            read_bird(file, questions)


def test_birds_file_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    assert bird_file(folder) is None
    (folder / "predict_dev.json").write_text("{}")
    (folder / ".quorum-export").write_text("{}")
    assert bird_file(folder) == folder / "predict_dev.json" == bird_file(folder / "predict_dev.json")
    (folder / "other.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="several JSON files"):
        bird_file(folder)
    (folder / "0000.sql").write_text("SELECT 1")
    assert bird_file(folder) is None  # a folder of queries


CHECKED = {"q1": "SELECT COUNT(*) FROM users", "q2": "SELECT nope FROM users", "q3": "SELECT 1 WHERE 1 = 0"}


async def test_every_question_is_checked_on_its_database(tmp_path: Path) -> None:
    suite = small_suite(tmp_path, CHECKED)
    apart = EvalQuestion("q4", "Here?", "shop", "schema://shop", "sqlite", ("SELECT 4",))
    lost = dataclasses.replace(suite.questions[0], id="q5", url=f"sqlite:///{tmp_path}/nowhere.sqlite")
    questions = (lost, *suite.questions, apart)
    told: list[tuple[int, int]] = []
    found = await verify_gold(
        dataclasses.replace(suite, questions=questions),
        questions,
        on_done=lambda done, total: told.append((done, total)),
    )
    assert [(id, check.state) for id, check in found.items()] == [
        ("q5", "fails"), ("q1", "ok"), ("q2", "fails"), ("q3", "empty"), ("q4", "not_live"),
    ]  # fmt: skip
    assert "nowhere.sqlite" in found["q5"].reason
    assert "nope" in found["q2"].reason
    assert found["q1"] == GoldCheck("ok", "", 1)
    assert sorted(told)[-1] == (5, 5)
