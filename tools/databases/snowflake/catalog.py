"""Databases of Snowflake as a catalog: what the role may read, in few questions.

Tables, columns, counts and comments come from INFORMATION_SCHEMA, keys from SHOW. What the role
may read is what compiles: EXPLAIN of many tables at once costs nothing and runs on no warehouse. Reading rows
does, so the first ones of each table are all that is read, and none of views.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.arrow import texts
from quorum.tools.databases.introspection import (
    CATALOG_SECONDS,
    TEXT_CHARACTERS,
    UNSAMPLED,
    Introspection,
    Row,
    grouped,
    literal,
    nothing_to_read,
    quoted,
)
from quorum.tools.databases.server import Gone, Refusal
from quorum.tools.databases.snowflake.url import Schemas
from quorum.tools.query import ErrorKind, Limits, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.snowflake.connector import SnowflakeConnector

ROWS = 200
"""First rows of a table that are read."""
READ_SECONDS = 5.0
"""Time for that: a warehouse is far, and may be waking up."""
AT_ONCE = 100
"""Tables that one EXPLAIN tries."""
LARGE = 2**30
"""Bytes from which on a table's size is told."""
TABLES = """
    SELECT table_schema, table_name, table_type, comment, row_count, bytes, clustering_key
    FROM {database}.INFORMATION_SCHEMA.TABLES WHERE {where} ORDER BY table_schema, table_name
"""
COLUMNS = """
    SELECT table_schema, table_name, column_name, data_type, is_nullable, comment,
        character_maximum_length, numeric_precision, numeric_scale
    FROM {database}.INFORMATION_SCHEMA.COLUMNS WHERE {where}
    ORDER BY table_schema, table_name, ordinal_position
"""
KINDS = {
    "VIEW": "view",
    "MATERIALIZED VIEW": "materialized view",
    "EXTERNAL TABLE": "external table",
}
AS_JSON = ("VARIANT", "OBJECT", "ARRAY", "MAP")
UNREAD = ("BINARY", "GEOGRAPHY", "GEOMETRY", "VECTOR", "FILE")
"""Types of which a sample says only whether there is a value."""
LONGEST_TEXT = 16_777_216
"""Characters of a VARCHAR without a length; longer ones are as good as that."""

Name = tuple[str, str]


async def introspect(connector: SnowflakeConnector, *, samples: int = 3) -> Catalog:
    """See ``Connector.catalog``."""
    look = Introspection(connector, connector.run, quote=quoted)
    places = connector.target.places
    try:
        found = await asyncio.gather(*(_listed(connector, place) for place in places))
        known = [table for tables in found for table in tables]
        tables = await _readable(connector, look, known)
        if not tables and not look.left_out:
            counts = Counter((table.database, table.schema) for table in known)
            raise await missing_right(connector, connector.place, places, counts)
    except (Gone, Refusal, TimeoutError) as error:
        reason = str(error) or "it takes too long"
        hint = "Name a warehouse: &warehouse=NAME." if "warehouse" in reason else ""
        message = f"The catalog cannot be read: {connector.scrubbed(reason)}"
        raise DatabaseUnavailable(message, hint=hint) from None
    if samples and any(table.kind != "table" for table in tables):
        look.notes.append(f"Reading is billed: of tables the first {ROWS} rows were read, of views none.")
    return look.catalog(await asyncio.gather(*(_with_rows(look, table, samples) for table in tables)))


