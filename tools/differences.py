"""Where two results differ: which columns, which rows, which cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quorum.tools.canonical import Canonical, canonical
from quorum.tools.cells import Keys, agree
from quorum.tools.compare import Relation, column_pairs, relation
from quorum.tools.hashing import mix
from quorum.tools.results import plain_column

EXAMPLES = 3
MAX_COLUMNS = 30
"""Columns among which a key is looked for."""

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Example:
    """A row that both results have and in which one cell differs; ``row`` names it, if it has a name."""

    row: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Differences:
    """How two results, the first and the second, differ.

    Attributes:
        relation: ``quorum.tools.compare.relation`` of the first to the second.
        rows: Row counts.
        agreeing: Names in the first result of columns whose values both have.
        differing: Names of the columns that have no counterpart, per result.
        key: Name in the first result of the column by which rows are told apart; empty if none does.
        only: How many rows stand in one result only, per result: by the key, else whole rows.
        only_examples: Up to ``EXAMPLES`` of them as text, per result.
        example: A shared row with differing cells, where just one column differs.
    """

    relation: Relation
    rows: tuple[int, int]
    agreeing: tuple[str, ...] = ()
    differing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    key: str = ""
    only: tuple[int, int] = (0, 0)
    only_examples: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    example: Example | None = None


def differences(first: pa.Table, second: pa.Table) -> Differences:
    """Compare two results; column names and the order of columns and rows do not count."""
    a, b = canonical(first), canonical(second)
    rows = (a.rows, b.rows)
    found = relation(a, b)
    if found == "equal":
        return Differences(found, rows)
    pairs = column_pairs(a, b)
    matched = {i for i, _ in pairs}, {j for _, j in pairs}
    free = tuple(
        [place for place in range(len(form.columns)) if place not in taken]
        for form, taken in zip((a, b), matched, strict=True)
    )
    names = [_names(first), _names(second)]
    known = Differences(
        relation=found,
        rows=rows,
        agreeing=tuple(names[0][i] for i, _ in sorted(pairs)),
        differing=(tuple(names[0][i] for i in free[0]), tuple(names[1][j] for j in free[1])),
    )
    if found in ("contains", "within") or not rows[0] or not rows[1]:
        return known
    if all(rows == 1 and len(form.columns) == 1 for rows, form in zip(rows, (a, b), strict=True)):
        return replace(known, example=Example("", *(plain_column(t.column(0))[0] for t in (first, second))))
    if key := _key(a, b, names):
        return _by_key(known, (first, second), (a, b), key, free)
    if len(a.columns) == len(b.columns):
        return _by_row(known, (first, second), (a, b))
    return known


def _names(table: pa.Table) -> list[str]:
    return [str(name) for name in table.column_names]


def _key(a: Canonical, b: Canonical, names: list[list[str]]) -> tuple[int, int] | None:
    """The columns (of ``a``, of ``b``) that name the rows: unique in both, with the most values in common.

    At least half of the smaller result's values must be common. Of equals text wins over numbers,
    then the same name.
    """
    unique = [
        [place for place, cells in enumerate(form.columns[:MAX_COLUMNS]) if _unique(cells.keys)]
        for form in (a, b)
    ]
    best: tuple[tuple[int, bool, bool], tuple[int, int]] | None = None
    for i in unique[0]:
        for j in unique[1]:
            p, q = a.columns[i], b.columns[j]
            common = len(np.intersect1d(p.keys, q.keys))
            if common == 0 or 2 * common < min(a.rows, b.rows):
                continue
            text = not p.is_number.any() and not q.is_number.any()
            same = names[0][i].casefold() == names[1][j].casefold()
            if common == 1 and not same:
                continue
            rank = (common, text, same)
            if best is None or rank > best[0]:
                best = (rank, (i, j))
    return best[1] if best else None


def _unique(keys: Keys) -> bool:
    return len(np.unique(keys)) == len(keys)


def _by_key(
    known: Differences,
    tables: tuple[pa.Table, pa.Table],
    forms: tuple[Canonical, Canonical],
    key: tuple[int, int],
    free: tuple[list[int], ...],
) -> Differences:
    columns = [form.columns[place] for form, place in zip(forms, key, strict=True)]
    alone = [
        np.flatnonzero(~np.isin(columns[side].keys, columns[1 - side].keys)).astype(np.int64)
        for side in (0, 1)
    ]
    told = [
        tuple(_told(value) for value in _values(tables[side], key[side], alone[side][:EXAMPLES]))
        for side in (0, 1)
    ]
    return replace(
        known,
        key=str(tables[0].column_names[key[0]]),
        only=(len(alone[0]), len(alone[1])),
        only_examples=(told[0], told[1]),
        example=_example(tables, forms, key, free),
    )


def _example(
    tables: tuple[pa.Table, pa.Table],
    forms: tuple[Canonical, Canonical],
    key: tuple[int, int],
    free: tuple[list[int], ...],
) -> Example | None:
    """The first shared row, by key, whose one other cell differs."""
    others = [[place for place in range(len(f.columns)) if place != key[s]] for s, f in enumerate(forms)]
    rest = [free[s] if len(free[s]) == 1 else others[s] for s in (0, 1)]
    if len(rest[0]) != 1 or len(rest[1]) != 1 or rest[0][0] == key[0] or rest[1][0] == key[1]:
        return None
    _, left, right = np.intersect1d(
        forms[0].columns[key[0]].keys, forms[1].columns[key[1]].keys, return_indices=True
    )
    cells = forms[0].columns[rest[0][0]].take(left), forms[1].columns[rest[1][0]].take(right)
    different = np.flatnonzero(~agree(*cells))
    if not len(different):
        return None
    rows = [int(left[different].min())]
    rows.append(int(right[np.flatnonzero(left == rows[0])[0]]))
    shown = [_values(tables[s], rest[s][0], np.array([rows[s]], np.int64))[0] for s in (0, 1)]
    name = _values(tables[0], key[0], np.array([rows[0]], np.int64))[0]
    return Example(_told(name), shown[0], shown[1])


def _by_row(
    known: Differences, tables: tuple[pa.Table, pa.Table], forms: tuple[Canonical, Canonical]
) -> Differences:
    hashes = [_rows(form) for form in forms]
    alone = [_surplus(hashes[side], hashes[1 - side]) for side in (0, 1)]
    told = [tuple(_row_told(tables[side], int(place)) for place in alone[side][:EXAMPLES]) for side in (0, 1)]
    return replace(
        known,
        only=(len(alone[0]), len(alone[1])),
        only_examples=(told[0], told[1]),
    )


def _rows(form: Canonical) -> Keys:
    """One hash a row, whatever the order of its cells."""
    total = np.zeros(form.rows, dtype=np.uint64)
    for cells in form.columns:
        total += mix(cells.keys)
    return total


def _surplus(mine: Keys, theirs: Keys) -> Places:
    """Places of rows that ``theirs`` has not, or not so often."""
    values, counts = np.unique(theirs, return_counts=True)
    left = dict(zip(values.tolist(), counts.tolist(), strict=True))
    alone = []
    for place, value in enumerate(mine.tolist()):
        if left.get(value, 0):
            left[value] -= 1
        else:
            alone.append(place)
    return np.array(alone, dtype=np.int64)


def _values(table: pa.Table, column: int, rows: Places) -> list[Any]:
    return plain_column(table.column(column).take(pa.array(rows)))


def _row_told(table: pa.Table, row: int) -> str:
    shown = [plain_column(column.slice(row, 1))[0] for column in table.columns[:EXAMPLES]]
    more = ", …" if table.num_columns > EXAMPLES else ""
    return f"({', '.join(_told(value) for value in shown)}{more})"


def _told(value: Any) -> str:
    return "NULL" if value is None else " ".join(str(value).split())
