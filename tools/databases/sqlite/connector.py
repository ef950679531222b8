"""SQLite, read from one file by child processes. The driver is imported in ``session``."""

from __future__ import annotations

import re

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import GROUPING, by_code, line_and_column
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.query import ErrorKind, QueryError

KINDS = {
    ErrorKind.PERMISSION: "SQLITE_AUTH SQLITE_READONLY",
    ErrorKind.TIMEOUT: "SQLITE_INTERRUPT TimeoutError",
    ErrorKind.UNAVAILABLE: "SQLITE_BUSY SQLITE_LOCKED SQLITE_CORRUPT SQLITE_NOTADB SQLITE_CANTOPEN"
    " SQLITE_IOERR SQLITE_PROTOCOL",
    # DataError: a query longer than SQLite takes
    ErrorKind.RESOURCES: "SQLITE_TOOBIG SQLITE_NOMEM SQLITE_FULL MemoryError ArrowMemoryError DataError",
    ErrorKind.TYPE_MISMATCH: "SQLITE_MISMATCH",
}
"""By Python's class, or the primary result code, with which extended codes start."""
BY_CODE = by_code(KINDS)

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
        primary = "_".join(failure.code.split("_")[:2])
        kind = BY_CODE.get(failure.type) or BY_CODE.get(primary, ErrorKind.OTHER)
        line: int | None = None
        column: int | None = None
        if kind is ErrorKind.OTHER:
            matches = ((re.search(pattern, failure.message), each) for pattern, each in MESSAGES)
            match, kind = next((found for found in matches if found[0]), (None, kind))
            if name := match.groupdict().get("name") if match else None:
                places = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE))
                if len(places) == 1:
                    line, column = line_and_column(sql[: places[0].start()])
        text = failure.message.strip().rstrip(".") or failure.type
        return QueryError(kind, f"{text[0].upper()}{text[1:]}.", line=line, column=column)
