"""SQLite, read from one file by child processes. The driver is imported in ``session``."""

from __future__ import annotations

import re

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import GROUPING
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.query import ErrorKind, QueryError

CODES = {
    "SQLITE_AUTH": ErrorKind.PERMISSION,
    "SQLITE_READONLY": ErrorKind.PERMISSION,
    "SQLITE_INTERRUPT": ErrorKind.TIMEOUT,
    "SQLITE_BUSY": ErrorKind.UNAVAILABLE,
    "SQLITE_LOCKED": ErrorKind.UNAVAILABLE,
    "SQLITE_CORRUPT": ErrorKind.UNAVAILABLE,
    "SQLITE_NOTADB": ErrorKind.UNAVAILABLE,
    "SQLITE_CANTOPEN": ErrorKind.UNAVAILABLE,
    "SQLITE_IOERR": ErrorKind.UNAVAILABLE,
    "SQLITE_PROTOCOL": ErrorKind.UNAVAILABLE,
    "SQLITE_TOOBIG": ErrorKind.RESOURCES,
    "SQLITE_NOMEM": ErrorKind.RESOURCES,
    "SQLITE_FULL": ErrorKind.RESOURCES,
    "SQLITE_MISMATCH": ErrorKind.TYPE_MISMATCH,
}
"""By the primary result code; extended codes start with it."""

TYPES = {
    "TimeoutError": ErrorKind.TIMEOUT,
    "MemoryError": ErrorKind.RESOURCES,
    "ArrowMemoryError": ErrorKind.RESOURCES,
    "DataError": ErrorKind.RESOURCES,  # a query longer than SQLite takes
}

MESSAGES = (
    (r'near "(?P<name>.+)": syntax error', ErrorKind.SYNTAX),
    (r'unrecognized token: "(?P<name>.+)"', ErrorKind.SYNTAX),
    (r"incomplete input|The text holds no query|null character|one statement at a time", ErrorKind.SYNTAX),
    (r"no such table: (?P<name>.+)|unknown database (?P<other>.+)", ErrorKind.TABLE_NOT_FOUND),
    (r"ambiguous column name: (?P<name>.+)", ErrorKind.AMBIGUOUS_COLUMN),
    (r"no such column: (?P<name>.+)", ErrorKind.COLUMN_NOT_FOUND),
    (GROUPING, ErrorKind.GROUPING),
    (r"no such function: (?P<name>.+)", ErrorKind.FUNCTION),
    (r"wrong number of arguments to function (?P<name>\w+)", ErrorKind.FUNCTION),
    (r"misuse of|may not be used as a window", ErrorKind.FUNCTION),
    (r"prohibited|not authorized|unsafe use of", ErrorKind.PERMISSION),
    (r"too (large|big|many|complex)|stack overflow|out of memory|at most \d+ tables", ErrorKind.RESOURCES),
    (r"malformed JSON|JSON path|datatype mismatch|integer overflow", ErrorKind.TYPE_MISMATCH),
)


class SqliteConnector(EmbeddedConnector):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``."""

    dialect = "sqlite"
    scheme = "sqlite"
    session = "quorum.tools.databases.sqlite.session:SqliteSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.sqlite.catalog import introspect

        return await introspect(self, samples)

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        """Return the kind, a clean message, and the position if the name occurs only once in ``sql``."""
        kind = TYPES.get(failure.type)
        name: str | None = None
        if kind is None:
            primary = "_".join(failure.code.split("_")[:2])
            kind = CODES.get(primary, ErrorKind.OTHER)
        if kind is ErrorKind.OTHER:
            kind, name = _by_message(failure.message)
        line, column = _position(name, sql) if name else (None, None)
        return QueryError(kind, _sentence(failure), line=line, column=column)


def _by_message(message: str) -> tuple[ErrorKind, str | None]:
    for pattern, kind in MESSAGES:
        if found := re.search(pattern, message):
            return kind, found.groupdict().get("name")
    return ErrorKind.OTHER, None


def _position(name: str, sql: str) -> tuple[int, int] | tuple[None, None]:
    """1-based line and column; SQLite names the culprit but not its place, so it must be unique."""
    found = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE))
    if len(found) != 1:
        return None, None
    start = found[0].start()
    return sql.count("\n", 0, start) + 1, start - sql.rfind("\n", 0, start)


def _sentence(failure: EngineFailed) -> str:
    text = failure.message.strip().rstrip(".") or failure.type
    return f"{text[0].upper()}{text[1:]}."
