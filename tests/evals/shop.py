"""A small shop on SQLite, and what runs SQL on it in this process, for tests of scorers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from quorum.evals.questions import EvalQuestion
from quorum.tools.databases.sqlite.values import SqliteCollector
from quorum.tools.query import ErrorKind, QueryError, QueryResult

SHOP = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age REAL, country TEXT);
INSERT INTO users VALUES
    (1, 'Ada', 36.0, 'UK'), (2, 'Bob', NULL, 'US'), (3, 'Cy', 20.5, NULL), (4, 'Dan', 20.5, 'US');
"""


def write_shop(path: Path) -> Path:
    """Write a database with one table, ``users(id, name, age, country)``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    connection.close()
    return path


class Runner:
    """A ``quorum.evals.scorers.base.RunSql`` without guard and lint.

    Attributes:
        rows: Where results are cut.
        ran: Each query that reached the database.
    """

    def __init__(self, script: str = SHOP, *, rows: int = 1000) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.executescript(script)
        self.rows = rows
        self.ran: list[str] = []
        self.known: dict[str, QueryResult | QueryError] = {}

    @property
    def predicted(self) -> Runner:
        return self

    async def __call__(self, sql: str) -> QueryResult | QueryError:
        if sql not in self.known:
            self.known[sql] = await self.again(sql)
        return self.known[sql]

    async def again(self, sql: str) -> QueryResult | QueryError:
        self.ran.append(sql)
        try:
            cursor = self.connection.execute(sql)
        except sqlite3.Error as error:
            return QueryError(ErrorKind.OTHER, f"{error}.")
        kept = SqliteCollector([column[0] for column in cursor.description], self.rows, 2**20)
        if rows := cursor.fetchall():
            kept.add(rows)
        table, types = kept.finish()
        return QueryResult(table, 0.25, kept.truncated, sql=sql, column_types=types)


def question(*gold: str, text: str = "Which users?", **extra: str) -> EvalQuestion:
    """A question with accepted queries; it needs no file."""
    return EvalQuestion("q", text, "shop", "sqlite:///shop.db", "sqlite", gold, extra=extra)
