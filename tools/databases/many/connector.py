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
from quorum.tools.admission import UNTOLD, estimated, tells
from quorum.tools.databases.base import Connector
from quorum.tools.databases.duckdb.connector import DuckdbConnector
from quorum.tools.databases.embedded import with_beside
from quorum.tools.databases.many.catalog import Held, united
from quorum.tools.databases.many.types import duckdb_type
from quorum.tools.databases.session import Load
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

    from quorum.tools.databases.many.plan import Holdings, Need, Plan

T = TypeVar("T")

PART_ROWS = 1_000_000
"""Most rows of one part."""
PART_BYTES = 256 * 2**20
"""Most bytes of one part, and of all parts of a query."""
CERTAIN = (
    ErrorKind.SYNTAX,
    ErrorKind.TABLE_NOT_FOUND,
    ErrorKind.COLUMN_NOT_FOUND,
    ErrorKind.AMBIGUOUS_COLUMN,
    ErrorKind.GROUPING,
)
"""Errors that no type explains: of those in SQLite only the values tell."""
AT_ONCE = 8
"""Parts that are read at the same time."""
NOTE = (
    "These are several databases. Of each table a query gets its part: the columns that it names, and the "
    "rows by conditions that compare one column with constants: a number or date by =, <, IN, BETWEEN, IS "
    "NULL, a text by = and IN; the parts "
    f"are then joined. A part may have {PART_ROWS:,} rows at most, so give large tables such conditions."
)


