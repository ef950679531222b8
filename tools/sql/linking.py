"""Schema linking: the tables and columns that queries use or a model judges needed, and a catalog of those.

SSEV links the schema with the union of what all experts' first queries use (paper 004, section 3.1.1). It
proposes regular expressions; here the lint's resolver reads the tree, so that aliases, CTEs, stars and
unqualified columns count as what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from quorum.knowledge.schema.layouts import find_layouts, signature
from quorum.knowledge.schema.render import render
from quorum.knowledge.verified import VerifiedPair
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_statements, tables_in

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog, ForeignKey, Table

UNIT_TOKENS = 4_000
"""Budget for the descriptions and samples of one unit; names and types are never cut."""

CHUNK_TOKENS = 20_000
"""Tokens of schema that a draft is written against at a time."""


@dataclass(frozen=True)
class Linked:
    """The part of a catalog that queries use, in the catalog's order and spelling.

    Attributes:
        tables: Full names.
        columns: (full name of the table, column).
        unknown: Names in the queries that the catalog does not have, as written.
    """

    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``table(column, column); table(column)``, as the SchemaLinker writes it."""
        columns: dict[str, list[str]] = {name: [] for name in self.tables}
        for table, column in self.columns:
            columns[table].append(column)
        return "; ".join(f"{table}({', '.join(names)})" for table, names in columns.items())


def used(sql: str, catalog: Catalog) -> Linked:
    """Return the tables and columns of ``catalog`` that ``sql`` uses, in all its clauses and subqueries.

    A star, a whole row or a pivot uses all columns of its tables; ``USING`` and ``NATURAL`` use theirs on
    both sides; a nested path uses its column; a wildcard uses all shards, and a column in each that has
    it. The dialect's case rules decide between names that differ in case only; a name that no table or
    column has by those rules, but one has without regard to case, is taken for that.

    Raises:
        SyntaxProblem: The SQL cannot be read.
        ConfigurationError: The catalog's dialect is unknown.
    """
    from quorum.tools.lint.usage import names_used

    trees = parse_statements(sql, dialect_name(catalog.dialect))
    exact = union(catalog, [Linked(*names_used(trees, catalog))])
    if not exact.unknown:
        return exact
    folded = union(catalog, [Linked(*names_used(trees, catalog, exact=False))])
    return replace(union(catalog, (exact, folded)), unknown=folded.unknown)


def table_marks(sql: str, catalog: Catalog) -> dict[str, str]:
    """Return the tables that a query reads, as it names them, each with a hash of its columns and types.

    Empty if the SQL cannot be read.

    Raises:
        ConfigurationError: The catalog's dialect is unknown.
    """
    try:
        names = tables_in(sql, catalog.dialect)
    except SyntaxProblem:
        return {}
    found = ((name, catalog.find(name)) for name in names)
    return {name: signature(tables[0])[:8] for name, tables in found if tables}


def changed_tables(pair: VerifiedPair, catalog: Catalog) -> list[str]:
    """Return the tables of a verified query whose columns have changed; none where that is not known."""
    now = table_marks(pair.sql, catalog) if pair.marks else {}
    before = zip(pair.tables, pair.marks, strict=True) if pair.marks else ()
    return [name for name, mark in before if now.get(name) != mark]


def marks_of(tables: Iterable[str], catalog: Catalog) -> dict[str, str]:
    """Return a hash of each table's columns' names and types, by its full name; none for a missing table."""
    found = ((name, each) for name in tables for each in catalog.find(name) if each.full_name == name)
    return {name: signature(table)[:8] for name, table in found}


def marks_hold(tables: Mapping[str, str], catalog: Catalog) -> bool:
    """True if tables still have the columns that they had when ``marks_of`` made these."""
    return marks_of(tables, catalog) == dict(tables)


