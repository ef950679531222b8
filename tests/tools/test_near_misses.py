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
from tests.tools.case_files import cases


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


async def test_what_each_part_lets_through(database: Database) -> None:
    for sql, lines in cases("near_misses"):
        assert await near_misses(database, sql) == lines.splitlines(), sql


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


@pytest.mark.parametrize("name", ["big", '"big"'])
async def test_names_are_spelt_as_in_the_query(
    name: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    async def execute(_: Database, sql: str, **__: Any) -> QueryError:
        ran.append(sql)
        return QueryError(ErrorKind.TIMEOUT, "")

    monkeypatch.setattr("quorum.tools.near_misses.execute", execute)
    elsewhere: Any = SimpleNamespace(dialect="snowflake")
    sql = f"WITH {name} AS (SELECT v FROM t) SELECT v FROM {name}"
    assert await near_misses(replace(database, connector=elsewhere), sql) == []
    assert f"FROM {name})" in ran[0]
