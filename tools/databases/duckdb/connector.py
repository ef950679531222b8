"""DuckDB, read from one file by child processes. The driver is imported in ``session``."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import GROUPING, by_code, line_and_column
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.query import ErrorKind, QueryError

KINDS = {
    ErrorKind.SYNTAX: "parser syntax",
    ErrorKind.TYPE_MISMATCH: "conversion mismatchtype typemismatch outofrange",
    ErrorKind.PERMISSION: "permission permissionerror",
    ErrorKind.TIMEOUT: "interrupt",
    ErrorKind.RESOURCES: "outofmemory memoryerror arrowmemoryerror fatal",
    ErrorKind.UNAVAILABLE: "io connection",
}
TYPES = by_code(KINDS)
"""By DuckDB's own type of the error, else by Python's class; the others need a look at their words."""

MESSAGES = (
    (r"The text holds|Values were not provided", ErrorKind.SYNTAX),
    (r"read-only mode|has been locked|disabled (by|through) configuration", ErrorKind.PERMISSION),
    (r"Ambiguous reference", ErrorKind.AMBIGUOUS_COLUMN),
    (r"(Function|Macro) with name", ErrorKind.FUNCTION),
    (GROUPING, ErrorKind.GROUPING),
    (r"cannot contain window functions|cannot be nested", ErrorKind.FUNCTION),
    (r"Type with name", ErrorKind.TYPE_MISMATCH),
    (r"No function matches|Could not choose a best candidate function", ErrorKind.TYPE_MISMATCH),
    (r"Cannot (compare|mix|cast|extract|combine)|Malformed JSON|[Cc]asting", ErrorKind.TYPE_MISMATCH),
    (r"(Table|View) with name|Referenced table|schema .* does not exist", ErrorKind.TABLE_NOT_FOUND),
    (r"does not have a column named|Referenced column|Column .* does not exist", ErrorKind.COLUMN_NOT_FOUND),
    (r"Corrupt database file", ErrorKind.UNAVAILABLE),
    (r"maximum supported string size|start new thread", ErrorKind.RESOURCES),
)
_CLASS = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_TAIL = re.compile(
    r"\s*\n\s*(?:Candidate|Did you mean|Use \"SET|Please try|LINE \d|Database is launched|Possible solutions)"
    r"|\. You might need to add explicit"
)
_NEAR = re.compile(r"(?:Candidate (?:bindings|tables)|Did you mean|Candidates):?\s*:?\s*(?P<names>\"[^\n]*)")
_INSTEAD = re.compile(r"\(use: (?P<names>[^)]*)\)")
_NEXT = re.compile(r"\. (?=[A-Z])|\.? (?=Possible (?:fixes|[Ss]olution)|The search space)")
LONGEST = 160
"""Characters of an error in a sentence on what is left out."""
SIGNATURES = 4
"""Signatures shown of a function that was called with other types."""


class DuckdbConnector(EmbeddedConnector):
    """``duckdb:///relative.duckdb``, ``duckdb:////absolute.duckdb``. Views over files are not read."""

    dialect = "duckdb"
    scheme = "duckdb"
    session = "quorum.tools.databases.duckdb.session:DuckdbSession"

    views: ClassVar[str] = "view"
    """The kind of its views in the catalog."""

    @property
    def in_place(self) -> tuple[str, tuple[str, ...]]:
        """Return the open database's file, and those that it reads, for a session that attaches it."""
        return self._served, self._files

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.duckdb.catalog import introspect

        return await introspect(self, samples)

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        """Return the kind, a clean message, position and DuckDB's own suggestions; errors come as JSON."""
        details = _details(failure.message)
        message = _CLASS.sub("", details.get("exception_message", failure.message).strip())
        # ``Out of Memory`` and ``OutOfMemoryException`` alike; errors while streaming come as OSError
        type_name = "".join(details.get("exception_type", failure.type).lower().split())
        by_message = (kind for pattern, kind in MESSAGES if re.search(pattern, message))
        kind = TYPES.get(type_name.removesuffix("exception")) or next(by_message, ErrorKind.OTHER)
        line: int | None = None
        column: int | None = None
        position, encoded = details.get("position", ""), sql.encode(errors="replace")
        if position.isdigit() and int(position) <= len(encoded):  # in bytes
            line, column = line_and_column(encoded[: int(position)].decode(errors="replace"))
        if kind is ErrorKind.RESOURCES:
            message = f"The query needs more memory than it may use: {message}"
        return QueryError(
            kind, _sentence(message), line=line, column=column, suggestions=_suggestions(message)
        )


def brief(message: str) -> str:
    """Return an error of DuckDB's in one line: its first sentence, shortened."""
    first = _NEXT.split(" ".join(message.split()), maxsplit=1)[0].rstrip(".")
    return f"{first[:LONGEST]}…" if len(first) > LONGEST else f"{first}."


def _details(message: str) -> dict[str, Any]:
    _, brace, rest = message.partition("{")
    try:
        details = json.loads(brace + rest)
    except ValueError:  # not every error is JSON
        return {}
    return details if isinstance(details, dict) else {}


def _sentence(message: str) -> str:
    head = _TAIL.split(message, maxsplit=1)[0]
    text = " ".join(head.split()).rstrip(".")
    if text and text[-1] not in "!?":
        text += "."
    return text[:1].upper() + text[1:]


def _suggestions(message: str) -> tuple[str, ...]:
    if "Candidate functions:" in message:
        signatures = message.partition("Candidate functions:")[2].strip().split("\n")
        return tuple(signature.strip() for signature in signatures[:SIGNATURES])
    if found := _NEAR.search(message):
        return tuple(name.replace('""', '"') for name in re.findall(r'"((?:[^"]|"")*)"', found["names"]))
    if found := _INSTEAD.search(message):
        return tuple(re.findall(r"'([^']*)'", found["names"]))
    return ()
