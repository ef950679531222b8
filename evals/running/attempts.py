"""One question of an evaluation: asked, or resumed where a killed process left it, and judged."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from quorum.evals.folder import RUNS
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import ENDPOINTS, Asking, ChoiceRow, Record
from quorum.evals.running.databases import Databases, OpenDatabase, replace_options
from quorum.evals.running.evaluation import Evaluation
from quorum.evals.running.linking import SchemaShown, gold_part, linking_of_schema
from quorum.evals.running.run_events import course_of
from quorum.evals.running.verdicts import (
    OUTSIDE,
    judge,
    judge_nothing,
    judged,
    kind_of,
    message_of,
    record_of,
    wanted,
)
from quorum.evals.scorers.base import Scorer
from quorum.graph.answer import Answer
from quorum.graph.answering import answer_question
from quorum.graph.clarification import Clarification
from quorum.graph.context import Context, open_context
from quorum.graph.machine import check_machine
from quorum.graph.nodes import voting
from quorum.graph.recipes import recipe_of
from quorum.graph.resources import Resources
from quorum.graph.runs import Event, RunFolder
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, MachineFailed, QuorumError
from quorum.tools.ledger import usage_dict

DISCARDED = "discarded"
"""Subfolder of the evaluation's folder with runs that are being deleted."""


def begin_attempts(folder: Path) -> None:
    """Delete what earlier processes discarded in the evaluation's folder."""
    shutil.rmtree(folder / DISCARDED, ignore_errors=True)


class Attempts:
    """Asks the questions of an evaluation.

    Args:
        replied: Called when a model has replied to any question.
    """

    def __init__(
        self, evaluation: Evaluation, databases: Databases, *, replied: Callable[[], None] = lambda: None
    ) -> None:
        self.evaluation = evaluation
        self.databases = databases
        self.replied = replied
        self.folder = evaluation.folder.absolute()

    async def record(self, question: EvalQuestion) -> Record:
        """Ask and judge. A failure becomes a record too, unless it would fail every question.

        An interrupted run is resumed. It starts over if what is left of it is damaged, or if it failed
        because of the endpoint and cannot be resumed.

        Raises:
            ConfigurationError: An option is wrong.
            MachineFailed: The disk is full, say.
        """
        return await self._record(question, "")

    async def _record(self, question: EvalQuestion, discarded: str) -> Record:
        found = RunFolder(self.folder / RUNS / question.id)
        listener, resumed = _RunListener(self.replied), False
        try:
            resumed, why = await asyncio.to_thread(self._ready, found, question, listener)
            discarded = why or discarded
            made = await self._asked(question, found, listener, resumed=resumed)
        except (ConfigurationError, MachineFailed):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours is this question's, not the whole suite's
            check_machine(error)
            if resumed and not isinstance(error, OUTSIDE):
                await asyncio.to_thread(self._discard, found)
                return await self._record(question, message_of(error))
            made = await self._failed(question, found, error, listener)
        run = f"{RUNS}/{question.id}" if found.folder.is_dir() else ""
        return dataclasses.replace(made, run=run, resumed=resumed, discarded=discarded)

    async def close(self, url: str) -> None:
        """No further question is on that database."""
        await self.databases.close(url)

    async def _asked(
        self, question: EvalQuestion, found: RunFolder, listener: _RunListener, *, resumed: bool
    ) -> Record:
        database = await self.databases.of(question)
        part = await self._gold_part(question, database)
        kept = await asyncio.to_thread(found.answer) if resumed else None
        if kept is not None:
            answer = Answer.model_validate(kept)
        else:
            resources = await asyncio.to_thread(database.resources_for, question, part)
            context = await self._open(question, resources, listener, resumed=resumed)
            answer = await _answer(context, question, resumed=resumed)
        scorer = self.evaluation.suite.scorer
        user = user_of(question, scorer, self.evaluation.options.seed) if self.evaluation.simulated else None
        made = await judge(
            question,
            answer,
            scorer,
            database,
            self.folder,
            refusals=listener.refusals,
            asking=user and asked(user, listener.choices),
        )
        course = await asyncio.to_thread(course_of, found)
        made = dataclasses.replace(made, restricted=part is not None, course=course)
        return await self._with_linking(made, question, database, found, listener.schema)

    async def _with_linking(
        self,
        record: Record,
        question: EvalQuestion,
        database: OpenDatabase,
        found: RunFolder,
        schema: SchemaShown,
    ) -> Record:
        """The record with how the schema that was linked stands to the gold, unless gold chose it.

        Raises:
            QuorumError: The text of the linked schema is missing.
        """
        if self.evaluation.gold:
            return record
        shown = await asyncio.to_thread(schema.read, found)
        kept = await asyncio.to_thread(linking_of_schema, shown, question, database.resources.catalog)
        return dataclasses.replace(record, linked=schema.linked, schema_linking=kept)

    async def _gold_part(self, question: EvalQuestion, database: OpenDatabase) -> Catalog | None:
        """What the evaluation restricts the question's schema to; None where it does not, or cannot."""
        parts = self.evaluation.gold
        if parts is None:
            return None
        return await asyncio.to_thread(gold_part, question, database.resources.catalog, parts)

    async def _open(
        self, question: EvalQuestion, resources: Resources, listener: _RunListener, *, resumed: bool
    ) -> Context:
        """The run's context, with equal expert weights.

        Learned weights would depend on the order in which questions end.
        """
        options = self.evaluation.options
        opening = asyncio.ensure_future(
            open_context(
                replace_options(options, database=[question.url], home=str(self.folder)),
                recipe_of(options),
                question.question,
                resume=question.id if resumed else "",
                run_id="" if resumed else question.id,
                resources=resources,
                listener=listener,
            )
        )
        try:
            context = await asyncio.shield(opening)
        except asyncio.CancelledError:  # cut short, it would leave the run's files open in a thread
            await asyncio.wait([opening])
            if opening.exception() is None:
                await opening.result().aclose()
            raise
        return dataclasses.replace(context, weights=dict.fromkeys(context.weights, 1.0))

    async def _failed(
        self, question: EvalQuestion, found: RunFolder, error: Exception, listener: _RunListener
    ) -> Record:
        """The record of a question whose run ended without an answer."""
        kind = kind_of(error, listener.refusals)
        usage = await asyncio.to_thread(_usage, found)
        record = dataclasses.replace(
            record_of(question, "failed"), error=kind, message=message_of(error), usage=usage
        )
        if kind in ENDPOINTS:
            return record
        try:
            database = await self.databases.of(question)
            verdict = await judge_nothing(question, self.evaluation.suite.scorer, database)
            record = judged(record, verdict)
            return await self._with_linking(record, question, database, found, listener.schema)
        except QuorumError:
            return record

    def _ready(self, found: RunFolder, question: EvalQuestion, listener: _RunListener) -> tuple[bool, str]:
        """Whether a run can be continued, having its events read into ``listener``; else it is discarded.

        Returns:
            That, and why it was discarded; a run without ``run.json`` was never begun.
        """
        if not found.folder.exists():
            return False, ""
        why, never_begun = "", not (found.folder / "run.json").exists()
        try:
            whole = found.meta()["question"] == question.question and (found.folder / "blobs").is_dir()
            for event in found.events():
                listener.learn(event)
            kept = found.answer()
            if not whole:
                why = "It is another question's run, or has lost its texts."
            elif kept and (lacking := wanted(kept, listener.refusals, live=question.live)):
                why = f"It ended for want of the {lacking}."
        except (QuorumError, KeyError, ValueError) as error:
            why = message_of(error)
        if why:
            listener.forget()
            self._discard(found)
        return not why, "" if never_begun else why

    def _discard(self, found: RunFolder) -> None:
        """Delete a run, atomically for other processes."""
        gone = self.folder / DISCARDED / f"{found.run_id}-{uuid4().hex[:8]}"
        gone.parent.mkdir(exist_ok=True)
        found.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


