"""PostgreSQL's schema as a catalog: what the role may read, in four questions, then the values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.tools.databases.introspection import TEXT_CHARACTERS, Introspection, Span, listed, quoted
from quorum.tools.databases.postgres_account import OURS
from quorum.tools.databases.postgres_code import POLICED, READS, by_relation
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult

if TYPE_CHECKING:
    from quorum.tools.databases.postgres import PostgresConnector

KINDS = {"r": "table", "p": "table", "v": "view", "m": "materialized view", "f": "foreign table"}
TID_RANGES = 140_000
"""The version since which the engine goes straight to a row's page."""
COUNTED = 2_000_000
"""Rows of a table, by the engine's estimate, up to which they are counted."""
DEEPEST = 4
"""Levels of composite types that are told."""

RELATIONS = r"""
    SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS name, c.relkind::text AS kind,
        obj_description(c.oid, 'pg_class') AS comment, c.relpages AS pages,
        CASE c.relkind WHEN 'p' THEN (
            SELECT CASE WHEN min(leaf.reltuples) >= 0 THEN sum(leaf.reltuples)::bigint END
            FROM pg_partition_tree(c.oid) AS tree JOIN pg_class AS leaf ON leaf.oid = tree.relid
            WHERE tree.isleaf
        ) ELSE nullif(greatest(c.reltuples, -1), -1)::bigint END AS estimate
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND {schemas} AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname, c.relname
"""
COLUMNS = r"""
    SELECT a.attrelid::bigint AS oid, a.attnum AS number, a.attname AS name,
        format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
        col_description(a.attrelid, a.attnum) AS comment,
        coalesce(nullif(t.typelem, 0), t.oid)::bigint AS item, t.typelem <> 0 AND t.typlen = -1 AS list
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND a.attnum > 0 AND NOT a.attisdropped AND {schemas} AND has_column_privilege(c.oid, a.attnum, 'SELECT')
    ORDER BY a.attrelid, a.attnum
"""
KEYS = r"""
    SELECT k.conrelid::bigint AS oid, k.contype::text AS type, k.conkey::int[] AS columns,
        k.confrelid::bigint AS target, k.confkey::int[] AS refs
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE k.contype IN ('p', 'f') AND {schemas} ORDER BY k.conrelid, k.contype, k.conkey
"""
COMPOSITES = r"""
    SELECT c.reltype::bigint AS owner, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
        coalesce(nullif(t.typelem, 0), t.oid)::bigint AS item, t.typelem <> 0 AND t.typlen = -1 AS list
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'c' AND a.attnum > 0 AND NOT a.attisdropped
    AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' ORDER BY c.reltype, a.attnum
"""
Row = dict[str, Any]


async def introspect(connector: PostgresConnector, samples: int) -> Catalog:
    """See ``Connector.catalog``. Partitions are told as the one table that they are parts of."""
    look = Introspection(_Ours(connector))
    schemas = _schemas(connector.schemas)
    relations = await look.ask(RELATIONS.format(schemas=schemas))
    columns = _by(await look.ask(COLUMNS.format(schemas=schemas)), "oid")
    keys = _by(await look.ask(KEYS.format(schemas=schemas)), "oid")
    composites = _by(await look.ask(COMPOSITES), "owner")
    code = by_relation(await look.ask(READS))
    policed = {row["oid"] for row in await look.ask(POLICED)}
    full_names = {row["oid"]: f"{row['schema']}.{row['name']}" for row in relations}
    names = {oid: {row["number"]: row["name"] for row in found} for oid, found in columns.items()}
    tables = []
    for row in relations:
        table = Table(
            name=row["name"],
            columns=tuple(_column(column, composites) for column in columns[row["oid"]]),
            schema=row["schema"],
            kind=KINDS[row["kind"]],
            description=row["comment"] or "",
            primary_key=_primary(keys[row["oid"]], names[row["oid"]]),
            foreign_keys=tuple(_foreign(keys[row["oid"]], full_names, names)),
        )
        if calls := code.get(row["oid"]):
            look.left_out.append(_calling(table, calls))
        elif row["kind"] not in "rp" and (problem := await _problem(look, table)):
            look.left_out.append(
                f"The {table.kind} {table.full_name} cannot be read and is left out: {problem}"
            )
        else:
            tables.append(await _with_values(look, table, row, samples, connector.version))
    tables = [await look.confirmed(table) for table in tables]
    filtered = tuple(name for oid, name in full_names.items() if oid in policed)
    if filtered:
        look.notes.append(f"Row policies may hide rows of: {listed(filtered)}.")
    return replace(look.catalog(tables), filtered=filtered)


