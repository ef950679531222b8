"""Read the values of text columns that questions may name.

Like introspection this asks the connector itself (of several databases the table's owner), with SQL of their
own, and no run's ledger is charged. Nothing is read where reading is paid for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from quorum.knowledge.catalog import Catalog, Column, ColumnRef, Table
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.profile.model import Kind
from quorum.knowledge.search.values import ValueIndex
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.query import Limits, QueryError, QueryResult

SECONDS, COLUMN_SECONDS = 3.0, 1.0
"""Time for all columns together, and for one column."""
COLUMN_VALUES, ALL_VALUES = 20_000, 400_000
CHARACTERS = 80
"""Longer values are texts that no question names."""

_TEXT = re.compile(r"char|text|clob|string|enum", re.IGNORECASE)


async def read_values(connector: Connector, catalog: Catalog, seconds: float = SECONDS) -> ValueIndex:
    """Read the distinct short values of text columns that may be shown: those with a letter, all printable.

    Args:
        seconds: For all columns together; ``SECONDS`` at most.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    found: dict[ColumnRef, list[str]] = {}
    unread, cut = list[ColumnRef](), list[ColumnRef]()
    total, end = 0, time.monotonic() + min(seconds, SECONDS)
    for table, column in _text_columns(catalog):
        place, left = (table.full_name, column.name), end - time.monotonic()
        if (profile := column.profile) and profile.kind in (Kind.NUMBER, Kind.DATE) and not profile.odd:
            found[place] = []  # there is no letter in them
            continue
        owner, own = connector.owner(table)
        name = write_name(own.columns[table.columns.index(column)].name, owner.dialect)
        source = write_full_name(filter(None, (own.database, own.schema, own.name)), owner.dialect)
        sql = (
            f"SELECT DISTINCT {name} AS v FROM {source} "
            f"WHERE {name} IS NOT NULL AND length({name}) <= {CHARACTERS} LIMIT {COLUMN_VALUES + 1}"
        )
        limits = Limits(COLUMN_VALUES, 16 * 2**20, min(left, COLUMN_SECONDS))
        answer = await _asked(owner, sql, limits) if total < ALL_VALUES else None
        if answer is None:
            unread.append(place)
            continue
        texts = [value for value in answer.table.column(0).to_pylist() if isinstance(value, str)]
        found[place] = [text for text in texts if text.isprintable() and any(map(str.isalpha, text))]
        total += len(texts)
        cut += [place] if answer.truncated else []
    return ValueIndex(found, unread, cut)


async def _asked(connector: Connector, sql: str, limits: Limits) -> QueryResult | None:
    """Return the result; None if no time is left, reading is paid for, or it fails."""
    if limits.seconds <= 0 or connector.bills:
        return None
    answer = await connector.run(sql, limits)
    return None if isinstance(answer, QueryError) else answer


def _text_columns(catalog: Catalog) -> Iterator[tuple[Table, Column]]:
    masked = catalog.withheld.columns if catalog.withheld else ()
    for table, column in catalog.columns():
        if (table.full_name, column.name) in masked:
            continue
        plain = not column.type or (_TEXT.search(column.type) and not column.type.endswith("]"))
        shown = column.name.isprintable() and not is_private(column.name)
        if plain and shown and not column.fields and table.row_count != 0:
            yield table, column
