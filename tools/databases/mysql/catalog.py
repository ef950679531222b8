"""MySQL's schema as a catalog: what the account may read, in three questions, then the values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.tools.databases.base import Account
from quorum.tools.databases.introspection import (
    TEXT_CHARACTERS,
    Introspection,
    Row,
    grouped,
    is_unread,
    literal,
    nothing_to_read,
)
from quorum.tools.databases.sampling import Scan, with_values

if TYPE_CHECKING:
    from quorum.tools.databases.mysql.connector import MysqlConnector

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
SCHEMAS = """
    SELECT s.schema_name AS name, COUNT(t.table_name) AS tables, CURRENT_USER() AS account
    FROM information_schema.schemata s
    LEFT JOIN information_schema.tables t ON t.table_schema = s.schema_name
    WHERE s.schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
    GROUP BY s.schema_name ORDER BY s.schema_name
"""
IDENTITY = """
    SELECT @@hostname AS host, @@port AS port, @@version AS version, SUBSTRING_INDEX(USER(), '@', 1) AS login,
        CURRENT_USER() AS account, @@time_zone AS zone, @@collation_connection AS collation
"""
SECRET = re.compile(r" IDENTIFIED (?:BY PASSWORD|VIA .*? USING|WITH .*? AS) '[^']*'")
"""In a grant."""

HARMLESS = {"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "PROCESS", "REPLICATION CLIENT", "PROXY"}
"""Rights that change nothing."""


async def introspect(connector: MysqlConnector, *, samples: int = 3) -> Catalog:
    """See ``Connector.catalog``. MySQL's databases are the tables' schemas."""
    await connector.look_again()
    look = Introspection(connector, connector.run, quote=quoted)
    schemas = ", ".join(literal(name) for name in connector.target.schemas)
    relations = await look.ask(TABLES.format(schemas=schemas))
    columns = grouped(await look.ask(COLUMNS.format(schemas=schemas)), "schema", "table")
    keys = grouped(await look.ask(KEYS.format(schemas=schemas)), "schema", "table")
    exact = "utf8mb4_nopad_bin" if connector.mariadb else "utf8mb4_0900_bin"  # else 'a' and 'A' are one value
    sources = []
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
        texts = [_as_text(column, exact) for column in table.columns]
        sources.append(Scan(table, quoted(*name), texts, row["estimate"], countable=not view))
    if not sources:
        rows = await look.ask(SCHEMAS)
        who = "@".join(f"'{part}'" for part in rows[0]["account"].rsplit("@", 1)) if rows else "the account"
        grants = {"read": f"GRANT SELECT ON {{}}.* TO {who};"}
        found = {row["name"]: (True, row["tables"]) for row in rows}
        problem = nothing_to_read(
            connector.place, who, connector.target.schemas, found, grants, quoted, hides=True
        )
        if problem:
            raise problem
    return look.catalog(await with_values(look, sources, samples))


async def identity_of(connector: MysqlConnector) -> tuple[str, ...]:
    """Return what the server says of itself, of the session and of the account with its grants."""
    (row,) = await connector.own_rows(IDENTITY, "Who asks")
    told = {"schemas": connector.target.schemas, "grants": sorted(await _grants(connector))}
    return tuple(f"{name}: {value}" for name, value in (row | told).items())


async def account_of(connector: MysqlConnector) -> Account:
    """See ``Connector.account``."""
    found, roles = defaultdict[str, list[str]](list), list[str]()
    for grant in await _grants(connector):
        match = re.match(r"GRANT (?P<rights>.+?)(?: ON (?P<where>.+))? TO ", grant)
        if match is None:
            continue
        if match["where"] is None:
            taken = (role.strip() for role in match["rights"].replace("`", "").split(","))
            roles += [
                f"may take the role {role}, whose rights are told only while it has it" for role in taken
            ]
            continue
        rights = [right.strip() for right in re.sub(r"\([^)]*\)", "", match["rights"]).split(",")]
        rights += ["GRANT OPTION"] if grant.endswith("WITH GRANT OPTION") else []
        for right in rights:
            if right not in HARMLESS:
                found[right].append(match["where"].replace("`", ""))
    powers = (f"has {right} on {', '.join(on)}" for right, on in found.items())
    return Account(connector.user, (*powers, *roles))


async def _grants(connector: MysqlConnector) -> list[str]:
    """The account's grants, without the hash of its password that MariaDB shows.

    Raises:
        DatabaseUnavailable: They cannot be read.
    """
    rows = await connector.own_rows("SHOW GRANTS", "What the account may do")
    return [SECRET.sub("", str(grant)) for row in rows for grant in row.values()]


def quoted(*names: str) -> str:
    """A qualified name in backticks."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names if name)


def _column(row: Row) -> Column:
    return Column(
        row["name"], row["type"], description=row["comment"] or "", nullable=row["nullable"] == "YES"
    )


def _foreign(keys: Iterable[Row], columns: Mapping[tuple[str, str], list[Row]]) -> Iterator[ForeignKey]:
    """Yield foreign keys to tables that may be read."""
    known = (key for key in keys if (key["ref_schema"], key["ref_table"]) in columns)
    for parts in grouped(known, "name").values():
        yield ForeignKey(
            tuple(part["column"] for part in parts),
            f"{parts[0]['ref_schema']}.{parts[0]['ref_table']}",
            tuple(part["ref_column"] for part in parts),
        )


def _as_text(column: Column, collation: str) -> str:
    name = quoted(column.name)
    if is_unread(column.type):
        return f"nullif({name} IS NOT NULL, 0)"  # whether there is one, but not its bytes
    value = f"{name} + 0" if column.type.startswith("bit") else name
    return f"LEFT(CAST({value} AS CHAR), {TEXT_CHARACTERS}) COLLATE {collation}"
