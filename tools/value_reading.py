"""Read the distinct values of a database's text columns, within bounds."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.value_index import Place, ValueIndex
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.query import Limits, QueryError

SECONDS, COLUMN_SECONDS = 3.0, 1.0
"""For all columns together, and for one."""
COLUMN_VALUES, ALL_VALUES = 20_000, 400_000
CHARACTERS = 80
"""Longer values are texts, which nobody names."""

_TEXT = re.compile(r"char|text|clob|string|enum", re.IGNORECASE)


async def read_values(connector: Connector, catalog: Catalog, seconds: float = SECONDS) -> ValueIndex:
    """The values that hold a letter and nothing unprintable, of columns that may be shown.

    Like introspection it asks the connector itself, with SQL of its own, and no run's ledger is charged.

    Args:
        seconds: For all columns together; ``SECONDS`` at most.

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
        limits = Limits(rows=COLUMN_VALUES, bytes=16 * 2**20, seconds=min(left, COLUMN_SECONDS))
        answer = await connector.run(_query(table, column, catalog.dialect), limits)
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
