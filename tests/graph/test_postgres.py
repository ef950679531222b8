"""Whole runs over a PostgreSQL server: many at once over one connector, and what row policies hide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.graph.shop import GOOD, Opened, run_graph, script, sql
from tests.servers.postgres_server import PostgresServer

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text, city text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, total float, note text);
INSERT INTO customers VALUES (1, 'Ada', 'Ghent'), (2, 'Bo', 'Lyon'), (3, 'Cy', 'Lyon');
INSERT INTO orders VALUES (1, 1, 10, NULL), (2, 2, 20, NULL), (3, 3, 5, NULL), (4, 3, 7, NULL);
"""
POLICY = """
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY large ON orders FOR SELECT USING (total > 15);
CREATE VIEW paid AS SELECT id, total FROM orders;
GRANT SELECT ON customers, orders, paid TO tenant;
"""
TENANT = """
DO $$ BEGIN CREATE ROLE tenant LOGIN PASSWORD 'pw'; EXCEPTION WHEN duplicate_object THEN END $$
"""
AT_ONCE = 50


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    async with AsyncExitStack() as closing:
        yield Opened(closing)


async def test_fifty_questions_at_once_share_one_connector(
    postgres: PostgresServer, tmp_path: Path, opened: Opened
) -> None:
    url = f"{postgres.admin_url}/{postgres.new_database(SHOP)}?application_name=questions"
    counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'questions'"
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            ((found,),) = await asyncio.to_thread(postgres.execute, counted)
            most = max(most, found)

    async def ask(number: int) -> list[list[object]]:
        wanted = GOOD.replace("COUNT(*)", f"COUNT(*) + {number}") + " ORDER BY 1"
        said = script(action=sql(wanted), sql_writer={"reasoning": "So.", "sql": wanted})
        ran = await run_graph(tmp_path, url, said, opened=opened, recipe="quorum", votes=2)
        assert ran.answer.status == "answered", ran.answer
        return ran.answer.rows

    first = await ask(0)
    assert first == [["Ghent", 1], ["Lyon", 3]]
    watching = asyncio.create_task(watch())
    found = await asyncio.gather(*map(ask, range(AT_ONCE)))
    watching.cancel()
    assert found == [[["Ghent", 1 + number], ["Lyon", 3 + number]] for number in range(AT_ONCE)]
    (resources,) = opened._resources.values()
    assert 0 < most <= resources.connector.links  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "hidden"),
    [
        ("SELECT id FROM orders WHERE total < 15", "public.orders"),
        ("SELECT count(*) AS n FROM orders AS o WHERE o.total < 15", "public.orders"),
        ("SELECT id FROM customers WHERE id > 5", ""),
        ("SELECT id FROM orders WHERE total > 15", ""),
    ],
)
async def test_a_blank_answer_under_a_row_policy_says_so(
    postgres: PostgresServer, tmp_path: Path, opened: Opened, query: str, hidden: str
) -> None:
    postgres.execute(TENANT)
    name = postgres.new_database(SHOP + POLICY)
    url = f"postgresql://tenant:pw@127.0.0.1:{postgres.port}/{name}"
    ran = await run_graph(
        tmp_path, url, script(sql_writer={"reasoning": "So.", "sql": query}), opened=opened, recipe="single"
    )
    assert ran.answer.sql.startswith("SELECT"), ran.answer
    told = [text for text in ran.answer.warnings if text.startswith("Row policies")]
    assert [hidden in text for text in told] == ([True] if hidden else []), ran.answer
    (resources,) = opened._resources.values()
    assert set(resources.catalog.filtered) == {"public.orders"}, "the view's owner is a superuser"
    assert any("Row policies may hide rows of: public.orders." in note for note in resources.catalog.notes)
