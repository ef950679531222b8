"""A few rows of each table as text, for a prompt: how values are written, and which occur together.

The cell value references of SSEV (paper 004, section 3.1.1, Figure 3), column by column as there. The
paper draws rows at random, which reads whole tables; these are the rows that the engine gives first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.blocks import full_name
from quorum.knowledge.schema.grammar import write_row
from quorum.tools.databases.introspection import is_private
from quorum.tools.execute import Database, execute
from quorum.tools.query import QueryError
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog, Table

ROWS = 3  # 004, section 3.1.1
TABLES = 30
MAX_CELL = 40
"""Characters of a value that are shown."""
MAX_COLUMNS = 200
"""Columns of a table that are read."""
SECONDS = 5.0
"""For one table; a view may need more for its first row than the rows are worth."""

WHOLE_SCANS = ("bigquery",)
"""Dialects in which LIMIT does not cut what is read and billed: no rows are taken there."""

Sample = dict[str, list[str | None]]


@dataclass(frozen=True)
class SampleRows:
    """Rows of tables.

    Attributes:
        tables: Values by column by full name of the table; only tables with rows.
        notes: What was not read, and why, for people.
    """

    tables: dict[str, Sample]
    notes: tuple[str, ...] = ()

    def text(self, catalog: Catalog) -> str:
        """Return a line for each table that ``catalog`` has: ``table(column [value, value], …);``.

        Names and values are written, and quoted, as in schema text.
        """
        return "\n".join(
            f"{full_name(table, catalog.dialect)}({columns});"
            for table in catalog.tables
            if (columns := _columns(catalog.dialect, table, self.tables.get(table.full_name, {})))
        )

    def to_json(self) -> str:
        return json.dumps(self.tables, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> SampleRows:
        """Read what ``to_json`` wrote; it has no notes."""
        return cls(json.loads(text) if text else {})


async def sample_rows(
    database: Database, *, agent: str, rows: int = ROWS, max_tables: int = TABLES
) -> SampleRows:
    """Read the first ``rows`` rows of each table, through ``quorum.tools.execute``, one query a table.

    At most ``SECONDS`` each. Of tables with the same columns, such as shards, one is read. Columns whose
    names say that they are private are never read.

    Args:
        agent: The account to charge.
        max_tables: No more than this many are read, in the catalog's order.

    Raises:
        BudgetExceeded: The run's deadline has passed.
    """
    catalog = database.catalog
    if not rows or not max_tables:
        return SampleRows({})
    if not database.connector.live:
        return SampleRows({}, ("No rows are sampled: only the schema of the database is here.",))
    limits = replace(database.limits, rows=rows, seconds=min(SECONDS, database.limits.seconds))
    quick = replace(database, limits=limits)
    alike = {tuple((c.name, c.type) for c in t.columns): t for t in reversed(catalog.tables) if _shown(t)}
    apart = list(reversed(alike.values()))
    unread = {dialect for table in apart if (dialect := _dialect(database, table)) in WHOLE_SCANS}
    apart = [table for table in apart if _dialect(database, table) not in WHOLE_SCANS]
    found: dict[str, Sample] = {}
    failed: list[str] = []
    for table in apart[:max_tables]:
        outcome = await execute(quick, _query(catalog.dialect, table, rows), agent=agent)
        if isinstance(outcome, QueryError):
            failed.append(f"{table.full_name} ({outcome.message})")
        elif outcome.row_count:
            preview = list(zip(*outcome.preview(rows), strict=True))
            found[table.full_name] = {
                column: [_cell(value) for value in values]
                for column, values in zip(_shown(table), preview, strict=True)
            }
    notes = [f"No rows are sampled: on {dialect} every row would be read." for dialect in sorted(unread)]
    notes += [f"No rows could be sampled of {'; '.join(failed)}."] if failed else []
    if len(apart) > max_tables:
        notes.append(f"Rows are sampled of {max_tables} tables; {len(apart)} differ in their columns.")
    return SampleRows(found, tuple(notes))


def _dialect(database: Database, table: Table) -> str:
    """Return the dialect of the database that holds the table."""
    return database.connector.owner(table)[0].dialect


def _shown(table: Table) -> list[str]:
    return [column.name for column in table.columns if not is_private(column.name)][:MAX_COLUMNS]


def _query(dialect: str, table: Table, rows: int) -> str:
    from sqlglot import exp

    columns = [exp.column(name, quoted=True) for name in _shown(table)]
    source = exp.table_(table.name, table.schema or None, table.database or None, quoted=True)
    return write(exp.select(*columns).from_(source).limit(rows), dialect)


def _cell(value: object) -> str | None:
    if value is None:
        return None
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _columns(dialect: str, table: Table, values: Sample) -> str:
    found = {column.name: cells for column in table.columns if (cells := values.get(column.name))}
    return ", ".join(f"{write_name(name, dialect)} [{write_row(cells)}]" for name, cells in found.items())
