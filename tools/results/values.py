"""A result's cells as JSON-ready Python values."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

DECIMAL_DIGITS = 15  # every decimal of so many digits survives the way through a double


def plain_rows(table: pa.Table) -> list[list[Any]]:
    """The rows as JSON-ready Python values, in the table's order; column names may repeat.

    ==========================  =====================================================
    integer, boolean, text      as they are (integers beyond 2**53 stay exact)
    float                       as it is; NaN is None, infinities "Infinity", "-Infinity"
    decimal                     int without a fraction's scale, else float; text where a float
                                would lose digits (more than 15)
    date, time                  ISO 8601 text
    timestamp                   "YYYY-MM-DD HH:MM:SS[.ffffff][+00:00]", to the microsecond
    duration, interval          text
    bytes                       text if UTF-8, else "0x" and hexadecimal digits
    list, struct, map           list, dict, dict, mapped inside likewise
    ==========================  =====================================================
    """
    columns = [plain_column(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(len(table))]


def plain_column(column: pa.ChunkedArray) -> list[Any]:
    """One column as JSON-ready values; the mapping is ``plain_rows``'s."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return list(column.to_pylist())
    coarse = _microseconds(kind)
    if coarse != kind:
        column = column.cast(coarse, safe=False)
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # moments beyond Python's calendar, e.g. DuckDB's infinity
        values = column.cast(pa.string()).to_pylist()
    return [_plain(value) for value in values]


def _microseconds(kind: pa.DataType) -> pa.DataType:
    """The same type with nanoseconds, which Python's datetime cannot hold, cut to microseconds."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _microseconds(kind.value_type)
        return kind if inner == kind.value_type else pa.list_(inner)
    if pa.types.is_struct(kind):
        parts = [field.with_type(_microseconds(field.type)) for field in kind]
        return kind if parts == list(kind) else pa.struct(parts)
    return kind


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, Decimal):
        return _plain_decimal(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return _plain_bytes(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return _plain_list(value)
    return _interval(value)


def _not_finite(value: float) -> str | None:
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain_decimal(value: Decimal) -> int | float | str | None:
    if not value.is_finite():
        return _not_finite(float(value))
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    if exponent == 0:
        return int(value)
    return float(value) if len(digits) <= DECIMAL_DIGITS else format(value, "f")


def _plain_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()


def _plain_list(values: list[Any]) -> Any:
    """A list, or an Arrow map, which comes as a list of (key, value) tuples."""
    if values and all(isinstance(item, tuple) and len(item) == 2 for item in values):
        return {str(_plain(key)): _plain(item) for key, item in values}
    return [_plain(item) for item in values]


def _interval(value: Any) -> str:
    """Arrow's (months, days, nanoseconds) in words; anything else has a text of its own."""
    if isinstance(value, pa.MonthDayNano):
        parts = [(value.months, "month"), (value.days, "day"), (value.nanoseconds / 1e9, "second")]
        texts = [f"{amount:g} {unit}{'' if amount == 1 else 's'}" for amount, unit in parts if amount]
        return " ".join(texts) or "0 seconds"
    return f"{value.total_seconds():g} seconds" if isinstance(value, timedelta) else str(value)
