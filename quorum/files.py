"""An answer as a file: all its rows as CSV, JSON or Parquet, or a chart of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quorum.evals.paths import check_no_file, write_bytes
from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError, is_installed, missing_extra
from quorum.text import count
from quorum.tools.results.files import csv_lines
from quorum.tools.results.values import plain_rows

DRAWN = (".svg", ".png", ".pdf")
"""Suffixes of pictures, which need the extra `plots`."""
ROWS, CHARTS = (".csv", ".json", ".parquet"), (*DRAWN, ".json")


class NoChart(QuorumError):
    """A result has no shape for a chart."""


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
    if suffix in DRAWN and not is_installed("vl_convert"):
        raise missing_extra("plots", "A chart", needs="vl_convert")


def write_rows(answer: Answer, path: Path) -> str:
    """Write all rows of an answer, whole or not at all; returns what is in the file: ``3 rows``.

    Raises:
        ConfigurationError: It cannot be written there.
        QuorumError: The rows cannot be read.
    """
    table, suffix = answer.to_arrow(), path.suffix.lower()
    write_bytes(path, _json(answer, table) if suffix == ".json" else TABLES[suffix](table))
    return count(table.num_rows, "row")


def write_chart(answer: Answer, path: Path) -> str:
    """Draw the rows of an answer, or write their Vega-Lite specification (``.json``); returns what is drawn.

    Raises:
        ConfigurationError: It cannot be written there.
        NoChart: The rows have no shape for one.
        QuorumError: The rows cannot be read.
    """
    from quorum.chart import chart_of, picture

    chart, suffix = chart_of(answer.to_arrow()), path.suffix.lower()
    if isinstance(chart, str):
        raise NoChart(f"These rows have no chart: {chart}")
    write_bytes(path, chart.spec_text().encode() if suffix == ".json" else picture(chart, suffix[1:]))
    return chart.note or count(len(chart.across.values), "row")


def _csv(table: pa.Table) -> bytes:
    return "".join(csv_lines(table, end="\n")).encode()


def _json(answer: Answer, table: pa.Table) -> bytes:
    """Write the answer as ``--json`` does, with all rows."""
    whole = answer.model_copy(update={"columns": table.column_names, "rows": plain_rows(table)})
    return f"{whole.model_dump_json()}\n".encode()


def _json_lines(table: pa.Table) -> bytes:
    rows = (dict(zip(table.column_names, row, strict=True)) for row in plain_rows(table))
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


TABLES: dict[str, Callable[[pa.Table], bytes]] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
"""Formats of plain tables."""