async def _answer(context: Context, question: EvalQuestion, *, resumed: bool) -> Answer:
    try:
        return await answer_question(context, question.question, resumed=resumed, on_clarify=no_reply)
    except asyncio.CancelledError:
        context.trace.close()  # its closing in a thread may be cut short too, and somebody may go on at once
        raise


class _RunListener:
    """Collects a run's failed model calls and what it shows of the schema from its events, live and from the
    trace of earlier processes."""

    def __init__(self, replied: Callable[[], None]) -> None:
        self.replied = replied
        self.schema = SchemaShown()
        self.choices: Sequence[Mapping[str, Any]] = ()  # that a user was asked to choose from
        self._failures: dict[str, set[str]] = {}  # by candidate; of calls for none, under ""

    @property
    def refusals(self) -> set[str]:
        """Kinds (``quorum.tools.models.failures.FailureKind``) of failed model calls that were not repeated
        since."""
        return set().union(*self._failures.values())

    def __call__(self, event: Event) -> None:
        if event["kind"] == "model_call":
            self.replied()
        self.learn(event)

    def learn(self, event: Event) -> None:
        """Read an event. A resumed run repeats what failed outside the candidates."""
        self.schema.learn(event)
        match event["kind"]:
            case "model_failed":
                failures = self._failures.setdefault(str(event.get("candidate") or ""), set())
                failures.add(str(event.get("failure", "")))
            case "begun":
                self._failures.pop("", None)
            case "clarification":
                self.choices = event.get("choices") or ()
            case voting.ASKED_ANEW:  # all candidates begin anew
                self._failures.clear()

    def forget(self) -> None:
        """Forget all events."""
        self.schema, self.choices = SchemaShown(), ()
        self._failures.clear()


def _usage(found: RunFolder) -> dict[str, Any]:
    """The run's usage by its events, in the ledger's form; empty if they cannot be read."""
    try:
        spent = found.usage_so_far()
    except (QuorumError, OSError, KeyError, TypeError):
        return {}
    return usage_dict(spent.total, spent.by_agent, spent.by_model, spent.seconds)


def user_of(question: EvalQuestion, scorer: Scorer, seed: int) -> Asking:
    """The user of a question before they are asked: of several readings they mean one, drawn by the seed."""
    readings = len(question.gold_sql) if scorer.by_reading else 0
    intent = random.Random(f"{seed} {question.id}").randrange(readings) if readings else None
    return Asking(readings, intent)


def asked(user: Asking, choices: Sequence[Mapping[str, Any]]) -> Asking:
    """The user with what the run asked them, as its trace has it; nobody has judged it yet."""
    rows = (ChoiceRow(str(each["label"]), str(each["says"]), str(each["sql"])) for each in choices)
    return replace(user, choices=tuple(rows))


def no_reply(_: Clarification) -> str:
    """What the run hears: the vote stands as it is."""
    return ""
