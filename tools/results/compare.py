"""Comparing results: fingerprints, equality within a tolerance, clusters, relations.

Column names, the order of columns and (unless it was asked for) the order of rows do not count;
``canonical`` decides what a cell means. A fingerprint is a key: equal fingerprints mean equal
results. Results that differ by rounding at an unlucky edge of the grid may have different
fingerprints; ``equal`` and ``cluster`` see them together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quorum.tools.results.canonical import Canonical, canonical
from quorum.tools.results.cells import Cells, Keys, agree, mix

TableLike: TypeAlias = pa.Table | Canonical
Relation: TypeAlias = Literal["equal", "contains", "within", "overlaps", "differs"]

FORM = b"quorum-result-2"  # part of every fingerprint; changes when the canonical form does
MAX_PAIRINGS = 64  # ways to pair columns of the same content that are tried
MAX_STEPS = 10_000
HEAD = 1_000  # sorted cells that are compared before all are
FINGERPRINT_DIGITS = 32


def fingerprint(result: TableLike, *, ordered: bool = False) -> str:
    """Return a key (32 hex digits) of what a result says; the same for every form of the same content.

    A column is known by the sum of its cells' hashes, a row by the sum of its cells' hashes
    mixed with their columns', and once more round, so that columns of the same values are
    distinguished by the rows they are in. Sums do not depend on order; with ``ordered`` the row's
    number is mixed in.
    """
    form = canonical(result)
    place = mix(np.arange(1, form.rows + 1, dtype=np.uint64)) if ordered else None
    columns = [_total(cells.keys, place) for cells in form.columns]
    rows = row_hashes(form, columns)
    columns = [_total(cells.keys ^ mix(rows), place) for cells in form.columns]
    content = _total(row_hashes(form, columns), place)
    parts = [form.rows, len(columns), int(ordered), int(content), *sorted(int(total) for total in columns)]
    digest = hashlib.sha256(FORM + repr(parts).encode())
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def _total(keys: Keys, place: Keys | None) -> np.uint64:
    return np.uint64(mix(keys if place is None else mix(keys) + place).sum(dtype=np.uint64))


def row_hashes(form: Canonical, columns: Sequence[np.uint64] = ()) -> Keys:
    """Return the sum of each row's cells' hashes, each mixed with its column's where those are given."""
    rows = np.zeros(form.rows, dtype=np.uint64)
    for place, cells in enumerate(form.columns):
        rows += mix(cells.keys + columns[place] if columns else cells.keys)
    return rows


def equal(a: TableLike, b: TableLike, *, ordered: bool = False) -> bool:
    """True if two results say the same, numbers within the tolerance of ``cells.agree``.

    Not transitive, as no tolerance is. Where many columns hold the same values, only the first
    ``MAX_PAIRINGS`` ways to pair them are tried.
    """
    first, second = canonical(a), canonical(b)
    if first.rows != second.rows or len(first.columns) != len(second.columns):
        return False
    if fingerprint(first, ordered=ordered) == fingerprint(second, ordered=ordered):
        return True
    return _embeds(first, second, ordered)


def relation(a: TableLike, b: TableLike, *, ordered: bool = False) -> Relation:
    """Return how two results are related.

    ``contains``: ``a`` has all columns of ``b``, row by row, and more; ``within``: the reverse;
    ``overlaps``: they share a column (not all NULL) or a whole row; ``differs``: none of these.
    """
    first, second = canonical(a), canonical(b)
    if equal(first, second, ordered=ordered):
        return "equal"
    if first.rows == second.rows:
        if len(first.columns) > len(second.columns) and _embeds(first, second, ordered):
            return "contains"
        if len(first.columns) < len(second.columns) and _embeds(second, first, ordered):
            return "within"
    return "overlaps" if _share(first, second) else "differs"


def column_pairs(a: TableLike, b: TableLike) -> list[tuple[int, int]]:
    """Return pairs (column of ``a``, column of ``b``) with the same values in any order, each used once."""
    first, second = canonical(a), canonical(b)
    pairs: list[tuple[int, int]] = []
    free = list(range(len(first.columns)))
    if first.rows != second.rows:
        return pairs
    for j, cells in enumerate(second.columns):
        match = next((i for i in free if _columns_agree(first.columns[i], cells)), None)
        if match is not None:
            free.remove(match)
            pairs.append((match, j))
    return pairs


