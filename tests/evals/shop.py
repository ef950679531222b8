"""A small shop on SQLite, and what runs SQL on it in this process, for tests of scorers."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from quorum.evals.questions import EvalQuestion
from quorum.tools.databases.sqlite.values import Collector
from quorum.tools.query import ErrorKind, QueryError, QueryResult

USERS = [(1, "Ada", 36.0, "UK"), (2, "Bob", None, "US"), (3, "Cy", 20.5, None), (4, "Dan", 20.5, "US")]


def write_shop(path: Path) -> Path:
    """A database with one table, ``users(id, name, age, country)``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age REAL, country TEXT)")
        connection.executemany("INSERT INTO users VALUES (?, ?, ?, ?)", USERS)
    connection.close()
    return path


@dataclass
class Runner:
    """Runs SQL as scorers see it: the same text once, unless it is run anew.

    Attributes:
        rows: Where results are cut.
        ran: Each query that reached the database.
    """

    path: Path
    rows: int = 1000
    ran: list[str] = field(default_factory=list)
    known: dict[str, QueryResult | QueryError] = field(default_factory=dict)

    async def __call__(self, sql: str) -> QueryResult | QueryError:
        if sql not in self.known:
            self.known[sql] = await self.anew(sql)
        return self.known[sql]

    async def anew(self, sql: str) -> QueryResult | QueryError:
        self.ran.append(sql)
        connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)
        try:
            cursor = connection.execute(sql)
            kept = Collector([column[0] for column in cursor.description], self.rows, 2**20)
            if rows := cursor.fetchall():
                kept.add(rows)
        except sqlite3.Error as error:
            return QueryError(ErrorKind.OTHER, str(error))
        finally:
            connection.close()
        table, types = kept.finish()
        return QueryResult(table, 0.25, kept.truncated, sql=sql, column_types=types)


def question(*gold: str, text: str = "Which users?", **extra: str) -> EvalQuestion:
    """A question with accepted queries; it needs no file."""
    return EvalQuestion("q", text, "shop", "sqlite:///shop.db", "sqlite", gold, extra=extra)
