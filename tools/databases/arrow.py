"""Results as Arrow tables: exact, within caps on rows and bytes.

A driver gives Python values or Arrow batches. Values that Arrow or Python cannot hold (``infinity``, a date
before Christ, NaN among decimals) make their column one of texts, as the engine writes them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", list[Any], Sequence[Any], pa.RecordBatch)
T = TypeVar("T")

WIDEST = 76
"""Digits of Arrow's largest decimal."""
WHOLE = pa.decimal128(20, 0)
"""A type that holds every whole number of Arrow's."""


class ArrowType(NamedTuple):
    """The type of a column: Arrow's type, None to infer it; and its type if it has no value."""

    wanted: pa.DataType | None
    empty: pa.DataType


class Capped:
    """The rows of a result, up to a cap on rows and one on bytes.

    Attributes:
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
        rows_left, bytes_left: What the caps still allow.
    """

    def __init__(self, rows: int, size: int) -> None:
        self.truncated = ""
        self.rows_left, self.bytes_left = rows, size

    def fitting(self, batch: Rows, convert: Callable[[Rows], T], nbytes: Callable[[T], int]) -> T | None:
        """Convert as many of a batch's rows as the caps allow. Return None if that is none."""
        if len(batch) > self.rows_left:
            batch, self.truncated = batch[: self.rows_left], "rows"
        while count := len(batch):
            size = nbytes(converted := convert(batch))
            if size <= self.bytes_left:
                self.rows_left, self.bytes_left = self.rows_left - count, self.bytes_left - size
                return converted
            batch, self.truncated = batch[: min(count - 1, count * self.bytes_left // size)], "bytes"
        return None


class Collector(Capped):
    """Rows of Python values as compact columns."""

    def __init__(self, names: Sequence[str], kinds: Sequence[ArrowType], rows: int, size: int) -> None:
        super().__init__(rows, size)
        self._names, self._kinds = names, kinds
        self._chunks: list[list[pa.Array]] = []

    def add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Keep a batch of rows, or as much of it as the caps allow."""
        if arrays := self.fitting(batch, self._arrays, lambda made: sum(array.nbytes for array in made)):
            self._chunks.append(arrays)

    def finish(self) -> pa.Table:
        """Return the rows that were kept."""
        columns = [joined([chunk[i] for chunk in self._chunks], kind) for i, kind in enumerate(self._kinds)]
        return pa.Table.from_arrays(columns, names=list(self._names))

    def _arrays(self, batch: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """Return a batch by column: of the declared type, else of one that fits, else as texts."""
        arrays = []
        for values, kind in zip(zip(*batch, strict=True), self._kinds, strict=False):
            numbers = kind.wanted is None or pa.types.is_decimal(kind.wanted)
            odd = numbers and any(isinstance(value, Decimal) and not value.is_finite() for value in values)
            for wanted in () if odd else (kind.wanted, None):
                with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
                    arrays.append(pa.array(values, wanted))
                    break
            else:
                arrays.append(_as_texts(values))
        return arrays


def to_stream(table: pa.Table) -> pa.Buffer:
    """Return a table as an Arrow IPC stream, for a pipe."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def capped(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> tuple[list[pa.RecordBatch], str]:
    """Return the batches that the caps allow, the last one cut, and the cap that cut it.

    No batch is fetched beyond it.
    """
    caps, kept = Capped(rows, size), list[pa.RecordBatch]()
    for batch in batches:
        if found := caps.fitting(batch, lambda each: [each], lambda each: int(each[0].nbytes)):
            kept += found
        if caps.truncated:
            break
    return kept, caps.truncated


def capped_table(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, size: int
) -> tuple[pa.Table, str]:
    """Return the batches that the caps allow as a table of plain types, and the cap that cut it."""
    kept, truncated = capped(batches, rows, size)
    table = pa.Table.from_batches(kept, schema)
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):  # JSON, say: nothing above knows such types
            storage = pa.chunked_array(
                [chunk.storage for chunk in table.column(i).chunks], field.type.storage_type
            )
            table = table.set_column(i, field.name, storage)
    return table, truncated


def joined(chunks: Sequence[pa.Array], kind: ArrowType) -> pa.ChunkedArray:
    """Join the batches of a column, which may differ in their types."""
    common = reduce(_common, {chunk.type: None for chunk in chunks}, pa.null())
    if pa.types.is_null(common):
        common = kind.empty
    text = pa.types.is_string(common)
    cast = [
        chunk if chunk.type == common else _as_texts(chunk.to_pylist()) if text else chunk.cast(common)
        for chunk in chunks
    ]
    return pa.chunked_array(cast, common)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that holds the values of both exactly; text if there is no other."""
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


def _as_texts(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list) else str(value)


def texts(values: Iterable[Any], limit: int) -> Iterator[str | bool | None]:
    """Yield values as samples show them; True for any bytes."""
    for value in values:
        if value is None or isinstance(value, bytes):
            yield None if value is None else True
        elif isinstance(value, bool):
            yield str(value).lower()
        elif isinstance(value, dict | list):
            yield json.dumps(value, default=_plain, ensure_ascii=False)[:limit]
        else:
            yield str(value)[:limit]


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime | date | time) else str(Decimal(value))
