"""Layouts: the distinct column lists of a catalog, shared ones once, near relatives as differences.

A layout is a shared field group (SQLAgent, paper 001, Appendix D) refined by what a signature leaves out
(keys, nullability, kind), or one table. A layout whose columns differ little from another's is
written as the difference from that one, its base.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from heapq import nsmallest
from typing import TypeAlias

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.inferred import merge_fields
from quorum.knowledge.schema.name_ranges import fold_names

Key: TypeAlias = tuple[str, str, bool]
"""A column's name, type and whether it may be NULL."""

MIN_SHARED = 8
"""Columns that a variant must share with its base; below, the difference is no easier to read."""

SMALL_CATALOG, MIN_SHARED_SMALL = 30, 20
"""Up to so many tables room is no matter, and a table's own samples are worth more than another's:
there only shards form a group, and a variant must share more with its base."""

MAX_DIFFERENCE = 0.35
"""Columns removed and added, as a share of the variant's own columns, up to which it is one."""


@dataclass(eq=False)
class Layout:
    """Tables of the same columns, in catalog order, and how they are written.

    Attributes:
        tables: At least one.
        columns: The columns of the first table, with what the others add: the description most
            of them give, samples (complete if those of each table are, and the same), paths seen
            in samples.
        base: The layout that this one is written as a difference from; None when in full.
        removed: Names of the base's columns that are missing here.
        added: Columns that the base lacks or has otherwise.
        disputed: Descriptions not given, for the tables disagree about the column.
    """

    tables: tuple[Table, ...]
    columns: tuple[Column, ...]
    base: Layout | None = None
    removed: tuple[str, ...] = ()
    added: tuple[Column, ...] = ()
    disputed: int = 0


