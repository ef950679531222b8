"""DuckDB's schema as a catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.ddl import split_top
from quorum.tools.databases.duckdb.connector import brief
from quorum.tools.databases.introspection import TEXT_CHARACTERS, Introspection, Row, grouped, quoted
from quorum.tools.query import ErrorKind, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.duckdb.connector import DuckdbConnector

FILES_SHUT = "disabled by configuration"
"""Part of DuckDB's error for a view that reads a file."""
OURS = "database_name = current_database() AND NOT internal"
OBJECTS = f"""
    SELECT schema_name, table_name AS name, table_oid AS oid, 'table' AS kind, comment,
        estimated_size AS estimate
    FROM duckdb_tables() WHERE {OURS} AND NOT temporary
    UNION ALL
    SELECT schema_name, view_name, view_oid, 'view', comment, NULL
    FROM duckdb_views() WHERE {OURS} AND NOT temporary
    ORDER BY schema_name, oid
"""
COLUMNS = f"""
    SELECT table_oid AS oid, column_name AS name, data_type AS type, comment, is_nullable
    FROM duckdb_columns() WHERE {OURS} ORDER BY table_oid, column_index
"""
CONSTRAINTS = """
    SELECT table_oid AS oid, schema_name, constraint_type AS type, constraint_column_names AS names,
        referenced_table AS target, referenced_column_names AS refs
    FROM duckdb_constraints() WHERE database_name = current_database()
    AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY table_oid, constraint_index
"""

_LIST = re.compile(r"(?P<item>.*)\[\d*\]", re.DOTALL)
_PLAIN_NAME = re.compile(r"\w+")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_PIECE = re.compile(rf"{_QUOTED.pattern}|'(?:[^']|'')*'|[^()<>,\"']+|.", re.DOTALL)


async def introspect(connector: DuckdbConnector, samples: int) -> Catalog:
    """See ``Connector.catalog``. A foreign key never leaves its schema in DuckDB."""
    look = Introspection(connector, connector.run)
    objects = await look.ask(OBJECTS)
    columns = grouped(await look.ask(COLUMNS), "oid")
    constraints = grouped(await look.ask(CONSTRAINTS), "oid")
    tables = []
    for row in objects:
        of_view = row["kind"] == "view"
        row["kind"] = connector.views if of_view else row["kind"]
        key = (row["oid"],)
        table = _table(row, columns[key], constraints[key])
        empty = f"SELECT * FROM {quoted(table.schema, table.name)} LIMIT 0"
        answer = await look.try_to(empty) if of_view else None
        if isinstance(answer, QueryError) and answer.kind is not ErrorKind.TIMEOUT:
            why = brief(answer.message)
            remedy = " Name the file that it reads as a database of its own." if FILES_SHUT in why else ""
            look.leave_out("view", table.full_name, f"{why}{remedy}")
        else:
            tables.append(await _with_values(look, table, row["estimate"], samples))
    tables = [await look.confirmed(table) for table in tables]
    return look.catalog(tables)


def _table(row: Row, columns: list[Row], constraints: list[Row]) -> Table:
    keys = [key for key in constraints if key["type"] == "FOREIGN KEY"]
    primary = next((key["names"] for key in constraints if key["type"] == "PRIMARY KEY"), ())
    return Table(
        name=row["name"],
        columns=tuple(
            Column(
                column["name"],
                column["type"],
                description=column["comment"] or "",
                fields=fields_of(column["type"]),
                nullable=column["is_nullable"],
            )
            for column in columns
        ),
        schema=row["schema_name"],
        kind=row["kind"],
        description=row["comment"] or "",
        primary_key=tuple(primary),
        foreign_keys=tuple(
            ForeignKey(tuple(key["names"]), f"{key['schema_name']}.{key['target']}", tuple(key["refs"]))
            for key in keys
        ),
    )


async def _with_values(look: Introspection, table: Table, estimate: int | None, samples: int) -> Table:
    source, span = quoted(table.schema, table.name), None
    if table.kind == "table":  # a view may take for ever to count
        table = look.with_count(table, await look.count(source), estimate)
        span = (0, table.row_count - 1) if table.row_count and estimate is not None else None
    texts = [_as_text(column) for column in table.columns]
    return await look.sample(table, source, texts, samples, "rowid >= {}".format, span)


def _as_text(column: Column) -> str:
    if column.type == "BLOB":
        return f"{quoted(column.name)} IS NOT NULL OR NULL"  # whether there is one, but not its bytes
    return f"left(CAST({quoted(column.name)} AS VARCHAR), {TEXT_CHARACTERS})"


def fields_of(kind: str) -> tuple[Field, ...]:
    """Return the leaves inside a column's type: ``STRUCT(a INTEGER, b VARCHAR[])`` has ``a``, ``b[]``.

    ``[]`` follows a list, ``*`` stands for a map's keys. A flat type, and a list of one, has none.
    """
    found = tuple(_leaves(kind, ""))
    return found if any(field.path.replace("[]", "") for field in found) else ()


def _leaves(kind: str, path: str) -> Iterator[Field]:
    if found := _LIST.fullmatch(kind):
        yield from _leaves(found["item"], f"{path}[]")
    elif kind.startswith("MAP("):
        _, value = split_top(kind[len("MAP(") : -1], _PIECE)
        yield from _leaves(value, f"{path}.*" if path else "*")
    elif kind.startswith(("STRUCT(", "UNION(")):
        for part in split_top(kind[kind.index("(") + 1 : -1], _PIECE):
            name, inner = part.split(" ", 1)
            if quoted_name := _QUOTED.match(part):
                name, inner = quoted_name[0][1:-1].replace('""', '"'), part[quoted_name.end() :]
            step = name if _PLAIN_NAME.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
            yield from _leaves(inner.strip(), f"{path}.{step}" if path and step == name else f"{path}{step}")
    else:
        yield Field(path, kind)
