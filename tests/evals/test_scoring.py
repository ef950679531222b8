"""Scoring what somebody else produced: results and queries."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.recorded.candidates import load_candidates
from quorum.evals.scorers.spider2 import load_gold
from quorum.evals.scoring import open_gold, score_results, score_suite
from quorum.knowledge.errors import ConfigurationError
from tests.evals.recordings import write_gold
from tests.evals.small_suite import small_suite


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


def test_a_missing_result_scores_0_and_all_of_the_gold_are_asked(tmp_path: Path, pred: Path) -> None:
    gold = load_gold(write_gold(tmp_path / "gold", q1=1, q2=2, q3=3, q4=4))
    write(pred, q1="1", q2="7", q9="1")
    scores = score_results(gold, pred)
    assert scores.as_json() == {"q1": 1, "q2": 0, "q3": 0, "q4": 0}
    assert scores.answered == {"q1", "q2"}
    assert scores.predictions.unknown == ("q9.csv",)
    assert scores.verdicts["q1"].reason == "q1.csv"
    assert scores.verdicts["q3"].reason == "there is no prediction"
    mean = scores.mean("ex")
    assert (mean.mean, mean.n) == (0.25, 4)
    assert mean.se == pytest.approx(0.25)  # sqrt(0.25 / 4), the sample variance of one 1 and three 0


def test_only_the_ids_asked_for_are_scored_in_their_order(tmp_path: Path, pred: Path) -> None:
    gold = load_gold(write_gold(tmp_path / "gold", q1=1, q2=2))
    write(pred, q1="1")
    assert list(score_results(gold, pred, ["q2", "q1"]).as_json().items()) == [("q2", 0), ("q1", 1)]
    with pytest.raises(ConfigurationError, match=r"no question 'q7' \(and 1 more"):
        score_results(gold, pred, ["q1", "q7", "q8"])


def test_the_gold_may_be_named_by_the_benchmarks_folder(tmp_path: Path) -> None:
    write_gold(tmp_path / "snow" / "evaluation_suite" / "gold", q1=1)
    assert open_gold(tmp_path / "snow").ids == ["q1"]
    assert open_gold(tmp_path / "snow", "snow").edition == "snow"
    with pytest.raises(ConfigurationError, match=r"2\.0-Snow, not of -Lite"):
        open_gold(tmp_path / "snow", "lite")


async def test_queries_run_and_results_are_read(tmp_path: Path, pred: Path) -> None:
    write(pred, q1="SELECT 3", q2="Bo", q3="7", zz="1")
    scores = await score_suite(small_suite(tmp_path), pred)
    assert scores.as_json() == {"q1": 1, "q2": 1, "q3": 0}
    assert scores.predictions.unknown == ("zz.csv",)
    assert scores.mean("points").mean == pytest.approx(20 / 3)


async def test_the_query_counts_where_both_are_there(tmp_path: Path, pred: Path) -> None:
    write(pred, q1="3")
    write(pred, q1="SELECT 99")
    scores = await score_suite(small_suite(tmp_path), pred, ["q1"])
    assert (scores.as_json(), scores.verdicts["q1"].reason) == ({"q1": 0}, "not 3")


async def test_a_query_that_fails_or_writes_scores_0_and_says_why(tmp_path: Path, pred: Path) -> None:
    write(pred, q1="SELECT nope FROM pet")
    (pred / "q2.sql").write_text("DROP TABLE pet")
    (pred / "q3.sql").write_text("")
    scores = await score_suite(small_suite(tmp_path), pred)
    assert scores.as_json() == {"q1": 0, "q2": 0, "q3": 0}
    assert scores.verdicts["q1"].reason.startswith("the query fails: ")
    assert "nope" in scores.verdicts["q1"].reason
    assert scores.verdicts["q2"].reason.startswith("the query fails: ")
    assert scores.verdicts["q3"].reason == "there is no prediction"
    assert scores.answered == {"q1", "q2"}


async def test_gold_that_fails_cannot_be_scored_and_is_in_no_mean(tmp_path: Path, pred: Path) -> None:
    suite = small_suite(tmp_path, golds={"q1": "SELECT 3", "q2": "SELECT nope FROM pet"})
    write(pred, q1="SELECT 3", q2="SELECT 3")
    scores = await score_suite(suite, pred)
    assert scores.as_json() == {"q1": 1, "q2": None}
    assert {id: v.reason for id, v in scores.unscorable.items()} == {"q2": "the gold fails"}
    assert (scores.mean("ex").mean, scores.mean("ex").n) == (1.0, 1)


async def test_a_database_that_cannot_be_opened_leaves_the_others_alone(tmp_path: Path, pred: Path) -> None:
    suite = small_suite(tmp_path)
    lost = dataclasses.replace(suite.questions[0], url=f"sqlite:///{tmp_path}/nowhere.sqlite")
    here, other = suite.questions[1:]
    apart = EvalQuestion("q4", "Here?", "pets", "schema://pets", "sqlite", ("SELECT 4",))
    write(pred, q1="3", q2="Bo", q3="1", q4="4")
    scores = await score_suite(dataclasses.replace(suite, questions=(lost, here, other, apart)), pred)
    assert scores.as_json() == {"q1": None, "q2": 1, "q3": 1, "q4": None}
    assert "nowhere.sqlite" in scores.verdicts["q1"].reason
    assert scores.verdicts["q4"].reason == "no database"


async def test_a_mistake_in_a_url_is_told_as_it_is(tmp_path: Path, pred: Path) -> None:
    suite = small_suite(tmp_path)
    questions = tuple(dataclasses.replace(question, url="nosuch://x") for question in suite.questions)
    with pytest.raises(ConfigurationError, match="no connector for nosuch"):
        await score_suite(Suite("small", tmp_path, questions, suite.scorer), pred)


def test_the_shared_recordings(shared: Path, pred: Path) -> None:
    """What is known of them."""
    gold = open_gold(shared / "data" / "spider2-snow", "snow")
    recorded = load_candidates(shared / "data" / "candidates")
    right = {}
    for model, answers in recorded.models.items():
        (pred / model).mkdir()
        for id, answer in answers.items():
            if answer.final and answer.final.path.is_file():
                (pred / model / f"{id}.csv").symlink_to(answer.final.path)
        right[model] = score_results(gold, pred / model).as_json()
    assert {model: sum(map(bool, scores.values())) for model, scores in right.items()} == {
        "gpt-4o": 20,
        "o3": 42,
    }
    assert {len(scores) for scores in right.values()} == {281}
