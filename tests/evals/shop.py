"""A small shop on SQLite, suites of few questions on it, and what runs SQL on it in this process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.suites.files import sqlite_url
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


GOLDS = {"q1": "SELECT COUNT(*) FROM users", "q2": "SELECT name FROM users WHERE age > 30", "q3": "SELECT 1"}


def small_suite(folder: Path, golds: Mapping[str, str] = GOLDS) -> Suite:
    """Questions on the shop, with gold SQL by id."""
    url = sqlite_url(write_shop(folder / "shop.sqlite"))
    asked = [EvalQuestion(id, f"What is {id}?", "shop", url, "sqlite", (sql,)) for id, sql in golds.items()]
    return Suite("small", folder, tuple(asked), OwnScorer())


def write_spider1(folder: Path) -> Path:
    """Two questions in Spider 1.0's layout."""
    write_shop(folder / "database" / "shop" / "shop.sqlite")
    entries = [
        {"db_id": "shop", "question": "How many users?", "query": "SELECT COUNT(*) FROM users"},
        {"db_id": "shop", "question": "Whose age is known?", "query": "SELECT name FROM users WHERE age > 0"},
    ]
    (folder / "dev.json").write_text(json.dumps(entries))
    return folder


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
