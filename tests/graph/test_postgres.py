"""Whole runs over a PostgreSQL server: what row policies hide."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.graph.shop import SHOP, Opened, run_graph, script
from tests.servers.postgres_server import PostgresServer

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

POLICY = """
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY large ON orders FOR SELECT USING (total > 15);
CREATE VIEW paid AS SELECT id, total FROM orders;
GRANT SELECT ON customers, orders, paid TO tenant;
"""
TENANT = """
DO $$ BEGIN CREATE ROLE tenant LOGIN PASSWORD 'pw'; EXCEPTION WHEN duplicate_object THEN END $$
"""


async def test_a_blank_answer_under_a_row_policy_says_so(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute(TENANT)
    name = postgres.new_database(SHOP + POLICY)
    url = f"postgresql://tenant:pw@127.0.0.1:{postgres.port}/{name}"
    async with AsyncExitStack() as closing:
        opened = Opened(closing)
        for query, hidden in (
            ("SELECT id FROM orders WHERE total < 15", ["public.orders"]),
            ("SELECT count(*) AS n FROM orders AS o WHERE o.total < 15", ["public.orders"]),
            ("SELECT id FROM customers WHERE id > 5", []),
            ("SELECT id FROM orders WHERE total > 15", []),
        ):
            said = script(sql_writer={"reasoning": "So.", "sql": query})
            ran = await run_graph(tmp_path, url, said, opened=opened, recipe="single")
            assert ran.answer.sql.startswith("SELECT"), ran.answer
            told = [text for text in ran.answer.warnings if text.startswith("Row policies")]
            assert [table in text for table, text in zip(hidden, told, strict=True)] == [True] * len(hidden)
        (resources,) = opened._resources.values()
    assert set(resources.catalog.filtered) == {"public.orders"}, "the view's owner is a superuser"
    assert any("Row policies may hide rows of: public.orders." in note for note in resources.catalog.notes)