def union(catalog: Catalog, linked: Iterable[Linked]) -> Linked:
    """Join the parts, in the catalog's order. Names that the catalog lacks stay in ``unknown`` only."""
    parts = tuple(linked)
    tables = {name for part in parts for name in part.tables}
    columns = {column for part in parts for column in part.columns}
    unknown = dict.fromkeys(name for part in parts for name in part.unknown)
    return Linked(
        tuple(table.full_name for table in catalog.tables if table.full_name in tables),
        tuple((t.full_name, c.name) for t, c in catalog.columns() if (t.full_name, c.name) in columns),
        tuple(unknown),
    )


def named(text: str, catalog: Catalog) -> Linked:
    """Return the tables and columns of a linked schema: ``table(column:TYPE[value], column:TYPE); ...``.

    Case and quotes do not count, and a table's name may lack its schema or database. Names that the catalog
    does not have are left out.
    """
    text = text.casefold()
    found = sorted(_tables_named(text, catalog))
    longest: dict[int, int] = {}  # of "customer orders"(…) and orders(…), which end alike, the first is meant
    for start, body, _ in found:
        longest.setdefault(body, start)
    found = [each for each in found if each[0] == longest[each[1]]]
    starts = [start for start, _, _ in found]
    columns = [
        (table.full_name, column.name)
        for start, body, place in found
        for table in (catalog.tables[place],)
        for column in table.columns
        if _names_column(
            text[body : next((other for other in starts if other > start), None)], column.name.casefold()
        )
    ]
    tables = tuple(catalog.tables[place].full_name for _, _, place in found)
    return union(catalog, [Linked(tables, tuple(columns))])


def _tables_named(text: str, catalog: Catalog) -> Iterator[tuple[int, int, int]]:
    """Yield the start of each table in the text, the start of its columns, and its place in the catalog."""
    part, quote = r"""["`\[]?[^\s"`\[\].();,]{1,200}["`\]]?\.""", r"""["`\[\]]"""
    for place, table in enumerate(catalog.tables):
        name, full = table.name.casefold(), table.full_name.casefold()
        if name not in text:
            continue
        for match in re.finditer(rf"(?<![\w.])((?:{part})*{quote}?){re.escape(name)}{quote}?\s*\(", text):
            written = re.sub(quote, "", match[1]) + name
            if f".{full}".endswith(f".{written}") or f".{written}".endswith(f".{full}"):
                yield match.start(), match.end(), place


