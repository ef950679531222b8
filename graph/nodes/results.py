"""Results on their way into the state: a file in the run folder, a fingerprint, a short preview."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa

from agents.validator import SAMPLE_ROWS, ColumnSummary, ResultSummary
from graph.state import PREVIEW_ROWS, ResultState
from tools.query import QueryResult
from tools.results import fingerprint, is_blank, write_result

MAX_CELL = 200
"""Characters of a cell that state and checkpoints hold; the file holds all of it."""


async def keep_result(result: QueryResult, folder: Path) -> ResultState:
    """Write the result to the run folder and describe it; heavy work runs in a thread."""
    return await asyncio.to_thread(_keep, result, folder)


def _keep(result: QueryResult, folder: Path) -> ResultState:
    table = result.table
    path = write_result(table, folder / "results")
    return {
        "file": str(path.relative_to(folder)),
        "fingerprint": fingerprint(table),
        "blank": is_blank(table),
        "columns": result.columns,
        "row_count": result.row_count,
        "truncated": result.truncated,
        "preview": [[_cut(value) for value in row] for row in result.preview(PREVIEW_ROWS)],
        "nulls": [int(column.null_count) for column in table.columns],
        "distinct": [_distinct(column) for column in table.columns],
        "types": [str(column.type) for column in table.columns],
    }


def _distinct(column: pa.ChunkedArray) -> int | None:
    import pyarrow.compute as pc

    try:
        return int(pc.count_distinct(column).as_py())
    except pa.ArrowNotImplementedError:  # nested values
        return None


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_CELL:
        return value[: MAX_CELL - 1] + "…"
    if isinstance(value, list | dict) and len(str(value)) > MAX_CELL:
        return str(value)[: MAX_CELL - 1] + "…"
    return value


def summary(result: ResultState) -> ResultSummary:
    """What the Validator sees of a result."""
    columns = [
        ColumnSummary(*described)
        for described in zip(
            result["columns"], result["types"], result["nulls"], result["distinct"], strict=True
        )
    ]
    return ResultSummary(
        row_count=result["row_count"],
        truncated=bool(result["truncated"]),
        columns=columns,
        sample_rows=result["preview"][:SAMPLE_ROWS],
    )


def observation(result: ResultState) -> str:
    """A result as an action's observation: columns, row count and the first rows."""
    head = f"{result['row_count']} rows; columns: {', '.join(result['columns'])}"
    rows = [str(row) for row in result["preview"][:SAMPLE_ROWS]]
    return "\n".join([head, *rows])
