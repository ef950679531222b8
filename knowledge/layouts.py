"""Layouts: the distinct column lists of a catalog, shared ones once, near relatives as differences.

A layout is a field group (``quorum.knowledge.field_groups``) refined by what a signature does not tell
(keys, nullability, kind), or one table. A layout whose columns differ little from another's is
written as the difference from that one, its base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.field_groups import select_groups
from quorum.knowledge.name_ranges import fold_names
from quorum.knowledge.variant import merge_fields

MIN_SHARED = 8
"""Columns that a variant must share with its base; below, the difference is no easier to read."""

SMALL_CATALOG, MIN_SHARED_SMALL = 30, 20
"""Up to so many tables room is no matter, and a table's own samples are worth more than another's:
there only shards form a group, and a variant must share more with its base."""

MAX_DIFFERENCE = 0.35
"""Columns removed and added, as a share of the variant's own columns, up to which it is one."""

_Key = tuple[str, str, bool, tuple[tuple[str, str], ...]]


@dataclass
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


def column_key(column: Column) -> _Key:
    """What makes two columns one: name, type, nullability, declared paths."""
    declared = tuple((f.path, f.type) for f in column.fields if not f.inferred) if column.fields else ()
    return column.name, column.type, column.nullable, declared


def find_layouts(catalog: Catalog) -> tuple[Layout, ...]:
    """All layouts; each table is in exactly one. Order: first table, a variant behind its base."""
    position = {id(table): i for i, table in enumerate(catalog.tables)}
    families: dict[object, list[Table]] = {}
    small = len(catalog.tables) <= SMALL_CATALOG
    groups = [g for g in select_groups(catalog) if not small or _alike([t.name for t in g.tables])]
    grouped = {id(table): group.signature for group in groups for table in group.tables}
    for table in catalog.tables:
        shared = grouped.get(id(table))
        key = (shared, *_refined(table)) if shared else (id(table),)
        families.setdefault(key, []).append(table)
    layouts = [_merged(tables) for tables in families.values()]
    _find_bases(layouts)
    children: dict[int, list[Layout]] = {}
    for layout in layouts:
        if layout.base is not None:
            children.setdefault(id(layout.base), []).append(layout)
    roots = sorted((la for la in layouts if la.base is None), key=lambda la: position[id(la.tables[0])])
    return tuple(la for root in roots for la in (root, *children.get(id(root), ())))


def _alike(names: Sequence[str]) -> bool:
    """Whether the names are numbered copies of few: shards, and not things that happen to look alike."""
    return len(fold_names(list(dict.fromkeys(names)))) <= len(names) / 2


def _refined(table: Table) -> tuple[object, ...]:
    """What members of one signature must agree on besides names and types."""
    required = frozenset(c.name for c in table.columns if not c.nullable)
    nested = frozenset(key for c in table.columns if c.fields and (key := column_key(c))[3])
    return required, nested, table.primary_key, table.foreign_keys, table.kind


def _merged(tables: Sequence[Table]) -> Layout:
    if len(tables) == 1:
        return Layout(tuple(tables), tables[0].columns)
    columns, disputed = [], 0
    positions: list[dict[str, Column]] = [{c.name: c for c in t.columns} for t in tables]
    for first in tables[0].columns:
        same = [by_name[first.name] for by_name in positions]
        told = {c.description for c in same} - {""}
        described = [c.description for c in same if c.description]
        description = _majority(described) if len(told) > 1 else "".join(told)
        disputed += len(told) - bool(description)
        samples = next((c.samples for c in same if c.samples), ())
        complete = all(_completes(c, samples) for c in same)
        fields = _union(c.fields for c in same) if any(c.fields for c in same) else ()
        columns.append(Column(first.name, first.type, description, samples, fields, first.nullable, complete))
    return Layout(tuple(tables), tuple(columns), disputed=disputed)


def _majority(described: Sequence[str]) -> str:
    """The description that more than half of those that describe the column agree on, or none."""
    text, count = Counter(described).most_common(1)[0]
    return text if 2 * count > len(described) else ""


def _union(lists: Iterable[tuple[Field, ...]]) -> tuple[Field, ...]:
    merged: tuple[Field, ...] = ()
    seen: set[tuple[Field, ...]] = set()
    for fields in lists:
        if fields not in seen:
            seen.add(fields)
            merged = merge_fields(merged, fields) if merged else fields
    return merged


def _find_bases(layouts: Sequence[Layout]) -> None:
    """Give each layout its nearest relative among those written in full (bigger ones first)."""
    least = MIN_SHARED_SMALL if len(layouts) <= SMALL_CATALOG else MIN_SHARED
    order = sorted(layouts, key=lambda la: (-len(la.tables), -len(la.columns)))
    holders: dict[tuple[str, str, bool], list[int]] = {}
    full: list[Layout] = []
    for layout in order:
        if len({c.name for c in layout.columns}) != len(layout.columns) or len(layout.columns) < least:
            continue
        shared: Counter[int] = Counter()
        for column in layout.columns:
            for number in holders.get((column.name, column.type, column.nullable), ()):
                shared[number] += 1
        near = [full[number] for number, count in _nearest(shared, full) if count >= least]
        if not any(_adopt(layout, base) for base in near):
            for column in layout.columns:
                holders.setdefault((column.name, column.type, column.nullable), []).append(len(full))
            full.append(layout)


def _nearest(shared: Counter[int], full: Sequence[Layout]) -> list[tuple[int, int]]:
    """At most three candidates, by columns shared less columns to remove."""
    ranked = sorted(shared.items(), key=lambda item: (len(full[item[0]].columns) - 2 * item[1], item[0]))
    return ranked[:3]


def _adopt(layout: Layout, base: Layout) -> bool:
    if not _compatible(layout.tables[0], base.tables[0]):
        return False
    theirs = {c.name: c for c in base.columns}
    mine = {c.name for c in layout.columns}
    removed = tuple(name for name in theirs if name not in mine)
    added = tuple(c for c in layout.columns if c.name not in theirs or _differs(c, theirs[c.name]))
    if len(removed) + len(added) > MAX_DIFFERENCE * len(layout.columns):
        return False
    replaced = {c.name for c in added}
    inherited = {c.name: c for c in layout.columns if c.name not in replaced}
    base.columns = tuple(_absorb(c, inherited.get(c.name)) for c in base.columns)
    layout.base, layout.removed, layout.added = base, removed, added
    return True


def _compatible(one: Table, other: Table) -> bool:
    keys = one.primary_key == other.primary_key and one.foreign_keys == other.foreign_keys
    return keys and one.kind == other.kind


def _differs(mine: Column, theirs: Column) -> bool:
    if column_key(mine) != column_key(theirs):
        return True
    return bool(mine.description and theirs.description) and mine.description != theirs.description


def _absorb(column: Column, other: Column | None) -> Column:
    if other is None:
        return column
    fields = column.fields if column.fields == other.fields else merge_fields(column.fields, other.fields)
    samples = column.samples or other.samples
    complete = _completes(column, samples) and _completes(other, samples)
    return replace(column, fields=fields, samples=samples, complete=complete)


def _completes(column: Column, samples: Sequence[str]) -> bool:
    """Whether these are known to be all values of the column."""
    return column.complete and {*column.samples} == {*samples}