class Joiner(DuckdbConnector):
    """The child processes in which parts are joined; see ``quorum.tools.databases.duckdb.parts``."""

    session = "quorum.tools.databases.duckdb.parts:PartsSession"

    async def open(self) -> None:
        await self.attach({}, ())

    async def attach(self, databases: Mapping[str, str], files: Sequence[str]) -> None:
        """Have the children read DuckDB files in place, by the names given, and ``files`` for them.

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
        self._holdings: Holdings | None = None
        self._held: dict[str, Held] = {}
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
        """Open the joining processes, which read what is DuckDB's where it is."""
        self._attached.clear()
        databases: dict[str, str] = {}
        files: list[str] = []
        for each in self.members:
            if isinstance(each, DuckdbConnector) and (place := each.in_place):
                name = self._attached[each] = f"quorum_{len(databases)}"
                databases[name] = place[0]
                files += place[1]
        await self._joiner.attach(databases, files)

    async def close(self) -> None:
        self._opened = False
        self._holdings = None
        await asyncio.gather(self._joiner.close(), *(each.close() for each in self.members))

    async def catalog(self, *, samples: int = 3) -> Catalog:
        self._check_open()
        return await self.take(await _all(*(each.catalog(samples=samples) for each in self.members)))

    async def take(self, catalogs: Sequence[Catalog]) -> Catalog:
        """The members' catalogs as one, which queries go by from now on."""
        return await asyncio.to_thread(self._taken, catalogs)

    def _taken(self, catalogs: Sequence[Catalog]) -> Catalog:
        from quorum.tools.databases.many.plan import Holdings

        described = map(with_beside, self.members, catalogs)
        catalog, held = united(list(zip(self.members, described, strict=True)))
        self._holdings, self._held = Holdings(held), {each.table.full_name: each for each in held}
        return replace(catalog, notes=(*catalog.notes, NOTE))

    def owner(self, table: Table) -> tuple[Connector, Table]:
        held = self._held.get(table.full_name)
        return (held.owner, held.own) if held else (self, table)

    def stamp(self, sentence: str) -> str:
        _, _, own = sentence.partition(": ")  # the database's title comes first
        return " ".join(filter(None, (each.stamp(own) for each in self.members)))

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        started = time.monotonic()
        plan = await self._planned(sql, limits)
        if isinstance(plan, QueryError):
            return plan
        if problem := await self._wrong(plan, sql, limits):
            return problem
        reading = _Reading(limits, started + limits.seconds)
        reading.parts = tuple(map(_read_in_place, filter(self._in_place, plan.needs)))
        tables = await reading.all([need for need in plan.needs if not self._in_place(need)])
        if isinstance(tables, QueryError):
            return tables
        left = reading.deadline - time.monotonic()
        if left <= 0:
            return replace(timed_out(limits), parts=reading.parts)
        loads = await asyncio.to_thread(self._loads, plan, [table for table, _ in tables])
        outcome = await self._joiner.run_over(loads, sql, replace(limits, seconds=left))
        if isinstance(outcome, QueryError):
            return replace(outcome, parts=reading.parts)
        cut = plan.alone and not outcome.truncated and any(cut == "bytes" for _, cut in tables)
        return replace(
            outcome,
            seconds=time.monotonic() - started,
            truncated="bytes" if cut else outcome.truncated,
            bytes_scanned=bytes_scanned(reading.parts),
            parts=reading.parts,
        )

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        return await self.told(sql, limits) if self.estimates else None

    async def told(self, sql: str, limits: Limits) -> Estimate | QueryError:
        """What a query would read in each database, and how much of it, as far as they tell.

        Raises:
            DatabaseUnavailable: The connector is not open.
        """
        plan = await self._planned(sql, limits)
        if isinstance(plan, QueryError):
            return plan
        if problem := await self._wrong(plan, sql, limits):
            return problem
        needs = [need for need in plan.needs if not self._in_place(need)]
        found = await asyncio.gather(*(estimated(need.held.owner, need.sql, limits) for need in needs))
        lines = [_read_in_place(need).describe() for need in plan.needs if self._in_place(need)]
        size, unknown = 0, ""
        for need, each in zip(needs, found, strict=True):
            database = need.held.table.database
            if isinstance(each, QueryError):
                return _of(need, each)
            read = "" if each.bytes is None else f", {size_text(each.bytes)} to be read"
            lines.append(f"{database}{read}: {need.sql}")
            size += each.bytes or 0
            if each.bytes is None and tells(need.held.owner):
                unknown = f"{database}: {each.unknown}"
        billed = any(isinstance(each, Estimate) and each.billed for each in found)
        unknown = unknown or ("" if self.estimates else UNTOLD)
        told = None if unknown else size
        return Estimate(told, billed=billed, unknown=unknown, parts=tuple(lines))

    async def _planned(self, sql: str, limits: Limits) -> Plan | QueryError:
        from quorum.tools.databases.many.plan import split

        self._check_open()
        async with self._reading:
            if self._holdings is None:
                await self.catalog(samples=0)
        assert self._holdings is not None
        return await asyncio.to_thread(split, sql, self._holdings, limits.rows)

    async def _wrong(self, plan: Plan, sql: str, limits: Limits) -> QueryError | None:
        """Why a query cannot run at all: told over empty parts, before any part is read or paid for."""
        if all(map(self._in_place, plan.needs)):
            return None
        outcome = await self._joiner.run_over(self._loads(plan, None), f"EXPLAIN {sql}", limits)
        if isinstance(outcome, QueryError) and outcome.kind in CERTAIN:
            shift = len("EXPLAIN ") if outcome.line == 1 and outcome.column else 0
            return replace(outcome, column=outcome.column and outcome.column - shift)
        return None

    def _in_place(self, need: Need) -> bool:
        return need.held.owner in self._attached

    def _loads(self, plan: Plan, tables: Sequence[pa.Table] | None) -> list[Load]:
        """What the joining process is handed before the query; without tables its parts are empty."""
        fetched = iter(tables or ())
        loads: list[Load] = [({}, b"")]
        for need in plan.needs:
            if alias := self._attached.get(need.held.owner):
                loads.append(_attached_part(need, alias))
            else:
                loads.append(_fetched_part(need, None if tables is None else next(fetched)))
        return [*loads, ({"path": plan.path}, b"")] if plan.path else loads

    def _check_open(self) -> None:
        if not self._opened:
            raise DatabaseUnavailable("The connection to the databases is closed.", hint="Open it first.")


