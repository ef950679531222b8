"""Ask a suite's questions, many at a time, and keep what came of each as soon as it is known.

After any stop the same call continues: it skips questions with a record, resumes interrupted runs from their
checkpoints, and repeats only what failed because the endpoint or the database was unavailable.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import TypeAlias

from quorum.evals.folder import MANIFEST, EvalFolder, EvalWriter
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Manifest, Record
from quorum.evals.running.attempts import Attempts, begin_attempts
from quorum.evals.running.cluster import RemoteAsker, Shares, Workers
from quorum.evals.running.databases import replace_options
from quorum.evals.running.evaluation import Evaluation, check_same, now
from quorum.evals.running.total_budget import TotalUsedUp
from quorum.evals.running.verdicts import ENDPOINT
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.tools.garbage import rare_collections

__all__ = ["MAX_IN_A_ROW", "Evaluation", "GaveUp", "run_evaluation"]

MAX_IN_A_ROW = 8
"""Questions in a row that may fail because of the endpoint, while no model replies to any question."""

START_GAP, START_SECONDS = 0.01, 1.0
"""Seconds between the starts of the first questions, and for all of them at most. Started at once they would
reach the processor, the databases and the endpoint in bursts."""


Asker: TypeAlias = Attempts | RemoteAsker
"""Asks in this process, or in another one."""


class GaveUp(QuorumError):
    """The model's endpoint is gone, so no more questions are asked."""


async def run_evaluation(
    evaluation: Evaluation,
    *,
    workers: Workers | None = None,
    on_begin: Callable[[Collection[Record]], None] = lambda _: None,
    on_record: Callable[[Record], None] = lambda _: None,
) -> dict[str, Record]:
    """Ask every question that has no record yet.

    Questions of one database follow each other, so that few databases are open at a time and the providers'
    prompt caches hit. Questions are independent: experts start with equal weights in each.

    A database that cannot be opened fails its own questions only
    (``quorum.evals.running.databases.MOST_OPENINGS``).

    Args:
        workers: Processes that ask in place of this one (``quorum.evals.running.cluster.workers_of``).
        on_begin: Called with the finished records of earlier processes, before anything is asked.
        on_record: Called with each further record as it is written.

    Returns:
        The records of all questions that were asked, in their order.

    Raises:
        ConfigurationError: An option is wrong, or the folder holds another evaluation or cannot be written;
            if possible, before anything is asked or written.
        GaveUp: ``MAX_IN_A_ROW`` questions failed for lack of the endpoint while no model replied to any.
        MachineFailed: The disk is full, say.
    """
    evaluation.check()
    manifest = await asyncio.to_thread(evaluation.manifest)
    finished = await asyncio.to_thread(_finished, manifest, EvalFolder(evaluation.folder))
    left = _left(evaluation, finished)
    evaluation = _for_one_of(workers.count if workers else 1, evaluation)
    run = _Run(evaluation, on_record)
    askers = run.askers(workers)
    try:
        if left:
            await askers[0].prove(left[0])
        with EvalWriter(evaluation.folder) as writer:
            records = await asyncio.to_thread(_finished, manifest, writer)
            writer.begin(_begun(manifest, writer))
            on_begin(records.values())
            try:
                with rare_collections():
                    await run.all(_left(evaluation, records), askers, writer, records)
            finally:  # before the folder is unlocked
                await asyncio.gather(*(asker.end() for asker in askers))
    finally:
        await asyncio.gather(*(asker.end() for asker in askers))
    return {question.id: records[question.id] for question in evaluation.questions if question.id in records}


def _finished(manifest: Manifest, folder: EvalFolder) -> dict[str, Record]:
    """The finished records of earlier processes that wrote the same evaluation."""
    if not (folder.folder / MANIFEST).is_file():
        return {}
    check_same(folder.manifest(), manifest, folder.folder)
    return {id: record for id, record in folder.records().items() if record.finished}


def _begun(manifest: Manifest, folder: EvalFolder) -> Manifest:
    """The manifest to keep: a resumed evaluation keeps the start time of its first process."""
    if not (folder.folder / MANIFEST).is_file():
        return manifest
    return dataclasses.replace(manifest, started=folder.manifest().started)


def _left(evaluation: Evaluation, finished: Container[str]) -> list[EvalQuestion]:
    """The questions without a record: those of one database together, as the databases come."""
    groups: dict[str, list[EvalQuestion]] = {}
    for question in evaluation.questions:
        if question.id not in finished:
            groups.setdefault(question.url, []).append(question)
    return [question for group in groups.values() for question in group]


def _for_one_of(processes: int, evaluation: Evaluation) -> Evaluation:
    """The evaluation as each of several processes runs it: they share the rate of requests."""
    rate = evaluation.options.requests_per_second
    if rate is None or processes == 1:
        return evaluation
    options = replace_options(evaluation.options, requests_per_second=rate / processes)
    return dataclasses.replace(evaluation, options=options)


class _Run:
    """The questions under way."""

    def __init__(self, evaluation: Evaluation, tell: Callable[[Record], None]) -> None:
        self.evaluation, self.tell = evaluation, tell
        self.failed = 0

    def askers(self, workers: Workers | None) -> Sequence[Asker]:
        """One in this process, or one for each worker.

        Raises:
            ConfigurationError: The evaluation cannot be handed to another process.
        """
        if workers is None:
            return [Attempts(self.evaluation, replied=self._replied)]
        suite = dataclasses.replace(self.evaluation.suite, questions=())  # each goes when it is asked
        theirs = dataclasses.replace(self.evaluation, suite=suite, questions=())
        return workers.askers(theirs, self._replied)

    async def all(
        self,
        questions: Sequence[EvalQuestion],
        askers: Sequence[Asker],
        writer: EvalWriter,
        records: dict[str, Record],
    ) -> None:
        """Ask them, ``concurrency`` at a time."""
        begin_attempts(self.evaluation.folder)
        self.writer, self.records = writer, records
        shares = Shares(questions, len(askers))
        self.left = Counter(question.url for question in questions)
        at_once = min(self.evaluation.concurrency, len(questions))
        try:
            async with asyncio.TaskGroup() as group:
                gap = min(START_GAP, START_SECONDS / max(at_once, 1))
                for number in range(at_once):
                    asker = number % len(askers)
                    begin = number * gap
                    group.create_task(self._work(shares.of(asker), askers[asker], askers, begin))
        except ExceptionGroup as failures:
            wrong = [error for error in failures.exceptions if isinstance(error, ConfigurationError)]
            raise (wrong or failures.exceptions)[0] from None

    async def _work(
        self, waiting: Iterable[EvalQuestion], asker: Asker, askers: Sequence[Asker], begin: float
    ) -> None:
        await asyncio.sleep(begin)
        for question in waiting:
            try:
                made = await asker.record(question)
            except TotalUsedUp:
                return  # what others have under way may end
            record = dataclasses.replace(made, ended=now())
            self.writer.add(record)
            self.records[question.id] = record
            self.tell(record)
            self.left[question.url] -= 1
            if not self.left[question.url]:
                await asyncio.gather(*(each.close(question.url) for each in askers))
            self._watch(record)

    def _replied(self) -> None:
        self.failed = 0

    def _watch(self, record: Record) -> None:
        """Raise ``GaveUp`` when the endpoint is gone for all running questions, not only for one."""
        self.failed += record.error == ENDPOINT
        if self.failed >= MAX_IN_A_ROW:
            raise GaveUp(
                f"{self.failed} questions failed, and no model replied to any: {record.message}",
                hint="What is finished is kept; the same command goes on when the endpoint is back.",
            )
