"""Whether rows keep to the relationships that a team has declared: one short query for each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.definitions import DeclaredKey, contradiction
from quorum.knowledge.naming import write_full_name, write_name
from quorum.tools.databases.base import Connector
from quorum.tools.query import Limits, QueryError

MOST, SECONDS, KEY_SECONDS = 40, 3.0, 1.0
"""Relationships that are looked at, and the time for all of them and for one."""


async def contradicted(
    connector: Connector, catalog: Catalog, declared: Sequence[DeclaredKey], seconds: float = SECONDS
) -> list[str]:
    """A note on each relationship of which some values have no partner.

    Nothing is said of those for which the time does not suffice, or that the database cannot compare, or of
    any where no query can run. Like introspection it asks the connector itself, with SQL of its own.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    notes: dict[str, None] = {}
    end = time.monotonic() + seconds
    for each in list(declared)[: MOST if connector.live else 0]:
        left = end - time.monotonic()
        sql = _query(each, catalog)
        if left <= 0 or not sql:
            continue
        found = await connector.run(sql, Limits(rows=1, bytes=2**16, seconds=min(left, KEY_SECONDS)))
        if not isinstance(found, QueryError) and found.table.num_rows:
            notes[contradiction(each)] = None
    return list(notes)


def _query(declared: DeclaredKey, catalog: Catalog) -> str:
    """One row if some values have no partner. An outer join is what engines do fast without an index, too."""
    mine, theirs = _source(catalog, declared.table), _source(catalog, declared.key.ref_table)
    if not mine or not theirs:
        return ""
    names = [[write_name(name, catalog.dialect) for name in side] for side in _sides(declared)]
    on = " AND ".join(f"b.{partner} = a.{own}" for own, partner in zip(*names, strict=True))
    given = " AND ".join(f"a.{own} IS NOT NULL" for own in names[0])
    return (
        f"SELECT 1 AS v FROM {mine} AS a LEFT JOIN {theirs} AS b ON {on} "
        f"WHERE {given} AND b.{names[1][0]} IS NULL LIMIT 1"
    )


def _sides(declared: DeclaredKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return declared.key.columns, declared.key.ref_columns


def _source(catalog: Catalog, name: str) -> str:
    """How SQL spells the table of that full name; empty where several have it."""
    table = catalog.table(name)
    parts = [part for part in (table.database, table.schema, table.name) if part] if table else []
    return write_full_name(parts, catalog.dialect)
