"""Which columns of a gold result Spider 2.0's official program requires (evaluation suite of 2025-11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Edition = Literal["lite", "snow"]


class NoColumns(ValueError):
    """``condition_cols`` that the official program fails on."""


def required(
    condition_cols: Any, place: int, count: int | None, width: int, edition: Edition
) -> Sequence[int]:
    """The columns of a gold file that a prediction must have.

    ``condition_cols`` is empty (all columns), a list of numbers (the same for every file), or a list of
    such lists, one per file. Where a question's only file is ``<id>_a.csv``, the program takes a list of
    numbers for a list per file: only the first number counts, and the program for Lite takes a 0
    for "all columns".

    Args:
        condition_cols: As in the ``*_eval.jsonl``.
        place: The file's place among the question's files.
        count: How many ``<id>_a.csv``, ... there are; None if the file is ``<id>.csv``.
        width: The file's number of columns.

    Raises:
        NoColumns: The program fails on it: too few lists, lists where numbers are needed, a number
            beyond the last column.
    """
    own = condition_cols
    if count is not None:
        own = _of_file(condition_cols, place, count)
    everything = own == [] or (edition == "lite" and not own)
    if everything:
        return range(width)
    numbers = own if isinstance(own, list) else [own]
    if not all(isinstance(number, int) and -width <= number < width for number in numbers):
        raise NoColumns(f"condition_cols {own} do not fit a gold result of {width} columns")
    return [number % width for number in numbers]


def _of_file(condition_cols: Any, place: int, count: int) -> Any:
    if condition_cols in (None, [], [[]], [None]):
        return []
    if not isinstance(condition_cols, list):
        raise NoColumns(f"condition_cols {condition_cols} are no list")
    if count > 1 and not all(isinstance(part, list) for part in condition_cols):
        return condition_cols
    if place >= len(condition_cols):
        raise NoColumns(f"condition_cols hold {len(condition_cols)} lists for {count} gold results")
    return condition_cols[place]
