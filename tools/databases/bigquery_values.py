"""BigQuery's pages of rows as Arrow, within caps; its types by their names in SQL."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
"""SQL's names of types that the API calls otherwise."""


def type_name(field: Any) -> str:
    """A field's type as SQL writes it: ``ARRAY<STRUCT<key STRING, value INT64>>``."""
    name = NAMES.get(field.field_type, field.field_type)
    if name == "STRUCT":
        name = f"STRUCT<{', '.join(f'{part.name} {type_name(part)}' for part in field.fields)}>"
    return f"ARRAY<{name}>" if field.mode == "REPEATED" else name


def collected(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, size: int
) -> tuple[pa.Table, str]:
    """As much of the batches as the caps allow, and the cap that cut them; no page is fetched beyond it."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        cut = ""
        if batch.num_rows > rows:
            batch, cut = batch.slice(0, rows), "rows"
        while batch.num_rows and (found := batch.get_total_buffer_size()) > size:
            cut = "bytes"
            batch = _copied(batch.slice(0, min(batch.num_rows - 1, batch.num_rows * size // found)))
        kept.append(batch)
        rows, size = rows - batch.num_rows, size - batch.get_total_buffer_size()
        if cut:
            return _table(kept, schema), cut
    return _table(kept, schema), ""


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A slice without what it was cut from."""
    return (
        pa.Table.from_batches([batch])
        .take(pa.array(range(batch.num_rows), pa.int64()))
        .combine_chunks()
        .to_batches()[0]
        if batch.num_rows
        else batch.slice(0, 0)
    )


def _table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches, schema)
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):  # JSON, say: nobody above knows such types
            storage = pa.chunked_array(
                [chunk.storage for chunk in table.column(i).chunks], field.type.storage_type
            )
            table = table.set_column(i, field.name, storage)
    return table


def texts(values: Iterable[Any], limit: int) -> Iterator[str | bool | None]:
    """Values as samples show them; of bytes only that there are some."""
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
