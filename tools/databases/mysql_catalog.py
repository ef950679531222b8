"""MySQL's schema as a catalog: what the account may read, in three questions, then the values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.databases.introspection import TEXT_CHARACTERS, Introspection, is_unread
from quorum.tools.query import ErrorKind, Limits, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.mysql import MysqlConnector

COUNTED = 2_000_000
"""Rows of a table, by the engine's estimate, up to which they are counted."""
TABLES = """
    SELECT table_schema AS `schema`, table_name AS name, table_type AS kind, table_comment AS comment,
        table_rows AS estimate
    FROM information_schema.tables
    WHERE table_schema IN ({schemas}) AND table_type IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED')
    ORDER BY table_schema, table_name
"""
COLUMNS = """
    SELECT table_schema AS `schema`, table_name AS `table`, column_name AS name, column_type AS type,
        is_nullable AS nullable, column_comment AS comment, column_key AS `key`, privileges AS rights
    FROM information_schema.columns
    WHERE table_schema IN ({schemas}) ORDER BY table_schema, table_name, ordinal_position
"""
KEYS = """
    SELECT table_schema AS `schema`, table_name AS `table`, constraint_name AS name, column_name AS `column`,
        referenced_table_schema AS ref_schema, referenced_table_name AS ref_table,
        referenced_column_name AS ref_column
    FROM information_schema.key_column_usage
    WHERE table_schema IN ({schemas}) AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)
    ORDER BY table_schema, table_name, constraint_name, ordinal_position
"""
Row = dict[str, Any]
Name = tuple[str, str]

WRITES = {
    "ALL PRIVILEGES": "has all rights",
    "SUPER": "has SUPER",
    "FILE": "may read and write files on the server",
    "INSERT": "may insert rows",
    "UPDATE": "may change rows",
    "DELETE": "may delete rows",
    "CREATE": "may create tables",
    "DROP": "may drop tables",
    "ALTER": "may alter tables",
    "EXECUTE": "may run stored programs",
    "CREATE USER": "may make accounts",
    "GRANT OPTION": "may grant its rights",
    "REPLICATION SLAVE": "may copy the whole server by replication",
}
"""What ends a sentence about an account, by the right that it has."""


async def introspect(connector: MysqlConnector, samples: int) -> Catalog:
    """See ``Connector.catalog``. MySQL's databases are the tables' schemas."""
    look = Introspection(connector, quote=quoted)
    schemas = ", ".join(_literal(name) for name in connector.schemas)
    relations = await look.ask(TABLES.format(schemas=schemas))
    columns = _by(await look.ask(COLUMNS.format(schemas=schemas)))
    keys = _by(await look.ask(KEYS.format(schemas=schemas)))
    tables = []
    for row in relations:
        name = (row["schema"], row["name"])
        view = row["kind"] == "VIEW"
        readable = [column for column in columns[name] if "select" in column["rights"]]
        if not readable and columns[name]:
            continue
        table = Table(
            name=row["name"],
            columns=tuple(_column(column) for column in readable),
            schema=row["schema"],
            kind="view" if view else "table",
            description="" if view else row["comment"] or "",
            primary_key=tuple(key["column"] for key in keys[name] if key["name"] == "PRIMARY"),
            foreign_keys=tuple(_foreign(keys[name], columns)),
        )
        if view and (problem := await _problem(look, table)):
            look.left_out.append(f"The view {table.full_name} cannot be read and is left out: {problem}")
        else:
            tables.append(await _with_values(look, table, row, samples, mariadb=connector.mariadb))
    return look.catalog([await look.confirmed(table) for table in tables])


async def account_of(connector: MysqlConnector) -> Account:
    """See ``Connector.account``."""
    answer = await connector.run("SHOW GRANTS", Limits())
    if isinstance(answer, QueryError):
        raise DatabaseUnavailable(f"The account's rights cannot be read: {answer.message}")
    found: dict[str, list[str]] = defaultdict(list)
    for (grant,) in zip(*(column.to_pylist() for column in answer.table.columns), strict=True):
        match = re.match(r"GRANT (?P<rights>.+?) ON (?P<where>\S+) TO ", grant)
        if match is None:
            continue
        rights = {right.strip() for right in re.sub(r"\([^)]*\)", "", match["rights"]).split(",")}
        rights |= {"GRANT OPTION"} if grant.endswith("WITH GRANT OPTION") else set()
        for right in WRITES:
            if right in rights:
                found[right].append(match["where"].replace("`", ""))
    return Account(connector.user, tuple(f"{WRITES[right]} on {', '.join(found[right])}" for right in found))


def quoted(*names: str) -> str:
    """A qualified name in backticks."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names if name)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _by(rows: Iterable[Row]) -> dict[Name, list[Row]]:
    found: dict[Name, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["schema"], row["table"]].append(row)
    return found


def _column(row: Row) -> Column:
    return Column(
        row["name"], row["type"], description=row["comment"] or "", nullable=row["nullable"] == "YES"
    )


def _foreign(keys: Iterable[Row], columns: dict[Name, list[Row]]) -> Iterator[ForeignKey]:
    """Foreign keys to tables that may be read."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for key in keys:
        if key["ref_table"] and (key["ref_schema"], key["ref_table"]) in columns:
            by_name[key["name"]].append(key)
    for parts in by_name.values():
        yield ForeignKey(
            tuple(part["column"] for part in parts),
            f"{parts[0]['ref_schema']}.{parts[0]['ref_table']}",
            tuple(part["ref_column"] for part in parts),
        )


async def _problem(look: Introspection, table: Table) -> str:
    """Why a view cannot be read; empty if it can, or if there was no time to tell."""
    answer = await look.try_to(f"SELECT * FROM {quoted(table.schema, table.name)} LIMIT 0")
    if isinstance(answer, QueryError) and answer.kind is not ErrorKind.TIMEOUT:
        return answer.message
    return ""


async def _with_values(look: Introspection, table: Table, row: Row, samples: int, *, mariadb: bool) -> Table:
    source, estimate = quoted(table.schema, table.name), row["estimate"]
    if table.kind == "table":  # a view may take for ever to count
        rows = await look.count(source) if (estimate or 0) <= COUNTED else None
        table = look.with_count(table, rows, estimate)
    exact = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"  # else 'a' and 'A' are one value
    texts = [_as_text(column, exact) for column in table.columns]
    return await look.sample(table, source, texts, samples, lambda number: f"{number} >= 0", None)


def _as_text(column: Column, collation: str) -> str:
    name = quoted(column.name)
    if is_unread(column.type):
        return f"nullif({name} IS NOT NULL, 0)"  # whether there is one, but not its bytes
    value = f"{name} + 0" if column.type.startswith("bit") else name
    return f"LEFT(CAST({value} AS CHAR), {TEXT_CHARACTERS}) COLLATE {collation}"
