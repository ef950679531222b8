"""The sheets of an Excel workbook as tables; runs inside the child process.

Formulas have the values that Excel stored with them, and links to other files are not followed. A formula's
error is NULL.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.duckdb.headers import FOUND, ROWS, Header, find, footer
from quorum.tools.databases.worker import Fetched

if TYPE_CHECKING:
    import pyarrow as pa
    from python_calamine import CalamineWorkbook

LONGEST = 32_767
"""Characters of a cell, as Excel has it."""
UNPACKED = 2**30
"""Bytes that all parts of a workbook may have together once they are unpacked."""


class WorkbookSession:
    """See ``quorum.tools.databases.worker.Session``; a request is no SQL, but ``""`` or a JSON object.

    ``""`` gives each sheet's name and visibility, ``{"sheet": NAME, "header": LINE}`` the rows of one.
    """

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None:  # noqa: ARG002
        self._path = path
        self._book: CalamineWorkbook | None = None

    def warm_up(self) -> None:
        import pyarrow  # noqa: F401
        import python_calamine  # noqa: F401

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:  # noqa: ARG002
        """The sheets, or one sheet's rows with the header that was found in the schema's metadata.

        Raises:
            DatabaseUnavailable: It is no workbook, or too large.
        """
        from python_calamine import CalamineError

        try:  # opened here, under the limit on memory
            book = self._book = self._book or self._opened()
            table = _rows(book, json.loads(sql)) if sql else _sheets(book)
        except (CalamineError, ValueError, zipfile.BadZipFile) as error:
            hint = "Is it a CSV, or encrypted? Name a CSV .csv; save a workbook anew, without a password."
            raise DatabaseUnavailable(f"it is no workbook ({error}).", hint=hint) from error
        if table.nbytes > size:
            hint = "Save it as CSV or Parquet."
            raise DatabaseUnavailable(f"it holds more than {size >> 20} MiB.", hint=hint)
        return Fetched(table, "", ("",) * table.num_columns)

    def _opened(self) -> CalamineWorkbook:
        from python_calamine import CalamineWorkbook

        with zipfile.ZipFile(self._path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > UNPACKED:
            hint = "Save its sheets as CSV or Parquet."
            raise DatabaseUnavailable(
                f"it unpacks to {unpacked >> 20:,} MiB, more than {UNPACKED >> 20:,}.", hint=hint
            )
        return CalamineWorkbook.from_path(self._path)


def _sheets(book: CalamineWorkbook) -> pa.Table:
    import pyarrow as pa
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    visible = [sheet.visible == SheetVisibleEnum.Visible for sheet in sheets]
    return pa.table({"name": [sheet.name for sheet in sheets], "visible": visible})


def _rows(book: CalamineWorkbook, asked: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    sheet = book.get_sheet_by_name(asked["sheet"])
    rows: Iterator[list[Any]] = iter(sheet.iter_rows())
    first = list(islice(rows, ROWS))
    line = asked.get("header")
    header = Header.in_line(line) if line is not None else find(first, sheet.width)
    if header is None:
        return pa.table({})
    below = chain(islice(chain(first, rows), header.skip, None))
    names = next(below, []) if header.named else []
    data = [row for row in below if any(map(_holds, row))]
    cut, text = footer(data, sheet.width) if line is None else (0, "")
    columns = [list(column) for column in zip(*data[: len(data) - cut], strict=True)]
    columns = columns or [[] for _ in names]
    made: dict[str, pa.Array] = {}
    for i, values in enumerate(columns):
        name = _text(names[i]).strip() if i < len(names) else ""
        if name or any(map(_holds, values)):
            made[_free(name or f"column{i}", made)] = _array(values)
    found = json.dumps(asdict(replace(header, footer=text)))
    return pa.table(made).replace_schema_metadata({FOUND: found})


def _holds(cell: object) -> bool:
    return cell != ""


def _free(name: str, taken: dict[str, Any]) -> str:
    """The name, numbered as DuckDB does where it is taken."""
    folded, number, free = {each.casefold() for each in taken}, 1, name
    while free.casefold() in folded:
        free, number = f"{name}_{number}", number + 1
    return free


def _array(values: list[Any]) -> pa.Array:
    """A column: of numbers, dates, times or booleans where all its values are, else of texts."""
    import pyarrow as pa

    kinds = {type(value) for value in values if _holds(value)}
    cells = [value if _holds(value) else None for value in values]
    if kinds and kinds <= {int, float}:
        whole = all(cell is None or (cell == int(cell) and abs(cell) < 2**53) for cell in cells)
        return pa.array(cells, pa.float64()).cast(pa.int64() if whole else pa.float64())
    if kinds and kinds <= {date, datetime}:
        plain = kinds == {date}
        return pa.array(cells, pa.date32()) if plain else pa.array(map(_moment, cells), pa.timestamp("us"))
    if kinds in ({bool}, {time}):
        return pa.array(cells)
    texts = [None if cell is None else _text(cell) for cell in cells]
    if any(text and len(text) > LONGEST for text in texts):
        raise ValueError(f"a cell has more than {LONGEST:,} characters")
    return pa.array(texts, pa.string())


def _moment(cell: date | None) -> datetime | None:
    if cell is None or isinstance(cell, datetime):
        return cell
    return datetime(cell.year, cell.month, cell.day)


def _text(cell: object) -> str:
    if isinstance(cell, float) and cell == int(cell):
        return str(int(cell))
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return cell.isoformat(" ") if isinstance(cell, datetime) else str(cell)
