"""Differences of two results: which columns, which rows, which cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from quorum.tools.results.canonical import Canonical, canonical
from quorum.tools.results.cells import agree
from quorum.tools.results.compare import Relation, column_pairs, relation, row_hashes
from quorum.tools.results.values import plain_column

EXAMPLES = 3
MAX_COLUMNS = 30
"""Columns among which a key is looked for."""
SHOWN_COLUMNS = 4
"""Columns of an example row."""

Pair = tuple[int, int]
"""Something in the first result and in the second."""


@dataclass(frozen=True)
class Differences:
    """The differences of two results, the first and the second.

    Attributes:
        relation: ``quorum.tools.results.compare.relation`` of the first to the second.
        rows: Row counts.
        agreeing: Places of columns with the same values, in both results; by the key, in the rows of both.
        differing: Places of the columns without such a partner, per result.
        key: Places of the column that identifies rows; None if none does.
        only: How many rows stand in one result only, per result: by the key, else whole rows.
        examples: Up to ``EXAMPLES`` of them, per result: the key's value, else the row's.
        cell: The key's value of a row of both, and its cell in the one pair of columns that differ.
    """

    relation: Relation
    rows: Pair
    agreeing: tuple[Pair, ...] = ()
    differing: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    key: Pair | None = None
    only: Pair = (0, 0)
    examples: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    cell: tuple[Any, Any, Any] | None = None


def differences(first: pa.Table, second: pa.Table) -> Differences:
    """Compare two results; column names and the order of columns and rows do not count."""
    tables, forms = (first, second), (canonical(first), canonical(second))
    a, b = forms
    found = Differences(relation(a, b), (a.rows, b.rows))
    if found.relation == "equal":
        return found
    if found.relation in ("contains", "within") or not a.rows or not b.rows:
        return _paired(found, forms, column_pairs(a, b))
    if a.rows == b.rows == len(a.columns) == len(b.columns) == 1:
        cell = (None, _value(first, 0, 0), _value(second, 0, 0))
        return replace(_paired(found, forms, []), cell=cell)
    if key := _key(tables, forms):
        return _by_key(found, tables, forms, key)
    found = _paired(found, forms, column_pairs(a, b))
    if len(a.columns) != len(b.columns):
        return found
    hashes = [row_hashes(form).tolist() for form in forms]
    alone = [_surplus(hashes[side], hashes[1 - side]) for side in (0, 1)]
    shown = [found.differing[side] or range(len(a.columns)) for side in (0, 1)]
    rows = [
        tuple(
            tuple(_value(tables[side], c, row) for c in shown[side][:SHOWN_COLUMNS])
            for row in alone[side][:EXAMPLES]
        )
        for side in (0, 1)
    ]
    return replace(found, only=(len(alone[0]), len(alone[1])), examples=(rows[0], rows[1]))


def _paired(found: Differences, forms: tuple[Canonical, Canonical], pairs: list[Pair]) -> Differences:
    free = [
        tuple(sorted(set(range(len(form.columns))) - {pair[side] for pair in pairs}))
        for side, form in enumerate(forms)
    ]
    return replace(found, agreeing=tuple(sorted(pairs)), differing=(free[0], free[1]))


def _key(tables: tuple[pa.Table, pa.Table], forms: tuple[Canonical, Canonical]) -> Pair | None:
    """Return the columns that name the rows: unique in both results, with the most values in common.

    At least half of the smaller result's values must be common. Of equals text wins over numbers,
    then the same name.
    """
    a, b = forms
    unique = [
        [
            place
            for place, cells in enumerate(form.columns[:MAX_COLUMNS])
            if len(np.unique(cells.keys)) == form.rows
        ]
        for form in forms
    ]
    ranked = []
    for i in unique[0]:
        for j in unique[1]:
            p, q = a.columns[i], b.columns[j]
            common = len(np.intersect1d(p.keys, q.keys))
            same = _names(tables[0])[i] == _names(tables[1])[j]
            if common and 2 * common >= min(a.rows, b.rows) and (common > 1 or same):
                text = not p.is_number.any() and not q.is_number.any()
                ranked.append(((common, text, same, -i, -j), (i, j)))
    return max(ranked)[1] if ranked else None


def _by_key(
    found: Differences, tables: tuple[pa.Table, pa.Table], forms: tuple[Canonical, Canonical], key: Pair
) -> Differences:
    columns = [form.columns[place] for form, place in zip(forms, key, strict=True)]
    _, left, right = np.intersect1d(columns[0].keys, columns[1].keys, return_indices=True)
    shared = [
        [cells.take(rows) for cells in form.columns] for form, rows in zip(forms, (left, right), strict=True)
    ]
    pairs = [key]
    for i, cells in enumerate(shared[0]):
        partners = (j for j, other in enumerate(shared[1]) if agree(cells, other).all())
        free = [j for j in partners if all(i != p and j != q for p, q in pairs)]
        same = [j for j in free if _names(tables[0])[i] == _names(tables[1])[j]]
        pairs += [(i, j) for j in (same or free)[:1]]
    found = replace(_paired(found, forms, pairs), key=key)
    alone = [np.flatnonzero(~np.isin(columns[s].keys, columns[1 - s].keys)) for s in (0, 1)]
    examples = [tuple(_value(tables[s], key[s], row) for row in alone[s][:EXAMPLES]) for s in (0, 1)]
    found = replace(found, only=(len(alone[0]), len(alone[1])), examples=(examples[0], examples[1]))
    if len(found.differing[0]) != 1 or len(found.differing[1]) != 1:
        return found
    (i,), (j,) = found.differing
    place = min(np.flatnonzero(~agree(shared[0][i], shared[1][j])), key=lambda row: left[row])
    row, other = left[place], right[place]
    return replace(
        found, cell=(_value(tables[0], key[0], row), _value(tables[0], i, row), _value(tables[1], j, other))
    )


def _names(table: pa.Table) -> list[str]:
    return [str(name).casefold() for name in table.column_names]


def _surplus(mine: list[int], theirs: list[int]) -> list[int]:
    """Return the places of rows that ``theirs`` lacks, or has less often."""
    left, alone = Counter(theirs), []
    for place, value in enumerate(mine):
        left[value] -= 1
        if left[value] < 0:
            alone.append(place)
    return alone


def _value(table: pa.Table, column: int, row: int) -> Any:
    return plain_column(table.column(column).slice(int(row), 1))[0]
