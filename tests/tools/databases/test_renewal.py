"""Catalogs that are renewed: only what changed is read again; the result is what reading all gives.

Of PostgreSQL whatever changes; of MariaDB and BigQuery what they tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Column
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector, Snapshot
from quorum.tools.databases.postgres.connector import PostgresConnector
from quorum.tools.query import Limits, QueryError, QueryResult
from tests.servers.bigquery_server import running_bigquery
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PASSWORD, PostgresServer
from tests.waiting import wait_until

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

SHOP = """
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE customers (id int PRIMARY KEY, name text, mood mood);
INSERT INTO customers SELECT i, 'name ' || i, CASE WHEN i % 2 = 0 THEN 'sad'::mood ELSE 'glad' END
    FROM generate_series(1, 30) AS i;
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, city text);
INSERT INTO orders SELECT i, 1 + i % 30, (ARRAY['Oslo', 'Rome'])[1 + i % 2]
    FROM generate_series(1, 2500) AS i;
CREATE TABLE plain (a int, b text);
INSERT INTO plain VALUES (1, 'x'), (2, 'y');
CREATE TABLE days (day date, n int) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO days VALUES ('2024-05-01', 1);
CREATE VIEW cities AS SELECT city FROM orders WHERE id < 9;
CREATE VIEW of_view AS SELECT city FROM cities;
CREATE VIEW now_seen AS SELECT city FROM orders WHERE id < 3 AND now() > '2000-01-01';
CREATE MATERIALIZED VIEW totals AS SELECT city, count(*) AS n FROM orders GROUP BY city;
"""


@dataclass
class Shop:
    """A database, and what is asked of it."""

    server: PostgresServer
    name: str
    asked: list[str]

    @property
    def url(self) -> str:
        return f"{self.server.admin_url}/{self.name}"

    def change(self, *statements: str) -> None:
        """Change something, and wait until the server has counted it: a session counts when it ends."""
        for statement in statements:
            self.server.execute(statement, self.name)
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        wait_until(
            lambda: self.server.execute(f"{others} AND application_name <> 'quorum'", self.name) == [(1,)]
        )

    async def snapshot(self, before: Snapshot | None = None) -> Snapshot:
        async with connect(self.url) as connector:
            assert isinstance(connector, PostgresConnector)
            self.asked.clear()
            return await connector.snapshot(before)

    async def renewed(self, before: Snapshot) -> tuple[Snapshot, list[str]]:
        """A renewed reading, which must be what reading all gives, and the questions that it took."""
        renewed = await self.snapshot(before)
        asked = [sql for sql in self.asked if "pg_catalog" not in sql and "LIMIT" in sql]
        fresh = await self.snapshot()
        assert renewed.catalog == fresh.catalog
        assert renewed == fresh
        return renewed, asked


@pytest.fixture
def shop(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Shop:
    name = postgres.new_database(SHOP)
    found = Shop(postgres, name, [])
    real = PostgresConnector.ask

    async def ask(self: PostgresConnector, sql: str, limits: Limits) -> QueryResult | QueryError:
        found.asked.append(sql)
        return await real(self, sql, limits)

    monkeypatch.setattr(PostgresConnector, "ask", ask)
    found.change("SELECT 1")
    return found


def read(asked: list[str]) -> set[str]:
    """The tables and views of which values were asked for."""
    names = ("customers", "orders", "plain", "days", "cities", "of_view", "now_seen", "totals", "late")
    return {name for name in names if any(f'"public"."{name}"' in sql for sql in asked)}


CHANGES = {
    "nothing": ([], set()),
    "a row inserted": (["INSERT INTO plain VALUES (3, 'z')"], {"plain"}),
    "a row changed": (["UPDATE plain SET b = 'w' WHERE a = 1"], {"plain"}),
    "a row deleted": (["DELETE FROM plain WHERE a = 1"], {"plain"}),
    "a table emptied": (["TRUNCATE plain"], {"plain"}),
    "a table added": (["CREATE TABLE late (x int)", "INSERT INTO late VALUES (7)"], {"late"}),
    "a table dropped": (["DROP TABLE plain"], set()),
    "a table made anew": (["DROP TABLE plain", "CREATE TABLE plain (a int, b text)"], {"plain"}),
    "a table renamed": (["ALTER TABLE plain RENAME TO late"], {"late"}),
    "a column added": (["ALTER TABLE plain ADD c int DEFAULT 5"], {"plain"}),
    "a column made anew": (["ALTER TABLE plain DROP b, ADD b text"], {"plain"}),
    "a column's type": (["ALTER TABLE plain ALTER a TYPE bigint"], {"plain"}),
    "columns swapped": (
        [
            "ALTER TABLE plain RENAME a TO c",
            "ALTER TABLE plain RENAME b TO a",
            "ALTER TABLE plain RENAME c TO b",
        ],
        {"plain"},
    ),
    "a comment": (["COMMENT ON TABLE plain IS 'plainly'"], {"plain"}),
    "a column's comment": (["COMMENT ON COLUMN plain.b IS 'letters'"], {"plain"}),
    "a key": (["ALTER TABLE plain ADD PRIMARY KEY (a)"], {"plain"}),
    "a partition's row": (["INSERT INTO days_1 VALUES ('2024-06-01', 2)"], {"days"}),
    "a partition detached": (["ALTER TABLE days DETACH PARTITION days_1"], {"days"}),
    "a row behind views": (["UPDATE orders SET city = 'Bonn' WHERE id = 3"], {"orders", "cities", "of_view"}),
    "a view": (
        ["CREATE OR REPLACE VIEW cities AS SELECT city FROM orders WHERE id < 5"],
        {"cities", "of_view"},
    ),
    "a refresh": (["REFRESH MATERIALIZED VIEW totals"], {"totals"}),
    "a label": (
        ["ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"],
        {"customers", "orders", "plain", "days", "cities", "of_view", "totals"},
    ),
    "a policy, which does not bind its table's owner": (
        ["ALTER TABLE plain ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON plain USING (a = 1)"],
        set(),
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("what", CHANGES)
async def test_what_changed_is_read_again_and_nothing_else(what: str, shop: Shop) -> None:
    statements, expected = CHANGES[what]
    before = await shop.snapshot()
    shop.change(*statements)
    _, asked = await shop.renewed(before)
    assert read(asked) == expected | {"now_seen"}, "what a clock decides is read each time"


STEPS = st.sampled_from(
    [statement for statements, _ in CHANGES.values() for statement in statements]
    + [
        "ANALYZE",
        "VACUUM orders",
        "INSERT INTO orders SELECT i, 1, 'Kyiv' FROM generate_series(3000, 4000) i",
    ]
)
SOME = settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.heavy
@SOME
@given(steps=st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=3))
async def test_whatever_changes_a_renewed_catalog_is_the_one_that_reading_all_gives(
    steps: list[list[str]], shop: Shop
) -> None:
    import psycopg

    before = await shop.snapshot()
    for statements in steps:
        for statement in statements:
            try:
                shop.change(statement)
            except psycopg.Error:  # what an earlier step took away cannot be changed
                continue
        before, _ = await shop.renewed(before)


READER = """
CREATE ROLE {role} LOGIN PASSWORD '{password}';
GRANT SELECT ON customers, orders TO {role};
GRANT SELECT (a) ON plain TO {role};
"""


@pytest.mark.heavy
async def test_grants_and_policies_count_at_the_next_renewal(shop: Shop) -> None:
    role = f"{shop.name}_renewer"
    shop.change(READER.format(role=role, password=PASSWORD))
    url = f"postgresql://{role}:{quote(PASSWORD, safe='')}@127.0.0.1:{shop.server.port}/{shop.name}"

    async def renewed(before: Snapshot | None) -> Snapshot:
        async with connect(url) as connector:
            found, fresh = await connector.snapshot(before), await connector.snapshot()
        assert found == fresh
        return found

    def column(found: Snapshot, name: str) -> Column | None:
        plain = found.catalog.table("plain")
        return plain.column(name) if plain else None

    def samples(found: Snapshot) -> tuple[str, ...]:
        shown = column(found, "b")
        return shown.samples if shown else ("no such column",)

    first = await renewed(None)
    assert {table.name for table in first.catalog.tables} == {"customers", "orders", "plain"}
    assert column(first, "b") is None
    shop.change(f"GRANT SELECT ON plain, days TO {role}; REVOKE SELECT ON customers FROM {role}")
    second = await renewed(first)
    assert {table.name for table in second.catalog.tables} == {"days", "orders", "plain"}
    assert samples(second) == ("x", "y")
    shop.change("ALTER TABLE plain ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON plain USING (b = 'x')")
    third = await renewed(second)
    assert third.catalog.filtered == ("public.plain",)
    assert samples(third) == ("x",)
    shop.change("CREATE TABLE members (b text)", f"GRANT SELECT ON members TO {role}")
    shop.change("ALTER POLICY p ON plain USING (b IN (SELECT m.b FROM members m))")
    fourth = await renewed(third)
    assert samples(fourth) == ()
    shop.change("INSERT INTO members VALUES ('y')")
    assert samples(await renewed(fourth)) == ("y",), "a policy may hang on any table"


MARIADB = """
CREATE TABLE kept (a int PRIMARY KEY, b varchar(20) COMMENT 'letters');
INSERT INTO kept VALUES (1, 'x'), (2, 'y');
CREATE TABLE other (a int, b varchar(20));
INSERT INTO other VALUES (1, 'z');
CREATE VIEW seen AS SELECT b FROM kept;
"""


async def test_mariadb_reads_again_what_was_changed(
    mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pymysql", reason="the extra quorum-sql[mysql] is not installed")
    name = mariadb.new_database(MARIADB)
    old = (
        "SELECT min(update_time < NOW() - INTERVAL 2 SECOND) FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name <> 'late'"
    )
    for change, expected in {
        "SELECT 1": {"seen"},
        "INSERT INTO other VALUES (2, 'w')": {"other", "seen"},
        "UPDATE kept SET b = 'q' WHERE a = 1": {"kept", "seen"},
        "ALTER TABLE kept COMMENT 'letters'": {"kept", "seen"},
        "CREATE TABLE late (x int)": {"late", "seen"},
        "DROP TABLE other": {"late", "seen"},
    }.items():
        wait_until(lambda: mariadb.execute(old, name) == ((1,),))  # a second's changes look like one
        async with connect(f"{mariadb.admin_url}/{name}") as connector:
            before = await connector.snapshot()
            mariadb.execute(change, name)
            asked = watched(connector, monkeypatch)
            renewed = await connector.snapshot(before)
            tables = ("kept", "other", "seen", "late")
            read = {each for each in tables if any(f"`{each}`" in sql for sql in asked)}
            assert renewed.catalog == (await connector.snapshot()).catalog
        assert read == expected, change


def watched(connector: Connector, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that a connector is asked from now on."""
    asked: list[str] = []
    real = connector.run

    async def run(sql: str, limits: Limits) -> QueryResult | QueryError:
        asked.append(sql)
        return await real(sql, limits)

    monkeypatch.setattr(connector, "run", run)
    return asked


async def test_bigquery_reads_rows_again_of_what_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.cloud.bigquery", reason="the extra quorum-sql[bigquery] is not installed")
    with running_bigquery() as server:
        name = server.new_dataset(
            "CREATE TABLE kept AS SELECT 'x' AS b; CREATE TABLE other AS SELECT 'y' AS b"
        )
        read: list[str] = []
        real = server._data

        def data(dataset: str, table: str, asked: dict[str, str]) -> dict[str, object]:
            read.append(table)
            return real(dataset, table, asked)

        monkeypatch.setattr(server, "_data", data)
        async with connect(server.url(name)) as connector:
            before = await connector.snapshot()
            for change, expected in {
                "SELECT 1": set[str](),
                "INSERT INTO other VALUES ('z')": {"other"},
                "UPDATE kept SET b = 'w'": {"kept"},
                "ALTER TABLE other ADD c INTEGER": {"other"},
                "CREATE TABLE late AS SELECT 1 AS x": {"late"},
                "DROP TABLE other": set[str](),
            }.items():
                server.engine.execute(change, name)
                read.clear()
                before = await connector.snapshot(before)
                assert {*read} == expected, change
                assert before == await connector.snapshot()
