"""Column-wise overlap of two results: how far one of them serves who asked for the other.

Two results of which one shows a column more say the same thing; two that share their names and no
figure do not. ``overlap`` measures it row by row: columns are paired one after the other, and a pair
counts with the share of rows that agree in it and in all pairs before it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from quorum.tools.results.canonical import Canonical, canonical
from quorum.tools.results.cells import Cells, Keys, agree, mix
from quorum.tools.results.compare import Relation, TableLike, relation

BETA = 2.0
"""A missing column weighs twice what an extra one does (van Rijsbergen's F): it cannot be overlooked."""

POWER = 2
"""Partial agreement counts by its square, so that several halves do not outvote a whole."""

REVERSED: dict[Relation, Relation] = {"contains": "within", "within": "contains"}
SAME: tuple[Relation, ...] = ("equal", "contains", "within")

LONG = 10_000  # distinct values from which on columns are compared by a sample first
SAMPLE = 2_000

Places: TypeAlias = npt.NDArray[np.int64]
RowKeys: TypeAlias = tuple[Keys, Keys]
"""A key for each row of the one result and for each of the other."""


@dataclass(frozen=True)
class Overlap:
    """The agreement of two results, ``a`` and ``b``.

    Attributes:
        relation: Of ``a`` to ``b`` (``quorum.tools.results.compare.relation``).
        columns: Number of columns of each.
        matched: Paired columns, each counted with the share of rows (of the longer result) that
            agree in it and in the pairs before it. A column that is all NULL has no partner.
        misplaced: They would be the ``same`` but for the order of their rows, which counts.
    """

    relation: Relation
    columns: tuple[int, int]
    matched: float
    misplaced: bool = False

    @property
    def same(self) -> bool:
        """True if they say the same except for columns that one of them has more."""
        return self.relation in SAME

    @property
    def support(self) -> float:
        """The share of ``b`` that ``a`` gives, 0 to 1; 1 where they are equal. Not symmetric.

        The F-measure of columns to the power of ``POWER``, with recall (how much of ``b`` is in
        ``a``) ``BETA`` times as important as precision (how much of ``a`` is in ``b``). An extra
        column to two costs 0.17, a missing one of three 0.49. A wrong order of rows counts as a column of
        both that has no partner: with two columns it costs 0.56.
        """
        if self.relation == "equal":
            return 1.0
        if not self.matched:
            return 0.0
        precision, recall = (self.matched / (count + self.misplaced) for count in self.columns)
        return float(((1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)) ** POWER)

    @property
    def reversed(self) -> Overlap:
        """The same seen from ``b``."""
        turned = REVERSED.get(self.relation, self.relation)
        return replace(self, relation=turned, columns=self.columns[::-1])


def overlap(a: TableLike, b: TableLike, *, ordered: bool = False) -> Overlap:
    """Measure how far two results agree, column by column and row by row.

    The order of columns does not count. That of rows counts with ``ordered`` for the relation, and
    for the support of results that differ in nothing else but columns that one has more.
    Numbers agree within the tolerance of ``quorum.tools.results.cells.agree``. ``overlap(b, a)`` is the same,
    reversed.
    """
    first, second = canonical(a), canonical(b)
    found = relation(first, second, ordered=ordered)
    counts = len(first.columns), len(second.columns)
    if found in SAME:
        return Overlap(found, counts, float(min(counts)))
    if ordered and relation(first, second) in SAME:
        return Overlap(found, counts, float(min(counts)), misplaced=True)
    turned = _content(first) > _content(second)
    return Overlap(found, counts, _matched(second, first) if turned else _matched(first, second))


def _content(form: Canonical) -> tuple[int, list[int]]:
    """Tells results apart whatever the order of their columns and rows."""
    return form.rows, sorted(map(_mark, form.columns))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column by its distinct values: a cell of each, how often it occurs, and which each row has."""

    place: int
    cells: Cells
    counts: Places
    rows: Places
    mark: int

    @classmethod
    def of(cls, place: int, cells: Cells) -> _Column:
        _, first, rows, counts = np.unique(
            cells.keys, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(place, cells.take(first), counts, rows, _mark(cells))


@dataclass(frozen=True, eq=False)
class _ColumnPair:
    """A column of each result; ``spelled`` are the second's values, as the first's where they agree."""

    left: _Column
    right: _Column
    spelled: Keys

    @property
    def rank(self) -> tuple[int, int, int]:
        """The more telling first; by content, so that places do not count."""
        return (-len(self.left.counts), self.left.mark ^ self.right.mark, self.left.mark)

    @property
    def share(self) -> float:
        merged, often = self.spelled, self.right.counts
        if merged is not self.right.cells.keys:
            merged, place = np.unique(merged, return_inverse=True)
            often = np.bincount(place, often)
        _, i, j = np.intersect1d(self.left.cells.keys, merged, assume_unique=True, return_indices=True)
        longer = max(len(self.left.rows), len(self.right.rows))
        return float(np.minimum(self.left.counts[i], often[j]).sum()) / longer

    def join(self, rows: RowKeys) -> RowKeys:
        left, right = self.left.cells.keys[self.left.rows], self.spelled[self.right.rows]
        return mix(rows[0] + mix(left)), mix(rows[1] + mix(right))


def _matched(a: Canonical, b: Canonical) -> float:
    """Pair columns greedily by the share of rows that agree in all pairs so far.

    A share only falls as pairs are added, so one that is still the greatest when it is counted
    again is the greatest of all, and few are counted again.
    """
    if not (a.rows and b.rows):
        return 0.0
    rows: RowKeys = np.zeros(a.rows, np.uint64), np.zeros(b.rows, np.uint64)
    heap = [(-pair.share, pair.rank, n, pair) for n, pair in enumerate(_pairs(a, b))]
    heapq.heapify(heap)
    used: set[tuple[str, int]] = set()
    matched = 0.0
    while heap:
        _, rank, n, pair = heapq.heappop(heap)
        ends = {("left", pair.left.place), ("right", pair.right.place)}
        if ends & used:
            continue
        joint = pair.join(rows)
        entry = (-_share(joint), rank, n, pair)
        if heap and entry > heap[0]:
            heapq.heappush(heap, entry)
            continue
        if not entry[0]:
            break
        rows, matched, used = joint, matched - entry[0], used | ends
    return matched


def _pairs(a: Canonical, b: Canonical) -> list[_ColumnPair]:
    left, right = ([_Column.of(i, c) for i, c in enumerate(f.columns) if not c.null] for f in (a, b))
    return [_ColumnPair(p, q, _spelled(q.cells, p.cells)) for p in left for q in right if _may_share(p, q)]


def _may_share(a: _Column, b: _Column) -> bool:
    """True if a sample of two long columns' values, the same for both, has one in common.

    Keys are as good as random, so that the smallest are a sample; they come sorted.
    """
    if min(len(a.counts), len(b.counts)) < LONG:
        return True
    one, other = a.cells.keys[:SAMPLE], b.cells.keys[:SAMPLE]
    return bool(np.isin(one, other, assume_unique=True).any())


def _mark(cells: Cells) -> int:
    return int(mix(cells.keys).sum(dtype=np.uint64))


def _spelled(cells: Cells, like: Cells) -> Keys:
    """The cells' keys; where a number agrees with the nearest number of ``like``, that one's key.

    Both are distinct values, sorted by key.
    """
    places = np.searchsorted(like.keys, cells.keys).clip(0, len(like.keys) - 1)
    rows = np.flatnonzero(cells.is_number & (like.keys[places] != cells.keys))
    known = np.flatnonzero(like.is_number)
    if not (len(rows) and len(known)):
        return cells.keys
    known = known[np.argsort(like.numbers[known], kind="stable")]
    numbers, wanted = like.numbers[known], cells.numbers[rows]
    above = np.searchsorted(numbers, wanted).clip(0, len(known) - 1)
    below = (above - 1).clip(0)
    nearest = known[np.where(np.abs(numbers[below] - wanted) < np.abs(numbers[above] - wanted), below, above)]
    close = agree(cells.take(rows), like.take(nearest))
    keys = cells.keys.copy()
    keys[rows[close]] = like.keys[nearest[close]]
    return keys


def _share(rows: RowKeys) -> float:
    """Rows that both have, each as often as both have it, over the rows of the longer result."""
    (one, often), (other, times) = (np.unique(keys, return_counts=True) for keys in rows)
    _, i, j = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return float(np.minimum(often[i], times[j]).sum()) / max(len(rows[0]), len(rows[1]))