@dataclass
class _Ours:
    """The connector as it takes questions of our own."""

    connector: PostgresConnector

    def __post_init__(self) -> None:
        self.dialect, self.name, self.place = (
            self.connector.dialect,
            self.connector.name,
            self.connector.place,
        )

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        return await self.connector.ask(sql, limits)


def _calling(table: Table, calls: list[str]) -> str:
    return (
        f"The {table.kind} {table.full_name} is left out: reading it calls {listed(calls)}, which may do "
        "more than read. A function that only reads can be declared STABLE or IMMUTABLE."
    )


def _schemas(named: Iterable[str]) -> str:
    """The condition that a schema is one of those named, or no system schema."""
    texts = ", ".join("'" + name.replace("'", "''") + "'" for name in named)
    return f"n.nspname IN ({texts})" if texts else OURS


def _by(rows: Iterable[Row], name: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found


def _column(row: Row, composites: dict[int, list[Row]]) -> Column:
    return Column(
        row["name"],
        row["type"],
        description=row["comment"] or "",
        fields=tuple(_fields(row, composites, "")) if row["item"] in composites else (),
        nullable=row["nullable"],
    )


def _fields(row: Row, composites: dict[int, list[Row]], path: str, depth: int = 0) -> Iterator[Field]:
    """The leaves of a composite type, and of a list of one."""
    path += "[]" if row["list"] else ""
    inside = composites.get(row["item"], []) if depth < DEEPEST else []
    if not inside:
        yield Field(path, row["type"])
    for part in inside:
        yield from _fields(part, composites, f"{path}.{part['name']}" if path else part["name"], depth + 1)


def _primary(keys: Iterable[Row], names: dict[int, str]) -> tuple[str, ...]:
    """The primary key, as far as all of it may be read."""
    found = next((key["columns"] for key in keys if key["type"] == "p"), ())
    return tuple(names[number] for number in found) if all(number in names for number in found) else ()


def _foreign(
    keys: Iterable[Row], tables: dict[int, str], names: dict[int, dict[int, str]]
) -> Iterator[ForeignKey]:
    """Foreign keys between columns that may be read."""
    for key in keys:
        if key["type"] != "f" or key["target"] not in tables:
            continue
        own, other = names[key["oid"]], names[key["target"]]
        if all(number in own for number in key["columns"]) and all(number in other for number in key["refs"]):
            yield ForeignKey(
                tuple(own[number] for number in key["columns"]),
                tables[key["target"]],
                tuple(other[number] for number in key["refs"]),
            )


async def _problem(look: Introspection, table: Table) -> str:
    """Why a view cannot be read; empty if it can, or if there was no time to tell."""
    columns = ", ".join(quoted(column.name) for column in table.columns)
    answer = await look.try_to(f"SELECT {columns} FROM {quoted(table.schema, table.name)} LIMIT 0")
    if isinstance(answer, QueryError) and answer.kind is not ErrorKind.TIMEOUT:
        return answer.message
    return ""


async def _with_values(look: Introspection, table: Table, row: Row, samples: int, version: int) -> Table:
    source, estimate = quoted(table.schema, table.name), row["estimate"]
    if table.kind in ("table", "materialized view"):  # a view may take for ever to count
        rows = await look.count(source) if (estimate or 0) <= COUNTED else None
        table = look.with_count(table, rows, estimate)
    texts = [_as_text(column) for column in table.columns]
    start, span = _places(table, row, version)
    return await look.sample(table, source, texts, samples, start, span)


def _places(table: Table, row: Row, version: int) -> tuple[Callable[[int], str], Span | None]:
    """How to find a row by its number: rows fill a table's pages about evenly."""
    rows, pages = table.row_count or 0, row["pages"] or 0

    def start(number: int) -> str:
        return f"ctid >= '({number * pages // max(1, rows)},0)'"

    known = row["kind"] in "rm" and pages > 0 and rows > 0 and version >= TID_RANGES
    return start, (0, rows - 1) if known else None


def _as_text(column: Column) -> str:
    if column.type == "bytea":
        return f"{quoted(column.name)} IS NOT NULL OR NULL"  # whether there is one, but not its bytes
    return f"left(CAST({quoted(column.name)} AS text), {TEXT_CHARACTERS})"
