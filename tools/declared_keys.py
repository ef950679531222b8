"""Whether rows keep to the relationships that a team has declared: one short query for each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.definitions.model import DeclaredKey, contradiction
from quorum.knowledge.naming import write_full_name, write_name
from quorum.tools.admission import fits
from quorum.tools.databases.base import Connector
from quorum.tools.query import Limits, QueryError

MOST, SECONDS, KEY_SECONDS = 40, 3.0, 1.0
"""Relationships that are looked at, and the time for all of them and for one."""


async def contradicted(
    connector: Connector,
    catalog: Catalog,
    declared: Sequence[DeclaredKey],
    seconds: float = SECONDS,
    *,
    scan: int | None = None,
) -> list[str]:
    """A note on each relationship of which some values have no partner.

    Nothing is said of those for which the time does not suffice, or that the database cannot compare, or of
    any where no query can run, or reading is paid for. Like introspection it asks the connector itself, with
    SQL of its own.

    Args:
        scan: Bytes that may be read for one relationship; None for no limit.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    notes: dict[str, None] = {}
    end = time.monotonic() + seconds
    for each in list(declared)[: MOST if connector.live else 0]:
        left = end - time.monotonic()
        asked, sql = _query(each, catalog, connector)
        limits = Limits(rows=1, bytes=2**16, seconds=min(left, KEY_SECONDS), scan=scan)
        if left <= 0 or not sql or not await fits(asked, sql, limits):
            continue
        found = await asked.run(sql, limits)
        if not isinstance(found, QueryError) and found.table.num_rows:
            notes[contradiction(each)] = None
    return list(notes)


def _query(declared: DeclaredKey, catalog: Catalog, connector: Connector) -> tuple[Connector, str]:
    """One row if some values have no partner, and who is asked: of several databases the one that has both.

    An outer join is what engines do fast without an index, too.
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
    sides = zip(tables, own, _sides(declared), strict=True)
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


def _sides(declared: DeclaredKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return declared.key.columns, declared.key.ref_columns


def _own_name(name: str, table: Table | None, own: Table) -> str:
    """What a column of the catalog is called by its owner."""
    column = table.column(name) if table else None
    return own.columns[table.columns.index(column)].name if table and column else name


def _source(table: Table, dialect: str) -> str:
    """How SQL spells the table."""
    return write_full_name([part for part in (table.database, table.schema, table.name) if part], dialect)
