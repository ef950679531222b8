"""Several databases as one, in DuckDB's dialect: each table's part is read by its own connector, then joined.

A query is split into parts (``plan``): the columns that it names and the conditions that the owner
checks alike. Each part is a query of the owner's dialect through its own connector, with all that this
enforces. DuckDB joins them in a child process that can read nothing else. A part beyond the bounds is an
error, never cut.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar, cast

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.admission import UNKNOWN, estimate, estimates_bytes
from quorum.tools.databases.base import Connector
from quorum.tools.databases.duckdb.connector import DuckdbConnector
from quorum.tools.databases.embedded import with_file_descriptions
from quorum.tools.databases.many.catalog import UnionTable, united
from quorum.tools.databases.many.types import duckdb_type
from quorum.tools.databases.worker import Load
from quorum.tools.query import (
    ErrorKind,
    Estimate,
    Limits,
    Part,
    QueryError,
    QueryResult,
    bytes_scanned,
    timed_out,
)
from quorum.tools.results.readable import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.tools.databases.many.plan import PartQuery, QueryPlan, UnionTables

T = TypeVar("T")

PART_ROWS = 1_000_000
"""Largest number of rows of one part."""
PART_BYTES = 256 * 2**20
"""Largest size of one part, and of all parts of a query."""
CERTAIN = (
    ErrorKind.SYNTAX,
    ErrorKind.TABLE_NOT_FOUND,
    ErrorKind.COLUMN_NOT_FOUND,
    ErrorKind.AMBIGUOUS_COLUMN,
    ErrorKind.GROUPING,
)
"""Errors that do not depend on types, which in SQLite only the values have."""
AT_ONCE = 8
"""Parts that are read at the same time."""
NOTE = (
    "These are several databases. Of each table a query gets its part: the columns that it names, and the "
    "rows by conditions that compare one column with constants: a number or date by =, <, IN, BETWEEN, IS "
    "NULL, a text by = and IN; the parts "
    f"are then joined. A part may have {PART_ROWS:,} rows at most, so give large tables such conditions."
)


class Joiner(DuckdbConnector):
    """The child processes in which parts are joined; see ``quorum.tools.databases.many.session``."""

    session = "quorum.tools.databases.many.session:PartsSession"

    async def open(self) -> None:
        await self.attach({}, ())

    async def attach(self, databases: Mapping[str, str], files: Sequence[str]) -> None:
        """Let the children read DuckDB files in place, under these names, and the files that those read.

        Raises:
            DatabaseUnavailable: They cannot.
        """
        await self._serve(json.dumps(databases), files)


class ManyConnector(Connector):
    """Several databases; ``connect_all`` makes it of their connectors."""

    dialect = "duckdb"
    scheme = "many"
    several = True

    def __init__(self, members: Sequence[Connector]) -> None:
        self.members = tuple(members)
        self.estimates = any(each.estimates for each in members)
        self.bills = any(each.bills for each in members)
        self._joiner = Joiner("the join of several databases")
        self._attached: dict[Connector, str] = {}
        self._tables: UnionTables | None = None
        self._by_name: dict[str, UnionTable] = {}
        self._reading = asyncio.Lock()
        self._opened = False

    @classmethod
    def from_url(cls, url: str) -> Self:  # noqa: ARG003
        raise ConfigurationError("Several databases have no URL of their own.", hint="Name each of them.")

    async def open(self) -> None:
        await self.close()
        async with AsyncExitStack() as stack:
            for each in (*self.members, self._joiner):
                stack.push_async_callback(each.close)
            await _all(*(each.open() for each in self.members))
            await self._attach()
            self._opened = True
            stack.pop_all()

    async def _attach(self) -> None:
        """Open the joining processes, which read DuckDB files in place."""
        self._attached.clear()
        databases: dict[str, str] = {}
        files: list[str] = []
        for each in self.members:
            if isinstance(each, DuckdbConnector):
                name = self._attached[each] = f"quorum_{len(databases)}"
                databases[name], read = each.in_place
                files += read
        await self._joiner.attach(databases, files)

    async def close(self) -> None:
        self._opened = False
        self._tables = None
        await asyncio.gather(self._joiner.close(), *(each.close() for each in self.members))

    async def catalog(self, *, samples: int = 3) -> Catalog:
        self._check_open()
        return await self.take(await _all(*(each.catalog(samples=samples) for each in self.members)))

    async def take(self, catalogs: Sequence[Catalog]) -> Catalog:
        """Combine the members' catalogs; queries are planned by the result from now on."""
        return await asyncio.to_thread(self._combine, catalogs)

    def _combine(self, catalogs: Sequence[Catalog]) -> Catalog:
        from quorum.tools.databases.many.plan import UnionTables

        described = map(with_file_descriptions, self.members, catalogs)
        catalog, tables = united(list(zip(self.members, described, strict=True)))
        self._tables, self._by_name = UnionTables(tables), {each.table.full_name: each for each in tables}
        return replace(catalog, notes=(*catalog.notes, NOTE))

    def owner(self, table: Table) -> tuple[Connector, Table]:
        found = self._by_name.get(table.full_name)
        return (found.owner, found.original) if found else (self, table)

    def stamp(self, sentence: str = "") -> str:
        _, _, own = sentence.partition(": ")  # the database's title comes first
        return " ".join(filter(None, (each.stamp(own) for each in self.members)))

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        self._check_open()
        try:
            return await self._run(sql, limits)
        except DatabaseUnavailable as error:
            if self._opened:
                raise
            return QueryError(ErrorKind.UNAVAILABLE, str(error))  # it was closed while a part was read

    async def _run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        started = time.monotonic()
        plan = await self._plan(sql, limits)
        if isinstance(plan, QueryError):
            return plan
        reading = _Reading(limits, started + limits.seconds)
        reading.read = tuple(map(_read_in_place, filter(self._in_place, plan.parts)))
        tables = await reading.all([part for part in plan.parts if not self._in_place(part)])
        if isinstance(tables, QueryError):
            return tables
        left = reading.deadline - time.monotonic()
        if left <= 0:
            return replace(timed_out(limits), parts=reading.read)
        loads = await asyncio.to_thread(self._loads, plan, [table for table, _ in tables])
        outcome = await self._joiner.run(sql, replace(limits, seconds=left), loads)
        if isinstance(outcome, QueryError):
            return replace(outcome, parts=reading.read)
        cut = not outcome.truncated and any(cut == "bytes" for _, cut in tables)  # else it is an error
        return replace(
            outcome,
            seconds=time.monotonic() - started,
            truncated="bytes" if cut else outcome.truncated,
            bytes_scanned=bytes_scanned(reading.read),
            parts=reading.read,
        )

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        return await self.estimate_parts(sql, limits) if self.estimates else None

    async def estimate_parts(self, sql: str, limits: Limits) -> Estimate | QueryError:
        """Return the query of each part, and its bytes if its database estimates them.

        Raises:
            DatabaseUnavailable: The connector is not open.
        """
        plan = await self._plan(sql, limits)
        if isinstance(plan, QueryError):
            return plan
        parts = [part for part in plan.parts if not self._in_place(part)]
        found = await asyncio.gather(*(estimate(part.table.owner, part.sql, limits) for part in parts))
        lines = [_read_in_place(part).describe() for part in plan.parts if self._in_place(part)]
        size, unknown, billed = 0, "" if self.estimates else UNKNOWN, False
        for part, each in zip(parts, found, strict=True):
            if isinstance(each, QueryError):
                return _error_of(part, each)
            read = "" if each.bytes is None else f", {size_text(each.bytes)} to be read"
            lines.append(f"{part.database}{read}: {part.sql}")
            size, billed = size + (each.bytes or 0), billed or each.billed
            if each.bytes is None and estimates_bytes(part.table.owner):
                unknown = f"{part.database}: {each.unknown}"
        return Estimate(None if unknown else size, billed=billed, unknown=unknown, parts=tuple(lines))

    async def _plan(self, sql: str, limits: Limits) -> QueryPlan | QueryError:
        """Split a query into parts.

        Its errors are found over empty parts, before any part is read or paid for.
        """
        from quorum.tools.databases.many.plan import split

        self._check_open()
        async with self._reading:
            if self._tables is None:
                await self.catalog(samples=0)
        assert self._tables is not None
        plan = await asyncio.to_thread(split, sql, self._tables, limits.rows)
        if isinstance(plan, QueryError) or all(map(self._in_place, plan.parts)):
            return plan
        outcome = await self._joiner.run(f"EXPLAIN {sql}", limits, self._loads(plan, None))
        if isinstance(outcome, QueryError) and outcome.kind in CERTAIN:
            shift = len("EXPLAIN ") if outcome.line == 1 and outcome.column else 0
            return replace(outcome, column=outcome.column and outcome.column - shift)
        return plan

    def _in_place(self, part: PartQuery) -> bool:
        return part.table.owner in self._attached

    def _loads(self, plan: QueryPlan, tables: Sequence[pa.Table] | None) -> list[Load]:
        """Return what the joining process takes before the query; without tables its parts are empty."""
        fetched = iter(tables or ())
        loads: list[Load] = [({}, b"")]
        for part in plan.parts:
            if alias := self._attached.get(part.table.owner):
                own = part.table.original
                loads.append(({"table": part.table.path, "source": (alias, own.schema, own.name)}, b""))
            else:
                loads.append(_fetched_part(part, None if tables is None else next(fetched)))
        return [*loads, ({"path": plan.path}, b"")] if plan.path else loads

    def _check_open(self) -> None:
        if not self._opened:
            raise DatabaseUnavailable("The connection to the databases is closed.", hint="Open it first.")


