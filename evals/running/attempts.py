"""One question of an evaluation: asked, or resumed where a killed process left it, and judged."""

from __future__ import annotations

import asyncio
import math
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from quorum.evals.folder import RUNS
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import ENDPOINTS, ChoiceRow, Record, SimulatedUser
from quorum.evals.running.databases import DatabasePool, replace_options
from quorum.evals.running.evaluation import Evaluation
from quorum.evals.running.linking import gold_part, golds_of, linking_of, linking_of_schema
from quorum.evals.running.run_events import RunEvents
from quorum.evals.running.total_budget import TotalBudget
from quorum.evals.running.verdicts import (
    OUTSIDE,
    judge,
    judge_nothing,
    judged,
    kind_of,
    message_of,
    record_of,
    unavailable_part,
)
from quorum.evals.scorers.base import Scorer
from quorum.graph.answer import Answer
from quorum.graph.answering import answer_question, check_machine
from quorum.graph.context import Context, open_context
from quorum.graph.recipes import recipe_of
from quorum.graph.resources import Resources
from quorum.graph.runs import RunFolder
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, MachineFailed, QuorumError
from quorum.tools.ledger import Budget
from quorum.tools.models.providers import check_priced

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

    def __init__(self, evaluation: Evaluation, *, replied: Callable[[], None] = lambda: None) -> None:
        self.evaluation = evaluation
        self.databases = DatabasePool.for_evaluation(evaluation)
        self.replied = replied
        self.folder = evaluation.folder.absolute()
        total = evaluation.max_usd_total
        self.total = TotalBudget(total, self.folder) if total is not None else None

    async def prove(self, question: EvalQuestion) -> None:
        """Open the models and the question's database: a wrong setting fails before anything is asked.

        Raises:
            ConfigurationError: An option is wrong, or a model has no price and dollars are limited.
        """
        models, usd = await self.databases.models(), self.evaluation.max_usd_total
        limit = Budget(max_usd=None if usd == math.inf else usd)
        check_priced((*models.models.values(), *models.role_models.values()), limit)
        with suppress(DatabaseUnavailable):  # it is the trouble of its own questions
            await self.databases.of(question)

    async def record(self, question: EvalQuestion) -> Record:
        """Ask and judge. A failure becomes a record too, unless it would fail every question.

        An interrupted run is resumed. It starts over if what is left of it is damaged, or if it failed
        because of the endpoint and cannot be resumed.

        Raises:
            ConfigurationError: An option is wrong.
            MachineFailed: The disk is full, say, or the dollars for all questions are used up.
        """
        run, discarded = self._run(question), ""
        while True:
            events, resumed = RunEvents(self.replied), False
            try:
                resumed, why = await asyncio.to_thread(self._ready, run, question, events)
                events = events if resumed else RunEvents(self.replied)
                discarded = why or discarded
                made = await self._asked(question, run, events, resumed=resumed)
            except (ConfigurationError, MachineFailed):
                raise
            except Exception as error:  # noqa: BLE001 - a fault of ours is this question's, not the whole suite's
                check_machine(error)
                if resumed and not isinstance(error, OUTSIDE):
                    await asyncio.to_thread(self._discard, run)
                    discarded = message_of(error)
                    continue
                made = await self._failed(question, run, error, events)
            place = f"{RUNS}/{question.id}" if run.folder.is_dir() else ""
            return replace(made, run=place, resumed=resumed, discarded=discarded)

    def _run(self, question: EvalQuestion) -> RunFolder:
        return RunFolder(self.folder / RUNS / question.id)

    async def close(self, url: str) -> None:
        """Close the database after its last question."""
        await self.databases.close(url)

    async def end(self) -> None:
        """Close everything; safe to call twice."""
        await self.databases.aclose()

    async def _asked(
        self, question: EvalQuestion, run: RunFolder, events: RunEvents, *, resumed: bool
    ) -> Record:
        """Ask, unless an earlier process has the answer, and judge."""
        evaluation, database = self.evaluation, await self.databases.of(question)
        catalog, scorer = database.resources.catalog, evaluation.suite.scorer
        part = None
        if evaluation.gold:
            part = await asyncio.to_thread(gold_part, question, catalog, evaluation.gold)
        answer = await asyncio.to_thread(run.answer) if resumed else None
        if answer is None:
            resources = database.resources
            if part or question.shown_as or question.knowledge:
                resources = await asyncio.to_thread(database.resources_for, question, part)
            context = await self._open(question, resources, events, resumed=resumed)
            answer = await _answer(context, question, resumed=resumed)
        user = None
        if evaluation.simulated:
            user = replace(user_of(question, scorer, evaluation.options.seed), choices=_choices(events))
        made = await judge(
            question, answer, scorer, database, self.folder, refusals=events.refusals, asking=user
        )
        made = replace(made, restricted=part is not None, course=events.course)
        return await asyncio.to_thread(self._with_linking, made, question, catalog, run, events)

    def _with_linking(
        self, record: Record, question: EvalQuestion, catalog: Catalog, run: RunFolder, events: RunEvents
    ) -> Record:
        """Add how what the answer uses compares with the gold, and the schema, unless gold chose it.

        Raises:
            QuorumError: The text of the linked schema is missing.
        """
        golds = golds_of(question, catalog)
        own = linking_of(record.sql, golds, catalog)
        if self.evaluation.gold:
            return replace(record, linking=own)
        kept = linking_of_schema(events.linked_part(run), golds, question, catalog)
        return replace(record, linking=own, linked=events.linked, schema_linking=kept)

    async def _open(
        self, question: EvalQuestion, resources: Resources, events: RunEvents, *, resumed: bool
    ) -> Context:
        """Open the run's context, with equal expert weights.

        Learned weights would depend on the order in which questions end.
        """
        options = self.evaluation.options
        own: dict[str, object] = {"database": [question.url], "home": str(self.folder)}
        context = await open_context(
            replace_options(options, **own),
            recipe_of(options),
            question.question,
            resume=question.id if resumed else "",
            run_id="" if resumed else question.id,
            resources=resources,
            listener=events,
            shared=self.total,
        )
        return replace(context, weights=dict.fromkeys(context.weights, 1.0))

    async def _failed(
        self, question: EvalQuestion, run: RunFolder, error: Exception, events: RunEvents
    ) -> Record:
        """Return the record of a question whose run ended without an answer."""
        kind = kind_of(error, events.refusals)
        usage = await asyncio.to_thread(run.usage)
        record = replace(record_of(question, "failed"), error=kind, message=message_of(error), usage=usage)
        if kind in ENDPOINTS:
            return record
        try:
            database = await self.databases.of(question)
            record = judged(record, await judge_nothing(question, self.evaluation.suite.scorer, database))
            catalog = database.resources.catalog
            return await asyncio.to_thread(self._with_linking, record, question, catalog, run, events)
        except QuorumError:
            return record

    def _ready(self, run: RunFolder, question: EvalQuestion, events: RunEvents) -> tuple[bool, str]:
        """Read the events of a run that can be continued; discard one that cannot.

        Returns:
            Whether it can, and why it was discarded; a run without ``run.json`` was never begun.
        """
        if not run.folder.exists():
            return False, ""
        never_begun = not (run.folder / "run.json").exists()
        try:
            for event in run.events():
                events.learn(event)
            answer = run.answer()
            lacking = unavailable_part(answer, events.refusals, live=question.live) if answer else ""
            why = f"It ended for want of the {lacking}." if lacking else ""
            if run.meta()["question"] != question.question or not (run.folder / "blobs").is_dir():
                why = "It is another question's run, or has lost its texts."
        except (QuorumError, KeyError, ValueError) as error:
            why = message_of(error)
        if why:
            self._discard(run)
        return not why, "" if never_begun else why

    def _discard(self, run: RunFolder) -> None:
        """Delete a run, atomically for other processes."""
        gone = self.folder / DISCARDED / f"{run.run_id}-{uuid4().hex[:8]}"
        gone.parent.mkdir(exist_ok=True)
        run.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


