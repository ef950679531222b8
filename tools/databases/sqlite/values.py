"""SQLite's values to Arrow columns. SQLite types values, not columns, so the column's type is inferred.

One storage class gives its Arrow type. Integers among reals become double if each integer is exact as
one. Any other mixture becomes text, each value as a SQL literal, so that a blob still differs from a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from quorum.tools.databases.arrow import Capped

BATCH_BYTES = 2**20
"""Target size of a batch of rows in bytes, so that few Python objects exist at a time."""
ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
NAMES = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}

ColumnBatch = dict[type, pa.Array]
"""Values of one column in one batch, by storage class; each array is NULL where another has the value."""


class SqliteCollector(Capped):
    """Rows as compact columns, up to a cap on rows and one on bytes.

    Attributes:
        next_batch: Number of rows to fetch next; grows while batches stay small in bytes.
    """

    def __init__(self, names: Sequence[str], rows: int, size: int) -> None:
        super().__init__(rows, size)
        self.next_batch = 16
        self._names = names
        self._chunks: list[list[ColumnBatch]] = []  # batch by batch, each column by column
        self._lengths: list[int] = []

    def add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Keep a non-empty batch of rows, or as much of it as the caps allow."""
        rows, size = self.rows_left, self.bytes_left
        if chunks := self.fitting(batch, _chunks, nbytes):
            rows, size = rows - self.rows_left, size - self.bytes_left
            self._chunks.append(chunks)
            self._lengths.append(rows)
            few = BATCH_BYTES * rows // max(size, 1)
            self.next_batch = max(16, min(few, 4 * self.next_batch, 16_384, self.rows_left + 1))

    def finish(self) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the table, and SQLite's names of its columns' types."""
        columns = [
            column([chunks[i] for chunks in self._chunks], self._lengths) for i in range(len(self._names))
        ]
        table = pa.Table.from_arrays([array for array, _ in columns], names=list(self._names))
        return table, tuple(name for _, name in columns)


def _chunks(batch: Sequence[tuple[Any, ...]]) -> list[ColumnBatch]:
    return [chunk(values) for values in zip(*batch, strict=True)]


def chunk(values: Sequence[Any]) -> ColumnBatch:
    """Split one batch of a column by storage class. A batch of NULLs only has no entry."""
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) == 1:
        kind = kinds.pop()
        return {kind: pa.array(values, ARROW[kind])}
    return {
        kind: pa.array([value if type(value) is kind else None for value in values], ARROW[kind])
        for kind in ARROW
        if kind in kinds
    }


def nbytes(chunks: Sequence[ColumnBatch]) -> int:
    """Bytes that the arrays of a batch take."""
    return sum(array.nbytes for chunk in chunks for array in chunk.values())


def column(chunks: Sequence[ColumnBatch], lengths: Sequence[int]) -> tuple[pa.ChunkedArray, str]:
    """One column out of its batches, and SQLite's name of its type (``INTEGER|TEXT`` if mixed)."""
    kinds = [kind for kind in ARROW if any(kind in chunk for chunk in chunks)]
    if not kinds:
        return pa.chunked_array([pa.nulls(n) for n in lengths], pa.null()), "NULL"
    parts = {
        kind: pa.chunked_array(
            [chunk.get(kind, pa.nulls(n, ARROW[kind])) for chunk, n in zip(chunks, lengths, strict=True)],
            ARROW[kind],
        )
        for kind in kinds
    }
    name = "|".join(NAMES[kind] for kind in kinds)
    if len(kinds) == 1:
        return parts[kinds[0]], name
    import pyarrow.compute as pc  # a fifth of a child's start, and few columns are mixed

    if kinds == [int, float]:
        try:
            return pc.coalesce(parts[int].cast(pa.float64()), parts[float]), name
        except pa.ArrowInvalid:  # an integer beyond 2^53 that double cannot hold
            pass
    return reduce(pc.coalesce, [_text(kind, part) for kind, part in parts.items()]), name


def _text(kind: type, part: pa.ChunkedArray) -> pa.ChunkedArray:
    if kind is str:
        return part
    if kind is int:
        return part.cast(pa.string())
    write = repr if kind is float else lambda value: f"X'{value.hex().upper()}'"
    values = [None if value is None else write(value) for value in part.to_pylist()]
    return pa.chunked_array([pa.array(values, pa.string())])
