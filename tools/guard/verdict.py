"""What the guard answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorum.tools.query import ErrorKind, QueryError

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Passed:
    """A pure read.

    Attributes:
        sql: The text to execute: what was judged, without comments and hints.
        dialect: Canonical name of its dialect.
        tree: The parsed query, as written (inside an EXPLAIN: the explained query); None for an
            inspection that is no query (``PRAGMA table_info(t)``).
        kind: ``query``, ``explain`` or ``inspection``.
        script: The statements before the query, in order (BigQuery's DECLARE, SET, TEMP FUNCTION).
    """

    sql: str
    dialect: str
    tree: exp.Expr | None = field(default=None, compare=False)
    kind: str = "query"
    script: tuple[exp.Expr, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Refused:
    """SQL that must not reach a database.

    Attributes:
        reason: One sentence for people and models: what is refused and why.
        rule: Short name of the rule: ``syntax`` where the text could not be read at all.
        line, column: 1-based position, where known.
    """

    reason: str
    rule: str
    line: int | None = None
    column: int | None = None

    def error(self) -> QueryError:
        """The refusal as a failed query: of kind ``syntax`` or ``refused``, said by the guard."""
        kind = ErrorKind.SYNTAX if self.rule in ("syntax", "empty") else ErrorKind.REFUSED
        return QueryError(kind, self.reason, self.line, self.column, by="guard")
