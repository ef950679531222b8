"""Runs SQL for a scorer in this process, without guard and lint."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.tools.databases.sqlite.values import Collector
from quorum.tools.query import ErrorKind, QueryError, QueryResult


class SqliteRun:
    """An ``quorum.evals.scorers.base.Rerun``.

    Attributes:
        asked: All texts that were run, in order.
        rows: The cap on rows.
    """

    def __init__(self, script: str = "", *, rows: int = 1000) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.executescript(script)
        self.asked: list[str] = []
        self.rows = rows

    async def __call__(self, sql: str) -> QueryResult | QueryError:
        self.asked.append(sql)
        try:
            cursor = self.connection.execute(sql)
        except sqlite3.Error as error:
            return QueryError(ErrorKind.OTHER, f"{error}.")
        kept = Collector([item[0] for item in cursor.description], self.rows, 2**20)
        if batch := cursor.fetchall():
            kept.add(batch)
        table, types = kept.finish()
        return QueryResult(table, 1.0, kept.truncated, sql=sql, column_types=types)

    async def anew(self, sql: str) -> QueryResult | QueryError:
        return await self(sql)


def question(*gold: str) -> EvalQuestion:
    """A question on a SQLite database with these gold queries."""
    return EvalQuestion("0001", "Which?", "shop", "sqlite:///shop.sqlite", "sqlite", gold)


def values(rows: Sequence[Sequence[Any]]) -> str:
    """A query that returns the rows, values as they are; at least one row and column."""
    lines = [", ".join(map(_literal, row)) for row in rows]
    return " UNION ALL ".join(f"SELECT {line}" for line in lines)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
