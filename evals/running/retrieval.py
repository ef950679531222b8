"""How well retrieval over column texts finds the tables and columns of gold SQL; no chat model is asked.

A shared field group counts as found where the table that represents it is: gold ``sales_20240105`` if its
group is. Of several accepted queries the one counts that is found best.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.running.databases import catalog_of
from quorum.evals.running.linking import golds_of
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.knowledge.schema.render import render
from quorum.knowledge.search.columns import ColumnIndex
from quorum.knowledge.search.index import Embedder
from quorum.tools.models.embeddings import CachedEmbedder
from quorum.tools.sql.linking import Linked, prune

if TYPE_CHECKING:
    from quorum.knowledge.search.index import Vectors

TABLES_AT = (1, 3, 5, 10, 20)
COLUMNS_AT = (10, 30, 100)
BUDGET = 8_000
"""Tokens of a linked schema."""

Way: TypeAlias = Literal["lexical", "dense", "hybrid"]
Key: TypeAlias = tuple[str, str]
"""A table's full name, and a column's."""

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with a database, the column texts of it that are embedded, and their number."""


@dataclass(frozen=True)
class AtK:
    """The mean share of the gold among the first ``k``, and the share of questions with all of it."""

    k: int
    recall: float
    all: float


@dataclass(frozen=True)
class WayFigures:
    """The figures of one way.

    Attributes:
        within: Share of questions whose gold tables are all in the linked schema.
        within_large: The same of those whose whole schema exceeds the budget; None if there are none.
        missed: Questions of which some gold table is not in it.
        build_seconds: Of all indexes; of ``hybrid`` nothing, for it uses the others.
        p50_ms, p99_ms: Milliseconds to rank the tables, with embedding the question.
    """

    tables: tuple[AtK, ...]
    columns: tuple[AtK, ...]
    within: float
    within_large: float | None
    missed: tuple[str, ...]
    build_seconds: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Retrieval:
    """The figures of a measurement.

    Attributes:
        questions: Those with gold SQL that names a table; the others are not measured.
        texts: Column texts that were indexed.
        ungrouped: What they would be without shared field groups.
        budget: Tokens of the linked schema.
        large: Questions whose whole schema exceeds it.
        reachable: Questions whose gold tables alone do not, so that some ranking has them all within it.
        ways: By name.
        unopened: Databases that could not be opened, whose questions are not measured, with the reason.
    """

    suite: str
    questions: int
    databases: int
    texts: int
    ungrouped: int
    budget: int
    large: int
    reachable: int
    ways: Mapping[Way, WayFigures]
    unopened: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Found:
    """The findings of one way; lists are parallel to the questions."""

    tables: list[list[float]] = field(default_factory=list)
    columns: list[list[float]] = field(default_factory=list)
    within: list[bool] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    build_seconds: float = 0.0