async def missing_right(
    connector: SnowflakeConnector, place: str, wanted: Sequence[Schemas], tables: Mapping[Name, int]
) -> DatabaseUnavailable:
    """Return why the role sees no table; Snowflake does not tell what is absent from what it may not see.

    Args:
        place: Where the URL points, for people.
        wanted: What the URL names.
        tables: How many the role may know of, by database and schema.

    Raises:
        Gone, Refusal, TimeoutError, DatabaseUnavailable: Snowflake does not answer.
    """
    problems = []
    for database, names in ((each.database, each.schemas) for each in wanted):
        limits = Limits(rows=10_000, seconds=CATALOG_SECONDS)
        rows = await connector.rows(f"SHOW SCHEMAS IN DATABASE {quoted(database)}", limits)
        shown = [row["name"] for row in rows if row["name"] != "INFORMATION_SCHEMA"]
        schemas = {name: (True, tables.get((database, name), 0)) for name in shown}
        who = (await connector.who_asks())["ROLE"]
        grants = {
            "use": f"GRANT USAGE ON SCHEMA {{}} TO ROLE {quoted(who)};",
            "read": f"GRANT SELECT ON ALL TABLES IN SCHEMA {{}} TO ROLE {quoted(who)};",
        }
        written = partial(quoted, database)
        problems.append(nothing_to_read(place, who, names, schemas, grants, written, hides=True))
    return next(filter(None, problems))


async def _listed(connector: SnowflakeConnector, place: Schemas) -> list[Table]:
    """Return all tables of a place that the role may know of."""
    where = "table_schema <> 'INFORMATION_SCHEMA'"
    if place.schemas:
        where = f"table_schema IN ({', '.join(map(literal, place.schemas))})"
    database, limits = quoted(place.database), Limits(rows=10**6, seconds=CATALOG_SECONDS)
    scopes = [f"SCHEMA {quoted(place.database, schema)}" for schema in place.schemas] or [
        f"DATABASE {database}"
    ]
    relations, columns, *keys = await asyncio.gather(
        connector.rows(TABLES.format(database=database, where=where).strip(), limits),
        connector.rows(COLUMNS.format(database=database, where=where).strip(), limits),
        *(
            connector.rows(f"SHOW {kind} KEYS IN {scope}", limits)
            for scope in scopes
            for kind in ("PRIMARY", "IMPORTED")
        ),
    )
    by_table = (
        grouped(columns, "TABLE_SCHEMA", "TABLE_NAME"),
        grouped((row for rows in keys[::2] for row in rows), "schema_name", "table_name"),
        grouped((row for rows in keys[1::2] for row in rows), "fk_schema_name", "fk_table_name"),
    )
    names = [(row["TABLE_SCHEMA"], row["TABLE_NAME"]) for row in relations]
    known = [
        _table(row, *(rows[name] for rows in by_table)) for row, name in zip(relations, names, strict=True)
    ]
    return [replace(table, database=place.database) for table in known]


def _table(row: Row, columns: Sequence[Row], primary: Sequence[Row], imported: Sequence[Row]) -> Table:
    return Table(
        name=row["TABLE_NAME"],
        columns=tuple(map(_column, columns)),
        schema=row["TABLE_SCHEMA"],
        kind=KINDS.get(row["TABLE_TYPE"], "table"),
        description=" ".join(filter(None, (row["COMMENT"], *_storage(row)))),
        row_count=None if row["ROW_COUNT"] is None else int(row["ROW_COUNT"]),
        primary_key=tuple(key["column_name"] for key in sorted(primary, key=_place_in_key)),
        foreign_keys=tuple(_foreign(imported)),
    )


def _place_in_key(row: Row) -> int:
    return int(row["key_sequence"])


def _storage(row: Row) -> Iterator[str]:
    """Yield sentences on clustering and size, which decide what reading the table costs."""
    if row["CLUSTERING_KEY"]:
        yield f"Clustered by {row['CLUSTERING_KEY'].removeprefix('LINEAR').strip('()')}."
    if int(row["BYTES"] or 0) >= LARGE:
        yield f"Takes {int(row['BYTES']) / 2**30:,.0f} GiB."


