"""Headers of blocks: which tables, how many rows (format: ``quorum.knowledge.schema_writer``)."""

from __future__ import annotations

from collections.abc import Sequence

from quorum.knowledge.catalog import Table
from quorum.knowledge.layouts import Layout
from quorum.knowledge.name_ranges import fold_names
from quorum.knowledge.naming import write_full_name, write_name


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
    """Kind, number of tables, row counts: what stands in the header's brackets."""
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
    """The parts of a table's full name; an empty schema is kept where a database stands before it."""
    if table.database and not table.schema:
        return table.database, "", table.name
    return (*(part for part in (table.database, table.schema) if part), table.name)