class _Reading:
    """Reads the parts of one query, within its time and the bounds of all parts.

    Attributes:
        read: The parts that have been read so far.
    """

    def __init__(self, limits: Limits, deadline: float) -> None:
        self.deadline = deadline
        self.read: tuple[Part, ...] = ()
        self._limits = limits
        self._scan = limits.scan
        self._slots = asyncio.Semaphore(AT_ONCE if limits.scan is None else 1)
        self._size = 0

    async def all(self, parts: Sequence[PartQuery]) -> list[tuple[pa.Table, str]] | QueryError:
        """Return each part's rows, and the cap that cut them; the first error ends all."""
        tasks = [asyncio.ensure_future(self._one(part)) for part in parts]
        try:
            for done in asyncio.as_completed(tasks):
                outcome = await done
                if isinstance(outcome, QueryError):
                    return replace(outcome, parts=self.read)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [found for task in tasks if not isinstance(found := task.result(), QueryError)]

    async def _one(self, part: PartQuery) -> tuple[pa.Table, str] | QueryError:
        async with self._slots:
            left = self.deadline - time.monotonic()
            if left <= 0:
                return timed_out(self._limits)
            rows = PART_ROWS if part.limit is None else part.limit
            limits = replace(self._limits, rows=rows, bytes=PART_BYTES, seconds=left, scan=self._scan)
            outcome = await part.table.owner.run(part.sql, limits)
            if isinstance(outcome, QueryError):
                return _error_of(part, outcome, self._limits)
            size, scanned = outcome.table.nbytes, outcome.bytes_scanned
            read = Part(part.database, part.sql, outcome.row_count, size, scanned, outcome.seconds)
            self.read, self._size = (*self.read, read), self._size + size
            if self._scan is not None:
                self._scan = max(0, self._scan - (scanned or 0))
        if outcome.truncated and part.limit is None:
            return _too_large(part)
        if self._size > PART_BYTES:
            return _too_large(part, "all parts of the query together have")
        return outcome.table, outcome.truncated


