"""What PostgreSQL says of a query that failed, as a ``QueryError``."""

from __future__ import annotations

import re

from quorum.tools.databases.base import GROUPING, line_and_column
from quorum.tools.databases.server import Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

CODES = {
    "42601": ErrorKind.SYNTAX,
    "42P02": ErrorKind.SYNTAX,  # $1
    "08P01": ErrorKind.SYNTAX,  # $1 that has a type
    "42P01": ErrorKind.TABLE_NOT_FOUND,
    "3F000": ErrorKind.TABLE_NOT_FOUND,
    "42703": ErrorKind.COLUMN_NOT_FOUND,
    "42702": ErrorKind.AMBIGUOUS_COLUMN,
    "42P09": ErrorKind.AMBIGUOUS_COLUMN,
    "42803": ErrorKind.GROUPING,
    "42P20": ErrorKind.FUNCTION,  # windows
    "42883": ErrorKind.FUNCTION,
    "42725": ErrorKind.FUNCTION,
    "42809": ErrorKind.FUNCTION,  # called as what it is not
    "42804": ErrorKind.TYPE_MISMATCH,
    "42846": ErrorKind.TYPE_MISMATCH,
    "42704": ErrorKind.TYPE_MISMATCH,  # a type that is not there
    "42P18": ErrorKind.TYPE_MISMATCH,
    "42P38": ErrorKind.TYPE_MISMATCH,
    "42501": ErrorKind.PERMISSION,
    "25006": ErrorKind.PERMISSION,
    "57014": ErrorKind.TIMEOUT,
    "25P03": ErrorKind.UNAVAILABLE,
    "53300": ErrorKind.UNAVAILABLE,
    "55P03": ErrorKind.UNAVAILABLE,  # a lock
    "22012": ErrorKind.OTHER,  # division by zero
    "22021": ErrorKind.OTHER,  # bytes that are no text, in a database that does not say what they are
    "22P05": ErrorKind.OTHER,
    "XX001": ErrorKind.UNAVAILABLE,
    "XX002": ErrorKind.UNAVAILABLE,
}
CLASSES = {
    "08": ErrorKind.UNAVAILABLE,
    "22": ErrorKind.TYPE_MISMATCH,
    "40": ErrorKind.UNAVAILABLE,
    "53": ErrorKind.RESOURCES,
    "54": ErrorKind.RESOURCES,
    "57": ErrorKind.UNAVAILABLE,
    "58": ErrorKind.UNAVAILABLE,
}
"""By the first two characters, where the whole code says no more."""
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
    if known := CODES.get(refusal.state) or CLASSES.get(refusal.state[:2]):
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
