"""What the engines' introspections share: bounded questions, row counts, sample values."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.knowledge.catalog import Catalog, Column, ColumnRef, Field, Table
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.knowledge.profile.columns import key_values, profiles, with_key_matches
from quorum.knowledge.profile.model import ColumnProfile, Kind
from quorum.knowledge.schema.inferred import infer_fields
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult

if TYPE_CHECKING:
    from quorum.tools.databases.embedded import EmbeddedConnector
    from quorum.tools.databases.server import ServerConnector

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
PROFILE_SECONDS = 3.0
"""Seconds for the profiles of all columns, which are made of the rows that were read for samples."""
SCANNED_ROWS = 100_000
"""Rows of a table up to which duplicates, and NULLs that its sample lacks, are looked for in all of them."""
SCANNED_BYTES = 50_000_000
"""Size of a table up to which duplicates are looked for: the engine keeps each row that differs."""
COMPARED_ROWS = {"sqlite": 500_000, "duckdb": 5_000_000}
"""Rows of a table, by dialect, up to which columns are asked whether they are unique; a server is not."""
NAMED = 20
"""Tables that a note names."""
ESTIMATED = "Row counts are estimates for"
UNCOUNTED = "Not counted for lack of time"
WITHHELD = "No sample values are shown, for privacy, of"
UNSAMPLED = "Without sample values, for lack of time or because they cannot be read"
UNPROFILED = "Not looked at for odd values, for lack of time"
LACKS = (ESTIMATED, UNCOUNTED, WITHHELD, UNSAMPLED, UNPROFILED)
"""What a catalog may not know of tables, as the notes begin."""

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


Row = dict[str, Any]


@dataclass
class Introspection:
    """Introspection queries to one database, within one time budget.

    Attributes:
        run: Runs a query (``Connector.run``).
        notes: What the catalog's reader should know.
        left_out: Tables, views and files that the catalog lacks: a sentence each with the reason.
        lacking: What is not known or not exact (``LACKS``), by the full name of the table, as it is told.
        unsure: Tables of which only some rows were read: the source as SQL, by column its text as SQL, and
            the bytes of a row.
        keys: Values of columns that may be keys, by table and column, for the tables' traps in joins.
        profiling: Seconds that profiles have taken.
        quote: How the engine quotes a name.
    """

    connector: EmbeddedConnector | ServerConnector[Any, Any]
    run: Callable[[str, Limits], Awaitable[QueryResult | QueryError]]
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    lacking: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {what: {} for what in LACKS})
    unsure: dict[str, tuple[str, dict[str, str], float]] = field(default_factory=dict)
    keys: dict[ColumnRef, Mapping[str, int]] = field(default_factory=dict)
    profiling: float = 0.0
    quote: Callable[[str], str] = field(default=lambda name: quoted(name))
    started: float = field(default_factory=time.monotonic)

    async def ask(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query that must succeed.

        Raises:
            DatabaseUnavailable: It failed.
        """
        limits = Limits(rows=10**7, bytes=2**30, seconds=CATALOG_SECONDS)
        answer = await self.run(sql, limits)
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The catalog cannot be read: {answer.message}")
        if answer.truncated:
            raise DatabaseUnavailable(
                f"The catalog cannot be read: it has more than {answer.row_count:,} entries.",
                hint="Name some schemas in the URL.",
            )
        return list(answer.table.to_pylist())

    def left(self, share: float = 1.0) -> float:
        """Seconds that are left of the budget, or of a share of it."""
        return self.started + share * CATALOG_SECONDS - time.monotonic()

    async def try_to(
        self, sql: str, rows: int = SAMPLE_ROWS, seconds: float = TABLE_SECONDS
    ) -> QueryResult | QueryError:
        """Rows of a query that may fail; it takes at most ``seconds`` of the budget."""
        left = self.left()
        if left <= 0:
            return QueryError(ErrorKind.TIMEOUT, "The time for the catalog is up.")
        limits = Limits(rows=rows, bytes=16 * 2**20, seconds=min(left, seconds))
        return await self.run(sql, limits)

    def lack(self, what: str, table: Table) -> None:
        """Note what is not known of a table."""
        self.lacking[what][table.full_name] = [table.full_name]

    async def readable(self, kind: str, name: str, probe: str) -> bool:
        """Return False if a query for no rows of a view fails, which the catalog then says.

        One that there was no time for does not fail.
        """
        answer = await self.try_to(probe)
        if not isinstance(answer, QueryError) or answer.kind is ErrorKind.TIMEOUT:
            return True
        self.leave_out(kind, name, answer.message)
        return False

    def leave_out(self, kind: str, name: str, why: str) -> None:
        """Note that the catalog lacks a table or view."""
        self.left_out.append(f"The {kind} {name} cannot be read and is left out: {why}")

    async def count(self, source: str) -> int | None:
        """Rows of a table, given as SQL; None if counting takes too long."""
        answer = await self.try_to(f"SELECT count(*) AS n FROM {source}")
        return answer.table["n"][0].as_py() if isinstance(answer, QueryResult) else None

    def with_count(self, table: Table, rows: int | None, estimate: int | None) -> Table:
        """The table with its row count, else an estimate; the notes say which."""
        if rows is None:
            self.lack(UNCOUNTED if estimate is None else ESTIMATED, table)
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
            self.lack(UNSAMPLED, table)
            return table
        values = [column.to_pylist() for column in answer.table.columns]
        count = answer.table.num_rows
        whole = _from_start(span) and count < SAMPLE_ROWS and not answer.truncated
        table = self.filled(table, values, samples, whole=whole)
        if whole:
            return table
        self.doubt(table, source, texts, answer.table.nbytes / max(1, count))
        return table

    def doubt(self, table: Table, source: str, texts: Sequence[str], size: float) -> None:
        """Have ``confirmed`` look at a table of which only some rows, each of ``size`` bytes, were read."""
        by_name = {c.name: text for c, text in zip(table.columns, texts, strict=True)}
        self.unsure[table.full_name] = source, by_name, size

    def filled(self, table: Table, values: Sequence[Sequence[Any]], samples: int, *, whole: bool) -> Table:
        """The table with what rows of it tell; ``values`` are their texts by column.

        Args:
            whole: Whether these are all its rows; else what is said of all values needs ``confirmed``.
        """
        count = len(values[0]) if values else 0
        values = [
            [value is not None or None for value in found] if is_unread(column.type) else found
            for column, found in zip(table.columns, values, strict=True)
        ]
        words = (
            {value for found in values for value in found if isinstance(value, str)} if count <= FEW else ()
        )
        small = whole and count <= FEW and samples > 0 and not any(map(is_private, words))
        fill = partial(_with_cells if small else _with_values, samples=samples)
        columns = [
            column if is_private(column.name) else fill(column, found)
            for column, found in zip(table.columns, values, strict=False)
        ]
        self.withhold(table)
        table = replace(table, columns=tuple(columns))
        table = self._profiled(table, values, whole=whole) if samples else table
        if not whole or not values or len({*values[0]}) == count:  # the first column often tells rows apart
            return table
        return _with_distinct(table, len({*zip(*values, strict=True)}))

    def _profiled(self, table: Table, values: Sequence[Sequence[Any]], *, whole: bool) -> Table:
        """The table with the profiles of its columns, as far as there is time for them."""
        if self.profiling >= PROFILE_SECONDS:
            self.lack(UNPROFILED, table)
            return table
        begun = time.monotonic()
        read = {
            column.name: found
            for column, found in zip(table.columns, values, strict=False)
            if not (column.fields or is_private(column.name) or is_unread(column.type))
        }
        found = profiles(read, whole=whole)
        for name, profile in found.items():
            if (key := key_values(read[name], profile)) is not None:
                self.keys[table.full_name, name] = key
        self.profiling += time.monotonic() - begun
        columns = tuple(replace(column, profile=found.get(column.name)) for column in table.columns)
        return replace(table, columns=columns)

    def filled_once(
        self, table: Table, values: Sequence[Sequence[Any]], samples: int, *, whole: bool
    ) -> Table:
        """Return ``filled`` where nothing will be ``confirmed``: of some rows nothing is said of all."""
        table = self.filled(table, values, samples, whole=whole)
        if whole:
            return table
        return replace(table, columns=tuple(replace(column, complete=False) for column in table.columns))

    def withhold(self, table: Table) -> None:
        """Note which columns of a table are not shown by values."""
        if found := [f"{table.full_name}.{c.name}" for c in table.columns if is_private(c.name)]:
            self.lacking[WITHHELD][table.full_name] = found

    async def confirmed(self, table: Table) -> Table:
        """Check what a sample says about all values against all rows, and drop what is not true.

        Of tables that are not large it adds the NULLs and exact duplicates that a sample cannot tell. Call
        it when all tables have their samples, because it uses the same time budget.
        """
        if table.full_name not in self.unsure:
            return table
        source, texts, size = self.unsure[table.full_name]
        counted = table.full_name not in self.lacking[ESTIMATED]  # else not even that was quick enough
        rows = (table.row_count or 0) if counted else 0
        scanned = 0 < rows <= SCANNED_ROWS
        claims = {f"={c.name}": f"count(DISTINCT {texts[c.name]})" for c in table.columns if c.complete}
        doubtful = {
            c.name: f"count({self.quote(c.name)})" for c in table.columns if c.samples and not c.nulls
        }
        profiled = _profile_claims(table, self.quote) if scanned else {}
        found = await self._numbers(source, claims | (doubtful if scanned else {}) | profiled) if rows else {}
        if 0 < rows <= COMPARED_ROWS.get(self.connector.dialect, 0) and not table.primary_key:
            alike = [c.name for c in table.columns if (p := c.profile) and p.unique is None and p.key_like]
            each = {f"unique {name}": f"count(*) = count(DISTINCT {self.quote(name)})" for name in alike}
            found |= await self._numbers(source, each)
        columns = tuple(
            replace(
                c,
                complete=c.complete and found.get(f"={c.name}") == len(c.samples),
                nulls=c.nulls or found.get(c.name, rows) < rows,
                profile=_confirmed_profile(c, found),
            )
            for c in table.columns
        )
        table = replace(table, columns=columns)
        if not scanned or table.primary_key or size * rows > SCANNED_BYTES:
            return table
        different = f"(SELECT DISTINCT {', '.join(texts.values())} FROM {source}) AS different"
        return _with_distinct(table, (await self._numbers(different, {"": "count(*)"})).get("", rows))

    async def _numbers(self, source: str, wanted: Mapping[str, str]) -> dict[str, Any]:
        """Return what one query counts or finds, by name; empty if nothing is wanted or there is no time."""
        answer = await self.try_to(f"SELECT {', '.join(wanted.values())} FROM {source}") if wanted else None
        if not isinstance(answer, QueryResult):
            return {}
        return {name: column[0].as_py() for name, column in zip(wanted, answer.table.columns, strict=True)}

    def catalog(self, tables: Sequence[Table], filtered: tuple[str, ...] = ()) -> Catalog:
        """Make a catalog of the tables, with all notes.

        Args:
            filtered: As of ``Catalog``.

        Raises:
            DatabaseUnavailable: There is no table that can be read.
        """
        if not tables:
            why = " ".join(self.left_out[:NAMED])
            message = f"{self.connector.place} holds no table{f' that can be read. {why}' if why else '.'}"
            raise DatabaseUnavailable(message, hint="" if why else "Is it the right database?")
        name, dialect = self.connector.name, self.connector.dialect
        tables = with_key_matches(tables, self.keys)
        notes, left_out = (*self.left_out, *self.notes, *self._lacks(tables)), tuple(self.left_out)
        return Catalog(name, dialect, tuple(tables), notes, left_out, filtered)

    def _lacks(self, tables: Sequence[Table]) -> Iterator[str]:
        """Yield a note for each kind of what is not known."""
        for what, by_table in self.lacking.items():
            if found := [each for table in tables for each in by_table.get(table.full_name, ())]:
                yield f"{what}: {listed(found)}."


