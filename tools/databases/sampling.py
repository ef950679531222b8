"""Row counts and values of a server's many tables: several questions at once, each about several tables.

A question costs its way to the server and back, whatever it asks. What one table of a question fails in, or
takes too long for, is asked again table by table.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from quorum.knowledge.catalog import Table
from quorum.tools.databases.introspection import (
    SAMPLE_ROWS,
    TABLE_SECONDS,
    UNSAMPLED,
    From,
    Introspection,
    Span,
    sample_query,
)
from quorum.tools.query import ErrorKind, QueryError, QueryResult

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

AT_ONCE = 4
"""Queries at the same time."""
TABLES, CELLS = 40, 40_000
"""Tables, and values, that one query asks for at most; of a single table all that are wanted."""
LEAST_ROWS = 125
"""Sample rows of a table where there are very many."""
ALL_CELLS = 25_000_000
"""Values of all samples: tables with more columns are sampled by fewer rows, to half of ``SAMPLE_ROWS``, a
fourth, and so on."""
BATCH_SECONDS = 2.0
COUNTED = 2_000_000
"""Rows of a table, by the engine's estimate, up to which they are counted."""
SHARE = 2 / 3
"""Of the time for a catalog, what samples may take; the rest is for counts."""


@dataclass(frozen=True)
class Scan:
    """A table to be read.

    Attributes:
        sql: The table in SQL.
        texts: Its columns as text, in SQL.
        estimate: The engine's own of its rows.
        countable: Whether its rows may be counted; a view may take for ever.
        start, span: Where rows are found by their number, see ``sample_query``.
    """

    table: Table
    sql: str
    texts: Sequence[str]
    estimate: int | None = None
    countable: bool = True
    start: From = field(default=lambda number: f"{number} >= 0")
    span: Span | None = None


def rows_each(columns: int) -> int:
    """Sample rows of each table, by the columns of all of them."""
    rows = SAMPLE_ROWS
    while rows > LEAST_ROWS and rows * columns > ALL_CELLS:
        rows //= 2
    return rows


async def with_values(look: Introspection, sources: Sequence[Scan], samples: int) -> list[Table]:
    """The tables with row counts and values, as far as there is time; what they lack is in ``look``.

    Views that cannot be read are left out.

    Args:
        samples: As ``Connector.catalog``.
    """
    look.started = time.monotonic()
    rows = rows_each(sum(len(source.texts) for source in sources))
    reader = _Sampler(look, rows, samples)
    tables = [source for source in sources if source.countable]
    views = [[source] for source in sources if not source.countable]
    await _each(reader.sample, [*_batches(tables, rows), *views])
    large = sorted(reader.partly, key=lambda source: (source.estimate or 0, source.table.full_name))
    await _each(reader.complete, large)
    kept = list[Table]()
    for source in sources:
        table, probe = source.table, sample_query(source.sql, source.texts, source.start, None, 0)
        unsure = table.kind != "table" and table.full_name in look.lacking[UNSAMPLED]
        if not unsure or await look.readable(table.kind, table.full_name, probe):
            kept.append(reader.found[table.full_name])
    return kept


