"""Snowflake's types: their names in SQL, and what Arrow makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quorum.tools.databases.arrow import ArrowType, joined

if TYPE_CHECKING:
    from snowflake.connector.cursor import ResultMetadata

NAMES: Final = {"FIXED": "NUMBER", "REAL": "FLOAT", "TEXT": "VARCHAR"}
"""SQL's names of types that the driver calls otherwise."""
EMPTY: Final = {
    "FLOAT": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "BINARY": pa.binary(),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_TZ": pa.timestamp("us", tz="UTC"),
}
"""Arrow's types of columns without rows; others are text, as VARIANT is."""


def type_name(column: ResultMetadata) -> str:
    """A result's column's type as SQL writes it: ``NUMBER(10,2)``."""
    from snowflake.connector.constants import FIELD_ID_TO_NAME

    name = str(FIELD_ID_TO_NAME.get(column.type_code, "VARIANT"))
    name = NAMES.get(name, name)
    return f"NUMBER({column.precision},{column.scale})" if name == "NUMBER" and column.precision else name


def plain_batches(chunks: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The driver's chunks, widened: each has whole numbers and times as narrow as its own allow."""
    for chunk in chunks:
        columns = [_widened(column) for column in chunk.columns]
        yield from pa.Table.from_arrays(columns, names=chunk.column_names).to_batches()


def table_of(batches: Sequence[pa.RecordBatch], names: Sequence[str], types: Sequence[str]) -> pa.Table:
    """The batches as one table; a column's types differ where numbers of 64 bits were not enough for all."""
    kinds = [ArrowType(None, _empty(kind)) for kind in types]
    columns = [joined([batch.column(i) for batch in batches], kind) for i, kind in enumerate(kinds)]
    return pa.Table.from_arrays(columns, names=list(names))


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        with suppress(pa.ArrowInvalid):  # it holds more than 64 bits
            return column.cast(pa.int64())
    return column.cast(pa.time64("us")) if pa.types.is_time(column.type) else column


def _empty(kind: str) -> pa.DataType:
    if kind.startswith("NUMBER"):
        digits, scale = (int(part) for part in kind[7:-1].split(",")) if "(" in kind else (38, 0)
        return pa.decimal128(digits, scale) if scale else pa.int64()
    return EMPTY.get(kind, pa.string())
