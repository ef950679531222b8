"""The beginning of a result as text for a prompt; what was cut is always said."""

from __future__ import annotations

from tools.query import QueryResult
from tools.results import csv_lines

MAX_ROWS = 100
MAX_BYTES = 5_000
"""Of one exploration result (ReFoRCE, paper 000, Appendix C: 100 rows or 5 KB)."""


def excerpt(result: QueryResult, *, rows: int = MAX_ROWS, size: int = MAX_BYTES) -> str:
    """A result's first rows as CSV, at most ``rows`` of them and about ``size`` UTF-8 bytes.

    Whole rows, but for a first one that is too long by itself. A last line says how many rows there
    are and what is missing; a result that the database cut off is marked as well.
    """
    lines = [line.rstrip("\r\n") for line in csv_lines(result.table.slice(0, rows))]
    shown, used = [_fit(lines[0], size)], len(lines[0].encode())
    for line in lines[1:]:
        used += len(line.encode("utf-8", "surrogatepass")) + 1
        if used > size and len(shown) > 1:
            break
        shown.append(_fit(line, size))
    return "\n".join([*shown, _tail(len(shown) - 1, result)])


def _fit(line: str, size: int) -> str:
    if len(line.encode("utf-8", "surrogatepass")) <= size:
        return line
    return line.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore") + "… (row cut)"


def _tail(shown: int, result: QueryResult) -> str:
    total = result.row_count
    many = f"{total} row{'' if total == 1 else 's'}"
    if result.truncated:
        return f"({shown} rows shown; the result was cut at {many}, there are more)"
    return f"({many})" if shown == total else f"({shown} of {many} shown, the rest was cut)"
