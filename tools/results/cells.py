"""A column of a result as keys and numbers, when two cells agree, and 64-bit hashes of whole columns.

The hashes are stable across machines, and not for secrets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Keys: TypeAlias = npt.NDArray[np.uint64]
Numbers: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

HUNDREDTH = 0.01  # the coarsest difference that agrees; Spider 2.0's evaluation allows the same
RELATIVE = 5e-3  # of small numbers: a ratio of 0.012 is not 0.021
NOISE = 1e-12  # summation noise of doubles, relative, and the least absolute difference
EXACT = 2.0**53  # integers below are exact as doubles
GRID_LIMIT = 2.0**46  # above, doubles are too coarse for a grid of hundredths
# The grid's edges lie where no short decimal does, so 1.005 is not torn from 1.0049.
GRID_SHIFT = 0.5371
# What a cell is, mixed into its key: a number and a moment of the same bits differ.
NUMBER = np.uint64(0x9E3779B97F4A7C15)
MOMENT = np.uint64(0xC2B2AE3D27D4EB4F)
NULL = np.uint64(0x165667B19E3779F9)
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # splitmix64's finaliser


@dataclass(frozen=True, eq=False)
class Cells:
    """One column.

    Attributes:
        keys: uint64 per row; equal keys mean the same value.
        numbers: double per row; NaN where the cell is not a number.
        exact: True per row for an integer of 2^53 or more whose digits are known, which agrees
            with its like by key alone; None if the column has none.
    """

    keys: Keys
    numbers: Numbers
    exact: Mask | None = None

    @cached_property
    def null(self) -> bool:
        """True if every cell is NULL or NaN."""
        return bool((self.keys == NULL).all())

    @cached_property
    def blank(self) -> bool:
        """True if every cell is NULL, NaN, zero or a text of nothing but blanks."""
        return bool(((self.keys == NULL) | (self.numbers == 0) | (self.keys == _EMPTY_TEXT)).all())

    @cached_property
    def is_number(self) -> Mask:
        return ~np.isnan(self.numbers)

    @cached_property
    def sorted(self) -> Cells:
        """The cells: numbers by size after all others by key."""
        others = np.where(self.is_number, np.uint64(0), self.keys)
        return self.take(np.lexsort((others, self.numbers)))

    def take(self, rows: npt.NDArray[np.int64] | slice) -> Cells:
        """Return the cells of these rows, in their order."""
        exact = None if self.exact is None else self.exact[rows]
        return Cells(self.keys[rows], self.numbers[rows], exact)


def agree(a: Cells, b: Cells) -> Mask:
    """Return a mask of the rows in which the cells of two columns agree.

    Numbers agree within a hundredth, and within 0.5 % of the greater where that is less; whole
    numbers only if equal. Anything else agrees if its key is the same.
    """
    same = a.keys == b.keys
    if same.all():
        return np.asarray(same)
    x, y = a.numbers, b.numbers
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(x), np.abs(y))
        whole = (x == np.floor(x)) & (y == np.floor(y)) & (size < EXACT)
        noise = np.where(whole, 0.0, np.maximum(NOISE, NOISE * size))
        close = np.abs(x - y) <= np.maximum(np.minimum(HUNDREDTH, RELATIVE * size), noise)
        close &= np.isfinite(size)
    if a.exact is not None and b.exact is not None:
        close &= ~(a.exact & b.exact)
    return np.asarray(same | close)


def grid(numbers: Numbers) -> Numbers:
    """Return each number's representative: hundredths from 10 on, four digits below, none below 1e-12."""
    size = np.abs(numbers)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        digits = np.clip(3 - np.floor(np.log10(size)), 2, 12)
        scale = 10.0**digits
        steps = np.floor(size * scale + GRID_SHIFT) / scale
        steps = np.where(size == np.floor(size), size, steps)
    return np.asarray(np.copysign(np.where(size < GRID_LIMIT, steps, size), numbers) + 0.0)


def mix(values: Keys) -> Keys:
    """Scatter the bits of each value (a bijection: splitmix64's finaliser)."""
    mixed = values.copy()
    for shift, factor in _STEPS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hash_texts(texts: pa.Array) -> Keys:
    """Return a hash for each text of a ``large_string`` array without NULLs.

    Each text is laid out in words of eight bytes; a word is mixed with its place, the words of
    a text are added up and mixed with its length in bytes.
    """
    count = len(texts)
    if count == 0:
        return np.empty(0, dtype=np.uint64)
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, count + 1, texts.offset * 8)
    lengths = np.diff(offsets)
    words = np.maximum(1, -(-lengths // 8))
    starts = np.concatenate(([0], np.cumsum(words)))
    laid_out = np.zeros(int(starts[-1]) * 8, dtype=np.uint8)
    if data is not None and offsets[-1] > offsets[0]:
        content = np.frombuffer(data, np.uint8, int(offsets[-1] - offsets[0]), int(offsets[0]))
        shift = starts[:-1] * 8 - (offsets[:-1] - offsets[0])
        laid_out[np.arange(len(content)) + np.repeat(shift, lengths)] = content
    place = np.arange(int(starts[-1])) - np.repeat(starts[:-1], words)
    mixed = mix(laid_out.view("<u8").astype(np.uint64) + mix((place + 1).astype(np.uint64) * NUMBER))
    return mix(np.add.reduceat(mixed, starts[:-1]) + mix(lengths.astype(np.uint64)))


_EMPTY_TEXT = hash_texts(pa.LargeStringArray.from_buffers(1, pa.py_buffer(bytes(16)), pa.py_buffer(b"")))[0]
"""The key of a text of blanks: canonical text has none at its end."""