async def _answer(context: Context, question: EvalQuestion, *, resumed: bool) -> Answer:
    """Ask. The run gets no reply to a question of its own, so its vote is decided without one."""
    try:
        return await answer_question(context, question.question, resumed=resumed, on_clarify=lambda _: "")
    except asyncio.CancelledError:
        context.trace.close()  # its closing in a thread may be cut short too, and somebody may go on at once
        raise


def user_of(question: EvalQuestion, scorer: Scorer, seed: int) -> SimulatedUser:
    """Return a simulated user who knows the gold: of several readings they mean one, drawn by the seed.

    They may be asked one question where a run asks which answer is meant. A user who chooses an answer gets
    it, so what a choice leads to is known without making it. The run hears nothing and keeps its answer:
    accuracy, confidence and cost are those of a run without a question, and what each of several readings
    would have led to is known from one run.
    """
    readings = len(question.gold_sql) if scorer.by_reading else 0
    intent = random.Random(f"{seed} {question.id}").randrange(readings) if readings else None
    return SimulatedUser(readings, intent)


def _choices(events: RunEvents) -> tuple[ChoiceRow, ...]:
    """Return what the run asked, which is not judged yet."""
    return tuple(ChoiceRow(str(it["label"]), str(it["says"]), str(it["sql"])) for it in events.choices)
