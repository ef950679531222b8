"""PostgreSQL's schema as a catalog: what the role may read, in four questions, then the values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.tools.databases.introspection import (
    SAMPLE_ROWS,
    TEXT_CHARACTERS,
    Introspection,
    Row,
    grouped,
    is_unread,
    listed,
    nothing_to_read,
    quoted,
)
from quorum.tools.databases.postgres.code import POLICED
from quorum.tools.databases.sampling import Scan, with_values

if TYPE_CHECKING:
    from quorum.tools.databases.postgres.connector import PostgresConnector

OURS = r"n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'"
"""The condition that a schema is not the server's own."""
KINDS = {"r": "table", "p": "table", "v": "view", "m": "materialized view", "f": "foreign table"}
TID_RANGES = 140_000
"""The version since which the engine goes straight to a row's page."""
COUNTABLE = ("table", "materialized view")
"""Kinds whose rows are counted: a view may take for ever."""
SHORT = re.compile(
    r"(small|big)?int(eger)?|oid|real|double precision|numeric\(.*\)|boolean|date|uuid"
    r"|(time|interval).*|(character varying|character)\(\d{1,4}\)"
)
"""Types whose values are never long."""
DEEPEST = 4
"""Levels of composite types that are told."""

RELATIONS = r"""
    WITH partitioned AS (
        SELECT p.oid, CASE WHEN min(leaf.reltuples) >= 0 THEN sum(leaf.reltuples)::bigint END AS estimate
        FROM pg_class p CROSS JOIN LATERAL pg_partition_tree(p.oid) AS tree
        JOIN pg_class leaf ON leaf.oid = tree.relid
        WHERE p.relkind = 'p' AND NOT p.relispartition AND tree.isleaf GROUP BY p.oid
    )
    SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS name, c.relkind::text AS kind,
        d.description AS comment, c.relpages AS pages,
        CASE c.relkind WHEN 'p' THEN partitioned.estimate
            ELSE nullif(greatest(c.reltuples, -1), -1)::bigint END AS estimate
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN partitioned ON partitioned.oid = c.oid
    LEFT JOIN pg_description d
    ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND {schemas} AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname, c.relname
"""
COLUMNS = r"""
    WITH shown AS MATERIALIZED (
        SELECT c.oid, has_table_privilege(c.oid, 'SELECT') AS whole
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
        AND {schemas}
    )
    SELECT a.attrelid::bigint AS oid, a.attnum AS number, a.attname AS name,
        format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
        d.description AS comment,
        coalesce(nullif(t.typelem, 0), t.oid)::bigint AS item, t.typelem <> 0 AND t.typlen = -1 AS list
    FROM shown c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_description d
    ON d.objoid = c.oid AND d.objsubid = a.attnum AND d.classoid = 'pg_class'::regclass
    WHERE a.attnum > 0 AND NOT a.attisdropped
    AND (c.whole OR has_column_privilege(c.oid, a.attnum, 'SELECT'))
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
SCHEMAS = rf"""
    SELECT n.nspname AS name, has_schema_privilege(n.oid, 'USAGE') AS usable, count(c.oid) AS tables,
        quote_ident(current_user) AS role
    FROM pg_namespace n LEFT JOIN pg_class c
    ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    WHERE {OURS} GROUP BY n.oid, n.nspname ORDER BY n.nspname
"""
Composites: TypeAlias = Mapping[tuple[int], list[Row]]
"""The parts of composite types, by the type's number."""


