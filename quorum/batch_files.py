"""The files of a batch: rows with questions in, the same rows with their answers out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.evals.paths import check_no_file
from quorum.knowledge.atomic import replace_file
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".jsonl", ".parquet")
MOST_ROWS = 1_000
"""Rows of an answer that a cell of the file holds."""

ANSWER = {
    "status": "string",
    "sql": "string",
    "rows": "string",
    "row_count": "int64",
    "confidence": "double",
    "doubts": "string",
    "usd": "double",
    "model_calls": "int64",
    "tokens": "int64",
    "error": "string",
    "run": "string",
}
"""Columns that are added, with Arrow's names of their types."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file as they are.

    Attributes:
        lines: Of CSV (texts) and JSON Lines (JSON's values): the fields of each row.
        parquet: The table of a Parquet file.
    """

    path: Path
    lines: Sequence[dict[str, Any]] = ()
    parquet: pa.Table | None = None

    @cached_property
    def columns(self) -> list[str]:
        """Names in their order; in JSON Lines in that of their first use."""
        if self.parquet is not None:
            return list(self.parquet.column_names)
        return list(dict.fromkeys(name for line in self.lines for name in line))

    def values(self, column: str) -> list[Any]:
        """Return a column's values, None where a row has none."""
        if self.parquet is not None:
            return list(self.parquet.column(column).to_pylist())
        return [line.get(column) for line in self.lines]

    @cached_property
    def table(self) -> pa.Table:
        """The rows with types: those of Parquet, texts of CSV, what fits the values of JSON Lines.

        Raises:
            ConfigurationError: The values of a column of JSON Lines have no common type.
        """
        import pyarrow as pa

        if self.parquet is not None:
            return self.parquet
        kind = pa.string() if self.path.suffix.lower() == ".csv" else None
        made = {}
        for name in self.columns:
            try:
                made[name] = pa.array(self.values(name), kind)
            except (pa.ArrowException, OverflowError) as error:
                raise ConfigurationError(
                    f"The values of {name!r} in {self.path} have no common type: {error}.",
                    hint="Write --out as .jsonl, which keeps them as they are.",
                ) from error
        return pa.table(made)


def read_rows(path: Path) -> Rows:
    """Read a file of rows.

    Raises:
        ConfigurationError: It cannot be read, has no row, or two columns of one name.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigurationError(
            f"{path} is none of {', '.join(SUFFIXES)}.", hint="Save the questions as one of them."
        )
    if suffix == ".parquet":
        found = Rows(path, parquet=_read_parquet(path))
        names = found.columns
    else:
        from quorum.evals.suites.own import read_lines

        lines = [items for _, items in read_lines(path)]
        empty = "" if suffix == ".csv" else None  # an empty field of CSV is none
        found = Rows(path, [{n: None if value == empty else value for n, value in each} for each in lines])
        names = [name for name, _ in lines[0]] if lines else []
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ConfigurationError(f"{path} has two columns {twice[0]!r}.", hint="Rename one.")
    if not found.columns or not len(found.values(found.columns[0])):
        raise ConfigurationError(f"{path} holds no row.", hint="Write one question a row.")
    return found


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", hint="Name a Parquet file with your questions."
        ) from error


def check_out(out: Path, rows: Rows, *, begun: bool) -> None:
    """Check before anything is asked that the answers can be written.

    Args:
        begun: An earlier process of the batch may have written ``out``.

    Raises:
        ConfigurationError: It has no known suffix, cannot hold the rows, or would replace another file.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"{out} is none of {', '.join(SUFFIXES)}.", hint="Give another --out.")
    check_no_file(out.parent, hint="Give another --out.")
    if out.is_dir() or (out.exists() and (not begun or out.samefile(rows.path))):
        raise ConfigurationError(
            f"{out} is there already, and no batch has written it.", hint="Give another --out."
        )
    if out.suffix.lower() != ".jsonl":
        _ = rows.table


def write_answers(out: Path, rows: Rows, answers: Sequence[dict[str, Any]]) -> str:
    """Write the rows with their answers, whole or not at all.

    Returns:
        What was put before the names of the answers' columns: ``answer_`` where the file has one of them.

    Raises:
        ConfigurationError: It cannot be written there.
    """
    prefix = ""
    while any(prefix + name in rows.columns for name in ANSWER):
        prefix += "answer_"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, _content(out.suffix.lower(), rows, answers, prefix))
    except OSError as error:
        raise ConfigurationError(f"Cannot write {out}: {error.strerror}.") from error
    return prefix


def _content(suffix: str, rows: Rows, answers: Sequence[dict[str, Any]], prefix: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quorum.tools.results.files import csv_lines
    from quorum.tools.results.values import plain_rows

    if suffix == ".jsonl":
        lines = rows.lines or [
            dict(zip(rows.columns, values, strict=True)) for values in plain_rows(rows.table)
        ]
        added = [{prefix + name: answer.get(name) for name in ANSWER} for answer in answers]
        both = (line | more for line, more in zip(lines, added, strict=True))
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in both).encode()
    table = rows.table
    for name, kind in ANSWER.items():
        column = pa.array([answer.get(name) for answer in answers], pa.type_for_alias(kind))
        table = table.append_column(prefix + name, column)
    if suffix == ".csv":
        return "".join(csv_lines(table, end="\n")).encode()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