async def _all(*work: Awaitable[T]) -> list[T]:
    """Return the results of all; if some fail, raise the first one's error once all have ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return cast("list[T]", found)


def _error_of(part: PartQuery, error: QueryError, limits: Limits | None = None) -> QueryError:
    """Return a part's error as the query's: with the database's name, without a place in the part's SQL."""
    message = timed_out(limits).message if limits and error.kind is ErrorKind.TIMEOUT else error.message
    return replace(error, message=f"{part.database}: {message}", line=None, column=None)


def _too_large(part: PartQuery, what: str = "") -> QueryError:
    """Return the error of a part beyond the bounds, with what to do."""
    name, database, size = ".".join(part.table.path), part.database, PART_BYTES // 2**20
    more = what or f"the query's part of {name} has"
    message = (
        f"Over several databases a part is read before it is joined, and {more} more than "
        f"{PART_ROWS:,} rows or {size} MiB. Compare columns of {name} with constants (=, <, IN, BETWEEN) so "
        f"that {database} can leave rows out, and name only the columns that are needed; or ask {database} "
        "alone."
    )
    return QueryError(ErrorKind.RESOURCES, message)


def _read_in_place(part: PartQuery) -> Part:
    own = part.table.original
    return Part(part.database, f"{own.schema}.{own.name}", None, 0, None, 0.0)


def _fetched_part(part: PartQuery, rows: pa.Table | None) -> Load:
    """Return rows that were fetched, or their number if no column is needed; without rows an empty part."""
    from quorum.tools.databases.arrow import to_stream

    table, wanted = part.table, []
    for i in part.columns or (0,):
        shown, kind = table.table.columns[i], duckdb_type(table.original.columns[i].type, table.owner.dialect)
        # SQLite's types are those of the samples
        kind = kind or (shown.type if shown.type in ("BIGINT", "DOUBLE") else "VARCHAR")
        wanted.append((shown.name, kind, table.owner.dialect != "sqlite"))
    if rows is None or not part.columns:
        count = 0 if rows is None else rows.column(0)[0].as_py()
        return {"table": table.path, "columns": wanted, "rows": count}, b""
    return {"table": table.path, "columns": wanted}, memoryview(to_stream(rows))
