"""SQLite's schema as a catalog."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.tools.databases.introspection import (
    SAMPLE_ROWS,
    TEXT_CHARACTERS,
    Introspection,
    quoted,
    sample_query,
)
from quorum.tools.query import QueryError
from quorum.tools.sql import sqlglot_dialect

if TYPE_CHECKING:
    from quorum.tools.databases.sqlite.connector import SqliteConnector

OBJECTS = r"""
    SELECT m.type, m.name, coalesce(m.sql, '') AS sql, l.type = 'virtual' AS virtual FROM sqlite_master AS m
    JOIN pragma_table_list AS l ON l.schema = 'main' AND l.name = m.name AND l.type <> 'shadow'
    WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.rowid
"""
"""A shadow is a table in which a virtual one keeps its data."""
TABLE_COLUMNS = r"""
    SELECT m.name AS owner, c.* FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\'
    AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.rowid, c.cid
"""
FOREIGN_KEYS = r"""
    SELECT m.name AS owner, f.id, f."table" AS target, f."from" AS source, f."to" AS ref
    FROM sqlite_master AS m, pragma_foreign_key_list(m.name) AS f
    WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.rowid, f.id DESC, f.seq
"""
HIDDEN = 1  # table_xinfo's mark of a column that SELECT * leaves out

_CONSTRAINTS = {"constraint", "primary key", "primary", "foreign key", "foreign", "unique", "check"}

Row = dict[str, Any]


async def introspect(connector: SqliteConnector, samples: int) -> Catalog:
    """See ``Connector.catalog``."""
    look = Introspection(connector, connector.run)
    objects = await look.ask(OBJECTS)
    columns = await _columns(look, objects)
    tables = [_table(row, columns[row["name"]]) for row in objects if row["name"] in columns]
    tables = _with_foreign_keys(look, tables, await look.ask(FOREIGN_KEYS))
    filled = [await _with_values(look, table, samples) for table in tables]
    filled = [await look.confirmed(table) for table in filled]
    return look.catalog(filled)


async def _columns(look: Introspection, objects: list[Row]) -> dict[str, list[Row]]:
    """Return each object's columns. Broken views and tables of missing modules are noted and left out."""
    rows = await look.ask(TABLE_COLUMNS)
    found = {name: list(group) for name, group in groupby(rows, key=itemgetter("owner"))}
    for row in objects:
        name = row["name"]
        if name in found:
            continue
        text = name.replace("'", "''")
        answer = await look.try_to(f"SELECT * FROM pragma_table_xinfo('{text}') ORDER BY cid", rows=10**5)
        if isinstance(answer, QueryError):
            look.leave_out(row["type"], name, answer.message)
        elif await look.readable(row["type"], name, f"SELECT * FROM {quoted(name)} LIMIT 0"):
            found[name] = answer.table.to_pylist()
    return found


def _table(row: Row, columns: Iterable[Row]) -> Table:
    sql = row["sql"]
    comments = comments_of(sql) if row["type"] == "table" and not row["virtual"] else {}
    shown = [column for column in columns if column["hidden"] != HIDDEN]
    keys = sorted((column["pk"], column["name"]) for column in shown if column["pk"])
    numbers = [
        column["name"] for column in shown if column["pk"] and (column["type"] or "").upper() == "INTEGER"
    ]
    row_id = numbers[0] if len(keys) == len(numbers) == 1 else None
    return Table(
        name=row["name"],
        columns=tuple(
            Column(
                column["name"],
                re.sub(r"\s*GENERATED ALWAYS$", "", column["type"] or "", flags=re.IGNORECASE),
                description=comments.get(column["name"].lower(), ""),
                # a key may be NULL unless it is declared NOT NULL or is the row's number
                nullable=not column["notnull"] and column["name"] != row_id,
            )
            for column in shown
        ),
        kind="virtual" if row["virtual"] else row["type"],
        description=comments.get("", ""),
        primary_key=tuple(name for _, name in keys),
    )


