"""What PostgreSQL says of a query that failed, as a ``QueryError``."""

from __future__ import annotations

import re

from quorum.tools.databases.base import GROUPING, by_code, line_and_column
from quorum.tools.databases.server import Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

KINDS = {
    ErrorKind.SYNTAX: "42601 42P02 08P01",  # the last two: $1
    ErrorKind.TABLE_NOT_FOUND: "42P01 3F000",
    ErrorKind.COLUMN_NOT_FOUND: "42703",
    ErrorKind.AMBIGUOUS_COLUMN: "42702 42P09",
    ErrorKind.GROUPING: "42803",
    ErrorKind.FUNCTION: "42P20 42883 42725 42809",  # the first one: windows
    ErrorKind.TYPE_MISMATCH: "42804 42846 42704 42P18 42P38 22",
    ErrorKind.PERMISSION: "42501 25006",
    ErrorKind.TIMEOUT: "57014",
    ErrorKind.RESOURCES: "53 54",
    ErrorKind.UNAVAILABLE: "25P03 53300 55P03 XX001 XX002 08 40 57 58",
    ErrorKind.OTHER: "22012 22021 22P05",  # division by zero; bytes that are no text
}
"""By SQLSTATE, or its first two characters where the whole code says no more."""
BY_CODE = by_code(KINDS)
_PERHAPS = re.compile(r'Perhaps you meant to reference the (?:column|table alias) (?P<names>"[^?]*"\.?)')


def query_error(refusal: Refusal, sql: str) -> QueryError:
    """The kind, a sentence, the place in ``sql`` and the server's own suggestions."""
    line, column = _place(refusal.position, sql)
    near = _PERHAPS.search(refusal.hint)
    names = re.findall(r'"([^"]+)"', near["names"]) if near else []
    return QueryError(
        _kind(refusal), sentence(refusal.message), line=line, column=column, suggestions=tuple(names)
    )


def _kind(refusal: Refusal) -> ErrorKind:
    if refusal.state == "42883" and refusal.message.startswith("operator"):
        return ErrorKind.TYPE_MISMATCH
    if known := BY_CODE.get(refusal.state) or BY_CODE.get(refusal.state[:2]):
        return known
    if re.search(GROUPING, refusal.message):
        return ErrorKind.GROUPING
    if refusal.message.startswith("cross-database references"):
        return ErrorKind.TABLE_NOT_FOUND
    return ErrorKind.SYNTAX if refusal.state.startswith("42") else ErrorKind.OTHER


def _place(position: int | None, sql: str) -> tuple[int, int] | tuple[None, None]:
    if position is None or not 0 < position <= len(sql) + 1:
        return None, None
    return line_and_column(sql[: position - 1])