def signature(table: Table) -> str:
    """Return the MD5 (hex) over the sorted ``name:type`` list, joined by ``|`` (SQLAgent, Algorithm 1).

    It does not depend on the order of the columns.
    """
    fields = sorted(f"{column.name}:{column.type}" for column in table.columns)
    return hashlib.md5("|".join(fields).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def select_groups(catalog: Catalog) -> list[list[Table]]:
    """Return groups of at least two tables of one signature (SQLAgent, Algorithm 2).

    The group of most tables comes first, of equals the one of most fields. A table without columns has
    nothing to share and joins no group. The overlap test of the paper always passes here, for a whole-table
    signature puts each table into one group only.
    """
    found: dict[str, list[Table]] = {}
    for table in catalog.tables:
        if table.columns:
            found.setdefault(signature(table), []).append(table)
    groups = [tables for tables in found.values() if len(tables) >= 2]
    return sorted(groups, key=lambda tables: (-len(tables), -len(tables[0].columns)))


def units(catalog: Catalog) -> list[list[Table]]:
    """Every table once: those of one signature in one schema together, in the order of the first of them."""
    found: dict[object, list[Table]] = {}
    for table in catalog.tables:
        alone = id(table) if not table.columns else signature(table)
        found.setdefault((table.database, table.schema, alone), []).append(table)
    return list(found.values())


def find_layouts(catalog: Catalog) -> tuple[Layout, ...]:
    """All layouts; each table is in exactly one. Order: first table, a variant behind its base."""
    small = len(catalog.tables) <= SMALL_CATALOG
    groups = [tables for tables in select_groups(catalog) if not small or _shards(tables)]
    group_of = {id(table): number for number, tables in enumerate(groups) for table in tables}
    members: dict[object, list[Table]] = {}
    for table in catalog.tables:
        number = group_of.get(id(table))
        key = id(table) if number is None else (number, *_refined(table))
        members.setdefault(key, []).append(table)
    layouts = [_merged(tables) for tables in members.values()]
    _find_bases(layouts)
    variants: dict[Layout, list[Layout]] = {}
    for layout in layouts:
        if layout.base is not None:
            variants.setdefault(layout.base, []).append(layout)
    return tuple(la for root in layouts if root.base is None for la in (root, *variants.get(root, ())))


def _shards(tables: Sequence[Table]) -> bool:
    """True if the names are numbered copies (``t_1``, ``t_2``), not different things that look alike."""
    names = list(dict.fromkeys(table.name for table in tables))
    return len(fold_names(names)) <= len(names) / 2


def _refined(table: Table) -> tuple[object, ...]:
    """Return the properties that members of one signature must share besides names and types."""
    required = frozenset(c.name for c in table.columns if not c.nullable)
    nested = frozenset((c.name, declared) for c in table.columns if (declared := _declared(c)))
    return required, nested, *_common(table)


def _common(table: Table) -> tuple[object, ...]:
    """Return the properties that a block gives once for all of its tables and their variants."""
    return table.primary_key, table.foreign_keys, table.kind


def _declared(column: Column) -> tuple[tuple[str, str], ...]:
    return tuple((f.path, f.type) for f in column.fields if not f.inferred)


def _merged(tables: Sequence[Table]) -> Layout:
    if len(tables) == 1:
        return Layout(tuple(tables), tables[0].columns)
    columns, disputed = [], 0
    by_name = [{c.name: c for c in table.columns} for table in tables]
    for first in tables[0].columns:
        same = [columns_of[first.name] for columns_of in by_name]
        described = Counter(c.description for c in same if c.description)
        text, count = described.most_common(1)[0] if described else ("", 0)
        description = text if 2 * count > described.total() else ""  # what more than half of them say
        disputed += len(described) - bool(description)
        columns.append(replace(_united(same), description=description, cells=()))
    return Layout(tuple(tables), tuple(columns), disputed=disputed)


def _united(columns: Sequence[Column]) -> Column:
    """Return the first column with what the others add: samples, paths, and that some rows lack a value."""
    samples = next((c.samples for c in columns if c.samples), ())
    complete = all(c.complete and {*c.samples} == {*samples} for c in columns)
    lacking = any(c.nulls or (c.complete and not c.samples) for c in columns)
    fields = reduce(merge_fields, dict.fromkeys(c.fields for c in columns))
    nulls = bool(samples) and lacking
    return replace(columns[0], samples=samples, complete=complete, nulls=nulls, fields=fields)


def _find_bases(layouts: Sequence[Layout]) -> None:
    """Give each layout its nearest relative among those written in full (bigger ones first)."""
    least = MIN_SHARED_SMALL if len(layouts) <= SMALL_CATALOG else MIN_SHARED
    holders: dict[Key, list[int]] = {}
    full: list[Layout] = []
    for layout in sorted(layouts, key=lambda la: (-len(la.tables), -len(la.columns))):
        if len({c.name for c in layout.columns}) != len(layout.columns) or len(layout.columns) < least:
            continue
        keys = [(c.name, c.type, c.nullable) for c in layout.columns]
        shared = Counter(number for key in keys for number in holders.get(key, ()))
        near = nsmallest(3, ((len(full[n].columns) - 2 * count, n) for n, count in shared.items()))
        if any(_adopt(layout, full[n]) for _, n in near if shared[n] >= least):
            continue
        for key in keys:
            holders.setdefault(key, []).append(len(full))
        full.append(layout)


def _adopt(layout: Layout, base: Layout) -> bool:
    """Write the layout as a difference from ``base``, if they are near enough; whether they are."""
    if _common(layout.tables[0]) != _common(base.tables[0]):
        return False
    known = {c.name: c for c in base.columns}
    added = tuple(c for c in layout.columns if c.name not in known or _differs(c, known[c.name]))
    inherited = {c.name: c for c in layout.columns}
    removed = tuple(name for name in known if name not in inherited)
    if len(removed) + len(added) > MAX_DIFFERENCE * len(layout.columns):
        return False
    for column in added:
        del inherited[column.name]
    base.columns = tuple(_united((c, inherited[c.name])) if c.name in inherited else c for c in base.columns)
    layout.base, layout.removed, layout.added = base, removed, added
    return True


def _differs(mine: Column, theirs: Column) -> bool:
    keys = [(c.name, c.type, c.nullable, _declared(c)) for c in (mine, theirs)]
    both = mine.description and theirs.description
    return keys[0] != keys[1] or bool(both and mine.description != theirs.description)
