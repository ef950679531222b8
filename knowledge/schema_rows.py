"""Rows of small tables, and what each table of a group holds (format: ``quorum.knowledge.schema_writer``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorum.knowledge.catalog import Table
from quorum.knowledge.layouts import Layout
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema_grammar import one_line, write_row, write_values
from quorum.knowledge.schema_headers import full_name

MOST_MEMBERS = 12
"""Tables of a group up to which each shows what it holds; of more, one stands for all."""

MEMBER_SAMPLES, SHARD_SAMPLES = 3, 1
"""Sample values of a column for each table of a group, and for numbered ones, which are much alike."""

ROWS_CHARS = 1_500
"""Characters that all rows of one table may take; wider ones show samples instead."""


class Contents:
    """What the tables of a layout hold, as far as lines of their own show it.

    Attributes:
        told: Names of the columns of which these lines tell everything, so that they need no samples.
    """

    def __init__(self, layout: Layout, chars: int) -> None:
        """``chars``: of one value."""
        self._layout, self._chars = layout, chars
        few = layout.tables if len(layout.tables) <= MOST_MEMBERS else ()
        self._columns = {id(table): {c.name: c for c in table.columns} for table in few}
        self._rows = {id(table): self._rows_of(table) for table in few}
        self.told = {
            column.name
            for column in layout.columns
            if any(self._rows.values()) and all(self._tells(table, column.name) for table in few)
        }

    def lines(self, tables: Sequence[Table], dialect: str, numbered: bool) -> Iterator[tuple[str, str]]:
        """Lines, each behind the mark that explains it.

        Args:
            tables: The layout's, in the order wanted.
            numbered: Whether names of theirs stand as a range.
        """
        count = SHARD_SAMPLES if numbered else MEMBER_SAMPLES
        for table in tables:
            rows = self._rows.get(id(table), [])
            if len(tables) > 1 and rows:
                yield "=", f"  = {full_name(table, dialect)}"
            elif len(tables) > 1 and (samples := self._samples(table, dialect, count)):
                yield "=", f"  = {full_name(table, dialect)}: {', '.join(samples)}"
            yield from (("|", f"  | {row}") for row in rows)

    def _rows_of(self, table: Table) -> list[str]:
        """All rows, where they are known and short."""
        own = self._columns[id(table)]
        cells = [own[column.name].cells for column in self._layout.columns]
        counts = {len(values) for values in cells if values}
        if len(counts) != 1:
            return []
        rows = [write_row(values[i] if values else ... for values in cells) for i in range(counts.pop())]
        return rows if sum(map(len, rows)) <= ROWS_CHARS else []

    def _tells(self, table: Table, name: str) -> bool:
        column = self._columns[id(table)][name]
        known = column.samples or column.complete or column.nulls
        return bool(self._rows[id(table)] and column.cells) if known else True

    def _samples(self, table: Table, dialect: str, count: int) -> list[str]:
        """The samples of one table of a group that the group's own do not show."""
        own, found = self._columns.get(id(table), {}), []
        for column in self._layout.columns if own else ():
            values = [one_line(v, self._chars) for v in own[column.name].samples[:count]]
            if not column.fields and not {*values} <= {one_line(v, self._chars) for v in column.samples}:
                found.append(f"{write_name(column.name, dialect)} {write_values(dict.fromkeys(values))}")
        return found
