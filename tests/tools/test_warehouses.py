"""Two questions on each of four warehouses: what nested data, shards and quoted names need, runs there."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryResult
from tests.servers.warehouses import questions

for package, extra in (
    ("psycopg", "postgres"),
    ("pymysql", "mysql"),
    ("google.cloud.bigquery", "bigquery"),
    ("snowflake.connector", "snowflake"),
):
    pytest.importorskip(package, reason=f"the extra quorum-sql[{extra}] is not installed")


@pytest.mark.heavy
async def test_every_gold_query_passes_guard_and_lint_and_runs() -> None:
    with ExitStack() as stack:
        for question in questions(stack):
            async with connect(question["database"]) as connector:
                catalog = await connector.catalog()
                database = Database(connector, catalog, Linter(catalog), Limits(), Ledger())
                outcome = await execute(database, question["sql"], agent="gold")
            assert isinstance(outcome, QueryResult), (question["id"], outcome)
            assert outcome.row_count > 0, question["id"]
