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

VALUES: dict[str, tuple[Any, ...]] = {
    "id": tuple(range(14)),
    "n": (-2, 0, 1, 2, 3, 4, None),
    "x": (0, 0.25, 0.5, 0.75, 1, None),
    "w": ("", "a", "A", "b", "B ", "ab", "é", "5", "05", "a%", "NULL", "2024-01-01", None),
    "d": ("2023-12-31", "2024-01-01", "2024-02-29", None),
    "t": ("2023-12-31 23:59:59", "2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", None),
    "p": ("0", "5", "5.5", "-1.25", "1000000.01", None),
}
"""What each column of a table holds: an id, a number, a double, a word, a day, a moment, a price."""
CONSTANTS = {
    "id": ("0", "3", "5.0", "-1", "'4'"),
    "n": ("0", "2", "-2", "1.5", "99999999999", "'3'", "NULL"),
    "x": ("0.25", "0.5", "1", "0", "1e0"),
    "w": ("'a'", "'A'", "'é'", "''", "'5'", "'b'", "'B '", "NULL"),
    "d": ("'2024-01-01'", "DATE '2024-01-01'", "DATE '2023-12-31'", "'2024-02-29'"),
    "t": ("'2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00'", "'2024-01-01 00:00:00.000001'"),
    "p": ("5", "5.5", "5.50", "-1.25", "1000000.01", "0"),
}
SQLITE = "INTEGER; INTEGER; REAL; TEXT COLLATE NOCASE; DATE; TIMESTAMP; DECIMAL(12, 2)"
AS_SQLITE = "BIGINT; BIGINT; DOUBLE; VARCHAR; VARCHAR; VARCHAR; DOUBLE"
DUCKDB = "BIGINT; INTEGER; DOUBLE; VARCHAR; DATE; TIMESTAMP; DECIMAL(12, 2)"
POSTGRES = "bigint; integer; double precision; text; date; timestamp; numeric(12, 2)"
MYSQL = "bigint; int; double; varchar(20); date; datetime(6); decimal(12, 2)"


def script(name: str, kinds: str, seed: int) -> str:
    """A table of 14 rows; the seed, which shares no factor with their numbers, says which values meet."""
    columns = ", ".join(f"{column} {kind}" for column, kind in zip(VALUES, kinds.split("; "), strict=True))
    lines = [[values[(i * seed) % len(values)] for values in VALUES.values()] for i in VALUES["id"]]
    literals = [", ".join("NULL" if value is None else repr(value) for value in line) for line in lines]
    values = ", ".join(f"({line})" for line in literals)
    return f"CREATE TABLE {name} ({columns}); INSERT INTO {name} VALUES {values};"


class Bench:
    """The connector, and one DuckDB with the same tables under the same names."""

    def __init__(self, connector: ManyConnector) -> None:
        self.connector, self.oracle = connector, duckdb.connect(":memory:")
        self.tables: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.handed = 0

    def add(self, database: str, schema: str, name: str, kinds: str, seed: int) -> None:
        """A table that the oracle holds, too."""
        place = f"{database}.{schema}"
        self.oracle.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {database}")
        self.oracle.execute(f"CREATE SCHEMA IF NOT EXISTS {place}; {script(f'{place}.{name}', kinds, seed)}")
        self.tables.append(f"{place}.{name}")

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
    name = postgres.new_database(script("e", POSTGRES, 5))
    other = mariadb.new_database(script("f", MYSQL, 17))
    mysql = other if other != name else f"{other}_2"  # how names that are alike are told apart
    urls = [
        build("sqlite", folder / "lite.db", script("a", SQLITE, 19)),
        build("duckdb", folder / "duck.duckdb", script("b", DUCKDB, 11)),
        f"{postgres.admin_url}/{name}",
        f"{mariadb.admin_url}/{other}",
    ]
    with pytest.MonkeyPatch.context() as patch:
        start_no_process(patch)
        made = Bench(ManyConnector(list(map(connect, urls))))
        made.add("lite", "main", "a", AS_SQLITE, 19)
        made.add("duck", "main", "b", DUCKDB, 11)
        made.add(name, "public", "e", DUCKDB, 5)
        made.add(mysql, "main", "f", DUCKDB, 17)
        made.loop.run_until_complete(made.connector.open())
        yield made
        made.loop.run_until_complete(made.connector.close())
    made.loop.close()
    assert made.handed > 50, "conditions were handed down"


def conditions(column: str) -> Iterator[str]:
    """Every comparison of a column with its constants."""
    name, constants = f"q.{column}", CONSTANTS[column]
    yield from (f"{name} {maybe}NULL" for maybe in ("IS ", "IS NOT "))
    for one, other in zip(constants, (*constants[1:], constants[0]), strict=True):
        yield from (f"{name} {sign} {one}" for sign in ("=", "<>", "<", "<=", ">", ">="))
        for maybe in ("", "NOT "):
            yield from (f"{name} {maybe}IN ({one}, {other})", f"{name} {maybe}BETWEEN {one} AND {other}")
        yield f"NOT ({one} < {name} OR q.w = 'a')"


@pytest.mark.heavy
def test_a_condition_gives_the_same_rows(bench: Bench) -> None:
    for table in (each for each in bench.tables if not each.startswith("duck")):  # which is read in place
        for column in VALUES:
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
    of, join = st.sampled_from(bench.tables), st.sampled_from(("", "LEFT", "RIGHT", "FULL"))
    end = st.sampled_from(("n > 0", "n IS NULL", "w IN ('a', 'b')", "x BETWEEN 0.25 AND 1"))
    form = data.draw(st.sampled_from(JOINED))
    bench.compare(form.format(*map(data.draw, (of, join, of, end, end))))
