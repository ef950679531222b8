"""Arrow batches as clients give them: as many as the caps allow, and their values as samples show them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa


def collected(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, size: int
) -> tuple[pa.Table, str]:
    """As much of the batches as the caps allow, and the cap that cut them; no page is fetched beyond it."""
    kept, cut = capped(batches, rows, size)
    return _table(kept, schema), cut


def capped(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> tuple[list[pa.RecordBatch], str]:
    """The batches that the caps allow, the last one cut, and the cap that cut it."""
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
            return kept, cut
    return kept, ""


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