def cluster_keys(results: Sequence[TableLike], *, ordered: bool = False) -> list[str]:
    """Return a key for each result; results that say the same share it: their least fingerprint.

    Results are joined wherever ``equal`` holds between any two, so that their order does not matter.
    """
    forms = [canonical(result) for result in results]
    prints = [fingerprint(form, ordered=ordered) for form in forms]
    group = [prints.index(own) for own in prints]
    for i, a in enumerate(forms):
        for j, b in enumerate(forms[:i]):
            same_shape = a.rows == b.rows and len(a.columns) == len(b.columns)
            if group[i] != group[j] and same_shape and _embeds(a, b, ordered):
                old, new = max(group[i], group[j]), min(group[i], group[j])
                group = [new if label == old else label for label in group]
    least = {
        label: min(own for own, its in zip(prints, group, strict=True) if its == label) for label in group
    }
    return [least[label] for label in group]


def _share(a: Canonical, b: Canonical) -> bool:
    pairs = column_pairs(a, b)
    if any(not a.columns[i].null for i, _ in pairs):
        return True
    if not a.columns or len(a.columns) != len(b.columns):
        return False
    return bool(np.isin(row_hashes(a), row_hashes(b)).any())


def _embeds(a: Canonical, b: Canonical, ordered: bool) -> bool:
    """True if every column of ``b`` has its own column in ``a`` such that the rows agree.

    A result without columns says nothing, so that none but its like has it.
    """
    if not b.columns:
        return not a.columns
    if ordered:
        fits = [[i for i, p in enumerate(a.columns) if agree(p, q).all()] for q in b.columns]
        return all(fits) and next(_pairings(fits), None) is not None
    fits = [[i for i, p in enumerate(a.columns) if _columns_agree(p, q)] for q in b.columns]
    if not all(fits):
        return False
    return any(
        _rows_agree([a.columns[i] for i in pairing], b.columns)
        for pairing in islice(_pairings(fits), MAX_PAIRINGS)
    )


def _pairings(fits: list[list[int]]) -> Iterator[list[int]]:
    """Yield ways to give each column one of its fits, none twice; stops after ``MAX_STEPS`` trials."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for j, fit in enumerate(fits):
        groups.setdefault(tuple(fit), []).append(j)
    certain = {members[0]: fit[0] for fit, members in groups.items() if len(fit) == 1}
    open_groups = sorted((len(fit), fit, members) for fit, members in groups.items() if len(fit) > 1)
    trials = iter(range(MAX_STEPS))

    def assign(depth: int, pairing: dict[int, int]) -> Iterator[list[int]]:
        if depth == len(open_groups):
            yield [pairing[j] for j in range(len(fits))]
            return
        _, fit, members = open_groups[depth]
        taken = set(pairing.values())
        for choice in permutations([i for i in fit if i not in taken], len(members)):
            if next(trials, None) is None:
                return
            yield from assign(depth + 1, pairing | dict(zip(members, choice, strict=True)))

    crowded = any(len(members) > len(fit) for fit, members in groups.items())
    return iter(()) if crowded else assign(0, certain)


def _columns_agree(a: Cells, b: Cells) -> bool:
    """True if two columns have the same values in any order, numbers within the tolerance.

    Sorted, the only way to pair two lists of numbers that can hold everywhere is side by side.
    """
    p, q = a.sorted, b.sorted
    head = slice(0, HEAD)
    return bool(agree(p.take(head), q.take(head)).all() and agree(p, q).all())


def _rows_agree(a: Sequence[Cells], b: Sequence[Cells]) -> bool:
    """True if the rows of two tables with paired columns agree as multisets.

    Rows are sorted and compared side by side. Numbers within the tolerance of each other can
    come out in another order, so what is left is sorted again by each other column in turn.
    """
    left, right = np.arange(len(a[0].keys)), np.arange(len(b[0].keys))
    for first in range(len(a)):
        left = left[_order([cells.take(left) for cells in a], first)]
        right = right[_order([cells.take(right) for cells in b], first)]
        pairs = zip(a, b, strict=True)
        same = np.logical_and.reduce([agree(p.take(left), q.take(right)) for p, q in pairs])
        left, right = left[~same], right[~same]
        if not len(left):
            return True
    return False


def _order(columns: Sequence[Cells], first: int) -> npt.NDArray[np.int64]:
    """Sort by what is not a number in any column, then by the numbers, column ``first`` leading."""
    turned = [*columns[first:], *columns[:first]]
    by_number = [cells.numbers for cells in reversed(turned)]
    by_key = [np.where(cells.is_number, np.uint64(0), cells.keys) for cells in columns]
    return np.asarray(np.lexsort((*by_number, *by_key)))
