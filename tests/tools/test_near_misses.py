"""Near misses: what each part of a query with an empty result lets through."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.near_misses import near_misses
from quorum.tools.query import Limits


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
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
            ],
        ),
        (  # the first empty stage is looked into, not the last
            "WITH big AS (SELECT * FROM orders WHERE total > 100), named AS (SELECT * FROM big) "
            "SELECT id FROM named WHERE id > 0",
            [
                "CTE big: 0 rows",
                "CTE named: 0 rows",
                "FROM orders: 4 rows",
                "only total > 100: 0 rows",
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
