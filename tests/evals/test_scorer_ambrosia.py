"""AMBROSIA's rules: which results are the same, and what all that an answer shows is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.report import report
from quorum.evals.running.databases import OpenDatabase
from quorum.evals.running.verdicts import judge
from quorum.evals.scorers.ambrosia import AmbrosiaScorer, same
from quorum.evals.scorers.base import Prediction, Verdict
from quorum.graph.answer import AnswerReading
from tests.evals import evaluations
from tests.evals.judged import answer, kept
from tests.evals.shop import Runner
from tests.evals.shop import question as asking

SCORER = AmbrosiaScorer()
NAMES, IDS = "SELECT name FROM users", "SELECT id FROM users"
BOTH = "SELECT id, name FROM users"


def ambiguous(*gold: str, ambiguity: str = "ambiguous") -> EvalQuestion:
    return replace(asking(*gold), groups={"ambiguity": ambiguity, "kind": "vague"})


def test_results_are_the_same_cells(subtests: pytest.Subtests) -> None:
    for found, gold, ordered, is_same in (
        ([(1, "a"), (2, "b")], [("b", 2), ("a", 1)], False, True),
        ([(1, "b"), (2, "a")], [(1, "a"), (2, "b")], False, True),  # rows are not held together
        ([(1,), ("a",), (2,), ("b",)], [(1, "a"), (2, "b")], False, True),  # nor are columns
        ([(1,)], [(1.0,)], False, True),
        ([(1,)], [("1",)], False, False),
        ([(1,), (1,)], [(1,)], False, False),
        ([(None,)], [(None,)], False, True),
        ([], [], False, False),
        ([(1, "a"), (2, "b")], [("a", 1), ("b", 2)], True, True),
        ([(2, "b"), (1, "a")], [(1, "a"), (2, "b")], True, False),
        ([(1, "b"), (2, "a")], [(1, "a"), (2, "b")], True, False),
        ([(1, "a", "x")], [(1, "a")], True, False),
        ([(None, 2, b"x")], [(b"x", None, 2.0)], True, True),
        ([(1,)], [(1,), (2,)], True, False),
    ):
        with subtests.test(found=found):
            assert same(found, gold, ordered=ordered) is is_same


@pytest.mark.parametrize(
    ("sql", "met", "reason"),
    [
        ("SELECT id FROM users ORDER BY 1 DESC", (1,), ""),
        (NAMES, (0,), ""),
        ("SELECT age FROM users", (), "other values than the gold, or another order of rows"),
        ("SELECT id FROM users LIMIT 1", (), "1 cell, the gold has 4 or 4 or 8"),
        ("SELECT id FROM users WHERE id > 9", (), "the result has no row"),
        ("SELECT lost FROM users", (), "no such column: lost"),
    ],
)
async def test_an_answer_alone_finds_one_reading_at_most(
    run: Runner, sql: str, met: tuple[int, ...], reason: str
) -> None:
    verdict = await SCORER.score(ambiguous(NAMES, IDS, BOTH), Prediction(sql), run)
    assert verdict.met == met
    assert reason in verdict.reason
    part = len(met) / 3
    ex = float(bool(met))
    assert verdict.metrics == {"ex": ex, "recall": part, "all_found": 0, "precision": ex, "false_alarm": None}


async def test_the_order_counts_where_the_gold_says_so(run: Runner) -> None:
    asked = ambiguous(f"{NAMES} order by id DESC", IDS)
    for order, met in (("DESC", (0,)), ("ASC", ())):
        verdict = await SCORER.score(asked, Prediction(f"{NAMES} ORDER BY id {order}"), run)
        assert verdict.met == met


def verdict(*met: int) -> Verdict:
    return Verdict({"ex": float(bool(met))}, met=met)


@pytest.mark.parametrize(
    ("shown", "recall", "found", "precision", "alarm"),
    [
        ([verdict(0)], 1 / 2, 0, 1, 0),
        ([verdict(0), verdict(1)], 1, 1, 1, 0),
        ([verdict(), verdict(1)], 1 / 2, 0, 1 / 2, 1),
        ([verdict(0), verdict(), verdict(1), verdict()], 1, 1, 1 / 2, 1),
        ([verdict(0), verdict(0)], 1 / 2, 0, 1, 0),  # the same by these rules
        ([verdict()], 0, 0, 0, 0),
        ([verdict(), verdict()], 0, 0, 0, 1),
    ],
)
def test_what_is_shown_of_readings(
    shown: list[Verdict], recall: float, found: float, precision: float, alarm: float
) -> None:
    """Another result for a plain question is a false alarm."""
    metrics = SCORER.of_shown(ambiguous(NAMES, IDS), shown)
    assert metrics == {"recall": recall, "all_found": found, "precision": precision, "false_alarm": None}
    if (1,) not in [each.met for each in shown]:
        metrics = SCORER.of_shown(ambiguous(IDS, ambiguity="plain"), shown)
        expected = {"recall": None, "all_found": None, "precision": None, "false_alarm": alarm}
        assert metrics == expected


async def test_gold_is_verified_reading_by_reading(run: Runner) -> None:
    assert (await SCORER.verify(ambiguous(NAMES, IDS, BOTH), run)).state == "ok"
    twice = await SCORER.verify(ambiguous(NAMES, IDS, "SELECT id + 0 FROM users"), run)
    assert (twice.state, twice.reason) == ("differs", "queries 2 and 3 give the same result")
    assert (await SCORER.verify(ambiguous("SELECT gone FROM users"), run)).state == "fails"
    assert (await SCORER.verify(ambiguous(IDS, ambiguity="plain"), None)).state == "not_live"


ALL, ONE = "SELECT COUNT(*) AS orders FROM orders", "SELECT 1"


async def test_the_readings_of_an_answer_are_judged_with_it(
    question: EvalQuestion, database: OpenDatabase, tmp_path: Path
) -> None:
    asked = replace(
        question, gold_sql=(ALL, "SELECT MAX(id) + 1 FROM orders"), groups={"ambiguity": "ambiguous"}
    )
    readings = [
        AnswerReading(says="Named only."),
        AnswerReading(says="One.", sql=ONE, result_file=kept(tmp_path, {"n": [1]})),
        AnswerReading(says="One more.", sql="SELECT 41", result_file=kept(tmp_path, {"n": [41]})),
    ]
    given = answer(sql=ALL, result_file=kept(tmp_path, {"n": [40]}), row_count=1, readings=readings)
    record = await judge(asked, given, SCORER, database, tmp_path)
    assert (record.match, record.met) == (True, (0,))
    judged = [(row.says, row.match, row.met) for row in record.readings]
    assert judged == [("One.", False, ()), ("One more.", True, (1,))]
    assert record.metrics == {"ex": 1, "recall": 1, "all_found": 1, "precision": 2 / 3, "false_alarm": None}


async def test_a_wrong_answer_with_a_right_reading(
    question: EvalQuestion, database: OpenDatabase, tmp_path: Path
) -> None:
    """No candidate is right, so pass@k is 0; some reading is."""
    reading = AnswerReading(says="All.", sql=ALL, result_file=kept(tmp_path, {"n": [40]}))
    given = answer(sql=ONE, result_file=kept(tmp_path, {"n": [1]}), row_count=1, readings=[reading])
    record = await judge(question, given, SCORER, database, tmp_path)
    assert (record.match, record.possible, record.some_reading) == (False, False, True)
    assert record.metrics["false_alarm"] == 1


def test_reports_take_a_metric_over_the_questions_that_it_is_for(tmp_path: Path) -> None:
    """Of an ambiguous question, one without an answer, one not asked yet, and a plain one."""
    asked = [
        evaluations.asked(id, groups={"ambiguity": kind}, difficulty=f"{kind} scope")
        for id, kind in (("a", "ambiguous"), ("b", "ambiguous"), ("c", "ambiguous"), ("p", "plain"))
    ]
    of_ambiguous = {"ex": 1.0, "recall": 1.0, "all_found": 1.0, "precision": 1.0}
    records = [
        evaluations.record("a", metrics=of_ambiguous | {"false_alarm": None}),
        evaluations.unanswered("b", "no_sql", match=False, metrics={"recall": 0.0}),
        evaluations.record("p", metrics={"ex": 1.0, "recall": None, "false_alarm": 1.0}),
    ]
    metrics = tuple(
        {"name": m.name, "title": m.title, "meaning": m.meaning, "only": m.only} for m in SCORER.metrics
    )
    summary = evaluations.opened(tmp_path / "run", records, asked, metrics=metrics)
    recall, alarm = summary.frame.mean("recall"), summary.frame.mean("false_alarm")
    assert (recall.n, recall.mean, recall.se) == (3, pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (alarm.n, alarm.mean) == (1, 1.0)
    parts = summary.frame.by("ambiguity")
    assert [(label, len(part.rows)) for label, part in parts.items()] == [("ambiguous", 3), ("plain", 1)]
    assert parts["plain"].mean("recall").mean is None
    assert "| ambiguous | 3 | 6.1 – 79.2 | 33.3 ± 33.3 |" in report([summary])
