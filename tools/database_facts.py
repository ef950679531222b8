"""Facts read when a database is opened: values of text columns, and declared keys that rows contradict.

Like introspection these ask the connector itself (of several databases the table's owner), with SQL of their
own, and no run's ledger is charged. Nothing is read where reading is paid for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.definitions.model import DeclaredKey, contradiction
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.profile.model import Kind
from quorum.knowledge.search.values import Place, ValueIndex
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.query import Limits, QueryError, QueryResult

SECONDS, COLUMN_SECONDS, KEY_SECONDS = 3.0, 1.0, 1.0
"""Time for all columns together (and for all keys), for one column, and for one key."""
COLUMN_VALUES, ALL_VALUES = 20_000, 400_000
CHARACTERS = 80
"""Longer values are texts that no question names."""
KEYS = 40
"""Declared keys that are checked."""

_TEXT = re.compile(r"char|text|clob|string|enum", re.IGNORECASE)


async def read_values(connector: Connector, catalog: Catalog, seconds: float = SECONDS) -> ValueIndex:
    """Read the distinct short values of text columns that may be shown: those with a letter, all printable.

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
        if (profile := column.profile) and profile.kind in (Kind.NUMBER, Kind.DATE) and not profile.odd:
            found[place] = []  # there is no letter in them
            continue
        owner, own = connector.owner(table)
        name = write_name(own.columns[table.columns.index(column)].name, owner.dialect)
        sql = (
            f"SELECT DISTINCT {name} AS v FROM {_source(own, owner.dialect)} "
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


async def contradicted(connector: Connector, catalog: Catalog, declared: Sequence[DeclaredKey]) -> list[str]:
    """Return a note on each declared key of which some values have no partner.

    Keys that the time does not suffice for, or that the database cannot compare, get no note.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    notes: dict[str, None] = {}
    end = time.monotonic() + SECONDS
    for each in list(declared)[: KEYS if connector.live else 0]:
        limits = Limits(rows=1, bytes=2**16, seconds=min(end - time.monotonic(), KEY_SECONDS))
        asked, sql = _missing_partner(each, catalog, connector)
        answer = await _asked(asked, sql, limits) if sql else None
        if answer is not None and answer.table.num_rows:
            notes[contradiction(each)] = None
    return list(notes)


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


def _missing_partner(declared: DeclaredKey, catalog: Catalog, connector: Connector) -> tuple[Connector, str]:
    """Return a query with one row if some values have no partner, and the connector to ask.

    Of several databases that is the one that holds both tables, else the whole. An outer join is fast in all
    engines, without an index as well.
    """
    tables = [catalog.table(name) for name in (declared.table, declared.key.ref_table)]
    found = [connector.owner(table) for table in tables if table]
    if len(found) < len(tables):
        return connector, ""
    asked, dialect = found[0][0], found[0][0].dialect
    if asked is not found[1][0]:
        asked, dialect = connector, catalog.dialect
        found = [(connector, table) for table in tables if table]
    own = [table for _, table in found]
    mine, theirs = (_source(table, dialect) for table in own)
    sides = zip(tables, own, (declared.key.columns, declared.key.ref_columns), strict=True)
    names = [
        [write_name(_own_name(name, table, held), dialect) for name in side] for table, held, side in sides
    ]
    on = " AND ".join(f"b.{partner} = a.{own}" for own, partner in zip(*names, strict=True))
    given = " AND ".join(f"a.{own} IS NOT NULL" for own in names[0])
    sql = (
        f"SELECT 1 AS v FROM {mine} AS a LEFT JOIN {theirs} AS b ON {on} "
        f"WHERE {given} AND b.{names[1][0]} IS NULL LIMIT 1"
    )
    return asked, sql


def _own_name(name: str, table: Table | None, own: Table) -> str:
    """Return the name that the table's owner has for a column of the catalog."""
    column = table.column(name) if table else None
    return own.columns[table.columns.index(column)].name if table and column else name


def _source(table: Table, dialect: str) -> str:
    return write_full_name([part for part in (table.database, table.schema, table.name) if part], dialect)
