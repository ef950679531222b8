"""PostgreSQL: what a query would read, by plans of a real server, of which nothing runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.postgres.costs import Facts, estimate_of
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import ENDLESS

SCRIPT = """
CREATE TABLE big (id int PRIMARY KEY, k int, pad text);
INSERT INTO big SELECT i, i % 100, repeat('x', 200) FROM generate_series(1, 50000) AS i;
CREATE TABLE small (id int PRIMARY KEY, name text);
INSERT INTO small SELECT i, 'n' || i FROM generate_series(1, 100) AS i;
CREATE TABLE long (id int, doc text);
ALTER TABLE long ALTER doc SET STORAGE EXTERNAL;
INSERT INTO long SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 300) AS i;
CREATE TABLE days (day date, v int) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
INSERT INTO days SELECT date '2024-01-01' + i % 60, i FROM generate_series(0, 50000) AS i;
CREATE SEQUENCE counter;
CREATE VIEW joined AS SELECT b.id, s.name FROM big b JOIN small s ON s.id = b.k;
CREATE VIEW bumping AS SELECT nextval('counter') AS n;
CREATE FUNCTION counted() RETURNS bigint STABLE LANGUAGE plpgsql
    AS 'BEGIN RETURN (SELECT count(*) FROM big); END';
CREATE VIEW hidden AS SELECT name, counted() AS n FROM small;
CREATE FUNCTION inlined() RETURNS SETOF big STABLE LANGUAGE sql AS 'SELECT * FROM big';
CREATE VIEW open AS SELECT * FROM inlined();
CREATE FUNCTION near(int, int) RETURNS boolean STABLE LANGUAGE plpgsql AS 'BEGIN RETURN counted() > 0; END';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = near);
CREATE VIEW alike AS SELECT id FROM small WHERE id === 5;
CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE elsewhere (line text) SERVER files OPTIONS (filename '/dev/null');
ANALYZE;
"""
SIZES = """
    SELECT relname, pg_relation_size(oid) + coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0),
        pg_total_relation_size(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace
"""


@pytest.fixture(scope="module")
def name(postgres: PostgresServer) -> str:
    return postgres.new_database(SCRIPT)


@pytest.fixture(scope="module")
def sizes(postgres: PostgresServer, name: str) -> dict[str, int]:
    return {table: size for table, size, _ in postgres.execute(SIZES, name)}


@pytest.fixture
async def shop(postgres: PostgresServer, name: str) -> AsyncIterator[Connector]:
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        yield connector


async def told(shop: Connector, sql: str) -> Estimate:
    found = await shop.estimate(sql, Limits())
    assert isinstance(found, Estimate), found
    assert not found.billed
    return found


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT count(*) FROM big", ["big"]),
        ("TABLE small", ["small"]),
        ("SELECT * FROM big ORDER BY k LIMIT 5", ["big"]),
        ("SELECT * FROM big WHERE pad = 'y' LIMIT 5", ["big"]),
        ("SELECT length(doc) FROM long", ["long"]),
        ("SELECT sum(v) FROM days WHERE day < '2024-01-15'", ["days_1"]),
        ("SELECT sum(v) FROM days", ["days_1", "days_2"]),
        ("SELECT * FROM joined", ["big", "small"]),
        ("SELECT * FROM open", ["big"]),
        ("WITH c AS MATERIALIZED (SELECT * FROM big) SELECT 1 FROM c a JOIN c b USING (id)", ["big"]),
        ("SELECT name, (SELECT count(*) FROM big WHERE k = s.id) FROM small s", ["big", "small"]),
        ("SELECT * FROM big TABLESAMPLE BERNOULLI (1)", ["big"]),
        ("SELECT * FROM big TABLESAMPLE SYSTEM (1)", ["big"]),
        ("SELECT * FROM big TABLESAMPLE SYSTEM (1) LIMIT 1", ["big"]),
        ("SELECT 1", []),
        ("VALUES (1), (2)", []),
        ("SELECT * FROM generate_series(1, 1000000)", []),
        ("EXPLAIN SELECT * FROM big", []),
        ("SHOW server_version", []),
    ],
)
async def test_whole_tables_count_with_all_their_pages(
    sql: str, tables: list[str], shop: Connector, sizes: dict[str, int]
) -> None:
    assert (await told(shop, sql)).bytes == sum(sizes[table] for table in tables)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM big WHERE id = 7",
        "SELECT * FROM big WHERE id BETWEEN 7 AND 9",
        "SELECT * FROM big ORDER BY id LIMIT 5",
        "SELECT * FROM big LIMIT 10",
        "SELECT upper(pad) FROM big LIMIT 10 OFFSET 20",
    ],
)
async def test_what_needs_few_pages_counts_with_few(sql: str, shop: Connector, sizes: dict[str, int]) -> None:
    size = (await told(shop, sql)).bytes
    assert size is not None
    assert 0 < size <= 2**20 < sizes["big"] / 5


async def test_rows_are_the_planners(shop: Connector) -> None:
    assert (await told(shop, "SELECT * FROM small")).rows == 100


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM hidden", "it calls counted"),
        ("SELECT * FROM alike", "it calls ==="),
        ("SELECT * FROM elsewhere", "its plan has a Foreign Scan"),
        ("SELECT 1 FROM small JOIN elsewhere ON true", "its plan has a Foreign Scan"),
        ("EXPLAIN ANALYZE SELECT * FROM small", "EXPLAIN runs its query"),
    ],
)
async def test_what_hides_its_reading_is_not_told(sql: str, why: str, shop: Connector) -> None:
    found = await told(shop, sql)
    assert found.bytes is None
    assert found.unknown.startswith(why)
    outcome = await execute(await database(shop, scan=2**30), sql, agent="action")
    assert isinstance(outcome, QueryError)
    assert outcome.kind in (ErrorKind.RESOURCES, ErrorKind.REFUSED, ErrorKind.FUNCTION)


async def test_nothing_has_run(postgres: PostgresServer, name: str, shop: Connector) -> None:
    assert isinstance(await shop.estimate(ENDLESS, Limits(seconds=2)), Estimate)
    assert isinstance(await shop.estimate("SELECT * FROM bumping", Limits()), QueryError)
    assert postgres.execute("SELECT is_called FROM counter", name) == [(False,)]


async def test_a_wrong_query_has_its_own_places(shop: Connector) -> None:
    found = await shop.estimate("SELECT id,\n nope FROM big", Limits())
    assert isinstance(found, QueryError)
    assert (found.kind, found.line, found.column) == (ErrorKind.COLUMN_NOT_FOUND, 2, 2)


async def database(shop: Connector, scan: int | None = None, run: int | None = None) -> Database:
    catalog = await shop.catalog(samples=0)
    return Database(shop, catalog, Linter(catalog), Limits(scan=scan), Ledger(Budget(read_bytes=run)))


async def test_a_limit_is_kept_and_estimates_are_counted_as_such(
    shop: Connector, sizes: dict[str, int]
) -> None:
    limited = await database(shop, scan=sizes["big"] - 1, run=sizes["big"])
    refused = await execute(limited, "SELECT count(*) AS n FROM big", agent="action")
    assert isinstance(refused, QueryError)
    assert refused.kind is ErrorKind.RESOURCES
    assert "partitioned, clustered or indexed by." in refused.message, "columns do not matter here"
    assert isinstance(await execute(limited, "SELECT * FROM small", agent="action"), QueryResult)
    used = limited.ledger.total
    assert (used.read_bytes, used.estimated_bytes) == (0, sizes["small"])
    assert limited.ledger.remaining_bytes() == sizes["big"] - sizes["small"]


def node(kind: str, **more: Any) -> dict[str, Any]:
    return {"Node Type": kind, "Startup Cost": 0.0, "Total Cost": 100.0, "Plan Rows": 1000, **more}


def scan(table: str, **more: Any) -> dict[str, Any]:
    return node("Seq Scan", **{"Schema": "s", "Relation Name": table, **more})


FACTS = Facts({("s", "t"): (2**30, 2**31, 1e6), ("s", "u"): (2**33, 2**34, 1e7)}, cache=2**32)


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        # what stays in memory is read once, however often it is scanned; what is larger each time
        (node("Nested Loop", Plans=[scan("t", **{"Parent Relationship": "Outer"}),
                                    scan("t", **{"Parent Relationship": "Inner"})]), 2 * 2**30),
        (node("Nested Loop", Plans=[scan("t", **{"Parent Relationship": "Outer"}),
                                    scan("u", **{"Parent Relationship": "Inner"})]), 2**30 + 1000 * 2**33),
        (node("Nested Loop", Plans=[scan("t", **{"Parent Relationship": "Outer"}),
                                    node("Materialize", **{"Parent Relationship": "Inner"},
                                         Plans=[scan("u", **{"Parent Relationship": "Outer"})])]),
         2**30 + 2**33),
        (scan("t", Plans=[scan("u", **{"Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1"})]),
         2**30 + 10**6 * 2**33),
        (scan("t", Filter="(hashed SubPlan 1)",
              Plans=[scan("u", **{"Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1"})]),
         2**30 + 2**33),
        (node("Gather", **{"Workers Planned": 2}, Plans=[scan("u", **{"Parallel Aware": True})]), 2**33),
        (node("Gather", **{"Workers Planned": 2}, Plans=[scan("u", **{"Parallel Aware": False})]), 3 * 2**33),
        (node("Recursive Union", Plans=[node("Result"), scan("u", **{"Parent Relationship": "Inner"})]),
         10 * 2**33),
        # a LIMIT cuts what streams, not what has to be read whole, and not where it may be guessed
        (node("Limit", **{"Total Cost": 1.0, "Plan Rows": 10},
              Plans=[scan("t", **{"Parent Relationship": "Outer"})]), 2**30 / 100),
        (node("Limit", **{"Total Cost": 1.0, "Plan Rows": 10},
              Plans=[scan("t", Filter="x", **{"Parent Relationship": "Outer"})]), 2**30),
        (node("Limit", **{"Total Cost": 1.0, "Plan Rows": 10}, Plans=[
            node("Sort", **{"Parent Relationship": "Outer"},
                 Plans=[scan("t", **{"Parent Relationship": "Outer"})])]), 2**30),
        (node("Limit", **{"Total Cost": 10.0, "Plan Rows": 100_000},
              Plans=[scan("t", **{"Parent Relationship": "Outer"})]), 2**30),
        (node("Index Scan", **{"Schema": "s", "Relation Name": "t"}), 100 * 8192),
        (node("Index Scan", **{"Schema": "s", "Relation Name": "t", "Total Cost": 1e12}), 2**31),
    ],
)  # fmt: skip
def test_plans_are_read_never_too_low(plan: dict[str, Any], size: float) -> None:
    found = estimate_of(plan, FACTS, [])
    assert found.bytes is not None
    assert found.bytes == pytest.approx(size, rel=1e-6)


def test_a_table_of_unknown_size_is_not_told() -> None:
    assert "the size of x" in estimate_of(scan("x"), FACTS, []).unknown
    assert "Custom Scan" in estimate_of(node("Custom Scan"), FACTS, []).unknown
    free = replace(FACTS, page_cost=0.0)
    found = estimate_of(node("Index Scan", **{"Schema": "s", "Relation Name": "t"}), free, [])
    assert found.bytes == 2**31, "costs say nothing"
