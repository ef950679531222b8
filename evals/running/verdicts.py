"""From an answer to its record: verdicts on it and on its candidates, and why there is no answer."""

from __future__ import annotations

import asyncio
import dataclasses
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import TypeAlias

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import CandidateRow, ReadingRow, Record, SimulatedUser
from quorum.evals.running.databases import OpenDatabase, Outcomes, run_on
from quorum.evals.scorers.base import Prediction, Scorer, Verdict
from quorum.evals.tables import NoPandas
from quorum.graph.answer import Answer, AnswerCandidate, AnswerReading
from quorum.knowledge.errors import (
    BudgetExceeded,
    DatabaseUnavailable,
    MalformedReply,
    ModelUnavailable,
    QuorumError,
)
from quorum.tools.guard import allowed
from quorum.tools.query import QueryResult
from quorum.tools.results.files import read_result

Shown: TypeAlias = Answer | AnswerCandidate | AnswerReading
"""What holds a query's result."""

NOT_HERE = "Only the schema of its database is here."


async def judge(
    question: EvalQuestion,
    answer: Answer,
    scorer: Scorer,
    database: OpenDatabase,
    folder: Path,
    *,
    refusals: Collection[str] = (),
    asking: SimulatedUser | None = None,
) -> Record:
    """The record of a question whose run ended with an ``Answer``.

    Without an answer the best effort is judged. Faults of the gold or the scorer go into the record.

    Args:
        folder: Of the evaluation; the run lies in ``runs/<question>/`` there.
        refusals: Why model calls failed, see ``quorum.evals.running.verdicts.unavailable_part``.
        asking: A simulated user, with the choices that they had.

    Raises:
        NoPandas: The scorer reads CSV files.
        DatabaseUnavailable: The connection was lost while gold was run.
        QuorumError: A result of the run is missing or damaged.
    """
    verdicts = _Verdicts(question, scorer, database, folder / "runs" / question.id / "results")
    shown = _shown(answer)
    found = await verdicts.of(answer.sql, shown)
    candidates = [await _row(each, verdicts) for each in answer.candidates]
    written = [each for each in answer.readings if each.sql]
    others = [await verdicts.of(each.sql, each) for each in written]
    if others and found.match is not None:
        metrics = {**found.metrics, **scorer.of_shown(question, [found, *others])}
        found = dataclasses.replace(found, metrics=metrics)
    valid = True if answer.sql else None  # guard and lint have seen what ran (``quorum.tools.execute``)
    if answer.sql and not shown:
        valid = isinstance(await allowed(answer.sql, database.resources.linter), str)
    error, message = why(answer, refusals, live=question.live)
    if verdicts.fault:
        error, message = FAULT, verdicts.fault
    return dataclasses.replace(
        judged(_kept(question, answer, shown), found),
        executes=bool(shown) if question.live and answer.sql else None,
        valid=valid,
        error=error,
        message=message,
        candidates=tuple(candidates),
        readings=tuple(
            ReadingRow(each.says, each.sql, verdict.match, verdict.met)
            for each, verdict in zip(written, others, strict=True)
        ),
        asking=asking and await _chosen(asking, answer, verdicts),
    )


async def judge_nothing(question: EvalQuestion, scorer: Scorer, database: OpenDatabase) -> Verdict:
    """The verdict on a question whose run ended without any answer.

    Raises:
        DatabaseUnavailable: The connection was lost while gold was run.
    """
    return await _Verdicts(question, scorer, database, Path()).of("", None)


def record_of(question: EvalQuestion, status: str) -> Record:
    """A record with only the question and its status."""
    return Record(
        id=question.id,
        question=question.question,
        database=question.database,
        dialect=question.dialect,
        difficulty=question.difficulty,
        external_knowledge=bool(question.knowledge),
        status=status,
    )


def judged(record: Record, verdict: Verdict) -> Record:
    """The record with the verdict on its answer."""
    return dataclasses.replace(record, match=verdict.match, **vars(verdict))


class _Verdicts:
    """The verdicts on one question's predictions; equal predictions share one.

    Attributes:
        fault: The traceback of the scorer's failure, if it failed; the verdict is then undefined.
    """

    def __init__(self, question: EvalQuestion, scorer: Scorer, database: OpenDatabase, results: Path) -> None:
        self.question, self.scorer, self.database, self.results = question, scorer, database, results
        self.fault = ""
        self._gold: Outcomes = {}
        self._verdicts: dict[tuple[str, str, bool], Verdict] = {}

    async def of(self, sql: str, shown: Shown | None) -> Verdict:
        """The verdict on a query and its result; without a result it counts as no answer.

        Raises:
            QuorumError: The result's file is missing or damaged.
        """
        name = Path(shown.result_file).name if shown else ""
        key = (sql if name else "", name, bool(shown and shown.truncated))
        if key not in self._verdicts:
            table = await asyncio.to_thread(read_result, self.results / name) if name else None
            self._verdicts[key] = await self._scored(Prediction(key[0], table, key[2]))
        return self._verdicts[key]

    async def of_query(self, sql: str) -> Verdict:
        """The verdict on a query of which no result is kept: it is run, within the limits of the judged."""
        run = run_on(self.database, self.question, self._gold)
        outcome = await run.predicted(sql) if run else None
        if not isinstance(outcome, QueryResult):
            return await self.of("", None)
        return await self._scored(Prediction(sql, outcome.table, bool(outcome.truncated)))

    async def _scored(self, prediction: Prediction) -> Verdict:
        if prediction.result is None and not self.question.live:
            return self.scorer.unscorable(NOT_HERE, "not_live")
        try:
            run = run_on(self.database, self.question, self._gold)
            return await self.scorer.score(self.question, prediction, run)
        except (NoPandas, DatabaseUnavailable):
            raise
        except QuorumError as error:
            return self.scorer.unscorable(str(error), "fails")
        except Exception as error:  # noqa: BLE001 - a fault of a scorer must not lose the answer
            self.fault = self.fault or message_of(error)
            return self.scorer.unscorable("The scorer failed.", "ok")


