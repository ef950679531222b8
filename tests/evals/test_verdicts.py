"""What a record says of an answer: verdicts, validity, why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.running.databases import GOLD_LIMITS, DatabasePool, GoldRun, OpenDatabase, Outcomes, run_on
from quorum.evals.running.verdicts import FAULT, judge_nothing, kind_of, why
from quorum.evals.running.verdicts import judge as judge_answer
from quorum.evals.scorers.base import Prediction, RunSql, Scorer, Verdict
from quorum.evals.scorers.bird import BirdScorer
from quorum.evals.scorers.defog import DefogScorer
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.graph.answer import Answer
from quorum.graph.answering import check_machine
from quorum.knowledge.errors import (
    BudgetExceeded,
    ConfigurationError,
    DatabaseUnavailable,
    MachineFailed,
    MalformedReply,
    ModelUnavailable,
    QuorumError,
)
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from tests.evals.judged import RIGHT, SQL, WRONG, answer, candidate, kept
from tests.evals.running import Knowing, ShopConnector, evaluation


def failing(error: Exception) -> Scorer:
    """A scorer that raises it."""

    class Failing(OwnScorer):
        async def score(self, *_: Any) -> Verdict:
            raise error

    return Failing()


Judge = Callable[..., Awaitable[Record]]


@pytest.fixture
def judge(question: EvalQuestion, database: OpenDatabase, tmp_path: Path) -> Judge:
    """Judges an answer to the question."""

    async def of(given: Answer, scorer: Scorer | None = None, asked: EvalQuestion = question) -> Record:
        return await judge_answer(asked, given, scorer or OwnScorer(), database, tmp_path)

    return of


@pytest.fixture
def right(tmp_path: Path) -> str:
    return kept(tmp_path, RIGHT)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    return kept(tmp_path, WRONG)


async def test_candidates_are_judged_each_and_equal_ones_once(judge: Judge, right: str, wrong: str) -> None:
    seen: list[str] = []

    class Counting(OwnScorer):
        async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
            seen.append(prediction.sql)
            return await super().score(question, prediction, run)

    given = answer(
        candidate("c1", file=right),
        candidate("c2", file=right),
        candidate("c3", "SELECT 7", file=wrong),
        candidate("c4", SQL, error="timeout"),  # right, had it come to a result
        result_file=right,
        row_count=1,
    )
    record = await judge(given, Counting())
    assert (record.match, record.possible) == (True, True)
    assert [(row.match, row.error) for row in record.candidates] == [
        (True, ""), (True, ""), (False, ""), (False, "timeout")
    ]  # fmt: skip
    assert seen == [SQL, "SELECT 7", ""]
    assert record.result == f"runs/q00/results/{Path(right).name}"
    assert (record.rows, record.executes, record.valid) == (1, True, True)
    both = candidate("c1", "SELECT 7", wrong), candidate("c2", SQL, right)
    record = await judge(answer(*both, sql="SELECT 7", result_file=wrong))
    assert (record.match, record.possible) == (False, True), "a wrong answer with a right candidate"


async def test_a_part_of_a_result_is_not_judged_as_the_whole(judge: Judge, right: str) -> None:
    """Two queries may have a file of the same rows, of which one has more rows than it kept."""
    sql = "SELECT total FROM orders"
    whole, cut = candidate("c1", sql, right), candidate("c2", sql, right, truncated=True)
    record = await judge(answer(whole, cut, sql=sql, result_file=right))
    assert (record.match, record.truncated) == (True, False)
    assert [row.match for row in record.candidates] == [True, False]
    record = await judge(answer(cut, whole, sql=sql, result_file=right, truncated=True))
    assert (record.match, record.truncated, record.possible) == (False, True, True)
    record = await judge(answer(cut, sql=sql, status="no_answer"))
    assert (record.match, record.truncated) == (False, True), "a best effort is a candidate's result"


async def test_a_best_effort_is_judged_by_its_own_result(judge: Judge, tmp_path: Path) -> None:
    """A blank result does not vote, so the answer has none; its SQL ran all the same."""
    blank = kept(tmp_path, {"orders": [0]})
    other = candidate("c0", "SELECT 40", kept(tmp_path, RIGHT), row_count=9)
    record = await judge(answer(other, candidate("c1", file=blank, row_count=1), status="no_answer"))
    assert (record.status, record.error) == ("no_answer", "empty_result")
    assert (record.executes, record.rows, record.match) == (True, 1, False)
    assert record.result.endswith(Path(blank).name)


async def test_sql_without_a_result_is_valid_if_guard_and_lint_pass_it(judge: Judge) -> None:
    refused = ("SELECT nothing FROM orders", "DELETE FROM orders", "SELECT FROM WHERE")
    for sql, valid in {"SELECT total FROM orders": True, **dict.fromkeys(refused, False), "": None}.items():
        record = await judge(answer(candidate("c1", sql, error="timeout"), sql=sql, status="no_answer"))
        assert (record.valid, record.executes) == (valid, False if sql else None)
        assert (record.error, record.match) == ("timeout", False)


async def test_a_scorer_that_fails_loses_no_answer(judge: Judge, right: str) -> None:
    given = answer(candidate("c1", file=right), result_file=right)
    record = await judge(given, failing(ZeroDivisionError("by nought")))
    assert (record.status, record.error, record.match, record.executes) == ("answered", FAULT, None, True)
    assert "ZeroDivisionError: by nought" in record.message
    known = await judge(given, failing(ConfigurationError("no gold file")))
    assert (known.error, known.match, known.gold, known.reason) == ("", None, "fails", "no gold file")


async def test_a_lost_connection_or_result_is_no_verdict(
    judge: Judge, question: EvalQuestion, database: OpenDatabase, tmp_path: Path, right: str
) -> None:
    given = answer(candidate("c1", file=right), result_file=right)
    ShopConnector.lost = {"shop0"}
    with pytest.raises(DatabaseUnavailable, match="has closed"):
        await judge(given)
    with pytest.raises(DatabaseUnavailable):
        await judge_nothing(question, OwnScorer(), database)
    (tmp_path / "runs" / "q00" / "results" / Path(right).name).unlink()
    with pytest.raises(QuorumError, match="cannot be read"):
        await judge(given)


LOST, BROKEN = candidate("c0", error="model_unavailable"), candidate("c1", error="syntax")
CLOSED = candidate("c1", error="unavailable")


def test_why_there_is_no_answer(subtests: pytest.Subtests) -> None:
    for given, how, kind in (
        (answer(), {}, ""),
        (answer(LOST), {}, ""),
        (answer(status="stopped", stopped_by="max_calls"), {}, "max_calls"),
        (answer(status="no_answer", result_file="x"), {}, "abstained"),
        (answer(LOST, status="no_answer", result_file="x"), {}, "abstained"),
        (answer(candidate("c1", sql=""), status="no_answer"), {}, "no_sql"),
        (answer(sql="", status="no_answer"), {}, "no_sql"),
        (answer(candidate("c1"), status="no_answer"), {}, "empty_result"),
        (answer(BROKEN, status="no_answer"), {}, "syntax"),
        (answer(BROKEN, LOST, status="no_answer"), {}, "endpoint"),  # whose message it is
        (answer(LOST, status="no_answer"), {"refusals": {"request"}}, "request"),
        (answer(LOST, status="no_answer"), {"refusals": {"too_long"}}, "request"),
        (answer(LOST, status="no_answer"), {"refusals": {"request", "server"}}, "endpoint"),
        (answer(CLOSED, status="no_answer"), {}, "database"),
        (answer(CLOSED, status="no_answer"), {"live": False}, "unavailable"),  # a schema alone
    ):
        with subtests.test(given=given):
            found, message = why(given, **how)
            assert found == kind
            assert bool(message) == bool(kind)
            assert "syntax" not in message or kind == "syntax"


def test_every_error_has_its_kind(subtests: pytest.Subtests) -> None:
    for error, refusals, kind in (
        (ModelUnavailable("x"), set(), "endpoint"),
        (ModelUnavailable("x"), {"denied"}, "endpoint"),
        (ModelUnavailable("x"), {"request"}, "request"),
        (ModelUnavailable("x"), {"too_long"}, "request"),
        (DatabaseUnavailable("x"), set(), "database"),
        (MalformedReply("x"), set(), "malformed_reply"),
        (BudgetExceeded("x", limit="max_usd"), set(), "max_usd"),
        (QuorumError("x"), set(), "no_answer"),
        (KeyError("x"), set(), "fault"),
    ):
        with subtests.test(error=error):
            assert kind_of(error, refusals) == kind


def test_a_machine_that_fails_is_told_from_a_question_that_does() -> None:
    check_machine(FileNotFoundError(2, "No such file"))
    check_machine(ValueError())
    full = type("OperationalError", (Exception,), {"sqlite_errorname": "SQLITE_FULL"})("disk is full")
    for error in (OSError(28, "No space left"), OSError(24, "Too many open files"), MemoryError(), full):
        with pytest.raises(MachineFailed):
            check_machine(error)


Queries = list[tuple[str, Limits]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Queries:
    """The queries that reach a shop, with their limits."""
    found: Queries = []
    run = ShopConnector.run

    async def noted(self: ShopConnector, sql: str, limits: Limits) -> Any:
        found.append((sql, limits))
        return await run(self, sql, limits)

    monkeypatch.setattr(ShopConnector, "run", noted)
    return found


EXECUTING = pytest.mark.parametrize(
    "scorer", [Spider1Scorer(), BirdScorer(), DefogScorer(), OwnScorer()], ids=lambda it: type(it).__name__
)


@EXECUTING
async def test_gold_runs_once_a_question_whatever_the_database_remembers(
    judge: Judge, right: str, wrong: str, ran: Queries, monkeypatch: pytest.MonkeyPatch, scorer: Scorer
) -> None:
    monkeypatch.setattr("quorum.tools.execute.KEPT_OUTCOMES", 0)
    given = answer(candidate("c1", file=right), candidate("c2", "SELECT 7", wrong), result_file=right)
    record = await judge(given, scorer)
    assert [row.match for row in record.candidates] == [True, False]
    texts = [sql for sql, _ in ran]
    assert texts.count(SQL) == 1, "gold, and a prediction that is the gold's text"
    assert texts == [SQL] if scorer.rules == OwnScorer.rules else [SQL, "SELECT 7"]


@EXECUTING
async def test_a_prediction_has_the_seconds_of_its_run_and_gold_has_its_own(
    tmp_path: Path, shops: type[ShopConnector], question: EvalQuestion, ran: Queries, scorer: Scorer
) -> None:
    """One endless prediction must not hold up the questions that share the database."""
    for number, (seconds, allowed) in enumerate([(7.0, 7.0), (900.0, GOLD_LIMITS.seconds)]):
        given = evaluation(tmp_path, Knowing(), [question], query_timeout=seconds, max_rows=5)
        databases = DatabasePool(given.options, chat_models=given.chat_models)
        folder = tmp_path / str(number)
        try:
            cut = kept(folder, {"n": [6]})
            made = answer(candidate("c1", "SELECT 7", cut, truncated=True), sql="", status="no_answer")
            await judge_answer(question, made, scorer, await databases.of(question), folder)
        finally:
            await databases.aclose()
        limits = dict(ran)
        assert limits[SQL] == GOLD_LIMITS
        assert limits["SELECT 7"] == dataclasses.replace(GOLD_LIMITS, seconds=allowed)


async def test_what_runs_gold_keeps_it_and_forgets_predictions(
    question: EvalQuestion, database: OpenDatabase, ran: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: Outcomes = {}
    for times in (1, 2):
        run = run_on(database, question, known)
        for _ in range(2):
            await run(SQL)
            await run.predicted("SELECT 7")
            await run.predicted(SQL)
        assert [sql for sql, _ in ran] == [SQL, *["SELECT 7"] * times]
        assert list(known) == [SQL]
    gold = GoldRun(database.gold)
    first, again = await gold(SQL), await gold.again(SQL)
    assert again is not first, "run anew, it replaces nothing"
    assert await gold(SQL) is first

    async def slow(self: ShopConnector, sql: str, limits: Limits) -> Any:
        return QueryError(ErrorKind.TIMEOUT, "Too long.") if limits.seconds < GOLD_LIMITS.seconds else first

    monkeypatch.setattr(ShopConnector, "run", slow)
    run = run_on(database, question, {})
    assert isinstance(await run.predicted(SQL), QueryError)
    assert isinstance(await run(SQL), QueryResult), "a prediction that took too long is no outcome of gold"


@EXECUTING
async def test_the_state_of_the_gold_does_not_hang_on_the_answer(
    judge: Judge, question: EvalQuestion, database: OpenDatabase, wrong: str, scorer: Scorer
) -> None:
    for gold, state, match in (
        (SQL, "ok", False),
        ("SELECT 1 FROM orders WHERE 0", "empty", False),
        ("SELECT nope", "fails", None),
    ):
        asked = dataclasses.replace(question, gold_sql=(gold,))
        ran = answer(candidate("c1", "SELECT 7", wrong), sql="SELECT 7", status="no_answer")
        failed = answer(candidate("c1", "SELECT 7", error="timeout"), sql="SELECT 7", status="no_answer")
        for given in (ran, failed, answer(sql="", status="no_answer")):
            record = await judge(given, scorer, asked)
            assert (record.gold, record.match) == (state, match)
        nothing = await judge_nothing(asked, scorer, database)
        assert (nothing.gold, nothing.match) == (state, match)
