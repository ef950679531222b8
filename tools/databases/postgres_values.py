"""PostgreSQL's values to Arrow columns.

They come as text, the one form that every type has. What Arrow or Python cannot hold (``infinity``, a date
before Christ, NaN among decimals) makes its column one of texts, as the engine writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa

NUMERIC = 1700
_FLAT = {
    (16, 1000): pa.bool_(),
    (21, 1005): pa.int16(),
    (23, 1007): pa.int32(),
    (20, 1016): pa.int64(),
    (26, 1028): pa.int64(),  # oid
    (700, 1021): pa.float64(),  # float4 as it is written: 0.1 stays 0.1
    (701, 1022): pa.float64(),
    (1082, 1182): pa.date32(),
    (1083, 1183): pa.time64("us"),
    (1114, 1115): pa.timestamp("us"),
    (1184, 1185): pa.timestamp("us", tz="UTC"),
    (1186, 1187): pa.month_day_nano_interval(),
    (17, 1001): pa.binary(),
}
ARROW: dict[int, pa.DataType] = {
    **{scalar: kind for (scalar, _), kind in _FLAT.items()},
    **{array: pa.list_(kind) for (_, array), kind in _FLAT.items()},
}
"""Arrow's type by the number of PostgreSQL's type and of its arrays; others are inferred: mostly text."""
WIDEST = 76
"""Digits of Arrow's largest decimal."""
AS_TEXT = (
    *("json", "jsonb", "uuid", "inet", "cidr", "timetz", "record"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *(
        "int4multirange",
        "int8multirange",
        "nummultirange",
        "datemultirange",
        "tsmultirange",
        "tstzmultirange",
    ),
)
"""Types that the driver would make objects of."""

_INTERVAL = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
)


def _date(text: str) -> date:
    return date.fromisoformat(text)


def _datetime(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time(text: str) -> time:
    return time.fromisoformat(text)


def _interval(text: str) -> pa.MonthDayNano:
    """An interval in the style ``postgres``, whose parts stay apart: a month has no fixed length."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(text)
    units = ("years", "months", "days", "hours", "minutes", "seconds")
    part = {unit: int(found[unit] or 0) for unit in units}
    micros = int((found["fraction"] or "0").ljust(6, "0"))
    micros += ((part["hours"] * 60 + part["minutes"]) * 60 + part["seconds"]) * 10**6
    nanos = (-micros if found["sign"] == "-" else micros) * 1000
    return pa.MonthDayNano((part["years"] * 12 + part["months"], part["days"], nanos))


READERS: dict[str, Callable[[str], Any]] = {
    "date": _date,
    "timestamp": _datetime,
    "timestamptz": _datetime,
    "time": _time,
    "interval": _interval,
    **dict.fromkeys(AS_TEXT, str),
}
"""What a value's text becomes, by the name of its type; a text that cannot be read stays one."""


def loader(read: Callable[[str], Any]) -> type:
    """``read`` in the form that the driver wants."""

    class Loader:
        format = 0  # text

        def __init__(self, oid: int, connection: object = None) -> None:
            self.oid, self.connection = oid, connection

        def load(self, data: Any) -> Any:
            text = str(data, "utf-8")
            try:
                return read(text)
            except (ValueError, OverflowError):
                return text

    return Loader


class Collector:
    """Rows as compact columns, up to a cap on rows and one on bytes.

    Attributes:
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
    """

    def __init__(self, names: Sequence[str], types: Sequence[int], rows: int, size: int) -> None:
        """``types``: the numbers of PostgreSQL's types."""
        self.truncated = ""
        self._names, self._types = names, types
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
        columns = [_column([chunk[i] for chunk in self._chunks], kind) for i, kind in enumerate(self._types)]
        return pa.Table.from_arrays(columns, names=list(self._names))

    def _arrays(self, batch: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        columns = zip(*batch, strict=True)
        return [_array(values, kind) for values, kind in zip(columns, self._types, strict=False)]


def _array(values: Sequence[Any], kind: int) -> pa.Array:
    """One batch of a column: of the type that is declared, else of one that fits, else as texts."""
    if kind == NUMERIC and any(isinstance(value, Decimal) and not value.is_finite() for value in values):
        return _as_texts(values)
    for wanted in (ARROW.get(kind), None):
        try:
            return pa.array(values, wanted)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
    return _as_texts(values)


def _column(chunks: Sequence[pa.Array], kind: int) -> pa.ChunkedArray:
    """One column out of its batches, which may differ in their types."""
    declared = ARROW.get(kind, pa.decimal128(38, 0) if kind == NUMERIC else pa.string())
    common = reduce(_common, {chunk.type: None for chunk in chunks}, pa.null())
    if pa.types.is_null(common):
        common = declared
    return pa.chunked_array([_cast(chunk, common) for chunk in chunks], common)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds the values of both exactly; text if there is no other."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        if digits > WIDEST:
            return pa.string()
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
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
