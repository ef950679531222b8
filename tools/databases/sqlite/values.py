"""SQLite's values to Arrow columns. SQLite types values, not columns, so the column's type is inferred.

One storage class gives its Arrow type. Integers among reals become double if each integer is exact as
one. Any other mixture becomes text, each value as a SQL literal, so that a blob still differs from a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from sys import getsizeof
from typing import Any, TypeAlias

import pyarrow as pa

from quorum.tools.databases.arrow import Capped

BATCH_BYTES = 2**20
"""Target size of a batch of rows in bytes, so that few Python objects exist at a time."""
ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
NAMES = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}

Chunk: TypeAlias = pa.Array | tuple[Any, ...]
"""Values of one column in one batch: an array, or as they come where they are of several storage classes."""


class Collector(Capped):
    """Rows as compact columns, up to a cap on rows and one on bytes.

    Attributes:
        next_batch: Number of rows to fetch next; grows while batches stay small in bytes.
    """

    def __init__(self, names: Sequence[str], rows: int, size: int) -> None:
        super().__init__(rows, size)
        self.next_batch = 16
        self._names = names
        self._chunks: list[list[Chunk]] = []  # batch by batch, each column by column

    def add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Keep a non-empty batch of rows, or as much of it as the caps allow."""
        rows, size = self.rows_left, self.bytes_left
        if chunks := self.fitting(batch, lambda each: list(map(chunk, zip(*each, strict=True))), nbytes):
            self._chunks.append(chunks)
            few = BATCH_BYTES * (rows - self.rows_left) // max(size - self.bytes_left, 1)
            self.next_batch = max(16, min(few, 4 * self.next_batch, 16_384, self.rows_left + 1))

    def finish(self) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the table, and SQLite's names of its columns' types."""
        columns = [column([chunks[i] for chunks in self._chunks]) for i in range(len(self._names))]
        table = pa.Table.from_arrays([array for array, _ in columns], names=list(self._names))
        return table, tuple(name for _, name in columns)


def chunk(values: tuple[Any, ...]) -> Chunk:
    """Return a batch of a column as an array, if its values are of one storage class or all NULL."""
    kinds = _kinds(values)
    return values if len(kinds) > 1 else pa.array(values, ARROW[kinds.pop()] if kinds else pa.null())


def nbytes(chunks: Sequence[Chunk]) -> int:
    """Bytes that a batch takes."""
    return sum(sum(map(getsizeof, each)) if isinstance(each, tuple) else each.nbytes for each in chunks)


def column(chunks: Sequence[Chunk]) -> tuple[pa.ChunkedArray, str]:
    """One column out of its batches, and SQLite's name of its type (``INTEGER|TEXT`` if mixed)."""
    arrays = [each for each in chunks if isinstance(each, pa.Array)]
    held = {kind for each in chunks if isinstance(each, tuple) for kind in _kinds(each)}
    types = {each.type for each in arrays}
    kinds = [kind for kind, wanted in ARROW.items() if kind in held or wanted in types]
    name = "|".join(NAMES[kind] for kind in kinds) or "NULL"
    if len(kinds) <= 1:
        wanted = ARROW[kinds[0]] if kinds else pa.null()
        return pa.chunked_array([each.cast(wanted) for each in arrays], wanted), name
    values = [v for each in chunks for v in (each if isinstance(each, tuple) else each.to_pylist())]
    if kinds == [int, float]:
        with suppress(pa.ArrowInvalid):  # an integer beyond 2^53 that double cannot hold
            return pa.chunked_array([pa.array(values, pa.float64())]), name
    return pa.chunked_array([pa.array(map(_text, values), pa.string())]), name


def _kinds(values: Iterable[Any]) -> set[type]:
    return {*map(type, values)} - {type(None)}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return f"X'{value.hex().upper()}'" if isinstance(value, bytes) else repr(value)