def _names_column(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def prune(catalog: Catalog, *linked: Linked, bare: Literal["whole", "key"] = "whole") -> Catalog:
    """Return ``catalog`` with only the tables and columns that are linked, and the keys between them.

    Primary keys stay, and both sides of every foreign key that joins two tables that stay; a foreign key
    to a table that goes stays where its columns do, to tell what they refer to. A note says of what
    the catalog is a part; notes on what is gone go as well. The catalog itself where nothing is linked
    at all: a schema without tables can answer nothing.

    Args:
        bare: What stays of a table of which no column is linked: all of it, or its key alone (its first
            column if it has none), which is enough for ``COUNT(*)``.
    """
    both = union(catalog, linked)
    kept = {table.full_name: table for table in catalog.tables if table.full_name in both.tables}
    wanted = set(both.columns)
    known = {name for name, _ in wanted}
    wanted |= {key for table in kept.values() for key in _keys(catalog, table, kept)}
    for name, table in kept.items():
        if name not in known:
            few = () if bare == "whole" else table.primary_key or [c.name for c in table.columns[:1]]
            wanted |= set(_named(table, few or [c.name for c in table.columns]))
    tables = tuple(_pruned(catalog, table, wanted, kept) for table in kept.values())
    return _as_part(catalog, tables) if tables else catalog


def _pruned(catalog: Catalog, table: Table, wanted: set[tuple[str, str]], kept: Mapping[str, Table]) -> Table:
    columns = tuple(c for c in table.columns if (table.full_name, c.name) in wanted)
    left = {c.name.casefold() for c in columns}
    keys = tuple(
        key
        for key in table.foreign_keys
        if _target(catalog, key, kept) or {name.casefold() for name in key.columns} <= left
    )
    return replace(table, columns=columns, foreign_keys=keys)


def _as_part(catalog: Catalog, tables: tuple[Table, ...]) -> Catalog:
    """Return the catalog with these tables, and notes that fit them."""
    part = replace(catalog, tables=tables)
    names = [{t.full_name for t in each.tables} for each in (catalog, part)]
    columns = [{f"{t.full_name}.{c.name}" for t, c in each.columns()} for each in (catalog, part)]
    if names[0] == names[1] and columns[0] == columns[1]:
        return part
    gone = (names[0] - names[1]) | (columns[0] - columns[1])
    notes = [left for note in catalog.notes if (left := _without(note, gone))]
    many = " and ".join(
        f"{len(after):,} of {len(before):,} {what}"
        for what, (before, after) in (("tables", names), ("columns", columns))
    )
    return replace(part, notes=(*notes, f"This is a part of a larger database: {many}."))


def _without(note: str, gone: set[str]) -> str:
    """Return a note without those of its listed names that are gone; "" if nothing is left."""
    words = {word.rstrip(".") for word in re.split(r"[\s,:;]+", note)}
    if not words & gone:
        return note
    head, colon, listed = note.partition(": ")
    names = re.sub(r"( and \d+ more)?\.$", "", listed).split(", ")
    left = [name for name in names if gone.isdisjoint({name, *re.split(" -> | and ", name)})]
    return f"{head}: {', '.join(left)}." if colon and listed and left else ""


def _keys(catalog: Catalog, table: Table, kept: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Yield the columns of a table's primary key, and both sides of its foreign keys to ``kept`` tables."""
    yield from _named(table, table.primary_key)
    for key in table.foreign_keys:
        if target := _target(catalog, key, kept):
            yield from _named(table, key.columns)
            yield from _named(target, key.ref_columns or target.primary_key)


def _target(catalog: Catalog, key: ForeignKey, kept: Mapping[str, Table]) -> Table | None:
    found = catalog.table(key.ref_table)
    return kept.get(found.full_name) if found else None


def _named(table: Table, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if column := table.column(name):
            yield table.full_name, column.name


def units(catalog: Catalog) -> dict[str, Catalog]:
    """Return each table by itself, tables of one layout (shards) together, by the first one's full name."""
    layouts = find_layouts(catalog)
    return {la.tables[0].full_name: replace(catalog, tables=la.tables, notes=()) for la in layouts}


def unit_texts(parts: Mapping[str, Catalog]) -> dict[str, str]:
    """Return the units as schema text."""
    return {name: render(part, budget=UNIT_TOKENS).text for name, part in parts.items()}


def chunks(catalog: Catalog, tokens: int = CHUNK_TOKENS) -> list[Catalog]:
    """Return the whole catalog in parts of at most ``tokens`` each, tables of one layout together.

    A unit that is larger by itself is a part of its own.
    """
    parts: list[list[Catalog]] = []
    room = 0
    for unit in units(catalog).values():
        size = render(unit, budget=UNIT_TOKENS).tokens
        if not parts or size > room:
            parts.append([])
            room = tokens
        parts[-1].append(unit)
        room -= size
    return [replace(catalog, tables=tuple(t for unit in part for t in unit.tables)) for part in parts]


def needed(parts: Mapping[str, Catalog], wanted: Mapping[str, Iterable[str] | None]) -> Linked:
    """Return what judged units leave of the catalog they were cut from.

    Args:
        parts: The units, by name.
        wanted: By unit, the columns to keep in each of its tables; None for all of them. Names that
            no column has are passed over; a unit of which none is left keeps all.
    """
    tables = [table for name in parts if name in wanted for table in parts[name].tables]
    columns = tuple(
        (table.full_name, column.name)
        for name, names in wanted.items()
        if name in parts and names is not None
        for table in parts[name].tables
        for name in names
        if (column := table.column(name.rpartition(".")[2].strip('"`[] ')))
    )
    return Linked(tuple(table.full_name for table in tables), columns)
