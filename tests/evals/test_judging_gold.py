"""What is run for a verdict: gold once and under its own limits, predictions under those of their run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.running.databases import GOLD_LIMITS, Databases, GoldRun, Known, OpenDatabase, run_on
from quorum.evals.running.verdicts import judge_nothing
from quorum.evals.scorers.base import Scorer
from quorum.evals.scorers.bird import BirdScorer
from quorum.evals.scorers.defog import DefogScorer
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from tests.evals.judged import RIGHT, SQL, WRONG, answer, candidate, database, judged, kept, question
from tests.evals.running import Knowing, ShopConnector, evaluation, shops
from tests.evals.small_suite import SumScorer

__all__ = ["database", "question", "shops"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Limits]]:
    """The queries that reach a shop, with their limits."""
    found: list[tuple[str, Limits]] = []
    run = ShopConnector.run

    async def noted(self: ShopConnector, sql: str, limits: Limits) -> Any:
        found.append((sql, limits))
        return await run(self, sql, limits)

    monkeypatch.setattr(ShopConnector, "run", noted)
    return found


@pytest.mark.parametrize("scorer", [SumScorer(), Spider1Scorer(), BirdScorer(), DefogScorer(), OwnScorer()])
async def test_gold_runs_once_a_question_whatever_the_database_remembers(
    question: EvalQuestion,
    database: OpenDatabase,
    tmp_path: Path,
    ran: list[tuple[str, Limits]],
    monkeypatch: pytest.MonkeyPatch,
    scorer: Scorer,
) -> None:
    monkeypatch.setattr("quorum.tools.execute.KEPT_OUTCOMES", 0)
    right, wrong = kept(tmp_path, RIGHT), kept(tmp_path, WRONG)
    given = answer(candidate("c1", file=right), candidate("c2", "SELECT 7", wrong), result_file=right)
    record = await judged(question, given, database, tmp_path, scorer)
    assert [row.match for row in record.candidates] == [True, False]
    texts = [sql for sql, _ in ran]
    assert texts.count(SQL) == 1, "gold, and a prediction that is the gold's text"
    assert texts == [SQL] if scorer.rules in (SumScorer.rules, OwnScorer.rules) else [SQL, "SELECT 7"]


@pytest.mark.parametrize("scorer", [Spider1Scorer(), BirdScorer(), DefogScorer(), OwnScorer()])
async def test_a_prediction_has_the_seconds_of_its_run_and_gold_has_its_own(
    tmp_path: Path,
    shops: type[ShopConnector],
    question: EvalQuestion,
    ran: list[tuple[str, Limits]],
    scorer: Scorer,
) -> None:
    """One endless prediction must not hold up the questions that share the database."""
    for number, (seconds, allowed) in enumerate([(7.0, 7.0), (900.0, GOLD_LIMITS.seconds)]):
        given = evaluation(tmp_path, Knowing(), [question], query_timeout=seconds, max_rows=5)
        databases = Databases(given.options, chat_models=given.chat_models)
        folder = tmp_path / str(number)
        try:
            cut = kept(folder, {"n": [6]})
            made = answer(candidate("c1", "SELECT 7", cut, truncated=True), sql="", status="no_answer")
            await judged(question, made, await databases.of(question), folder, scorer)
        finally:
            await databases.aclose()
        limits = dict(ran)
        assert limits[SQL] == GOLD_LIMITS
        assert limits["SELECT 7"].seconds == allowed
        assert (limits["SELECT 7"].rows, limits["SELECT 7"].bytes) == (GOLD_LIMITS.rows, GOLD_LIMITS.bytes)


async def test_a_prediction_that_took_too_long_is_no_outcome_of_the_gold(
    question: EvalQuestion, database: OpenDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ShopConnector.run

    async def slow(self: ShopConnector, sql: str, limits: Limits) -> Any:
        if limits.seconds < GOLD_LIMITS.seconds:
            return QueryError(ErrorKind.TIMEOUT, "Too long.")
        return await run(self, sql, limits)

    monkeypatch.setattr(ShopConnector, "run", slow)
    gold = run_on(database, question, {})
    assert gold is not None
    assert isinstance(await gold.predicted(SQL), QueryError)
    assert isinstance(await gold(SQL), QueryResult)


async def test_of_a_question_the_gold_results_are_kept_and_those_of_a_prediction_for_its_verdict(
    question: EvalQuestion, database: OpenDatabase, ran: list[tuple[str, Limits]]
) -> None:
    known: Known = {}
    for times in (1, 2):
        run = run_on(database, question, known)
        assert run is not None
        for _ in range(2):
            await run(SQL)
            await run.predicted("SELECT 7")
            await run.predicted(SQL)
        assert [sql for sql, _ in ran] == [SQL, *["SELECT 7"] * times]
        assert list(known) == [SQL]


async def test_what_is_run_anew_is_run_and_replaces_nothing(
    database: OpenDatabase, ran: list[tuple[str, Limits]]
) -> None:
    run = GoldRun(database.gold)
    first = await run(SQL)
    again = await run.again(SQL)
    assert again is not first
    assert await run(SQL) is first
    assert len(ran) == 2


@pytest.mark.parametrize("scorer", [Spider1Scorer(), BirdScorer(), DefogScorer(), OwnScorer()])
@pytest.mark.parametrize(
    ("gold", "state", "match"),
    [
        (SQL, "ok", False),
        ("SELECT 1 FROM orders WHERE 0", "empty", False),
        ("SELECT nope", "fails", None),
    ],
)
async def test_the_state_of_the_gold_does_not_hang_on_the_answer(
    question: EvalQuestion,
    database: OpenDatabase,
    tmp_path: Path,
    scorer: Scorer,
    gold: str,
    state: str,
    match: bool | None,
) -> None:
    asked = dataclasses.replace(question, gold_sql=(gold,))
    ran = answer(candidate("c1", "SELECT 7", kept(tmp_path, WRONG)), sql="SELECT 7", status="no_answer")
    failed = answer(candidate("c1", "SELECT 7", error="timeout"), sql="SELECT 7", status="no_answer")
    for given in (ran, failed, answer(sql="", status="no_answer")):
        record = await judged(asked, given, database, tmp_path, scorer)
        assert (record.gold, record.match) == (state, match)
    nothing = await judge_nothing(asked, scorer, database)
    assert (nothing.gold, nothing.match) == (state, match)
