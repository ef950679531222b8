"""A query over several databases gives what one DuckDB gives that holds all their tables."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.tools.databases import connect
from quorum.tools.databases.many.connector import ManyConnector
from quorum.tools.query import Limits, QueryResult
from tests.engines import build, start_no_process
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import rows

WORDS = ("", "a", "A", "b", "B ", "ab", "é", "5", "05", "a%", "NULL", "2024-01-01", None)
DAYS = ("2023-12-31", "2024-01-01", "2024-02-29", None)
TIMES = ("2023-12-31 23:59:59", "2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", None)
PRICES = ("0", "5", "5.5", "-1.25", "1000000.01", None)


def literal(value: Any) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"


def data(seed: int) -> list[tuple[Any, ...]]:
    """Rows of a table: an id, a number, a double, a word, a day, a moment, a price."""
    count = 14
    return [
        (
            i,
            None if i % 5 == 3 else (i * seed) % 7 - 2,
            None if i % 6 == 4 else (i * seed % 5) / 4,
            WORDS[(i * seed) % len(WORDS)],
            DAYS[(i + seed) % len(DAYS)],
            TIMES[(i * seed) % len(TIMES)],
            PRICES[(i + seed) % len(PRICES)],
        )
        for i in range(count)
    ]


def script(name: str, kinds: tuple[str, ...], seed: int) -> str:
    columns = ", ".join(
        f"{column} {kind}" for column, kind in zip(("id", "n", "x", "w", "d", "t", "p"), kinds, strict=True)
    )
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in data(seed))
    return f"CREATE TABLE {name} ({columns}); INSERT INTO {name} VALUES {values};"


SQLITE = ("INTEGER", "INTEGER", "REAL", "TEXT COLLATE NOCASE", "DATE", "TIMESTAMP", "DECIMAL(12, 2)")
DUCKDB = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "DECIMAL(12, 2)")
POSTGRES = ("bigint", "integer", "double precision", "text", "date", "timestamp", "numeric(12, 2)")
MYSQL = ("bigint", "int", "double", "varchar(20)", "date", "datetime(6)", "decimal(12, 2)")
AS_SQLITE = ("BIGINT", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR", "VARCHAR", "DOUBLE")


class Bench:
    """The connector, and one DuckDB with the same tables under the same names."""

    def __init__(
        self, connector: ManyConnector, oracle: duckdb.DuckDBPyConnection, tables: list[str]
    ) -> None:
        self.connector, self.oracle, self.tables = connector, oracle, tables
        self.loop = asyncio.new_event_loop()
        self.handed = 0

    def compare(self, sql: str) -> None:
        """Run a query on both; rows are compared as a multiset."""
        try:
            expected = self.oracle.execute(sql).fetchall()
        except duckdb.Error:
            return
        outcome = self.loop.run_until_complete(self.connector.run(sql, Limits()))
        assert isinstance(outcome, QueryResult), (sql, outcome)
        assert ordered(rows(outcome)) == ordered(expected), (sql, [part.sql for part in outcome.parts])
        self.handed += any(" WHERE " in part.sql for part in outcome.parts)


def ordered(found: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(map(plain, row))) for row in found)


def plain(value: Any) -> Any:
    number = isinstance(value, int | float) or type(value).__name__ == "Decimal"
    return float(f"{float(value):.9g}") if number and math.isfinite(value) else value


@pytest.fixture(scope="module")
def bench(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, mariadb: MariadbServer
) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("many")
    lite = build("sqlite", folder / "lite.db", script("a", SQLITE, 3))
    duck = build("duckdb", folder / "duck.duckdb", script("b", DUCKDB, 4) + script("c", DUCKDB, 5))
    name = postgres.new_database(script("e", POSTGRES, 6))
    other = mariadb.new_database(script("f", MYSQL, 7))
    mysql = other if other != name else f"{other}_2"  # how names that are alike are told apart
    oracle = duckdb.connect(":memory:")
    oracle.execute("SET TimeZone = 'UTC'; ATTACH ':memory:' AS lite; ATTACH ':memory:' AS duck")
    oracle.execute(f"ATTACH ':memory:' AS {name}; CREATE SCHEMA {name}.public")
    oracle.execute(script("lite.main.a", AS_SQLITE, 3))
    oracle.execute(script("duck.main.b", DUCKDB, 4) + script("duck.main.c", DUCKDB, 5))
    oracle.execute(f"ATTACH ':memory:' AS {mysql}")
    oracle.execute(script(f"{name}.public.e", DUCKDB, 6) + script(f"{mysql}.main.f", DUCKDB, 7))
    with pytest.MonkeyPatch.context() as patch:
        start_no_process(patch)
        members = [connect(lite), connect(duck)]
        servers = [connect(f"{postgres.admin_url}/{name}"), connect(f"{mariadb.admin_url}/{other}")]
        tables = ["lite.main.a", "duck.main.b", "duck.main.c", f"{name}.public.e", f"{mysql}.main.f"]
        made = Bench(ManyConnector([*members, *servers]), oracle, tables)
        connector = made.connector
        made.loop.run_until_complete(connector.open())
        yield made
        made.loop.run_until_complete(connector.close())
    made.loop.close()
    assert made.handed > 50, "conditions were handed down"


COLUMNS = ("id", "n", "x", "w", "d", "t", "p")
CONSTANTS = {
    "id": ("0", "3", "5.0", "-1", "'4'"),
    "n": ("0", "2", "-2", "1.5", "99999999999", "'3'", "NULL"),
    "x": ("0.25", "0.5", "1", "0", "1e0"),
    "w": ("'a'", "'A'", "'é'", "''", "'5'", "'b'", "'B '", "NULL"),
    "d": ("'2024-01-01'", "DATE '2024-01-01'", "DATE '2023-12-31'", "'2024-02-29'"),
    "t": (
        "'2024-01-01'",
        "TIMESTAMP '2024-01-01 00:00:00'",
        "'2024-01-01 00:00:00.000001'",
        "DATE '2024-01-01'",
    ),
    "p": ("5", "5.5", "5.50", "-1.25", "1000000.01", "0"),
}


def conditions(column: str) -> Iterator[str]:
    """Every comparison of a column with its constants."""
    name, constants = f"q.{column}", CONSTANTS[column]
    yield from (f"{name} {maybe}NULL" for maybe in ("IS ", "IS NOT "))
    for i, one in enumerate(constants):
        other = constants[(i + 1) % len(constants)]
        yield from (f"{name} {sign} {one}" for sign in ("=", "<>", "<", "<=", ">", ">="))
        yield from (f"{name} {maybe}IN ({one}, {other})" for maybe in ("", "NOT "))
        yield from (f"{name} {maybe}BETWEEN {one} AND {other}" for maybe in ("", "NOT "))
        yield f"NOT ({one} < {name} OR q.w = 'a')"


@pytest.mark.heavy
def test_a_condition_gives_the_same_rows(bench: Bench) -> None:
    for table in (each for each in bench.tables if not each.startswith("duck")):  # which is read in place
        for column in COLUMNS:
            for condition in conditions(column):
                bench.compare(f"SELECT * FROM {table} AS q WHERE {condition}")


JOINED = (
    "SELECT q.n, count(*) FROM {} AS q {} JOIN {} AS r ON q.id = r.id AND r.{} WHERE q.{} GROUP BY 1",
    "SELECT q.id, r.id FROM {} AS q {} JOIN {} AS r ON q.n = r.n WHERE r.{} OR q.{}",
    "SELECT o.id FROM {0} AS o WHERE EXISTS (SELECT 1 FROM {2} AS r WHERE r.{3} AND o.id = r.id) AND o.{4}",
    "WITH c AS (SELECT q.n FROM {0} AS q WHERE q.{4}) SELECT * FROM c UNION ALL SELECT r.n FROM {2} AS r",
)


@pytest.mark.heavy
@settings(max_examples=150)
@given(data=st.data())
def test_a_query_gives_the_same_rows(bench: Bench, data: st.DataObject) -> None:
    of, ends = (
        st.sampled_from(bench.tables),
        ("n > 0", "n IS NULL", "w IN ('a', 'b')", "x BETWEEN 0.25 AND 1"),
    )
    join, end = st.sampled_from(("", "LEFT", "RIGHT", "FULL")), st.sampled_from(ends)
    form = data.draw(st.sampled_from(JOINED))
    bench.compare(form.format(*map(data.draw, (of, join, of, end, end))))
