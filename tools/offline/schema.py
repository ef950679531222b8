"""The catalog as the rules see it: families of sharded tables made one, and the joins between tables."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

from knowledge.catalog import Catalog, Column, Table
from tools.offline.lexicon import name_stems

_NUMERIC = re.compile(r"int|real|float|double|dec|num|serial", re.IGNORECASE)
_DATED = re.compile(r"date|time|(^|_)(at|on)$|day$", re.IGNORECASE)


_PLACES = frozenset({"country", "nation", "nationality", "city", "stat", "region", "location"})


@dataclass(frozen=True)
class Join:
    """An equality between two tables: ``left.left_column = right.right_column``."""

    left: Table
    left_column: Column
    right: Table
    right_column: Column

    def hinted(self, stems: frozenset[str]) -> int:
        """How many of ``stems`` its columns share."""
        return len(stems & {*name_stems(self.left_column.name), *name_stems(self.right_column.name)})


class Schema:
    """Tables, with shards folded into one table each (``families``), and the graph of joins."""

    def __init__(self, catalog: Catalog) -> None:
        self.dialect = catalog.dialect
        self.families: dict[str, tuple[Table, ...]] = {}
        self.tables = self._fold(catalog)

    def _fold(self, catalog: Catalog) -> list[Table]:
        """Make one table of all that share their columns and differ only in the digits of their name."""
        groups: dict[object, list[Table]] = {}
        for table in filter(lambda table: table.columns, catalog.tables):
            name = re.sub(r"[\d_]*\d[\d_]*", "_", table.name).strip("_")
            shape = frozenset((c.name.casefold(), c.type.casefold()) for c in table.columns)
            groups.setdefault((table.database, table.schema, name or table.name, shape), []).append(table)
        tables = []
        for members in groups.values():
            table = members[0]
            if len(members) > 1:
                name = re.sub(r"[\d_]*\d[\d_]*", "_", table.name).strip("_")
                table = replace(table, name=name or table.name, row_count=None)
                self.families[table.full_name] = tuple(members)
            tables.append(table)
        return tables

    @cached_property
    def joins(self) -> dict[str, list[Join]]:
        """Joins by the full name of their left table: declared keys first, then columns named alike."""
        by_name = {name.casefold(): table for table in self.tables for name in (table.name, table.full_name)}
        found: dict[tuple[str, ...], Join] = {}
        for table in self.tables:
            for key in table.foreign_keys:
                other = by_name.get(key.ref_table.casefold())
                mine, theirs = table.column(key.columns[0]), other and other.column(key.ref_columns[0])
                if other and other is not table and mine and theirs:
                    found[table.full_name, other.full_name, mine.name] = Join(table, mine, other, theirs)
        linked = {frozenset(pair[:2]) for pair in found}
        for join in self._guessed():
            if frozenset((join.left.full_name, join.right.full_name)) not in linked:
                found[join.left.full_name, join.right.full_name, join.left_column.name] = join
        graph: dict[str, list[Join]] = {table.full_name: [] for table in self.tables}
        for join in found.values():
            graph[join.left.full_name].append(join)
            turned = Join(join.right, join.right_column, join.left, join.left_column)
            graph[join.right.full_name].append(turned)
        return graph

    def _guessed(self) -> list[Join]:
        """Undeclared keys: ``country`` or ``country_id`` for the key of ``countries``."""
        keys: dict[tuple[str, ...], tuple[Table, Column]] = {}
        for table in self.tables:
            if key := self.key(table):
                own, named = name_stems(table.name), name_stems(key.name)
                keys |= dict.fromkeys((own, own + named, named), (table, key))
        keys.pop(("id",), None)  # every table may have one
        return [
            Join(table, column, other, key)
            for table in self.tables
            for column in table.columns
            for other, key in [keys.get(name_stems(column.name), (table, column))]
            if other is not table and is_numeric(column) == is_numeric(key)
        ]

    def path(self, start: Table, end: Table, hints: frozenset[str] = frozenset()) -> list[Join] | None:
        """The shortest chain of joins; of two between the same tables, the one whose column is hinted at."""
        queue: deque[tuple[Table, list[Join]]] = deque([(start, [])])
        seen = {start.full_name}
        while queue:
            table, chain = queue.popleft()
            if table.full_name == end.full_name:
                return chain
            for join in sorted(self.joins[table.full_name], key=lambda join: -join.hinted(hints)):
                if join.right.full_name not in seen:
                    seen.add(join.right.full_name)
                    queue.append((join.right, [*chain, join]))
        return None

    @cached_property
    def _islands(self) -> dict[str, int]:
        """For each table, the number of the group of tables that joins can reach from it."""
        islands: dict[str, int] = {}
        for number, table in enumerate(self.tables):
            ahead = [table.full_name]
            while ahead:
                if (name := ahead.pop()) not in islands:
                    islands[name] = number
                    ahead += [join.right.full_name for join in self.joins[name]]
        return islands

    def connected(self, one: Table, other: Table) -> bool:
        """Whether a chain of joins leads from one table to the other."""
        return self._islands[one.full_name] == self._islands[other.full_name]

    def key(self, table: Table) -> Column | None:
        """The column that tells rows apart: the primary key, else a first column called id or code."""
        if len(table.primary_key) == 1:
            return table.column(table.primary_key[0])
        return next((c for c in table.columns[:1] if name_stems(c.name)[-1:] in (("id",), ("cod",))), None)

    def label(self, table: Table) -> Column:
        """The column by which people know a row: called like the table, its name or title; else the key."""
        own = name_stems(table.name)
        named = [c for c in table.columns if {"nam", "titl"} & {*name_stems(c.name)} and not is_numeric(c)]
        named.sort(key=lambda column: len({*name_stems(column.name)} - {*own}))
        same = [c for c in table.columns if name_stems(c.name) == own and not is_numeric(c)]
        return (same + named + [self.key(table) or table.columns[0]])[0]


def is_numeric(column: Column) -> bool:
    """Numeric by type, or by its samples where a text column holds numbers."""
    numbers = bool(column.samples) and all(re.fullmatch(r"-?\d+(\.\d+)?", s) for s in column.samples)
    return numbers or (bool(_NUMERIC.search(column.type)) and not _DATED.search(column.type))


def is_date(column: Column) -> bool:
    """A date by type or by name; a bare year is a number."""
    return bool(
        _DATED.search(column.type) or (_DATED.search(column.name) and not _NUMERIC.search(column.type))
    )


def is_year(column: Column) -> bool:
    return "year" in name_stems(column.name)


def is_place(column: Column) -> bool:
    return bool(_PLACES & {*name_stems(column.name)}) and is_text(column)


def is_text(column: Column) -> bool:
    return not is_numeric(column)


def day_first(column: Column) -> bool:
    """True if the samples are text dates in the form DD/MM/YYYY."""
    return bool(column.samples) and all(re.match(r"\d\d/\d\d/\d{4}", sample) for sample in column.samples)