async def introspect(
    connector: PostgresConnector, *, samples: int = 3, only: Collection[str] = ()
) -> Catalog:
    """See ``Connector.catalog``. A partitioned table is one table.

    Args:
        only: Full names of the tables that are read; all if there are none.
    """
    look = Introspection(connector, connector.ask)
    schemas = _schemas(connector.target.schemas)
    relations = await look.ask(RELATIONS.format(schemas=schemas))
    if not relations:
        await _check_rights(connector, look)
    columns = grouped(await look.ask(COLUMNS.format(schemas=schemas)), "oid")
    keys = grouped(await look.ask(KEYS.format(schemas=schemas)), "oid")
    composites = grouped(await look.ask(COMPOSITES), "owner")
    code = (await connector.own_code()).relations
    policed = {row["oid"] for row in await look.ask(POLICED)}
    full_names = {row["oid"]: f"{row['schema']}.{row['name']}" for row in relations}
    names = {oid: {row["number"]: row["name"] for row in found} for (oid,), found in columns.items()}
    sources, filtered = [], []
    for row in relations:
        oid = row["oid"]
        if only and full_names[oid] not in only:
            filtered += [full_names[oid]] if oid in policed and not code.get(oid) else []
            continue
        table = Table(
            name=row["name"],
            columns=tuple(_column(column, composites) for column in columns[oid,]),
            schema=row["schema"],
            kind=KINDS[row["kind"]],
            description=row["comment"] or "",
            primary_key=_primary(keys[oid,], names[oid]),
            foreign_keys=tuple(_foreign(keys[oid,], full_names, names)),
        )
        if calls := code.get(oid):
            look.left_out.append(
                f"The {table.kind} {table.full_name} is left out: reading it calls {listed(calls)}, which "
                "may do more than read. A function that only reads can be declared STABLE or IMMUTABLE."
            )
            continue
        sources.append(_source(table, row, connector.version))
        if oid in policed:
            filtered.append(table.full_name)
    tables = await with_values(look, sources, samples)
    if filtered:
        look.notes.append(f"Row policies may hide rows of: {listed(filtered)}.")
    return look.catalog(tables, tuple(filtered))


async def _check_rights(connector: PostgresConnector, look: Introspection) -> None:
    """Say which right is missing, where one is."""
    rows = await look.ask(SCHEMAS)
    who = rows[0]["role"] if rows else "the role"
    grants = {
        "use": f"GRANT USAGE ON SCHEMA {{}} TO {who};",
        "read": f"GRANT SELECT ON ALL TABLES IN SCHEMA {{}} TO {who};",
    }
    schemas = {row["name"]: (row["usable"], row["tables"]) for row in rows}
    if problem := nothing_to_read(connector.place, who, connector.target.schemas, schemas, grants, quoted):
        raise problem


def _schemas(named: Iterable[str]) -> str:
    """The condition that a schema is one of those named, or no system schema."""
    texts = ", ".join("'" + name.replace("'", "''") + "'" for name in named)
    return f"n.nspname IN ({texts})" if texts else OURS


def _column(row: Row, composites: Composites) -> Column:
    return Column(
        row["name"],
        row["type"],
        description=row["comment"] or "",
        fields=tuple(_fields(row, composites, "")) if (row["item"],) in composites else (),
        nullable=row["nullable"],
    )


def _fields(row: Row, composites: Composites, path: str, depth: int = 0) -> Iterator[Field]:
    """The leaves of a composite type, and of a list of one."""
    path += "[]" if row["list"] else ""
    inside = composites.get((row["item"],), []) if depth < DEEPEST else []
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


def _source(table: Table, row: Row, version: int) -> Scan:
    """Return how values are read. Rows fill a table's pages about evenly, so some are found by their page."""
    rows, pages = row["estimate"] or 0, row["pages"] or 0
    spread = row["kind"] in "rm" and pages > 0 and rows >= SAMPLE_ROWS and version >= TID_RANGES
    return Scan(
        table,
        quoted(table.schema, table.name),
        [_as_text(column) for column in table.columns],
        estimate=row["estimate"],
        countable=table.kind in COUNTABLE,
        start=lambda number: f"ctid >= '({number * pages // max(1, rows)},0)'",
        span=(0, rows - 1) if spread else None,
    )


def _as_text(column: Column) -> str:
    name = quoted(column.name)
    if is_unread(column.type):
        return f"CASE WHEN {name} IS NOT NULL THEN '' END"  # whether there is one, but not its bytes
    text = f"CAST({name} AS text)"
    return text if SHORT.fullmatch(column.type) else f"left({text}, {TEXT_CHARACTERS})"