@lru_cache(10_000)
def is_private(column: str) -> bool:
    """Return True if a column's name says that its values are secrets or official identifiers of persons.

    Such values are never sampled, because samples go into prompts and so to the model's provider. Queries are
    not affected.
    """
    return _PRIVATE.search(_WORDS.sub(" ", column).casefold()) is not None


def is_unread(kind: str) -> bool:
    """Return True if a column of this type holds bytes."""
    return kind.partition("(")[0].casefold() in UNREAD


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by their values of some columns."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def listed(names: Sequence[str], shown: int = NAMED) -> str:
    """The first names, and how many there are more."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def nothing_to_read(
    place: str,
    who: str,
    wanted: Sequence[str],
    schemas: Mapping[str, tuple[bool, int]],
    grants: Mapping[str, str],
    written: Callable[[str], str],
    *,
    hides: bool = False,
) -> DatabaseUnavailable | None:
    """Return why an account sees no table: a schema is absent, closed, or holds unreadable tables alone.

    Args:
        wanted: The schemas that the URL names; all where it names none.
        schemas: Those that the engine shows: whether the account may use it, and how many tables it holds.
        grants: The statements that give the rights, by "use" and "read", with {} for the schema.
        written: A schema's name as SQL.
        hides: Whether the engine hides what an account has no right to.

    Returns:
        None where the schemas are simply empty.
    """
    for name in sorted(wanted or schemas, key=schemas.__contains__):
        usable, tables = schemas.get(name, (False, 0))
        all_rights = " ".join(grant.format(written(name)) for grant in grants.values())
        if name not in schemas:
            there = (
                f"There are: {listed(nearest(name, schemas))}."
                if schemas
                else f"{who} sees no schema at all."
            )
            if not hides:
                return DatabaseUnavailable(f"{place} holds no schema {name}.", hint=there)
            message = f"{place} holds no schema {name}, or hides it from {who}."
            return DatabaseUnavailable(message, hint=f"{there} If it is there: {all_rights}")
        if not usable:
            message = f"{who} has no right to use the schema {name} of {place}."
            return DatabaseUnavailable(message, hint=all_rights)
        if tables:
            message = f"{who} may read none of the {tables} tables of the schema {name} of {place}."
            return DatabaseUnavailable(message, hint=grants["read"].format(written(name)))
    if not hides:
        return None
    rights = [grants["read"].format(written(name)) for name in list(wanted or schemas)[:NAMED]]
    message = f"{place} holds no table, or hides all from {who}."
    return DatabaseUnavailable(message, hint=f"If it holds any: {' '.join(rights)}")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names, those that are most like ``name`` first."""
    return sorted(known, key=lambda other: -SequenceMatcher(None, name, other).ratio())


