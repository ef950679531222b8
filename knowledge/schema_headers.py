"""Headers of blocks: which tables, how many rows (format: ``quorum.knowledge.schema_text``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from quorum.knowledge.catalog import Table
from quorum.knowledge.layouts import Layout
from quorum.knowledge.name_ranges import MAX_EXPANSION, fold_names, read_item
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.schema_grammar import Scanner, SchemaTextError

_FACT = re.compile(r"[0-9][0-9,]* tables|([0-9][0-9,]*) rows(?:, ([0-9][0-9,]*) distinct)?|rows (.*)")
_COUNT = re.compile(r"([0-9]+)(?: with ([0-9]+) distinct)?")
Counts: TypeAlias = tuple[int | None, int | None]
"""Rows of a table, and how many of them differ where that is fewer."""


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


def read_members(scanner: Scanner) -> list[tuple[str, ...]]:
    """The full names of the tables that ``tables `` is followed by."""
    scanner.take("tables ")
    names: list[tuple[str, ...]] = []
    qualifier = _qualifier(scanner)
    while True:
        names += [(*qualifier, name) for name in read_item(scanner)]
        if len(names) > MAX_EXPANSION:
            raise SchemaTextError("a group has too many members")
        if scanner.take("; "):
            qualifier = _qualifier(scanner)
        elif not scanner.take(", "):
            return names


def _qualifier(scanner: Scanner) -> tuple[str, ...]:
    start = scanner.at
    try:
        parts = scanner.full_name()
    except SchemaTextError:
        parts = ()
    if parts and scanner.take(": "):
        return parts
    scanner.at = start
    return ()


def read_facts(scanner: Scanner, tables: int) -> tuple[str, list[Counts]]:
    """The kind, and the counts of each table where they are told; the bracket is passed over."""
    kind, counts = "table", list[Counts]()
    if not scanner.rest.startswith("rows ") and not scanner.rest[:1].isdigit():
        kind = scanner.name()
        scanner.take("; ")
    text = scanner.rest.partition(")")[0]
    for fact in filter(None, text.split("; ")):
        found = _FACT.fullmatch(fact)
        if not found:
            raise SchemaTextError(f"unknown fact: {fact[:60]}")
        if found[1]:
            counts = [(_number(found[1]), _number(found[2]))]
        elif found[3]:
            each = found[3].endswith(" each")
            counts = [_counts(count) for count in found[3].removesuffix(" each").split(", ")]
            counts *= tables if each else 1
    scanner.take(text + ")")
    return kind, counts


def _counts(text: str) -> Counts:
    found = _COUNT.fullmatch(text)
    if not found and text != "?":
        raise SchemaTextError(f"no number of rows: {text[:60]}")
    return (_number(found[1]), _number(found[2])) if found else (None, None)


def _number(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None
