"""Near misses: what each part of a query with an empty result lets through."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.near_misses import MAX_CONDITIONS, near_misses
from quorum.tools.query import ErrorKind, Limits, QueryError


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            PRAGMA synchronous = OFF;
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, total REAL);
            INSERT INTO customers VALUES (1, 'Ada', 30), (2, 'Bo', 40), (3, 'Cy', 50);
            INSERT INTO orders
                VALUES (1, 1, 'open', 5), (2, 1, 'open', 7), (3, 2, 'shut', 9), (4, 9, 'open', 1);
            """
        )
    async with connect(str(path)) as connector:
        catalog = await connector.catalog()
        yield Database(connector, catalog, Linter(catalog), Limits(), Ledger())


JOINED = "FROM orders AS o JOIN customers AS c ON c.id = o.customer_id"


@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        (
            f"SELECT c.name {JOINED} WHERE o.status = 'done' AND c.age > 35 ORDER BY 1 LIMIT 3",
            [
                "FROM orders AS o: 4 rows",
                "JOIN customers AS c ON c.id = o.customer_id: 3 rows",
                "only o.status = 'done': 0 rows",
                "only c.age > 35: 1 row",
            ],
        ),
        (
            "SELECT name FROM customers WHERE age > 35 AND age < 45 AND name LIKE 'C%'",
            [
                "FROM customers: 3 rows",
                "only age > 35: 2 rows",
                "all conditions but age > 35: 0 rows",
                "only age < 45: 2 rows",
                "all conditions but age < 45: 1 row",
                "only name LIKE 'C%': 1 row",
                "all conditions but name LIKE 'C%': 1 row",
            ],
        ),
        (
            f"SELECT c.name, COUNT(*) AS n {JOINED} GROUP BY c.name HAVING n > 2 AND SUM(o.total) > 8",
            [
                "FROM orders AS o: 4 rows",
                "JOIN customers AS c ON c.id = o.customer_id: 3 rows",
                "groups before HAVING: 2 rows",
                "groups with only n > 2: 0 rows",
                "groups with only SUM(o.total) > 8: 2 rows",
                "the least COUNT(*) of all groups is 1",
                "the greatest COUNT(*) of all groups is 2",
                "the least SUM(o.total) of all groups is 9.0",
                "the greatest SUM(o.total) of all groups is 12.0",
            ],
        ),
        (  # the first empty stage is looked into, not the last
            "WITH big AS (SELECT * FROM orders WHERE total > 100), named AS (SELECT * FROM big) "
            "SELECT id FROM named WHERE id > 0",
            [
                "CTE big: 0 rows",
                "CTE named: 0 rows",
                "in CTE big, FROM orders: 4 rows",
                "in CTE big, only total > 100: 0 rows",
            ],
        ),
        (  # listed tables are never multiplied
            "SELECT o.id FROM orders o, customers c WHERE c.id = o.customer_id AND c.age > 60 AND total > 5",
            [
                "FROM orders AS o: 4 rows",
                "joined by c.id = o.customer_id: 3 rows",
                "only c.age > 60: 0 rows",
                "only total > 5: 2 rows",
            ],
        ),
        (  # as the dialect spells it, without comments
            "SELECT id FROM orders WHERE strftime('%Y', id) = '2030' /* the year */",
            ["FROM orders: 4 rows", "only STRFTIME('%Y', id) = '2030': 0 rows"],
        ),
        (  # a subquery in FROM is a stage
            "SELECT id FROM (SELECT id, status FROM orders WHERE total > 100) AS big WHERE status = 'open'",
            [
                "FROM (SELECT id, status FROM orders WHERE total > 100) AS big: 0 rows",
                "only status = 'open': 0 rows",
                "in big, FROM orders: 4 rows",
                "in big, only total > 100: 0 rows",
            ],
        ),
        (  # conditions may use the names of columns shown
            "SELECT total * 2 AS twice, MAX(id) AS id FROM orders WHERE twice > 12 AND id > 3 GROUP BY 1",
            ["FROM orders: 4 rows", "only twice > 12: 2 rows", "only id > 3: 1 row"],
        ),
        (
            "SELECT status FROM orders WHERE total > 1 GROUP BY 1 HAVING COUNT(*) > 1 LIMIT 5 OFFSET 9",
            [
                "FROM orders: 4 rows",
                "only total > 1: 3 rows",
                "groups before HAVING: 2 rows",
                "groups with only COUNT(*) > 1: 1 row",
                "before OFFSET: 1 row",
                "the least COUNT(*) of all groups is 1",
                "the greatest COUNT(*) of all groups is 2",
            ],
        ),
        ("SELECT 1 WHERE 1 = 2", []),
        ("SELECT id FROM orders WHERE id < 0 UNION SELECT id FROM customers WHERE id < 0", []),
        ("SELECT FROM WHERE", []),
    ],
)
async def test_what_each_part_lets_through(sql: str, lines: list[str], database: Database) -> None:
    assert await near_misses(database, sql) == lines


async def test_counting_goes_through_guard_and_ledger(database: Database) -> None:
    assert await near_misses(database, "WITH x AS (DELETE FROM orders RETURNING id) SELECT id FROM x") == []
    assert database.ledger.total.queries == 0
    await near_misses(database, "SELECT name FROM customers WHERE age > 99")
    assert database.ledger.total.queries == 1


async def test_of_many_conditions_some_are_named_and_all_are_kept(database: Database) -> None:
    many = [f"id > {place - 10}" for place in range(9)]
    lines = await near_misses(database, f"SELECT id FROM orders WHERE {' AND '.join(many)} AND total > 99")
    assert "all conditions but id > -10: 0 rows" in lines
    assert len([line for line in lines if line.startswith("only")]) == MAX_CONDITIONS


async def test_a_long_query_is_not_taken_apart(database: Database) -> None:
    ids = ", ".join(map(str, range(1000, 9000)))
    assert await near_misses(database, f"SELECT id FROM orders WHERE id IN ({ids}) AND total > 1") == []
    assert database.ledger.total.queries == 0


@pytest.mark.parametrize(
    ("dialect", "sql", "asked"),
    [
        ("snowflake", "WITH big AS (SELECT v FROM t) SELECT v FROM big", "FROM big)"),
        ("snowflake", 'WITH "big" AS (SELECT v FROM t) SELECT v FROM "big"', 'FROM "big")'),
        ("snowflake", "SELECT v FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY v) > 9", "(SELECT 1 FROM t)"),
    ],
)
async def test_names_are_spelt_as_in_the_query(
    dialect: str, sql: str, asked: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    async def execute(_: Database, sql: str, **__: Any) -> QueryError:
        ran.append(sql)
        return QueryError(ErrorKind.TIMEOUT, "")

    monkeypatch.setattr("quorum.tools.near_misses.execute", execute)
    elsewhere: Any = SimpleNamespace(dialect=dialect)
    assert await near_misses(replace(database, connector=elsewhere), sql) == []
    assert asked in ran[0]
