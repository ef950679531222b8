"""What the engines' introspections share: bounded questions, row counts, sample values."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.knowledge.variant import infer_fields
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult

CATALOG_SECONDS = 30.0
"""Seconds for all counts and samples together; what does not fit is left out and noted."""
TABLE_SECONDS = 1.0
"""Seconds for one table's count, and for its samples."""
SAMPLE_ROWS = 1000
WINDOWS = 10
"""Places of a table that samples are taken from, so that they are not only the oldest rows."""
SAMPLE_CHARACTERS = 60
TEXT_CHARACTERS = 20_000
"""Characters fetched of a value; a JSON document must be whole to be parsed."""
DOCUMENTS = 200
"""JSON values that fields are inferred from."""
FEW = 12
"""A column with at most this many repeated values shows them all, so prompts have their exact spelling."""
SCANNED_ROWS = 100_000
"""Rows of a table up to which duplicates, and NULLs that its sample lacks, are looked for in all of them."""
SCANNED_BYTES = 50_000_000
"""Size of a table up to which duplicates are looked for: the engine keeps each row that differs."""
NAMED = 20
"""Tables that a note names."""

_PRIVATE = re.compile(
    r"\b(?:\w*passwords?\d*|passwd|pwd|pw|passcodes?|passphrases?|pin codes?|secrets?|private keys?"
    r"|api ?keys?|(?:access|refresh|auth|session|api) tokens?|\w*ssn\d*|social security|tax id"
    r"|passport(?: number)?|iban|cvv|cvc|credit cards?|(?:cc|card) number)\b"
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

Span: TypeAlias = tuple[int, int]
"""The least and the greatest row number."""
From: TypeAlias = Callable[[int], str]
"""The condition, in SQL, that rows from this number on fulfil."""
UNREAD = ("blob", "bytea", "binary", "varbinary", "tinyblob", "mediumblob", "longblob", "geometry", "bytes")
"""Types of bytes, whose values are neither sampled nor compared; lengths and case left out."""


class Introspected(Protocol):
    """What an introspection needs of a connector."""

    dialect: str

    @property
    def name(self) -> str:
        """The database's name, for people."""

    @property
    def place(self) -> str:
        """Where it is, for people; without secrets."""

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        """See ``Connector.run``."""


@dataclass
class Introspection:
    """Introspection queries to one database, within one time budget.

    Attributes:
        notes: What the catalog's reader should know.
        left_out: Tables, views and files that the catalog lacks: a sentence each with the reason.
        uncounted, unsampled: Tables for which the time was too short.
        withheld: Columns whose values must not be sampled (``is_private``).
        estimated: Tables whose row count is an estimate.
        unsure: Tables of which only some rows were read: the source as SQL, by column its text as SQL, and
            an estimate of all rows' bytes.
        quote: How the engine quotes a name.
    """

    connector: Introspected
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)
    unsampled: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    estimated: list[str] = field(default_factory=list)
    unsure: dict[str, tuple[str, dict[str, str], float]] = field(default_factory=dict)
    quote: Callable[[str], str] = field(default=lambda name: quoted(name))
    started: float = field(default_factory=time.monotonic)

    async def ask(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query that must succeed.

        Raises:
            DatabaseUnavailable: It failed.
        """
        answer = await self.connector.run(sql, Limits(rows=10**6, seconds=CATALOG_SECONDS))
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The catalog cannot be read: {answer.message}")
        return list(answer.table.to_pylist())

    async def try_to(self, sql: str, rows: int = SAMPLE_ROWS) -> QueryResult | QueryError:
        """Rows of a query that may fail; it takes at most ``TABLE_SECONDS`` of the budget."""
        left = self.started + CATALOG_SECONDS - time.monotonic()
        if left <= 0:
            return QueryError(ErrorKind.TIMEOUT, "The time for the catalog is up.")
        limits = Limits(rows=rows, bytes=16 * 2**20, seconds=min(left, TABLE_SECONDS))
        return await self.connector.run(sql, limits)

    async def count(self, source: str) -> int | None:
        """Rows of a table, given as SQL; None if counting takes too long."""
        answer = await self.try_to(f"SELECT count(*) AS n FROM {source}")
        return answer.table["n"][0].as_py() if isinstance(answer, QueryResult) else None

    def with_count(self, table: Table, rows: int | None, estimate: int | None) -> Table:
        """The table with its row count, else an estimate; the notes say which."""
        if rows is None:
            (self.uncounted if estimate is None else self.estimated).append(table.full_name)
        return replace(table, row_count=estimate if rows is None else rows)

    async def sample(
        self, table: Table, source: str, texts: Sequence[str], samples: int, start: From, span: Span | None
    ) -> Table:
        """The table with sample values and JSON fields; ``texts`` are its columns as text, in SQL.

        A table of at most ``FEW`` rows keeps them all. Where not all rows were read, statements about all
        values need ``confirmed``.
        """
        answer = await self.try_to(sample_query(source, texts, start, span))
        if isinstance(answer, QueryError):
            self.unsampled.append(table.full_name)
            return table
        values = [column.to_pylist() for column in answer.table.columns]
        count = answer.table.num_rows
        whole = _from_start(span) and count < SAMPLE_ROWS and not answer.truncated
        table = self.filled(table, values, samples, whole=whole)
        if whole:
            return table
        size = answer.table.nbytes / max(1, count) * (table.row_count or 0)
        by_name = {c.name: text for c, text in zip(table.columns, texts, strict=True)}
        self.unsure[table.full_name] = source, by_name, size
        return table

    def filled(self, table: Table, values: Sequence[Sequence[Any]], samples: int, *, whole: bool) -> Table:
        """The table with what rows of it tell; ``values`` are their texts by column.

        Args:
            whole: Whether these are all its rows; else what is said of all values needs ``confirmed``.
        """
        count = len(values[0]) if values else 0
        words = (
            {value for found in values for value in found if isinstance(value, str)} if count <= FEW else ()
        )
        small = whole and count <= FEW and samples > 0 and not any(map(is_private, words))
        fill = partial(_with_cells if small else _with_values, samples=samples)
        columns = [
            column if is_private(column.name) else fill(column, found)
            for column, found in zip(table.columns, values, strict=False)
        ]
        self.withheld += [f"{table.full_name}.{c.name}" for c in table.columns if is_private(c.name)]
        table = replace(table, columns=tuple(columns))
        return _with_distinct(table, len({*zip(*values, strict=True)})) if whole else table

    async def confirmed(self, table: Table) -> Table:
        """Check what a sample says about all values against all rows, and drop what is not true.

        Of tables that are not large it adds the NULLs and exact duplicates that a sample cannot tell. Call
        it when all tables have their samples, because it uses the same time budget.
        """
        if table.full_name not in self.unsure:
            return table
        source, texts, size = self.unsure[table.full_name]
        counted = table.full_name not in self.estimated  # else not even that was quick enough
        rows = (table.row_count or 0) if counted else 0
        claims = {c.name: f"count(DISTINCT {texts[c.name]})" for c in table.columns if c.complete}
        found = await self._numbers(source, claims) if rows else {}
        columns = [
            replace(c, complete=c.complete and found.get(c.name) == len(c.samples)) for c in table.columns
        ]
        if not 0 < rows <= SCANNED_ROWS:
            return replace(table, columns=tuple(columns))
        doubtful = {c.name: f"count({self.quote(c.name)})" for c in columns if c.samples and not c.nulls}
        filled = await self._numbers(source, doubtful)
        columns = [replace(c, nulls=c.nulls or filled.get(c.name, rows) < rows) for c in columns]
        table = replace(table, columns=tuple(columns))
        if table.primary_key or size > SCANNED_BYTES:
            return table
        different = f"(SELECT DISTINCT {', '.join(texts.values())} FROM {source}) AS different"
        return _with_distinct(table, (await self._numbers(different, {"": "count(*)"})).get("", rows))

    async def _numbers(self, source: str, wanted: Mapping[str, str]) -> dict[str, int]:
        """What one query counts, by name; empty if nothing is wanted or there is no time."""
        answer = await self.try_to(f"SELECT {', '.join(wanted.values())} FROM {source}") if wanted else None
        if not isinstance(answer, QueryResult):
            return {}
        return {name: column[0].as_py() for name, column in zip(wanted, answer.table.columns, strict=True)}

    def catalog(self, tables: Sequence[Table]) -> Catalog:
        """The tables as a catalog, with all notes.

        Raises:
            DatabaseUnavailable: There is no table that can be read.
        """
        if not tables:
            why = " ".join(self.left_out[:NAMED])
            message = f"{self.connector.place} holds no table{f' that can be read. {why}' if why else '.'}"
            raise DatabaseUnavailable(message, hint="" if why else "Is it the right database?")
        name, dialect = self.connector.name, self.connector.dialect
        return Catalog(name, dialect, tuple(tables), self._all_notes(), tuple(self.left_out))

    def _all_notes(self) -> tuple[str, ...]:
        """The notes, those about what is left out and about lack of time included."""
        lacks = (
            ("Row counts are estimates for", self.estimated),
            ("Not counted for lack of time", self.uncounted),
            ("No sample values are shown, for privacy, of", self.withheld),
            ("Without sample values, for lack of time or because they cannot be read", self.unsampled),
        )
        return (
            *self.left_out,
            *self.notes,
            *(f"{what}: {listed(tables)}." for what, tables in lacks if tables),
        )


def is_private(column: str) -> bool:
    """Whether a column's name says that its values are secrets or official identifiers of persons.

    Such values are never sampled, because samples go into prompts and so to the model's provider. Queries are
    not affected.
    """
    return _PRIVATE.search(_WORDS.sub(" ", column).casefold()) is not None


def is_unread(kind: str) -> bool:
    """Whether a column of this type holds bytes."""
    return kind.partition("(")[0].casefold() in UNREAD


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def quoted(*names: str) -> str:
    """A qualified name in double quotes, empty parts left out."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names if name)


def sample_query(source: str, expressions: Iterable[str], start: From, span: Span | None) -> str:
    """SQL for up to ``SAMPLE_ROWS`` rows: the first, or some from each of ``WINDOWS`` places.

    Args:
        source: The table as SQL.
        expressions: What to select, as SQL.
        start: How the engine finds a row by its number; unused without ``span``.
        span: The least and the greatest row number; None where rows have none.
    """
    selected = f"SELECT {', '.join(expressions)} FROM {source}"
    if span is None or _from_start(span):
        return f"{selected} LIMIT {SAMPLE_ROWS}"
    low, high = span
    places = [low + (high - low) * i // WINDOWS for i in range(WINDOWS)]
    each = SAMPLE_ROWS // WINDOWS
    parts = [f"SELECT * FROM ({selected} WHERE {start(place)} LIMIT {each}) AS part" for place in places]
    return " UNION ALL ".join(parts)


def _from_start(span: Span | None) -> bool:
    return span is None or span[1] - span[0] < SAMPLE_ROWS


def _with_distinct(table: Table, count: int) -> Table:
    """The table with the number of its different rows, if that is fewer; bytes are not compared."""
    fewer = count < (table.row_count or 0) and not any(is_unread(c.type) for c in table.columns)
    return replace(table, distinct_rows=count) if fewer else table


def _with_cells(column: Column, found: Sequence[Any], samples: int) -> Column:
    """The column with all its values, if they are texts."""
    if not all(isinstance(value, str | None) for value in found):
        return column
    documents = [value for value in found if value]
    fields = column.fields or (infer_fields(documents) if _documents(documents) else ())
    return replace(column, fields=fields).with_cells((value and _cut(value) for value in found), samples)


def _with_values(column: Column, found: Sequence[Any], samples: int) -> Column:
    """The column with samples, complete if they are all that was found; an empty text is one then."""
    telling = [value for value in found if isinstance(value, str) and value.strip()]
    counted = Counter(telling)
    few = len(counted) <= FEW and len(telling) >= 2 * len(counted)
    most = max(samples, FEW) if samples and few else samples
    shown = tuple(dict.fromkeys(_cut(value) for value, _ in counted.most_common(most)))
    fields = column.fields or (infer_fields(telling[:DOCUMENTS]) if _documents(telling) else ())
    others = {value for value in found if value is not None} - {*shown}
    complete = samples > 0 and len(found) > 0 and not others - {""} and len(shown) + len(others) <= most
    shown += ("",) if complete and others else ()
    nulls = bool(shown) and None in found
    return replace(column, samples=shown, fields=fields, complete=complete, nulls=nulls)


def _documents(values: Sequence[str]) -> bool:
    """Whether nearly all values look like JSON objects or arrays."""
    likely = sum(value.lstrip()[:1] in ("{", "[") for value in values[:DOCUMENTS])
    return likely > 0 and likely >= 0.9 * min(len(values), DOCUMENTS)


def _cut(value: str) -> str:
    return value if len(value) <= SAMPLE_CHARACTERS else value[: SAMPLE_CHARACTERS - 1] + "…"
