"""Results on disk, and as CSV."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorum.knowledge.atomic import replace_file
from quorum.knowledge.errors import QuorumError
from quorum.tools.results.values import plain_column, plain_rows

SUFFIX = ".parquet"
BATCH_ROWS = 10_000


def write_result(table: pa.Table, folder: Path) -> Path:
    """Keep a result in ``folder`` under its content address; returns the file.

    The file is Parquet (zstd); its stem is the SHA-256 of its bytes, so equal tables share one
    file. Types that Parquet lacks (intervals, unions, ...) are kept as text. Written
    whole or not at all.
    """
    import pyarrow.parquet as pq

    columns = [_as_text(column) if _foreign(column.type) else column for column in table.columns]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, names=table.column_names), sink, compression="zstd")
    content = sink.getvalue()
    path = folder / f"{hashlib.sha256(content).hexdigest()}{SUFFIX}"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, memoryview(content), private=True)
    return path


def _foreign(kind: pa.DataType) -> bool:
    """True if Parquet lacks the type, or one inside it."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    lacking = (pa.types.is_interval, pa.types.is_union, pa.types.is_run_end_encoded)
    empty = pa.types.is_struct(kind) and not inner
    return empty or any(lacks(kind) for lacks in lacking) or any(map(_foreign, inner))


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = [v if v is None or isinstance(v, str) else json.dumps(v) for v in plain_column(column)]
    return pa.chunked_array([pa.array(values, pa.string())])


def read_result(path: Path) -> pa.Table:
    """Return the table that ``write_result`` stored.

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
    # in this thread: Arrow's own, begun just before a process ends, now and then abort it
    return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def csv_lines(table: pa.Table, end: str = "\r\n") -> Iterator[str]:
    """Yield CSV records (RFC 4180), the header first, each with its ``end``; rows are converted in batches.

    NULL is an empty field and the empty text is ``""``; with a single column NULL is ``""`` too,
    because readers skip empty lines. Nested values are JSON.
    """
    alone = table.num_columns == 1
    yield _record(table.column_names, alone) + end
    for start in range(0, table.num_rows, BATCH_ROWS):
        for row in plain_rows(table.slice(start, BATCH_ROWS)):
            yield _record(row, alone) + end


def _record(values: list[Any], alone: bool) -> str:
    return ",".join(_field(value, alone) for value in values)


def _field(value: Any, alone: bool) -> str:
    if value is None:
        return '""' if alone else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