class _Reading:
    """Reads the parts of one query, within its time and the bounds of all parts.

    Attributes:
        parts: What has been read so far.
    """

    def __init__(self, limits: Limits, deadline: float) -> None:
        self.deadline = deadline
        self.parts: tuple[Part, ...] = ()
        self._limits = limits
        self._scan = limits.scan
        self._slots = asyncio.Semaphore(AT_ONCE if limits.scan is None else 1)
        self._size = 0

    async def all(self, needs: Sequence[Need]) -> list[tuple[pa.Table, str]] | QueryError:
        """Each part's rows, and what cut them; the first error ends all."""
        tasks = [asyncio.ensure_future(self._one(need)) for need in needs]
        try:
            for done in asyncio.as_completed(tasks):
                outcome = await done
                if isinstance(outcome, QueryError):
                    return replace(outcome, parts=self.parts)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [found for task in tasks if not isinstance(found := task.result(), QueryError)]

    async def _one(self, need: Need) -> tuple[pa.Table, str] | QueryError:
        async with self._slots:
            left = self.deadline - time.monotonic()
            if left <= 0:
                return timed_out(self._limits)
            rows = PART_ROWS if need.limit is None else need.limit
            limits = replace(self._limits, rows=rows, bytes=PART_BYTES, seconds=left, scan=self._scan)
            outcome = await need.held.owner.run(need.sql, limits)
            if isinstance(outcome, QueryError):
                return _of(need, outcome, self._limits)
            self._note(need, outcome)
        if outcome.truncated and need.limit is None:
            return _too_large(need)
        if self._size > PART_BYTES:
            return _too_large(need, "all parts of the query together have")
        return outcome.table, outcome.truncated

    def _note(self, need: Need, outcome: QueryResult) -> None:
        size, read = outcome.table.nbytes, outcome.bytes_scanned
        part = Part(need.held.table.database, need.sql, outcome.row_count, size, read, outcome.seconds)
        self.parts, self._size = (*self.parts, part), self._size + size
        if self._scan is not None:
            self._scan = max(0, self._scan - (read or 0))


async def _all(*work: Awaitable[T]) -> list[T]:
    """The results of all; where some fail, the first one's error, once all have ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return cast("list[T]", found)


def _of(need: Need, error: QueryError, limits: Limits | None = None) -> QueryError:
    """A part's error, told as the query's: with the database's name, without a place in the part's SQL."""
    message = f"{need.held.table.database}: {error.message}"
    if error.kind is ErrorKind.TIMEOUT and limits:
        message = f"{need.held.table.database}: {timed_out(limits).message}"
    return replace(error, message=message, line=None, column=None)


def _too_large(need: Need, what: str = "") -> QueryError:
    """The error of a part beyond the bounds, with what to do."""
    name, database, size = ".".join(need.held.path), need.held.table.database, PART_BYTES // 2**20
    more = what or f"the query's part of {name} has"
    message = (
        f"Over several databases a part is read before it is joined, and {more} more than "
        f"{PART_ROWS:,} rows or {size} MiB. Compare columns of {name} with constants (=, <, IN, BETWEEN) so "
        f"that {database} can leave rows out, and name only the columns that are needed; or ask {database} "
        "alone."
    )
    return QueryError(ErrorKind.RESOURCES, message)


def _wanted(held: Held, column: int) -> str:
    """The type that a column's values should have in DuckDB, where they are of none or of a kindred one."""
    kind = duckdb_type(held.own.columns[column].type, held.owner.dialect)
    seen = held.table.columns[column].type
    return kind or (seen if seen in ("BIGINT", "DOUBLE") else "VARCHAR")


def _read_in_place(need: Need) -> Part:
    own = need.held.own
    return Part(need.held.table.database, f"{own.schema}.{own.name}", None, 0, None, 0.0)


def _attached_part(need: Need, alias: str) -> Load:
    """A table of a DuckDB that the joining process has attached under that name."""
    held = need.held
    return {"table": held.path, "source": (alias, held.own.schema, held.own.name)}, b""


def _fetched_part(need: Need, table: pa.Table | None) -> Load:
    """Rows that were fetched, or how many there are; none without a table."""
    import pyarrow as pa

    held = need.held
    readable = held.owner.dialect != "sqlite"
    wanted = [(held.table.columns[i].name, _wanted(held, i), readable) for i in need.columns or (0,)]
    if table is None or not need.columns:
        count = 0 if table is None else table.column(0)[0].as_py()
        return {"table": held.path, "columns": wanted, "rows": count}, b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"table": held.path, "columns": wanted}, memoryview(sink.getvalue())