class _Sampler:
    """Reads tables.

    Attributes:
        found: Tables as they are known so far, by full name.
        partly: Those of which not all rows were read.
    """

    def __init__(self, look: Introspection, rows: int, samples: int) -> None:
        self.found: dict[str, Table] = {}
        self.partly: list[Scan] = []
        self._look, self._rows, self._samples = look, rows, samples

    async def sample(self, batch: Sequence[Scan]) -> None:
        """Read rows of some tables."""
        if self._look.left(SHARE) <= 0:
            for source in batch:
                self._failed(source)
            return
        wide = sorted(batch, key=lambda source: -len(source.texts))  # the first one says how many columns
        seconds = BATCH_SECONDS if len(batch) > 1 else TABLE_SECONDS
        answer = await self._look.try_to(_sql(wide, self._rows), self._rows * len(wide), seconds)
        if isinstance(answer, QueryResult) and not (answer.truncated and len(batch) > 1):
            size = answer.table.nbytes / max(1, answer.row_count)
            for source, values in zip(wide, _apart(answer.table, wide), strict=True):
                await self._keep(source, values, cut=bool(answer.truncated), size=size)
        elif len(batch) == 1:
            self._failed(batch[0])
        else:
            for part in _parts(batch, answer):
                await self.sample(part)

    async def complete(self, source: Scan) -> None:
        """Count a table of which not all rows were read, and hold against all what its sample says."""
        name = source.table.full_name
        table = self.found[name]
        if source.countable:
            rows = await self._look.count(source.sql) if (source.estimate or 0) <= COUNTED else None
            table = self._look.with_count(table, rows, source.estimate)
        self.found[name] = await self._look.confirmed(table)

    async def _keep(self, source: Scan, values: Sequence[Sequence[Any]], *, cut: bool, size: int) -> None:
        count = len(values[0]) if values else 0
        if source.span is not None and count < self._rows // 2:  # an estimate of long ago: it is small
            await self.sample([replace(source, span=None)])
            return
        whole = source.span is None and count < self._rows and not cut
        table = replace(source.table, row_count=count) if whole and source.countable else source.table
        self.found[table.full_name] = self._look.filled(table, values, self._samples, whole=whole)
        if not whole:
            self._look.doubt(table, source.sql, source.texts, size)
            self.partly.append(source)

    def _failed(self, source: Scan) -> None:
        name = source.table.full_name
        self._look.lack(UNSAMPLED, source.table)
        self.found[name] = source.table
        if source.countable:
            self.partly.append(source)


async def _each(work: Callable[[T], Awaitable[None]], things: Iterable[T]) -> None:
    """Do ``work`` to all things, ``AT_ONCE`` at a time, in their order."""
    left = iter(things)

    async def worker() -> None:
        for thing in left:
            await work(thing)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def _batches(sources: Sequence[Scan], rows: int) -> Iterator[list[Scan]]:
    """Tables of about as many columns together."""
    batch: list[Scan] = []
    cells = 0
    for source in sorted(sources, key=lambda source: len(source.texts)):
        wanted = len(source.texts) * min(rows, rows if source.estimate is None else source.estimate + 1)
        if batch and (len(batch) == TABLES or cells + wanted > CELLS):
            yield batch
            batch, cells = [], 0
        batch.append(source)
        cells += wanted
    if batch:
        yield batch


def _parts(batch: Sequence[Scan], answer: QueryResult | QueryError) -> Iterator[Sequence[Scan]]:
    """Yield the parts to ask of a batch that failed: one by one if it took too long, else halves."""
    if isinstance(answer, QueryError) and answer.kind is not ErrorKind.TIMEOUT:
        half = len(batch) // 2
        yield from (batch[:half], batch[half:])
    else:
        yield from ([source] for source in batch)


def _sql(sources: Sequence[Scan], rows: int) -> str:
    """One question for rows of several tables, the table's number before each row."""
    width = len(sources[0].texts)
    parts = []
    for number, source in enumerate(sources):
        texts = [*source.texts, *["NULL"] * (width - len(source.texts))]
        named = [f"{number} AS n", *(f"{text} AS c{i}" for i, text in enumerate(texts))]
        parts.append(f"({sample_query(source.sql, named, source.start, source.span, rows)})")
    return " UNION ALL ".join(parts)


def _apart(table: pa.Table, sources: Sequence[Scan]) -> Iterator[list[list[Any]]]:
    """The values of each source, by column."""
    import pyarrow.compute as pc

    for number, source in enumerate(sources):
        part = table.filter(pc.equal(table.column(0), number)) if len(sources) > 1 else table
        yield [part.column(i + 1).to_pylist() for i in range(len(source.texts))]