async def _chosen(asking: SimulatedUser, answer: Answer, verdicts: _Verdicts) -> SimulatedUser:
    """Add what a simulated user would have chosen: the first choice with the result they mean."""
    every: list[Shown] = [*answer.readings, *answer.candidates, answer]
    kept = {each.sql: each for each in every if each.result_file}
    rows = []
    for choice in asking.choices:
        shown = kept.get(choice.sql)
        verdict = await verdicts.of(choice.sql, shown) if shown else await verdicts.of_query(choice.sql)
        rows.append(dataclasses.replace(choice, match=verdict.match, met=verdict.met))
    fitting = (row.label for row in rows if asking.suits(row, asking.intent))
    return dataclasses.replace(asking, choices=tuple(rows), chosen=next(fitting, ""))


def _shown(answer: Answer) -> Shown | None:
    """Return what holds the result of the answer's SQL; a blank result did not vote, but is one."""
    same = (each for each in answer.candidates if each.sql == answer.sql and each.result_file)
    return answer if answer.result_file else next(same, None)


def _kept(question: EvalQuestion, answer: Answer, shown: Shown | None) -> Record:
    """The record with what is copied from the answer."""
    return dataclasses.replace(
        record_of(question, answer.status),
        sql=answer.sql,
        result=f"runs/{question.id}/results/{Path(shown.result_file).name}" if shown else "",
        rows=shown.row_count if shown else None,
        truncated=bool(shown and shown.truncated),
        vote=answer.vote.model_dump(mode="json") if answer.vote else None,
        confidence=answer.confidence,
        usage=answer.usage,
        demonstration=answer.demonstration,
    )


async def _row(candidate: AnswerCandidate, verdicts: _Verdicts) -> CandidateRow:
    verdict = await verdicts.of(candidate.sql, candidate)
    return CandidateRow(
        id=candidate.id,
        model=candidate.model,
        sql=candidate.sql,
        match=verdict.match,
        error=candidate.error_kind,
        superseded=candidate.superseded,
        weight=candidate.weight,
    )


ENDPOINT, DATABASE = "endpoint", "database"
FAULT = "fault"
"""Quorum itself is at fault; the message is the traceback."""

REQUEST = "request"
"""The endpoint refused the request because of its content (400, 413, 422) or length; it is available."""

REFUSALS = {"request", "too_long"}
"""Values of ``quorum.tools.models.failures.FailureKind`` that say so."""

OUTSIDE = (ModelUnavailable, DatabaseUnavailable, MalformedReply, BudgetExceeded)
"""Errors outside of Quorum: starting the run over would not help."""


def kind_of(error: Exception, refusals: Collection[str] = ()) -> str:
    """The kind of an error that ended a run without an answer.

    Args:
        refusals: Why model calls of the run failed (``quorum.tools.models.failures.FailureKind``).
    """
    match error:
        case ModelUnavailable():
            return REQUEST if refusals and REFUSALS.issuperset(refusals) else ENDPOINT
        case DatabaseUnavailable():
            return DATABASE
        case MalformedReply():
            return "malformed_reply"
        case BudgetExceeded():
            return error.limit
        case QuorumError():
            return "no_answer"
    return FAULT


def message_of(error: Exception) -> str:
    """The error in words; of a fault of ours its traceback."""
    return str(error) if isinstance(error, QuorumError) else "".join(traceback.format_exception(error))


def unavailable_part(answer: Answer, refusals: Collection[str] = (), *, live: bool = True) -> str:
    """Return what was unavailable, so that there is no answer: ``endpoint``, ``database`` or "".

    Set if a candidate got no reply or no connection and no other candidate has a result.

    Args:
        refusals: As in ``kind_of``.
        live: Whether queries can run at all.
    """
    if answer.status != "no_answer" or answer.result_file:
        return ""
    kinds = {candidate.error_kind for candidate in answer.candidates}
    if "model_unavailable" in kinds:
        return "" if refusals and REFUSALS.issuperset(refusals) else ENDPOINT
    return DATABASE if live and "unavailable" in kinds else ""


def why(answer: Answer, refusals: Collection[str] = (), *, live: bool = True) -> tuple[str, str]:
    """Return why there is no answer, by kind and in words; both "" if there is one."""
    if answer.status == "stopped":
        return answer.stopped_by, f"The run was stopped by {answer.stopped_by}."
    if answer.status == "answered":
        return "", ""
    if answer.status == "unanswerable":
        return "unanswerable", answer.missing
    if answer.result_file:
        return "abstained", "Its confidence is too low."
    failed = [candidate for candidate in answer.candidates if candidate.error_kind]
    if not failed:
        return _nothing_to_show(answer)
    if kind := unavailable_part(answer, refusals, live=live):
        lost = {ENDPOINT: "model_unavailable", DATABASE: "unavailable"}[kind]
        return kind, next(each.error for each in failed if each.error_kind == lost)
    refused = bool(REFUSALS.intersection(refusals)) and failed[0].error_kind == "model_unavailable"
    return REQUEST if refused else failed[0].error_kind, failed[0].error


def _nothing_to_show(answer: Answer) -> tuple[str, str]:
    if any(candidate.sql for candidate in answer.candidates):
        return "empty_result", "The queries ran, and none of their results says anything."
    return "no_sql", "No candidate wrote SQL."
