"""Results on their way into the state: a file in the run folder, a fingerprint, a short preview."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quorum.agents.prompting import show_row
from quorum.graph.context import Context
from quorum.graph.state import PREVIEW_ROWS, Result
from quorum.knowledge.schema.render import render
from quorum.tools.query import QueryResult
from quorum.tools.results.canonical import canonical, has_blank_column, is_blank
from quorum.tools.results.compare import fingerprint
from quorum.tools.results.files import write_result
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, prune, used

SMALL = 10
"""Rows of a result that the Validator sees whole; of a larger one it sees ``SAMPLE_ROWS``."""

SAMPLE_ROWS = 3  # ReCAPAgent-SQL, section 3.3.7: the first three rows

SCHEMA_TOKENS = 2_000
"""Budget for descriptions and samples of the tables that the Validator sees."""

MAX_CELL = 200
"""Characters of a cell that state, checkpoints and the Validator's prompt hold; the file holds all of it."""

MAX_COLUMNS = 100
"""Columns that state describes; the file holds all of them."""

MAX_PREVIEW = 16_000
"""Characters of a whole preview; rows beyond are in the file only."""

MAX_KNOWN = 200
"""Results whose description is remembered: candidates that agree return the same one."""

INT64 = 2**63
"""Checkpoints hold integers below this; larger ones go as text."""


SMALL_BYTES = 2**16
"""A smaller table is described within a millisecond, for which no thread is worth its while."""


@dataclass
class _Known:
    """A result's description, which one thread makes while others wait for it."""

    making: threading.Lock = field(default_factory=threading.Lock)
    made: Callable[[], Result] | None = None


_known: dict[tuple[str, str, str], _Known] = {}
"""By the file's name, which is the hash of its content, and the types, which the file may not have."""

_knowing = threading.Lock()


async def keep_result(result: QueryResult, folder: Path) -> Result:
    """Write the result to the run folder and describe it; in a thread, unless it is written and small."""
    quick = result.file is not None and result.table.nbytes < SMALL_BYTES
    made = _described(result, folder) if quick else await asyncio.to_thread(_described, result, folder)
    return made()


def _described(result: QueryResult, folder: Path) -> Callable[[], Result]:
    """Write the result, and return what makes its description; another candidate may have the same."""
    table, path = result.table, result.file or write_result(result.table, folder / "results")
    with _knowing:
        known = _known.setdefault((path.name, str(table.schema), result.truncated), _Known())
        if len(_known) > MAX_KNOWN:
            del _known[next(iter(_known))]
    with known.making:
        if known.made:
            return known.made
        form, shown = canonical(table), table.select(range(min(MAX_COLUMNS, table.num_columns)))
        known.made = partial(
            Result,
            file=str(path.relative_to(folder)),
            fingerprint=fingerprint(form),
            ordered_fingerprint=fingerprint(form, ordered=True),
            blank=is_blank(table, form),
            no_values=all(column.null_count == result.row_count for column in table.columns),
            columns=list(shown.column_names),
            columns_left_out=table.num_columns - shown.num_columns,
            row_count=result.row_count,
            truncated=result.truncated,
            preview=_preview(QueryResult(shown, result.seconds).preview(PREVIEW_ROWS)),
            nulls=[int(column.null_count) for column in shown.columns],
            distinct=[_distinct(column) for column in shown.columns],
            types=[str(column.type) for column in shown.columns],
            blank_column=has_blank_column(table, form),
        )
        return known.made


def _distinct(column: pa.ChunkedArray) -> int | None:
    try:
        return int(pc.count_distinct(column).as_py())
    except pa.ArrowNotImplementedError:  # nested values
        return None


def _preview(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows that fit into ``MAX_PREVIEW``, at least one."""
    kept, size = list[list[Any]](), 0
    for row in rows:
        short = [_short(value) for value in row]
        size += len(json.dumps(short, ensure_ascii=False, default=str))
        if kept and size > MAX_PREVIEW:
            break
        kept.append(short)
    return kept


def _short(value: Any) -> Any:
    """Return the value, or its text if it is long or a checkpoint cannot hold it."""
    if value is None or isinstance(value, bool | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[: MAX_CELL - 1] + "…" if len(text) > MAX_CELL else _portable(value)


def _portable(value: Any) -> Any:
    if isinstance(value, list):
        return [_portable(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _portable(item) for key, item in value.items()}
    return str(value) if isinstance(value, int) and not -INT64 <= value < INT64 else value


def summary(result: Result) -> dict[str, Any]:
    """Return a result as the Validator's template shows it: all rows of a small one, else ``SAMPLE_ROWS``."""
    columns = zip(result.columns, result.types, result.nulls, result.distinct, strict=True)
    rows = result.preview[: result.row_count if result.row_count <= SMALL else SAMPLE_ROWS]
    return {
        "row_count": result.row_count,
        "truncated": bool(result.truncated),
        "columns": [dict(zip(("name", "type", "nulls", "distinct"), each, strict=True)) for each in columns],
        "sample_rows": [show_row(row, MAX_CELL) for row in rows],
    }


def first_rows(result: Result, most: int) -> dict[str, Any]:
    """Return a result as templates show it that compare or revise queries."""
    rows = [show_row(row) for row in result.preview[:most]]
    return {"columns": ", ".join(result.columns), "row_count": result.row_count, "rows": rows}


def observation(result: Result) -> str:
    """Return a result as an action's observation: columns, row count and the first rows."""
    head = f"{result.row_count} rows; columns: {', '.join(result.columns)}"
    return "\n".join([head, *(str(row) for row in result.preview[:SAMPLE_ROWS])])


def tables_of(sql: str, context: Context) -> str:
    """Return the schema text of the tables that a query uses, each whole; empty where it cannot be read."""
    catalog = context.resources.catalog
    try:
        tables = used(sql, catalog).tables
    except SyntaxProblem:
        return ""
    return render(prune(catalog, Linked(tables=tables)), budget=SCHEMA_TOKENS).text if tables else ""