def quoted(*names: str) -> str:
    """A qualified name in double quotes, empty parts left out."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names if name)


def literal(text: str) -> str:
    """A text in single quotes, where backslashes escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def sample_query(
    source: str, expressions: Iterable[str], start: From, span: Span | None, rows: int = SAMPLE_ROWS
) -> str:
    """SQL for up to ``rows`` rows: the first, or some from each of ``WINDOWS`` places.

    Args:
        source: The table as SQL.
        expressions: What to select, as SQL.
        start: How the engine finds a row by its number; unused without ``span``.
        span: The least and the greatest row number; None where rows have none.
        rows: At most ``SAMPLE_ROWS``.
    """
    selected = f"SELECT {', '.join(expressions)} FROM {source}"
    if span is None or _from_start(span):
        return f"{selected} LIMIT {rows}"
    low, high = span
    each = rows // WINDOWS
    room = max(0, high - low - each + 1)  # the last rows are read: a line of totals is often there
    places = [low + room * i // (WINDOWS - 1) for i in range(WINDOWS)]
    parts = [f"SELECT * FROM ({selected} WHERE {start(place)} LIMIT {each}) AS part" for place in places]
    return " UNION ALL ".join(parts)


def _from_start(span: Span | None) -> bool:
    return span is None or span[1] - span[0] < SAMPLE_ROWS


def _profile_claims(table: Table, quote: Callable[[str], str]) -> dict[str, str]:
    """Return SQL for the ends of ISO dates."""
    wanted = dict[str, str]()
    for column in table.columns:
        profile = column.profile
        if profile and profile.kind is Kind.DATE and profile.low and not profile.sentinels:
            wanted |= {f"{end} {column.name}": f"{end}({quote(column.name)})" for end in ("min", "max")}
    return wanted


def _confirmed_profile(column: Column, found: Mapping[str, Any]) -> ColumnProfile | None:
    """Return the column's profile with what is known of all rows."""
    profile, ends = column.profile, [found.get(f"{end} {column.name}") for end in ("min", "max")]
    if profile and (unique := found.get(f"unique {column.name}")) is not None:
        return replace(profile, unique=bool(unique))
    if profile is None or None in ends:
        return profile
    return replace(profile, low=str(ends[0]), high=str(ends[1]), exact=True)


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
    counted = Counter(found)
    nulls = counted.pop(None, 0)
    telling = {value: n for value, n in counted.items() if isinstance(value, str) and value.strip()}
    total = sum(telling.values())
    few = len(telling) <= FEW and total >= 2 * len(telling)
    most = max(samples, FEW) if samples and few else samples
    frequent = telling if total == len(telling) else sorted(telling, key=lambda value: -telling[value])
    shown = tuple(dict.fromkeys(map(_cut, islice(frequent, most))))
    fields = column.fields or _inferred(telling, found)
    others = counted.keys() - {*shown}
    complete = samples > 0 and len(found) > 0 and not others - {""} and len(shown) + len(others) <= most
    shown += ("",) if complete and others else ()
    return replace(column, samples=shown, fields=fields, complete=complete, nulls=bool(shown) and nulls > 0)


def _inferred(telling: Iterable[str], found: Sequence[Any]) -> tuple[Field, ...]:
    """The fields of a column of JSON documents; ``telling`` are its different values that are no blanks."""
    if not any(map(_is_document, islice(telling, DOCUMENTS // 10 + 1))):  # else nine in ten could not be
        return ()
    values = [value for value in found if isinstance(value, str) and value.strip()][:DOCUMENTS]
    return infer_fields(values) if _documents(values) else ()


def _is_document(value: str) -> bool:
    return value.lstrip()[:1] in ("{", "[")


def _documents(values: Sequence[str]) -> bool:
    """Return True if nearly all values look like JSON objects or arrays."""
    likely = sum(map(_is_document, values[:DOCUMENTS]))
    return likely > 0 and likely >= 0.9 * min(len(values), DOCUMENTS)


def _cut(value: str) -> str:
    return value if len(value) <= SAMPLE_CHARACTERS else value[: SAMPLE_CHARACTERS - 1] + "…"
