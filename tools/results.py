"""A query's rows on their way out: JSON-ready values, CSV, files; and whether they say anything.

Comparing results is ``quorum.tools.compare``'s work; its functions can be had from here as well.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorum.knowledge.errors import QuorumError
from quorum.tools.canonical import Canonical, canonical
from quorum.tools.compare import cluster, cluster_keys, column_pairs, equal, fingerprint, relation

__all__ = [
    "blank_reason",
    "cluster",
    "cluster_keys",
    "column_pairs",
    "csv_lines",
    "equal",
    "fingerprint",
    "is_blank",
    "plain_rows",
    "read_result",
    "relation",
    "to_csv",
    "write_result",
]

SUFFIX = ".parquet"
HEAD_ROWS = 100
DECIMAL_DIGITS = 15  # every decimal of so many digits survives the way through a double
BATCH_ROWS = 10_000


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
        said = [f"{amount:g} {unit}{'' if amount == 1 else 's'}" for amount, unit in parts if amount]
        return " ".join(said) or "0 seconds"
    return f"{value.total_seconds():g} seconds" if isinstance(value, timedelta) else str(value)


def blank_reason(table: pa.Table, form: Canonical | None = None) -> str:
    """Why a result says nothing: ``empty``, ``all NULL`` or ``all zero``; empty text if it does.

    Such results do not vote (ReFoRCE, section 3.3). NaN counts as NULL, numeric text as its
    number; NULLs beside zeros are ``all zero``. A boolean is an answer, never blank.

    Args:
        form: Of the table, where it is at hand.
    """
    if table.num_rows == 0 or table.num_columns == 0:
        return "empty"
    if any(pa.types.is_boolean(column.type) and column.null_count < len(column) for column in table.columns):
        return ""
    for rows in (HEAD_ROWS, table.num_rows):  # most results speak in their first rows
        whole = rows >= table.num_rows
        columns = (form if form and whole else canonical(table.slice(0, rows))).columns
        if not all(cells.blank for cells in columns):
            return ""
    return "all NULL" if all(cells.null for cells in columns) else "all zero"


def is_blank(table: pa.Table, form: Canonical | None = None) -> bool:
    """Whether a result is empty, all NULL or all zero (see ``blank_reason``)."""
    return bool(blank_reason(table, form))


def write_result(table: pa.Table, folder: Path) -> Path:
    """Keep a result in ``folder`` under its content address; returns the file.

    The file is Parquet (zstd); its stem is the SHA-256 of its bytes, so equal tables share one
    file. Types that Parquet lacks (intervals, unions, ...) are kept as text. Written
    whole or not at all.
    """
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(_storable(table), sink, compression="zstd")
    content = sink.getvalue()
    path = folder / f"{hashlib.sha256(content).hexdigest()}{SUFFIX}"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _storable(table: pa.Table) -> pa.Table:
    columns = [_as_text(column) if _foreign(column.type) else column for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _foreign(kind: pa.DataType) -> bool:
    """Whether Parquet lacks the type, or one inside it."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    lacking = (pa.types.is_interval, pa.types.is_union, pa.types.is_run_end_encoded)
    empty = pa.types.is_struct(kind) and not inner
    return empty or any(lacks(kind) for lacks in lacking) or any(map(_foreign, inner))


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = [v if v is None or isinstance(v, str) else json.dumps(v) for v in plain_column(column)]
    return pa.chunked_array([pa.array(values, pa.string())])


def read_result(path: Path) -> pa.Table:
    """The table that ``write_result`` kept.

    Raises:
        QuorumError: The file is missing, or its content no longer fits its address.
    """
    import pyarrow.parquet as pq

    try:
        content = path.read_bytes()
    except OSError as error:
        raise QuorumError(
            f"The result {path} cannot be read: {error.strerror}.", hint="Run the question again."
        ) from error
    if hashlib.sha256(content).hexdigest() != path.stem:
        raise QuorumError(
            f"The result {path} is damaged: its content does not fit its name.",
            hint="Delete the file and run the question again.",
        )
    return pq.ParquetFile(pa.BufferReader(content)).read()


def to_csv(table: pa.Table) -> str:
    """The table as CSV (RFC 4180, header first, CRLF); see ``csv_lines``."""
    return "".join(csv_lines(table))


def csv_lines(table: pa.Table) -> Iterator[str]:
    """CSV records (RFC 4180), the header first, each with its CRLF; rows are converted in batches.

    NULL is an empty field and the empty text is ``""``; with a single column NULL is ``""`` too,
    because readers skip empty lines. Nested values are JSON.
    """
    alone = table.num_columns == 1
    yield _record(table.column_names, alone)
    for start in range(0, table.num_rows, BATCH_ROWS):
        for row in plain_rows(table.slice(start, BATCH_ROWS)):
            yield _record(row, alone)


def _record(values: list[Any], alone: bool) -> str:
    return ",".join(_field(value, alone) for value in values) + "\r\n"


def _field(value: Any, alone: bool) -> str:
    if value is None:
        return '""' if alone else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
