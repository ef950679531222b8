"""Rows that a driver gives as Python values, as Arrow columns: exact, within caps.

What Arrow or Python cannot hold (``infinity``, a date before Christ, NaN among decimals) makes its column one
of texts, as the engine writes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa

WIDEST = 76
"""Digits of Arrow's largest decimal."""
WHOLE = pa.decimal128(20, 0)
"""What holds every whole number of Arrow's."""


class Kind(NamedTuple):
    """What a column becomes: Arrow's type, None to infer it; and its type where it has no value."""

    wanted: pa.DataType | None
    empty: pa.DataType


class Collector:
    """Rows as compact columns, up to a cap on rows and one on bytes.

    Attributes:
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
    """

    def __init__(self, names: Sequence[str], kinds: Sequence[Kind], rows: int, size: int) -> None:
        self.truncated = ""
        self._names, self._kinds = names, kinds
        self._rows_left, self._bytes_left = rows, size
        self._chunks: list[list[pa.Array]] = []

    def add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Keep a batch of rows, or as much of it as the caps allow."""
        if len(batch) > self._rows_left:
            batch, self.truncated = batch[: self._rows_left], "rows"
        arrays = self._arrays(batch)
        while batch and (size := sum(array.nbytes for array in arrays)) > self._bytes_left:
            self.truncated = "bytes"
            batch = batch[: min(len(batch) - 1, len(batch) * self._bytes_left // size)]
            arrays = self._arrays(batch)
        if not batch:
            return
        self._chunks.append(arrays)
        self._rows_left -= len(batch)
        self._bytes_left -= sum(array.nbytes for array in arrays)

    def finish(self) -> pa.Table:
        """All that was kept."""
        columns = [joined([chunk[i] for chunk in self._chunks], kind) for i, kind in enumerate(self._kinds)]
        return pa.Table.from_arrays(columns, names=list(self._names))

    def _arrays(self, batch: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        columns = zip(*batch, strict=True)
        return [_array(values, kind) for values, kind in zip(columns, self._kinds, strict=False)]


def _array(values: Sequence[Any], kind: Kind) -> pa.Array:
    """One batch of a column: of the type that is declared, else of one that fits, else as texts."""
    if _may_be_decimals(kind) and any(isinstance(v, Decimal) and not v.is_finite() for v in values):
        return _as_texts(values)
    for wanted in (kind.wanted, None):
        try:
            return pa.array(values, wanted)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
    return _as_texts(values)


def _may_be_decimals(kind: Kind) -> bool:
    return kind.wanted is None or pa.types.is_decimal(kind.wanted)


def joined(chunks: Sequence[pa.Array], kind: Kind) -> pa.ChunkedArray:
    """One column out of its batches, which may differ in their types."""
    common = reduce(_common, {chunk.type: None for chunk in chunks}, pa.null())
    if pa.types.is_null(common):
        common = kind.empty
    return pa.chunked_array([_cast(chunk, common) for chunk in chunks], common)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds the values of both exactly; text if there is no other."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_integer(one) and pa.types.is_decimal(other):
        return _common(WHOLE, other)
    if pa.types.is_decimal(one) and pa.types.is_integer(other):
        return _common(one, WHOLE)
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        if digits > WIDEST:
            return pa.string()
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    if pa.types.is_integer(one) and pa.types.is_integer(other):  # beyond 2^63 Arrow infers another type
        return WHOLE
    if pa.types.is_list(one) and pa.types.is_list(other):
        item = _common(one.value_type, other.value_type)
        mixed = pa.types.is_string(item) and one.value_type != other.value_type
        return pa.string() if mixed else pa.list_(item)
    return pa.string()


def _cast(chunk: pa.Array, wanted: pa.DataType) -> pa.Array:
    if chunk.type == wanted:
        return chunk
    return _as_texts(chunk.to_pylist()) if pa.types.is_string(wanted) else chunk.cast(wanted)


def _as_texts(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list) else str(value)
