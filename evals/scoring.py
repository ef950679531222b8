"""Predictions that others made, and gold, on live databases: scored by each benchmark's own rules."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from quorum.evals.paths import check_folder
from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.reports.statistics import Mean, mean_of
from quorum.evals.running.databases import GOLD_LIMITS, GoldRun
from quorum.evals.scorers.base import GoldCheck, GoldState, Prediction, RunSql, Scorer, Verdict
from quorum.evals.scorers.spider2 import Spider2Scorer, load_gold
from quorum.evals.submissions import Predictions, bird_file, find_predictions, read_bird
from quorum.evals.tables import UnreadableCsv, read_frame
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, QuorumError
from quorum.tools.databases import connect
from quorum.tools.execute import Database
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import QueryError

GOLD_FOLDER = Path("evaluation_suite", "gold")
MISSING = "there is no prediction"


@dataclass(frozen=True)
class Scores:
    """The verdicts on predictions.

    Attributes:
        scorer: By whose rules they are.
        verdicts: By id, of all questions asked for.
        answered: Ids of those that have a prediction that can be read.
        unreadable: Ids of those whose result is there and cannot be read; they score 0.
        predictions: What was found, and what belongs to no question.
    """

    scorer: Scorer
    verdicts: dict[str, Verdict]
    answered: frozenset[str]
    predictions: Predictions
    unreadable: tuple[str, ...] = ()

    def as_json(self) -> dict[str, int | None]:
        """1 for each question that is right, 0 for one that is not, None where unknown."""
        return {id: None if v.match is None else int(v.match) for id, v in self.verdicts.items()}

    def mean(self, metric: str) -> Mean:
        """Over the questions where the metric is defined; without a prediction it is 0."""
        return mean_of(verdict.metrics.get(metric) for verdict in self.verdicts.values())

    @property
    def unscorable(self) -> dict[str, Verdict]:
        """The questions whose gold is unusable; they are in no mean."""
        return {id: verdict for id, verdict in self.verdicts.items() if verdict.match is None}


def gold_suite(folder: Path, edition: str = "") -> Suite:
    """Return the questions of Spider 2.0's gold, from its own folder or from that of the benchmark.

    Args:
        edition: ``lite`` or ``snow``; empty if either will do.

    Raises:
        ConfigurationError: It is no gold, or that of the other edition.
    """
    check_folder(folder, hint="Name the benchmark's folder, or its evaluation_suite/gold, with --gold.")
    inner = folder / GOLD_FOLDER
    gold = load_gold(inner if inner.is_dir() else folder)
    if edition and gold.edition != edition:
        raise ConfigurationError(
            f"{gold.folder} is the gold of Spider 2.0-{gold.edition.title()}, not of -{edition.title()}.",
            hint="Name the other suite, or spider2 for either.",
        )
    questions = tuple(EvalQuestion(id, "", "", "schema://", "") for id in gold.ids)
    return Suite(f"The gold in {gold.folder}", gold.folder, questions, _ResultScorer(gold))


class _ResultScorer(Spider2Scorer):
    """Judges result files as the official program: a question without a gold result scores 0."""

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:  # noqa: ARG002
        if not isinstance(prediction.result, Path):
            return self.wrong(MISSING)
        return self.gold.compare(question.id, await asyncio.to_thread(read_frame, prediction.result))


async def score_suite(
    suite: Suite,
    pred: Path,
    ids: Iterable[str] | None = None,
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> Scores:
    """Score predictions of a suite by its scorer: ``<id>.csv``, ``<id>.sql``, or BIRD's JSON file.

    Of ``gold_suite`` results alone are scored.
    Queries run read-only on the question's database. Where that cannot be opened, its questions cannot be
    scored.

    Args:
        ids: Questions asked for; all if None.
        on_done: Called with how many questions are done, of how many.

    Raises:
        ConfigurationError: There are no predictions there, or a question is unknown.
    """
    predictions = _predictions(suite, pred)
    asked = suite.chosen(ids=ids)
    unreadable = set[str]()

    async def judge(question: EvalQuestion, run: RunSql | None) -> Verdict:
        try:
            found = predictions.found.get(question.id, Prediction())
            return await judged(question, found, suite.scorer, run)
        except UnreadableCsv as error:
            unreadable.add(question.id)
            return suite.scorer.wrong(f"the result cannot be read: {error}")

    verdicts = await sweep(
        asked,
        judge,
        lambda _, reason: suite.scorer.unscorable(reason, "not_live"),
        on_done=lambda done: on_done(done, len(asked)),
    )
    predicted = (id for id in verdicts if predictions.found.get(id, Prediction()) != Prediction())
    return Scores(
        suite.scorer,
        verdicts,
        frozenset(predicted).difference(unreadable),
        predictions,
        tuple(id for id in verdicts if id in unreadable),
    )


def _predictions(suite: Suite, pred: Path) -> Predictions:
    file = bird_file(pred) if suite.name == "bird" else None
    if file is None:
        sql = not isinstance(suite.scorer, _ResultScorer)
        return find_predictions(pred, [question.id for question in suite.questions], sql=sql)
    if suite.missing:
        raise ConfigurationError(
            f"{file} goes by the questions' places, and some are not here: {' '.join(suite.missing)}",
            hint="Complete the benchmark's folder, or give <id>.sql files.",
        )
    return read_bird(file, suite.questions)


async def judged(question: EvalQuestion, found: Prediction, scorer: Scorer, run: RunSql | None) -> Verdict:
    """The verdict on what was found for a question: its query is run.

    Raises:
        UnreadableCsv: Its result cannot be read.
    """
    why = "" if found.sql or found.result else MISSING
    if found.sql and run is not None:
        outcome = await run(found.sql)
        if isinstance(outcome, QueryError):
            found, why = Prediction(found.sql), f"the query fails: {outcome.describe()}"
        else:
            found = Prediction(found.sql, outcome.table, bool(outcome.truncated))
    elif found.sql and not found.result:
        why = "the query cannot run: its database is not here"
    verdict = await scorer.score(question, found, run)
    at_fault = why and verdict.match is False  # and not the gold
    return dataclasses.replace(verdict, reason=why) if at_fault else verdict


T = TypeVar("T")

DATABASES_AT_ONCE = 2
"""A large one may take a gigabyte for its results."""


Work: TypeAlias = Callable[[EvalQuestion, RunSql | None], Awaitable[T]]
"""Is given a question and what runs SQL on its database; None where that is not live."""


async def sweep(
    questions: Sequence[EvalQuestion],
    work: Work[T],
    unavailable: Callable[[EvalQuestion, str], T],
    *,
    on_done: Callable[[int], None] = lambda _: None,
) -> dict[str, T]:
    """The results of ``work`` by question id, in the order of ``questions``.

    Args:
        unavailable: Makes the value for a question whose database cannot be opened or fails, from the reason.
        on_done: Called with how many questions are done.

    Raises:
        ConfigurationError: A database's URL is malformed or its driver is missing, or ``work`` says so.
    """
    groups: dict[str, list[EvalQuestion]] = {}
    for question in questions:
        groups.setdefault(question.url if question.live else "", []).append(question)
    found: dict[str, T] = {}
    places = asyncio.Semaphore(DATABASES_AT_ONCE)

    async def each(members: Sequence[EvalQuestion], database: Database | None) -> None:
        for question in members:
            run = GoldRun(database, known={}) if database else None
            try:
                found[question.id] = await work(question, run)
            except DatabaseUnavailable as error:
                found[question.id] = unavailable(question, str(error))
            on_done(len(found))

    async def group(url: str, members: Sequence[EvalQuestion]) -> None:
        """The questions of one database; of none where ``url`` is empty."""
        async with places:
            try:
                async with open_database(url) if url else nullcontext() as database:
                    await each(members, database)
            except DatabaseUnavailable as error:
                found.update((member.id, unavailable(member, str(error))) for member in members)
                on_done(len(found))

    try:
        async with asyncio.TaskGroup() as tasks:
            for url, members in groups.items():
                tasks.create_task(group(url, members))
    except* QuorumError as raised:
        raise raised.exceptions[0] from None
    return {question.id: found[question.id] for question in questions}


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Open a database for gold queries and for those that are judged.

    Raises:
        ConfigurationError: The URL is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    async with await asyncio.to_thread(connect, url) as connector:
        catalog = await connector.catalog(samples=0)
        yield Database(connector, catalog, Linter(catalog), GOLD_LIMITS, Ledger())


UNCHECKED: tuple[GoldState, ...] = ("missing", "not_live")
"""States of gold that could not be run."""


async def verify_gold(
    suite: Suite,
    questions: Sequence[EvalQuestion],
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, GoldCheck]:
    """Run the gold of ``questions`` and compare it with what is published; no model is asked.

    A database that cannot be opened has no gold that runs: its questions are in the state ``fails``.

    Args:
        on_done: Called with how many questions are done, of how many.

    Raises:
        ConfigurationError: A database's URL is malformed, or its driver is missing.
    """

    async def check(question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await suite.scorer.verify(question, run)

    return await sweep(
        questions,
        check,
        lambda _, reason: GoldCheck("fails", reason),
        on_done=lambda done: on_done(done, len(questions)),
    )
