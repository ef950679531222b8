"""Read the distinct values of a database's text columns, within bounds."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.search.values import Place, ValueIndex
from quorum.tools.admission import fits
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.query import Limits, QueryError

SECONDS, COLUMN_SECONDS = 3.0, 1.0
"""For all columns together, and for one."""
COLUMN_VALUES, ALL_VALUES = 20_000, 400_000
CHARACTERS = 80
"""Longer values are texts, which nobody names."""

_TEXT = re.compile(r"char|text|clob|string|enum", re.IGNORECASE)


async def read_values(
    connector: Connector, catalog: Catalog, seconds: float = SECONDS, *, scan: int | None = None
) -> ValueIndex:
    """The values that hold a letter and nothing unprintable, of columns that may be shown.

    Like introspection it asks the connector itself (of several databases the table's owner), with SQL of its
    own, and no run's ledger is charged. Nothing is read where reading is paid for.

    Args:
        seconds: For all columns together; ``SECONDS`` at most.
        scan: Bytes that may be read for one column; None for no limit.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    found: dict[Place, list[str]] = {}
    unread, cut = list[Place](), list[Place]()
    total, end = 0, time.monotonic() + min(seconds, SECONDS)
    for table, column in _text_columns(catalog):
        place, left = (table.full_name, column.name), end - time.monotonic()
        if left <= 0 or total >= ALL_VALUES:
            unread.append(place)
            continue
        limits = Limits(COLUMN_VALUES, 16 * 2**20, min(left, COLUMN_SECONDS), scan=scan)
        owner, own = connector.owner(table)
        sql = _query(own, own.columns[table.columns.index(column)], owner.dialect)
        if not await fits(owner, sql, limits):
            unread.append(place)
            continue
        answer = await owner.run(sql, limits)
        if isinstance(answer, QueryError):
            unread.append(place)
            continue
        texts = [value for value in answer.table.column(0).to_pylist() if isinstance(value, str)]
        found[place] = [text for text in texts if text.isprintable() and any(map(str.isalpha, text))]
        total += len(texts)
        cut += [place] if answer.truncated else []
    return ValueIndex(found, unread, cut)


def _text_columns(catalog: Catalog) -> Iterator[tuple[Table, Column]]:
    for table, column in catalog.columns():
        plain = not column.type or (_TEXT.search(column.type) and not column.type.endswith("]"))
        shown = column.name.isprintable() and not is_private(column.name)
        if plain and shown and not column.fields and table.row_count != 0:
            yield table, column


def _query(table: Table, column: Column, dialect: str) -> str:
    name, source = write_name(column.name, dialect), _source(table, dialect)
    return (
        f"SELECT DISTINCT {name} AS v FROM {source} "
        f"WHERE {name} IS NOT NULL AND length({name}) <= {CHARACTERS} LIMIT {COLUMN_VALUES + 1}"
    )


def _source(table: Table, dialect: str) -> str:
    return write_full_name([part for part in (table.database, table.schema, table.name) if part], dialect)