def _column(row: Row) -> Column:
    kind = row["DATA_TYPE"]
    if kind == "NUMBER" and row["NUMERIC_PRECISION"] is not None:
        kind = f"NUMBER({row['NUMERIC_PRECISION']},{row['NUMERIC_SCALE'] or 0})"
    elif kind == "TEXT":
        length = int(row["CHARACTER_MAXIMUM_LENGTH"] or LONGEST_TEXT)
        kind = f"VARCHAR({length})" if length < LONGEST_TEXT else "VARCHAR"
    return Column(
        row["COLUMN_NAME"], kind, description=row["COMMENT"] or "", nullable=row["IS_NULLABLE"] == "YES"
    )


def _foreign(keys: Iterable[Row]) -> Iterator[ForeignKey]:
    for parts in grouped(sorted(keys, key=_place_in_key), "fk_name").values():
        yield ForeignKey(
            tuple(part["fk_column_name"] for part in parts),
            ".".join(parts[0][f"pk_{part}_name"] for part in ("database", "schema", "table")),
            tuple(part["pk_column_name"] for part in parts),
        )


# What the role may read


async def _readable(
    connector: SnowflakeConnector, look: Introspection, tables: Sequence[Table]
) -> list[Table]:
    """The tables that compile; what is broken is said, what the role may not read is not."""
    groups = [tables[i : i + AT_ONCE] for i in range(0, len(tables), AT_ONCE)]
    found = await asyncio.gather(*(_tried(connector, look, group) for group in groups))
    kept = [table for group in found for table in group]
    names = {table.full_name for table in kept}
    return [
        replace(table, foreign_keys=tuple(key for key in table.foreign_keys if key.ref_table in names))
        for table in kept
    ]


async def _tried(connector: SnowflakeConnector, look: Introspection, tables: Sequence[Table]) -> list[Table]:
    each = " UNION ALL ".join(f"SELECT 1 AS x FROM {_path(table)} WHERE FALSE" for table in tables)
    found = await connector.estimate(each, Limits(seconds=CATALOG_SECONDS))
    if not isinstance(found, QueryError) or found.kind in (ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE):
        return list(tables)
    if len(tables) > 1:
        halves = tables[: len(tables) // 2], tables[len(tables) // 2 :]
        one, other = await asyncio.gather(*(_tried(connector, look, half) for half in halves))
        return [*one, *other]
    forbidden = found.kind in (ErrorKind.PERMISSION, ErrorKind.TABLE_NOT_FOUND)
    if not forbidden or "expansion of view" in found.message:
        (table,) = tables
        look.leave_out(table.kind, table.full_name, found.message)
    return []


# Rows


async def _with_rows(look: Introspection, table: Table, samples: int) -> Table:
    """Return the table with what its first rows tell."""
    if table.kind != "table" or not samples or not table.row_count:
        return table
    sql = f"SELECT {', '.join(map(_sampled, table.columns))} FROM {_path(table)} LIMIT {ROWS + 1}"
    answer = await look.try_to(sql, ROWS + 1, READ_SECONDS)
    if isinstance(answer, QueryError):
        look.lack(UNSAMPLED, table)
        return table
    values = [
        [None if value is None else True for value in column.to_pylist()]
        if _base(known) in UNREAD
        else list(texts(column.to_pylist(), TEXT_CHARACTERS))
        for known, column in zip(table.columns, answer.table.columns, strict=True)
    ]
    whole = answer.row_count == table.row_count and not answer.truncated
    return look.filled_once(table, values, samples, whole=whole)


def _sampled(column: Column) -> str:
    """Return the SQL that reads a column; the server cuts long values."""
    name, kind = quoted(column.name), _base(column)
    if kind in UNREAD:
        return f"IFF({name} IS NULL, NULL, TRUE)"
    if kind in AS_JSON:
        name = f"TO_JSON({name})"
    return f"LEFT({name}, {TEXT_CHARACTERS})" if kind in (*AS_JSON, "VARCHAR") else name


def _base(column: Column) -> str:
    return column.type.partition("(")[0]


def _path(table: Table) -> str:
    return quoted(table.database, table.schema, table.name)
