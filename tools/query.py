"""The limits, results and failures of a query, as typed values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from quorum.tools.results.readable import size_text

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


class ErrorKind(StrEnum):
    """Reasons for which a query gave no usable result; each has its own hints for the SelfRefiner.

    The taxonomy extends ReCAPAgent-SQL's (section 3.3.6).
    """

    REFUSED = "refused"  # the guard: not a pure read
    SYNTAX = "syntax"
    TABLE_NOT_FOUND = "table_not_found"
    COLUMN_NOT_FOUND = "column_not_found"
    AMBIGUOUS_COLUMN = "ambiguous_column"
    GROUPING = "grouping"  # GROUP BY and aggregates
    TYPE_MISMATCH = "type_mismatch"
    FUNCTION = "function"
    PERMISSION = "permission"
    TIMEOUT = "timeout"
    RESOURCES = "resources"  # memory, bytes to be read or billed, the engine died
    NOT_APPROVED = "not_approved"  # the user was asked, and said no
    EMPTY_RESULT = "empty_result"
    UNAVAILABLE = "unavailable"  # connection lost, database locked
    OTHER = "other"

    @property
    def about_schema(self) -> bool:
        """True for errors that call the SchemaLinker (ReCAPAgent-SQL, Table 1)."""
        return self in (ErrorKind.TABLE_NOT_FOUND, ErrorKind.COLUMN_NOT_FOUND)


@dataclass(frozen=True)
class Part:
    """The part of a query over several databases that was read in one of them.

    Attributes:
        database: Its name in the query.
        sql: The query there, in its own dialect; a table's name if it was read in place.
        rows, bytes: Of its result; None and 0 if it was read in place.
        read: Bytes that the engine reports it read (billed); None if it reports none.
        seconds: Wall clock.
    """

    database: str
    sql: str
    rows: int | None
    bytes: int
    read: int | None
    seconds: float

    def describe(self) -> str:
        """Return the part on one line, for people."""
        if self.rows is None:
            return f"{self.database}, read in place: {self.sql}"
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        read = "" if self.read is None else f", {size_text(self.read)} read"
        return f"{self.database}, {rows}, {size_text(self.bytes)}{read}: {self.sql}"


def bytes_scanned(parts: Iterable[Part]) -> int | None:
    """Return the bytes that the engines report for parts; None if none of them reports any."""
    reported = [part.read for part in parts if part.read is not None]
    return sum(reported) if reported else None


@dataclass(frozen=True)
class QueryError:
    """A query that failed, as a value.

    Attributes:
        kind: Its place in the taxonomy.
        message: For people and models: what is wrong, in one or two sentences, no stack trace.
        line, column: 1-based position in the SQL as written, where known.
        suggestions: Nearest existing names, best first.
        by: Who reported it: ``guard``, ``lint``, ``limit``, ``user`` or ``database``.
        also: Further problems of the same SQL, described.
        parts: What was read before it failed, of a query over several databases.
    """

    kind: ErrorKind
    message: str
    line: int | None = None
    column: int | None = None
    suggestions: tuple[str, ...] = ()
    by: str = "database"
    also: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def bytes_scanned(self) -> int | None:
        """Return the bytes that are known to have been read before it failed."""
        return bytes_scanned(self.parts)

    def describe(self) -> str:
        """Return the message with position and suggestions, as shown to people and models."""
        place = f" (line {self.line}, column {self.column})" if self.line and self.column else ""
        near = f" Did you mean: {', '.join(self.suggestions)}?" if self.suggestions else ""
        more = "".join(f" Also: {text}" for text in self.also)
        return f"{self.message}{place}{near}{more}"


@dataclass(frozen=True)
class Limits:
    """Hard limits of one query: rows kept, bytes kept, wall-clock seconds, engine memory in bytes.

    ``scan`` is the bytes that it may read; None for no limit.
    """

    rows: int = 100_000
    bytes: int = 64 * 2**20
    seconds: float = 60.0
    memory: int = 2 * 2**30
    scan: int | None = None

    def within(self, seconds: float | None) -> Limits:
        """Return the limits with the wall clock cut to ``seconds`` (a run's remaining time)."""
        return self if seconds is None else replace(self, seconds=max(0.05, min(self.seconds, seconds)))


def timed_out(limits: Limits, *, stopped: bool = True) -> QueryError:
    """Return the error of a query that was stopped at its time limit, or that the server did not stop."""
    end = " and was stopped" if stopped else ": it was cut off, and the server may go on with it"
    message = f"The query did not finish within {limits.seconds:g} s{end}."
    return QueryError(ErrorKind.TIMEOUT, message)


@dataclass(frozen=True)
class Estimate:
    """An engine's estimate of a query before it runs.

    Attributes:
        bytes: Read by it; None if unknown.
        billed: True if the query is charged by ``bytes``.
        parts: The parts that would be read, of a query over several databases.
        unknown: Why ``bytes`` are unknown, as the end of a sentence: "it calls the function f".
    """

    bytes: int | None = None
    billed: bool = False
    unknown: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryResult:
    """Rows that a query returned.

    Attributes:
        table: Arrow table; its names need not be unique.
        seconds: Wall clock, queueing excluded.
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
        bytes_scanned: Bytes that the engine reports it read (billed); None if it reports none.
        slot_seconds: Processor time that the engine reports; None if it reports none.
        sql: The text that was executed.
        file: The Parquet file of the table; None if it was not written.
        parts: The parts that were read, of a query over several databases.
    """

    table: pa.Table
    seconds: float
    truncated: str = ""
    bytes_scanned: int | None = None
    slot_seconds: float | None = None
    sql: str = ""
    column_types: tuple[str, ...] = field(default=())
    file: Path | None = None
    parts: tuple[Part, ...] = ()

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def row_count(self) -> int:
        """Return the number of rows kept; a truncated result had at least this many."""
        return int(self.table.num_rows)

    def preview(self, rows: int = 20) -> list[list[Any]]:
        """Return the first ``rows`` rows as JSON-ready Python values."""
        from quorum.tools.results.values import plain_rows

        return plain_rows(self.table.slice(0, rows))
