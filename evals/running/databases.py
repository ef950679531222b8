"""The databases of a suite, opened once each and shared by all questions that are asked of them."""

from __future__ import annotations

import asyncio
from collections import ChainMap, Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.evals.questions import EvalQuestion
from quorum.graph.options import RunOptions
from quorum.graph.resources import OpenModels, Resources, open_models, open_resources
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.evals.running.evaluation import Evaluation

GOLD = "gold"
"""The ledger's name for gold queries, which belong to no question."""

GOLD_LIMITS = Limits(rows=2_000_000, bytes=2**30, seconds=300.0)

MOST_OPENINGS = 3
"""Times that one process tries to open a database; after that its questions fail at once."""


Outcomes: TypeAlias = MutableMapping[str, QueryResult | QueryError]
"""Outcomes of queries by their text."""


@dataclass(frozen=True)
class GoldRun:
    """Runs gold queries, and predictions; a ``quorum.evals.scorers.base.RunSql``.

    Attributes:
        known: Outcomes so far; the database's own cache drops large results.
        judged: Runs predictions under limits of their own; None if they have those of gold.
    """

    database: Database
    known: Outcomes = field(default_factory=dict)
    judged: GoldRun | None = None

    @property
    def predicted(self) -> GoldRun:
        return self.judged or self

    async def __call__(self, sql: str) -> QueryResult | QueryError:
        """Run a query, the same one once; what fails comes back as a value."""
        if sql not in self.known:
            self.known[sql] = _reached(await execute(self.database, sql, agent=GOLD))
        return self.known[sql]

    async def again(self, sql: str) -> QueryResult | QueryError:
        """Run a query even if its outcome is known, which stays as it is."""
        fresh = replace(self.database, cache=QueryCache())
        return _reached(await execute(fresh, sql, agent=GOLD))


def _reached(outcome: QueryResult | QueryError) -> QueryResult | QueryError:
    if isinstance(outcome, QueryError) and outcome.kind is ErrorKind.UNAVAILABLE:
        raise DatabaseUnavailable(outcome.message)
    return outcome


@dataclass(frozen=True)
class OpenDatabase:
    """A database of the suite with everything that questions on it share.

    Attributes:
        gold: With the limits of gold queries.
        limits: Of queries that are judged: as many rows and bytes as gold, because comparisons need whole
            results, but no more seconds than in the run.
    """

    resources: Resources
    gold: Database
    limits: Limits = GOLD_LIMITS

    def resources_for(self, question: EvalQuestion, part: Catalog | None = None) -> Resources:
        """The shared resources, with the question's own external knowledge where it has some.

        Args:
            part: What is shown of the catalog, if not all; the lint keeps to all of it.
        """
        if question.shown_as:
            part = replace(part or self.resources.catalog, name=question.shown_as)
        own = self.resources if part is None else self.resources.showing(part)
        if not question.knowledge:
            return own
        return replace(own, documents=Documents.of(dict(question.knowledge), own=True))


@dataclass(eq=False)
class DatabasePool:
    """Opens each database when its first question comes; ``close`` it after its last."""

    options: RunOptions
    api_key: str = field(default="", repr=False)
    chat_models: Mapping[str, BaseChatModel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._open: dict[str, asyncio.Task[OpenDatabase]] = {}
        self._models: asyncio.Task[OpenModels] | None = None

    @classmethod
    def for_evaluation(cls, evaluation: Evaluation) -> DatabasePool:
        """Those of an evaluation."""
        return cls(evaluation.options, evaluation.api_key, evaluation.chat_models)

    async def of(self, question: EvalQuestion) -> OpenDatabase:
        """The question's database.

        Raises:
            ConfigurationError: A model or an option is wrong.
            DatabaseUnavailable: It cannot be opened or read; the next call tries again, ``MOST_OPENINGS``
                times in all.
        """
        url = question.url
        opening = self._open.get(url)
        if opening is None:
            opening = self._open[url] = asyncio.ensure_future(self._opened(url))
        try:
            return await asyncio.shield(opening)
        except DatabaseUnavailable:
            if self._open.get(url) is opening:  # the first to hear of it
                self._failures[url] += 1
                if self._failures[url] < MOST_OPENINGS:
                    del self._open[url]
            raise

    async def close(self, url: str) -> None:
        """Close a database, if it is open: no further question is on it."""
        if opening := self._open.pop(url, None):
            await _close(opening)

    async def aclose(self) -> None:
        """Close everything, what is being opened as well; safe to call twice."""
        opening, self._open = list(self._open.values()), {}
        await asyncio.gather(*map(_close, opening))
        if (models := self._models) is not None:
            self._models = None
            if await _ended(models):
                await models.result().aclose()

    async def models(self) -> OpenModels:
        """The models that all databases share: one client, one rate limit.

        Raises:
            ConfigurationError: A model or a price is wrong, or a key is missing.
        """
        if self._models is None:
            self._models = asyncio.ensure_future(
                open_models(self.options, api_key=self.api_key, chat_models=self.chat_models)
            )
        return await asyncio.shield(self._models)

    async def _opened(self, url: str) -> OpenDatabase:
        options = replace_options(self.options, database=[url])
        resources = await open_resources(options, models=await self.models())
        gold = Database(
            connector=resources.connector,
            catalog=resources.catalog,
            linter=resources.linter,
            limits=replace(GOLD_LIMITS, scan=options.max_bytes),
            ledger=Ledger(),
        )
        return OpenDatabase(resources, gold, GOLD_LIMITS.within(options.query_timeout))


def replace_options(options: RunOptions, **changes: object) -> RunOptions:
    """A copy of options with some changed; attached to no context."""
    return RunOptions.from_dict(options.as_dict() | changes)


async def _close(opening: asyncio.Task[OpenDatabase]) -> None:
    if await _ended(opening):
        await opening.result().resources.aclose()


async def _ended(task: asyncio.Task[Any]) -> bool:
    """End a task if it is not over yet; True if it has a result."""
    task.cancel()
    await asyncio.wait([task])
    return not task.cancelled() and task.exception() is None


def run_on(database: OpenDatabase, question: EvalQuestion, known: Outcomes) -> GoldRun | None:
    """Return what runs SQL for one verdict; None where the question's database is not live.

    Args:
        known: The question's gold results, which every verdict asks for again. What the prediction returns,
            under its own limits, is forgotten with the verdict.
    """
    if not question.live:
        return None
    own = replace(database.gold, limits=database.limits, cache=QueryCache())
    return GoldRun(database.gold, known, GoldRun(own, ChainMap({}, known)))
