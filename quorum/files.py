"""An answer as a file: all its rows as CSV, JSON, Parquet or a workbook, or a chart of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.evals.paths import check_no_file, write_bytes
from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError, is_installed, missing_extra
from quorum.text import count, trust

if TYPE_CHECKING:
    import pyarrow as pa

Make: TypeAlias = Callable[[Answer], tuple[bytes, str]]
"""Makes the content of a file, and says what is in it."""

Kinds: TypeAlias = dict[str, Make]
"""Formats by suffix."""


class NoChart(QuorumError):
    """A result has no shape for a chart."""


NEEDS = {
    ".xlsx": ("xlsx", "A workbook", "xlsxwriter"),
    **dict.fromkeys((".svg", ".png", ".pdf"), ("plots", "A chart", "vl_convert")),
}
"""Suffixes that need a package: the extra that installs it, what is written, the package."""

SHEET_ROWS, SHEET_COLUMNS, SHEET_TEXT = 1_048_575, 16_384, 32_767
"""The limits of a sheet: rows below the header, columns, characters of a cell."""

SHEET_EXACT = 10**15
"""Whole numbers from here on would lose digits in a sheet, which knows doubles only: they are text there."""


def check_file(path: Path, kinds: Collection[str]) -> None:
    """Raise if an answer cannot be written there, as far as that is known before it is made.

    Raises:
        ConfigurationError: The suffix is none of ``kinds``, the path is a folder or below a file, or a
            package is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in kinds:
        named = f"{path} ends in {suffix}" if suffix else f"{path} has no suffix"
        raise ConfigurationError(f"{named}, which names no format.", hint=f"Known: {', '.join(kinds)}.")
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder, not a file.", hint="Name a file to write.")
    check_no_file(path.parent, hint="Name another file to write.")
    if suffix in NEEDS and not is_installed(NEEDS[suffix][2]):
        extra, what, package = NEEDS[suffix]
        raise missing_extra(extra, what, needs=package)


def write_file(answer: Answer, path: Path, kinds: Kinds) -> str:
    """Write an answer with a result, whole or not at all; says what is in the file: ``3 rows``.

    Raises:
        ConfigurationError: It cannot be written there.
        NoChart: The rows have no shape for one.
        QuorumError: The rows cannot be read, or do not fit the format.
    """
    made, said = kinds[path.suffix.lower()](answer)
    write_bytes(path, made)
    return said


def _rows(write: Callable[[Answer, pa.Table], bytes]) -> Make:
    def make(answer: Answer) -> tuple[bytes, str]:
        table = answer.to_arrow()
        return write(answer, table), count(table.num_rows, "row")

    return make


def _csv(table: pa.Table) -> bytes:
    from quorum.tools.results.files import csv_lines

    return "".join(csv_lines(table, end="\n")).encode()


def _json(answer: Answer, table: pa.Table) -> bytes:
    """Write the answer as ``--json`` does, with all rows."""
    from quorum.tools.results.values import plain_rows

    whole = answer.model_copy(update={"columns": table.column_names, "rows": plain_rows(table)})
    return f"{whole.model_dump_json()}\n".encode()


def _json_lines(table: pa.Table) -> bytes:
    from quorum.tools.results.values import plain_rows

    rows = (dict(zip(table.column_names, row, strict=True)) for row in plain_rows(table))
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def _xlsx(answer: Answer, table: pa.Table) -> bytes:
    """The rows on one sheet, the question and its SQL on another; no text becomes a formula or a link."""
    import xlsxwriter

    if table.num_rows > SHEET_ROWS or table.num_columns > SHEET_COLUMNS:
        size = f"{count(table.num_rows, 'row')} and {count(table.num_columns, 'column')}"
        raise QuorumError(f"A sheet cannot hold {size}.", hint="Write .parquet or .csv instead.")
    made = io.BytesIO()
    with xlsxwriter.Workbook(made, {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        bold, day = book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd"})
        sheet = book.add_worksheet("Rows")
        sheet.freeze_panes(1, 0)
        for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
            sheet.write_string(0, place, name, bold)
            for row, value in enumerate(_cells(column), 1):
                _write_cell(sheet, row, place, value, day)
        sheet.autofit(400)
        about = book.add_worksheet("About")
        facts = {"Question": answer.question, "SQL": answer.sql, "Status": answer.status.replace("_", " ")}
        trusted = ": ".join(filter(None, (trust(answer)[0], answer.grounds)))
        facts |= {"Confidence": trusted, "Run": answer.run_id}
        for row, (name, text) in enumerate(facts.items()):
            about.write_string(row, 0, name, bold)
            about.write_string(row, 1, text[:SHEET_TEXT])
    return made.getvalue()


def _cells(column: pa.ChunkedArray) -> Iterator[Any]:
    """Values for a sheet: dates that it can hold as dates, all others JSON-ready."""
    import pyarrow as pa

    from quorum.tools.results.values import plain_column

    plain = plain_column(column)
    kind = column.type
    moments = pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)
    for value in plain:
        yield _moment(value) if moments and value is not None else value


def _moment(text: str) -> Any:
    """A moment between 1900-03-01 and 9999, to the millisecond; else the text as it is."""
    try:
        found = date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return text
    exact = getattr(found, "microsecond", 0) % 1000 == 0
    return found if exact and text >= "1900-03-01" else text


def _write_cell(sheet: Any, row: int, place: int, value: Any, day: Any) -> None:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, int) and abs(value) >= SHEET_EXACT:
        value = str(value)
    if not isinstance(value, str):
        sheet.write(row, place, value, day if type(value) is date else None)
        return
    if len(value) > SHEET_TEXT:
        raise QuorumError(
            f"A value in row {row:,} has {len(value):,} characters; a cell holds {SHEET_TEXT:,}.",
            hint="Write .parquet or .csv instead.",
        )
    sheet.write_string(row, place, value)


def _chart(suffix: str) -> Make:
    def make(answer: Answer) -> tuple[bytes, str]:
        from quorum.chart import chart_of, picture

        chart = chart_of(answer.to_arrow())
        if isinstance(chart, str):
            raise NoChart(f"These rows have no chart: {chart}")
        made = chart.spec_text().encode() if suffix == ".json" else picture(chart, suffix[1:])
        return made, chart.note or count(len(chart.across.values), "row")

    return make


TABLES: dict[str, Callable[[pa.Table], bytes]] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
"""Formats of plain tables."""

ROWS: Kinds = {
    ".csv": _rows(lambda _, table: _csv(table)),
    ".json": _rows(_json),
    ".parquet": _rows(lambda _, table: _parquet(table)),
    ".xlsx": _rows(_xlsx),
}
CHARTS: Kinds = {suffix: _chart(suffix) for suffix in (".svg", ".png", ".pdf", ".json")}
"""``.json`` is the chart's Vega-Lite specification."""
