"""Columns as Spider 2.0's evaluation compares them: one at a time, cell by cell, within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any

import numpy as np
import numpy.typing as npt

from quorum.evals.tabular.frames import Column

TOLERANCE = 1e-2  # absolute, as in the official evaluation
RELATIVE = 1e-9  # what Python's math.isclose allows beside it
HEAD = 1_000  # cells that are compared before all are


@dataclass(frozen=True, eq=False)
class Vector:
    """A column's cells in the order in which they are compared.

    Attributes:
        numbers: float64 per cell; NaN where the cell is text. NULL is 0, a boolean 0 or 1.
        texts: The text per cell, None where it is a number; None altogether if no cell is text.
    """

    numbers: npt.NDArray[np.float64]
    texts: npt.NDArray[np.object_] | None

    def __len__(self) -> int:
        return len(self.numbers)


def vectors(columns: Sequence[Column], *, ignore_order: bool) -> list[Vector]:
    """The columns of a table, ready to be compared.

    With ``ignore_order`` each column is sorted by itself, by its cells' texts: ``10`` comes before
    ``9``, and a whole number's text has a fraction (``10.0``) where the table's other columns make
    one common type of numbers of them.

    Raises:
        OverflowError: A whole number has no double.
    """
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1 and kinds <= {"i", "u", "f"}:
        columns = [column.astype("float64") for column in columns]
    return [_vector(column, ignore_order) for column in columns]


def _vector(column: Column, ignore_order: bool) -> Vector:
    if column.dtype != object:
        return _of_numbers(column, ignore_order)
    values = [0 if value is None else value for value in column.tolist()]
    return _of_values(_sorted(values) if ignore_order else values)


def _sorted(values: list[Any]) -> list[Any]:
    """By the cells' texts; of cells with the same text, those that are text come first."""
    texts = sorted(value for value in values if isinstance(value, str))
    if len(texts) == len(values):
        return texts
    others = sorted((value for value in values if not isinstance(value, str)), key=str)
    return list(merge(texts, others, key=str))  # of equal ones, merge takes the first list's first


def _of_numbers(column: Column, ignore_order: bool) -> Vector:
    numbers = column.astype(np.float64)
    if not ignore_order:
        return Vector(np.where(np.isnan(numbers), 0.0, numbers), None)
    null = np.isnan(numbers)
    bits = column[~null].view(np.int64 if column.dtype.itemsize == 8 else np.bool_)  # -0.0 is not 0.0
    distinct, counts = np.unique(bits, return_counts=True)
    once = distinct.view(column.dtype)
    texts = [str(value) for value in once.tolist()] + ["0"] * bool(null.any())
    order = sorted(range(len(texts)), key=texts.__getitem__)
    values = np.append(once.astype(np.float64), [0.0] * bool(null.any()))
    repeats = np.append(counts, [null.sum()] * bool(null.any())).astype(np.int64)
    return Vector(np.repeat(values[order], repeats[order]), None)


def _of_values(values: list[Any]) -> Vector:
    numbers = np.array([np.nan if isinstance(v, str) else float(v) for v in values], dtype=np.float64)
    if not any(isinstance(value, str) for value in values):
        return Vector(numbers, None)
    texts = np.array([value if isinstance(value, str) else None for value in values], dtype=object)
    return Vector(numbers, texts)


def match(first: Vector, second: Vector) -> bool:
    """Whether two columns have equally many cells and agree in each."""
    if len(first) != len(second):
        return False
    return _match(first, second, slice(HEAD)) and _match(first, second, slice(HEAD, None))


def _match(first: Vector, second: Vector, part: slice) -> bool:
    a, b = first.numbers[part], second.numbers[part]
    is_text = np.isnan(a)
    if not np.array_equal(is_text, np.isnan(b)) or not bool((_close(a, b) | is_text).all()):
        return False
    if first.texts is None or second.texts is None:
        return True  # neither has a text, or their masks would differ
    return bool(np.array_equal(first.texts[part], second.texts[part]))


def _close(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= np.maximum(RELATIVE * np.maximum(np.abs(a), np.abs(b)), TOLERANCE)
    close: npt.NDArray[np.bool_] = (a == b) | (near & np.isfinite(a) & np.isfinite(b))
    return close