def comments_of(sql: str) -> dict[str, str]:
    """Read the comments of a CREATE TABLE statement, of which SQLite keeps the text, by column in lower case.

    A comment on a line of a column's definition is that column's: ``price INT, -- euros``. A comment on a
    line of its own belongs to what follows. The table's comments, under the empty name, are outside of the
    brackets or on the line where they open.
    """
    from sqlglot.errors import SqlglotError

    if "--" not in sql and "/*" not in sql:
        return {}
    try:
        tokens = sqlglot_dialect("sqlite").tokenize(sql)
    except SqlglotError:
        return {}
    found: dict[str, list[str]] = defaultdict(list)
    depth, column, begins = 0, "", False
    for token in tokens:
        sign = token.text if token.token_type.name in ("L_PAREN", "R_PAREN", "COMMA") else ""
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            column = ""
        elif depth == 1 and begins and not sign:
            begins, column = False, token.text.lower()
        begins = begins or (depth == 1 and sign in ("(", ","))
        if column not in _CONSTRAINTS:
            found[column] += (" ".join(comment.split()) for comment in token.comments)
    return {name: " ".join(words) for name, words in found.items() if words}


def _with_foreign_keys(look: Introspection, tables: list[Table], rows: list[Row]) -> list[Table]:
    by_name = {table.name.lower(): table for table in tables}
    keys: dict[str, list[ForeignKey]] = defaultdict(list)
    for (owner, _), group in groupby(rows, key=itemgetter("owner", "id")):
        parts = list(group)
        key = _foreign_key(parts, by_name.get(parts[0]["target"].lower()))
        if key is None:
            look.notes.append(f"A foreign key of {owner} refers to {parts[0]['target']}, which does not fit.")
        else:
            keys[owner].append(key)
    return [replace(table, foreign_keys=tuple(dict.fromkeys(keys[table.name]))) for table in tables]


def _foreign_key(parts: list[Row], target: Table | None) -> ForeignKey | None:
    """Return one key of one or more columns. Without named columns it refers to the primary key."""
    if target is None:
        return None
    named = [part["ref"] for part in parts]
    refs = target.primary_key if None in named else tuple(named)
    found = [target.column(ref) for ref in refs]
    if len(refs) != len(parts) or None in found:
        return None
    return ForeignKey(
        tuple(part["source"] for part in parts),
        target.full_name,
        tuple(column.name for column in found if column),
    )


async def _with_values(look: Introspection, table: Table, samples: int) -> Table:
    source, span = quoted(table.name), None
    if table.kind != "view":  # a view may take for ever to count
        rows = await look.count(source)
        if table.kind == "table" and (rows is None or rows > SAMPLE_ROWS):
            span = await _span(look, source)
        table = look.with_count(table, rows, span[1] - span[0] + 1 if span else None)
    table = await _with_observed_types(look, table, source, span)
    texts = [f"substr({quoted(column.name)}, 1, {TEXT_CHARACTERS})" for column in table.columns]
    return await look.sample(table, source, texts, samples, _from, span)


async def _with_observed_types(
    look: Introspection, table: Table, source: str, span: tuple[int, int] | None
) -> Table:
    """Give columns without a declared type, such as a view's expressions, the types of their values."""
    untyped = [column.name for column in table.columns if not column.type]
    if not untyped:
        return table
    kinds = [f"typeof({quoted(name)})" for name in untyped]
    answer = await look.try_to(sample_query(source, kinds, _from, span))
    if isinstance(answer, QueryError):
        return table
    seen = {
        name: "|".join(sorted({kind.upper() for kind in values.to_pylist()} - {"NULL"}))
        for name, values in zip(untyped, answer.table.columns, strict=True)
    }
    columns = (replace(column, type=column.type or seen[column.name]) for column in table.columns)
    return replace(table, columns=tuple(columns))


def _from(row: int) -> str:
    return f"_rowid_ >= {row}"


async def _span(look: Introspection, source: str) -> tuple[int, int] | None:
    """Return the least and greatest row number; None for an empty table or one WITHOUT ROWID."""
    answer = await look.try_to(f"SELECT min(_rowid_) AS low, max(_rowid_) AS high FROM {source}")
    if isinstance(answer, QueryError):
        return None
    low, high = answer.table["low"][0].as_py(), answer.table["high"][0].as_py()
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None
