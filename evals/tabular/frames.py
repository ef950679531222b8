"""CSV files as typed columns, cut and read as Spider 2.0's evaluation does (``evals.tabular.inference``)."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from quorum.evals.tabular.inference import NULLS, Column, infer, join
from quorum.knowledge.errors import QuorumError

CELLS_AT_ONCE = 2**20  # pandas infers types for at most so many cells at a time
END = ["end", "of file"]


class UnreadableCsv(QuorumError):
    """A file that is no CSV: rows longer than the first, an open quotation mark, not UTF-8, nothing in it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as typed columns.

    Attributes:
        names: As in the header; may repeat.
        columns: Arrays of equal length, as ``quorum.evals.tabular.inference.infer`` makes them.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def read_frame(path: Path, *, nulls: frozenset[str] = NULLS) -> Frame:
    """Read a CSV file (UTF-8, header first).

    Raises:
        UnreadableCsv: See there; also if the file cannot be opened.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return frame_of(lines, nulls=nulls)
    except UnicodeDecodeError as error:
        raise UnreadableCsv(f"{path} is not UTF-8: {error.reason} at byte {error.start}.") from error
    except OSError as error:
        raise UnreadableCsv(f"{path} cannot be read: {error.strerror}.") from error
    except UnreadableCsv as error:
        raise UnreadableCsv(f"{path}: {error}") from error


def frame_of(lines: Iterable[str], *, nulls: frozenset[str] = NULLS) -> Frame:
    """The frame of CSV text given line by line, line ends included.

    Columns are inferred piece by piece, each of 2^20 cells at most, so that a column of a huge file may
    hold numbers at first and texts later. Short rows are filled with NULL. If the first row is longer than
    the header, the surplus first columns are an index and left out.

    Raises:
        UnreadableCsv: See there.
    """
    records = _records(lines)
    header = next(records, None)
    if header is None:
        raise UnreadableCsv("The file is empty, it lacks even a header.")
    first = next(records, None)
    width = max(len(header), len(first or ()))
    index = width - len(header)
    pieces = [
        [infer(column, nulls) for column in list(zip(*rows, strict=True))[index:]]
        for rows in _pieces(first, records, width)
    ]
    if not pieces:
        pieces = [[infer((), nulls) for _ in header]]
    return Frame(tuple(header), tuple(join(parts) for parts in zip(*pieces, strict=True)))


def _pieces(first: list[str] | None, records: Iterator[list[str]], width: int) -> Iterator[list[list[str]]]:
    if first is None:
        return
    rows = [_filled(first, width)]
    size = _rows_at_once(width)
    while rows:
        rows += [_filled(row, width) for row in islice(records, size - len(rows))]
        yield rows
        rows = [_filled(row, width) for row in islice(records, 1)]


def _rows_at_once(width: int) -> int:
    """The greatest power of two below ``CELLS_AT_ONCE / width``."""
    limit, rows = CELLS_AT_ONCE // width, 1
    while rows * 2 < limit:
        rows *= 2
    return rows


def _filled(row: list[str], width: int) -> list[str]:
    if len(row) > width:
        raise UnreadableCsv(f"A row has {len(row)} fields, the rows before it have {width}.")
    return row if len(row) == width else row + [""] * (width - len(row))


def _records(lines: Iterable[str]) -> Iterator[list[str]]:
    """The records of CSV text; empty lines and lines of blanks are skipped."""
    csv.field_size_limit(sys.maxsize)  # geometries are longer than Python's default of 128 kB
    line = ""

    def until_end() -> Iterator[str]:
        nonlocal line
        for line in lines:  # noqa: UP028 - the loop leaves the latest line behind
            yield line
        yield ",".join(END)  # two fields of its own, unless a quotation mark is still open

    before: list[str] | None = None
    for record in csv.reader(until_end()):
        if before is not None:
            yield before
        before = record if record and (len(record) > 1 or line.strip(" \t\r\n")) else None
    if before != END:
        raise UnreadableCsv("A quotation mark is not closed.")
