"""Headers of blocks: which tables, how many rows (format: ``quorum.knowledge.schema.writer``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorum.knowledge.catalog import Table
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.schema.grammar import one_line, write_row, write_values
from quorum.knowledge.schema.layouts import Layout
from quorum.knowledge.schema.name_ranges import fold_names


def full_name(table: Table, dialect: str) -> str:
    """A table's full name as SQL spells it."""
    return write_full_name(_name_parts(table), dialect)


def members(layout: Layout, dialect: str) -> tuple[str, list[Table], bool]:
    """Tables as items, the tables in the order of the expanded items, and whether a range is among them."""
    by_qualifier: dict[tuple[str, ...], list[Table]] = {}
    for table in layout.tables:
        by_qualifier.setdefault(_name_parts(table)[:-1], []).append(table)
    lists, ordered, folded = [], [], False
    for qualifier, tables in by_qualifier.items():
        by_name = {table.name: table for table in tables}
        items = fold_names([table.name for table in tables], dialect)
        prefix = f"{write_full_name(qualifier, dialect)}: " if qualifier else ""
        lists.append(prefix + ", ".join(item for item, _ in items))
        ordered += [by_name[name] for _, names in items for name in names]
        folded |= len(items) < len(tables)
    return "; ".join(lists), ordered, folded


def facts(tables: Sequence[Table]) -> list[str]:
    """Return kind, number of tables and row counts, for the header's brackets."""
    first = tables[0]
    found = [write_name(first.kind)] if first.kind != "table" else []
    if len(tables) == 1:
        distinct = "" if first.distinct_rows is None else f", {first.distinct_rows:,} distinct"
        return found + ([f"{first.row_count:,} rows{distinct}"] if first.row_count is not None else [])
    counts = [_count(table) for table in tables]
    found.append(f"{len(tables):,} tables")
    if len(set(counts)) > 1:
        found.append(f"rows {', '.join(counts)}")
    elif counts[0] != "?":
        found.append(f"rows {counts[0]} each")
    return found


def _count(table: Table) -> str:
    if table.row_count is None:
        return "?"
    distinct = "" if table.distinct_rows is None else f" with {table.distinct_rows} distinct"
    return f"{table.row_count}{distinct}"


def _name_parts(table: Table) -> tuple[str, ...]:
    """The parts of a table's full name; an empty schema is kept after a database."""
    if table.database and not table.schema:
        return table.database, "", table.name
    return (*(part for part in (table.database, table.schema) if part), table.name)


MOST_MEMBERS = 12
"""Tables of a group up to which each shows its own values; of more, only one does."""

MEMBER_SAMPLES, SHARD_SAMPLES = 3, 1
"""Sample values of a column for each table of a group, and for numbered ones, which are much alike."""

ROWS_CHARS = 1_500
"""Characters that all rows of one table may take; wider ones show samples instead."""


class Contents:
    """Lines that show rows and samples of a layout's tables.

    Attributes:
        shown: Names of the columns whose values these lines show completely, so that they need no samples.
    """

    def __init__(self, layout: Layout, chars: int) -> None:
        """``chars``: of one value."""
        self._layout, self._chars = layout, chars
        few = layout.tables if len(layout.tables) <= MOST_MEMBERS else ()
        self._columns = {id(table): {c.name: c for c in table.columns} for table in few}
        self._rows = {id(table): self._rows_of(table) for table in few}
        self.shown = {
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
