"""The beginning of a result as text for a prompt; what was cut is always marked."""

from __future__ import annotations

from quorum.tools.query import QueryResult
from quorum.tools.results.files import csv_lines
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement

MAX_ROWS = 100
MAX_BYTES = 5_000
"""Of one exploration result (ReFoRCE's first version, paper 003, section 3.2.3: 100 rows or 5 KB)."""


def excerpt(
    result: QueryResult, *, rows: int = MAX_ROWS, size: int = MAX_BYTES, limit: int | None = None
) -> str:
    """A result's first rows as CSV, at most ``rows`` of them and about ``size`` UTF-8 bytes.

    Whole rows, but for a first one that is too long by itself. A last line says how many rows there
    are and what is missing; a result that the database cut off is marked as well, and so is one with
    as many rows as its query's own ``limit`` (``row_limit``).
    """
    lines = [line.rstrip("\r\n") for line in csv_lines(result.table.slice(0, rows))]
    shown, used = [_fit(lines[0], size)], len(lines[0].encode())
    for line in lines[1:]:
        used += len(line.encode("utf-8", "surrogatepass")) + 1
        if used > size and len(shown) > 1:
            break
        shown.append(_fit(line, size))
    return "\n".join([*shown, _tail(len(shown) - 1, result, limit)])


def row_limit(sql: str, dialect: str) -> int | None:
    """The rows that a query's outermost LIMIT (FETCH, TOP) allows; None without one, or if unreadable.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot import exp

    try:
        tree = parse_one_statement(sql, dialect_name(dialect))
    except (SyntaxProblem, RecursionError):
        return None
    clause = tree.args.get("limit")
    number = clause and (clause.args.get("expression") or clause.args.get("count"))
    return int(number.this) if isinstance(number, exp.Literal) and number.is_int else None


def _fit(line: str, size: int) -> str:
    if len(line.encode("utf-8", "surrogatepass")) <= size:
        return line
    return line.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore") + "… (row cut)"


def _tail(shown: int, result: QueryResult, limit: int | None) -> str:
    total = result.row_count
    many = f"{total} row{'' if total == 1 else 's'}"
    if result.truncated:
        return f"({shown} rows shown; the result was cut at {many}, there are more)"
    full = total > 0 and total == limit
    if shown == total:
        return f"({many}: its LIMIT; there may be more)" if full else f"({many})"
    on = f"; {total} is its LIMIT, there may be more" if full else ""
    return f"({shown} of {many} shown, the rest was cut{on})"