@dataclass
class Measuring:
    """A measurement: make it, then ``run`` it once.

    Args:
        questions: Of the suite, those that are measured where they have gold SQL.
        embedder: Without one, only the search by words is measured.
        groups: Tables that share all their columns are indexed once.
        whole_suite: Databases of which no question is measured are indexed too.
    """

    suite: Suite
    questions: Sequence[EvalQuestion]
    embedder: CachedEmbedder | None = None
    budget: int = BUDGET
    groups: bool = True
    whole_suite: bool = False
    on_progress: OnProgress = lambda *_: None

    def __post_init__(self) -> None:
        ways: tuple[Way, ...] = ("lexical", "dense", "hybrid") if self.embedder else ("lexical",)
        self._found: dict[Way, _Found] = {way: _Found() for way in ways}
        self._ids: list[str] = []
        self._large: list[bool] = []
        self._texts = self._ungrouped = self._databases = self._reachable = 0

    async def run(self) -> Retrieval:
        """Open each database once, index it and ask it its questions.

        Raises:
            ConfigurationError: A URL or the embedding model is wrong, or its package is missing.
            ModelUnavailable: The embedding model's endpoint gives no vectors.
        """
        asked = [question for question in self.questions if question.gold_sql]
        unopened: dict[str, str] = {}
        if self.embedder is not None:
            with self._building("dense"):
                await asyncio.to_thread(self.embedder.inner.encode, ["a model is loaded when first used"])
        urls = {each.url: each.database for each in (self.suite.questions if self.whole_suite else asked)}
        for url, name in urls.items():
            try:
                catalog = await catalog_of(url)
            except DatabaseUnavailable as error:
                unopened[name] = str(error)
                continue
            own = [question for question in asked if question.url == url]
            await asyncio.to_thread(self._database, name, catalog, own)
        return Retrieval(
            suite=self.suite.name,
            questions=len(self._ids),
            databases=self._databases,
            texts=self._texts,
            ungrouped=self._ungrouped,
            budget=self.budget,
            large=sum(self._large),
            reachable=self._reachable,
            ways={way: self._figures(found) for way, found in self._found.items()} if self._ids else {},
            unopened=unopened,
        )

    def _database(self, name: str, catalog: Catalog, questions: Sequence[EvalQuestion]) -> None:
        index = ColumnIndex(catalog, groups=self.groups)
        self._databases += 1
        self._texts += len(index.texts)
        self._ungrouped += sum(len(table.columns) for table in catalog.tables)
        self._build(name, index)
        linked = _LinkedSchema(index, catalog, self.budget)
        for question in questions:
            if golds := golds_of(question.gold_sql, catalog):
                self._ids.append(question.id)
                self._large.append(not linked.whole)
                wanted = [_stand_ins(gold, linked.first) for gold in golds]
                self._reachable += any(linked.fits(sorted(tables)) for tables, _ in wanted)
                self._ask(index, linked, question, wanted)

    def _build(self, name: str, index: ColumnIndex) -> None:
        with self._building("lexical"):
            index.build()
        if self.embedder is not None:
            self.on_progress(name, 0, len(index.texts))
            self.embedder.on_progress = partial(self.on_progress, name)
            with self._building("dense"):
                index.build(self.embedder)

    @contextmanager
    def _building(self, way: Way) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._found[way].build_seconds += time.perf_counter() - start

    def _ask(
        self,
        index: ColumnIndex,
        linked: _LinkedSchema,
        question: EvalQuestion,
        golds: Sequence[tuple[set[str], set[Key]]],
    ) -> None:
        query = "\n".join((question.question, *question.knowledge.values()))
        for way, found in self._found.items():
            # the question is embedded once a way, from no cache: its time is part of the answer's
            embedder = _Remembering(self.embedder.inner) if self.embedder and way != "lexical" else None
            how: dict[str, Any] = {"embedder": embedder, "hybrid": way == "hybrid"}
            start = time.perf_counter()
            tables = index.tables(query, len(index.fields), **how)
            found.seconds.append(time.perf_counter() - start)
            tables = [*dict.fromkeys((*tables, *linked.first.values()))]  # those nothing speaks for come last
            hits = index.search(query, COLUMNS_AT[-1], **how)
            columns = [(hit.table, hit.column) for hit in hits]
            found.tables.append([_recall(tables[:k], [gold for gold, _ in golds]) for k in TABLES_AT])
            if used := [gold for _, gold in golds if gold]:
                found.columns.append([_recall(columns[:k], used) for k in COLUMNS_AT])
            shown = set(tables[: linked.fitting(tables)])
            found.within.append(any(gold <= shown for gold, _ in golds))

    def _figures(self, found: _Found) -> WayFigures:
        large = [within for within, large in zip(found.within, self._large, strict=True) if large]
        p50, p99 = (1000 * float(np.percentile(found.seconds, share)) for share in (50, 99))
        return WayFigures(
            tables=tuple(_at(TABLES_AT, found.tables)),
            columns=tuple(_at(COLUMNS_AT, found.columns)),
            within=sum(found.within) / len(found.within),
            within_large=sum(large) / len(large) if large else None,
            missed=tuple(id for id, within in zip(self._ids, found.within, strict=True) if not within),
            build_seconds=found.build_seconds,
            p50_ms=p50,
            p99_ms=p99,
        )


class _LinkedSchema:
    """The schema text that ranked tables give, whole tables until the budget is spent.

    Attributes:
        first: The table that represents each table in the index, itself or the first of its group.
        whole: All tables fit.
    """

    def __init__(self, index: ColumnIndex, catalog: Catalog, budget: int) -> None:
        self._catalog, self._budget = catalog, budget
        names = [[table.full_name for table in fields.tables] for fields in index.fields]
        self._members = {members[0]: members for members in names}
        self.first = index.first
        self.whole = self.fits([*self._members])

    def fits(self, tables: Sequence[str]) -> bool:
        """Return True if all of them fit, in their order."""
        return self.fitting(tables) == len(tables)

    def fitting(self, ranked: Sequence[str]) -> int:
        """Count the ranked tables that fit, with all tables of their groups, by doubling."""
        most = 1
        while most < len(ranked) and not self._exceeds(ranked[:most]):
            most = 2 * most
        places = range(len(ranked))
        bounds = {"lo": most // 2, "hi": min(most, len(ranked))}
        return bisect_left(places, True, **bounds, key=lambda place: self._exceeds(ranked[: place + 1]))

    def _exceeds(self, tables: Sequence[str]) -> bool:
        names = tuple(name for table in tables for name in self._members[table])
        return render(prune(self._catalog, Linked(names)), budget=self._budget).tokens > self._budget


class _Remembering:
    """An embedder that keeps what it embedded in memory."""

    def __init__(self, inner: Embedder) -> None:
        self._inner, self.name = inner, inner.name
        self._known: dict[tuple[str, ...], Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        if (key := tuple(texts)) not in self._known:
            self._known[key] = self._inner.encode(texts)
        return self._known[key]


def _stand_ins(gold: Linked, first: Mapping[str, str]) -> tuple[set[str], set[Key]]:
    return {first[table] for table in gold.tables}, {(first[table], name) for table, name in gold.columns}


def _recall(found: Collection[object], golds: Sequence[Collection[object]]) -> float:
    return max(len(set(found) & set(gold)) / len(gold) for gold in golds)


def _at(ks: Sequence[int], recalls: Sequence[Sequence[float]]) -> Iterator[AtK]:
    for k, of_all in zip(ks, zip(*recalls, strict=True), strict=False):
        yield AtK(k, sum(of_all) / len(of_all), sum(share == 1 for share in of_all) / len(of_all))
