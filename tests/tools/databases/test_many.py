"""Several databases as one: the contract over them, how a query is split and what is handed down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import psutil
import pytest

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import connect, connect_all
from quorum.tools.databases.base import Connector
from quorum.tools.databases.many import connector as many
from quorum.tools.databases.many.catalog import united
from quorum.tools.databases.many.connector import ManyConnector
from quorum.tools.databases.many.plan import QueryPlan, UnionTables, split
from quorum.tools.databases.snowflake.url import Schemas
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.engines import build, start_no_process
from tests.tools.case_files import cases
from tests.tools.databases.contract import ENDLESS, ConnectorContract, at_work, children, error, result, rows
from tests.waiting import until

BESIDE = "CREATE TABLE beside (id INTEGER, word VARCHAR); INSERT INTO beside VALUES (1, 'one'), (2, 'two');"


class Beside(ManyConnector):
    """Several databases of which the contract looks at the first one."""

    async def catalog(self, *, samples: int = 3) -> Catalog:
        catalog = await super().catalog(samples=samples)
        return replace(catalog, tables=tuple(each for each in catalog.tables if each.name != "beside"))


class TestSqliteBesideDuckdb(ConnectorContract):
    """A database of the contract beside another one."""

    scheme = "sqlite"
    dialect = "duckdb"
    long_text = "hex(zeroblob(50000))"

    def build(self, path: Path, script: str) -> None:
        build("sqlite", path, script)

    def state(self, path: Path) -> object:
        return path.read_bytes()

    def connect(self, path: Path) -> Connector:
        other = path.with_name(f"{path.stem}-beside.duckdb")
        if not other.exists():
            build("duckdb", other, BESIDE)
        return Beside([connect(f"sqlite:///{path}"), connect(f"duckdb:///{other}")])

    def at_work(self, connector: Connector) -> int:
        assert isinstance(connector, ManyConnector)
        return at_work(connector._joiner)

    async def test_queries_run_at_the_same_time(self, shop: Connector) -> None:
        slow = [asyncio.create_task(shop.run(ENDLESS, Limits(seconds=600))) for _ in range(3)]
        await until(lambda: self.at_work(shop) == 3)
        assert rows(await shop.run("SELECT count(*) FROM customers, beside", Limits())) == [(6,)]
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    async def test_close_leaves_nothing_behind(self, path: Path) -> None:
        connector = self.connect(path)
        await connector.open()
        query = asyncio.create_task(connector.run(f"{ENDLESS}, customers, beside", Limits(seconds=600)))
        await until(lambda: self.at_work(connector) == 1)
        engines = children()
        await connector.close()
        assert error(await query).kind is ErrorKind.UNAVAILABLE
        assert engines
        assert not any(psutil.pid_exists(engine.pid) for engine in engines)
        with pytest.raises(DatabaseUnavailable, match="closed"):
            await connector.run("SELECT 1", Limits())


ORDERS = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2), day DATE, note TEXT);
INSERT INTO orders VALUES
    (1, 1, 10, '2024-01-01', 'a'), (2, 1, 20.5, '2024-02-01', NULL), (3, 2, 5, '2023-01-01', 'b');
CREATE TABLE counts (n INTEGER);
INSERT INTO counts VALUES (1), (2);
CREATE TABLE mixed (v);
INSERT INTO mixed VALUES (5), ('5'), ('x'), (NULL), (7.5);
CREATE VIEW several AS SELECT 5 AS v UNION ALL SELECT 'x';
"""
CUSTOMERS = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, joined DATE, tags VARCHAR[],
    info STRUCT(a INTEGER, b VARCHAR), document JSON);
INSERT INTO customers VALUES
    (1, 'Ann', '2020-01-01', ['x', 'y'], {'a': 1, 'b': 'z'}, '{"k": [1, 2]}'),
    (2, 'Bob', '2021-01-01', [], NULL, NULL);
"""


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    orders = build("sqlite", tmp_path / "shop.db", ORDERS)
    return [orders, build("duckdb", tmp_path / "crm.duckdb", CUSTOMERS)]


@pytest.fixture
async def both(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ManyConnector]:
    start_no_process(monkeypatch)
    async with connect_all(urls) as connector:
        assert isinstance(connector, ManyConnector)
        await connector.catalog()
        yield connector


def told(dialect: str) -> Connector:
    """A connector of which only the dialect matters."""
    return Mock(spec=Connector, dialect=dialect)


NO_ZONE, ZONE = "timestamp without time zone", "timestamp with time zone"
TYPES = {
    "postgres": ("integer", "text", "date", NO_ZONE, ZONE, "real"),
    "mysql": ("int(11)", "varchar(20)", "date", "datetime(6)", "timestamp", "float"),
    "bigquery": ("INT64", "STRING", "DATE", "DATETIME", "TIMESTAMP", "FLOAT64"),
    "snowflake": ("NUMBER(38,0)", "TEXT", "DATE", "TIMESTAMP_NTZ(9)", "TIMESTAMP_TZ(9)", "FLOAT"),
    "sqlite": ("INTEGER", "TEXT", "DATE", "DATETIME", "DATETIME", "REAL"),
}


def parts_of(sql: str, dialect: str, rows: int = 100) -> list[str]:
    """The parts of a query over a table ``t`` of an engine, and ``u`` of DuckDB."""
    columns = tuple(Column(name, kind) for name, kind in zip("nwdmzf", TYPES[dialect], strict=True))
    mine = Catalog("db", dialect, (Table("t", columns, schema="s"),))
    other = Catalog("other", "duckdb", (Table("u", (Column("n", "BIGINT"),), schema="main"),))
    _, held = united([(told(dialect), mine), (told("duckdb"), other)])
    plan = split(sql, UnionTables(held), rows)
    assert isinstance(plan, QueryPlan), plan
    return [part.sql for part in plan.parts]


@pytest.mark.parametrize(("dialect", "where", "handed"), cases("databases/cases/many_conditions", 3))
def test_conditions_are_handed_down_if_both_engines_agree_on_them(
    dialect: str, where: str, handed: str
) -> None:
    (part,) = parts_of(f"SELECT count(t.n) FROM db.s.t AS t WHERE {where}", dialect)
    told = part.partition(" WHERE ")[2].replace('"p".', "").replace("`p`.", "").replace("`", '"')
    assert told == handed


@pytest.mark.parametrize(("sql", "handed"), cases("databases/cases/many_joins", 2))
def test_conditions_are_handed_down_only_where_no_row_is_missed(sql: str, handed: str) -> None:
    parts = parts_of(sql, "postgres")
    found = [name for name in "tu" if any(" WHERE " in part for part in parts if f'"{name}" AS' in part)]
    assert "".join(found) == handed, parts


@pytest.mark.parametrize(("sql", "limit"), cases("databases/cases/many_limits", 2))
def test_limits_are_handed_down_only_where_any_rows_will_do(sql: str, limit: str) -> None:
    part = parts_of(sql, "postgres")[0]
    assert part[part.index("LIMIT") if " LIMIT" in part else len(part) :] == limit, part


@pytest.mark.parametrize(("sql", "columns"), cases("databases/cases/many_columns", 2))
def test_columns_are_those_that_are_named(sql: str, columns: str) -> None:
    part = next(part for part in parts_of(sql, "postgres") if '"t"' in part)
    assert part.partition(" FROM ")[0] == "SELECT " + ", ".join(f'"p"."{name}"' for name in columns)
    assert parts_of("SELECT count(*) FROM t", "mysql") == ["SELECT count(*) AS n FROM `s`.`t` AS `p`"]


async def test_a_query_over_both(both: ManyConnector) -> None:
    outcome = await both.run(
        "SELECT c.name, sum(o.amount) FROM shop.main.orders AS o JOIN crm.main.customers AS c "
        "ON c.id = o.customer WHERE o.day >= '2024-01-01' GROUP BY 1",
        Limits(),
    )
    assert rows(outcome) == [("Ann", 30.5)]
    assert [(part.database, part.rows) for part in outcome.parts] == [("crm", None), ("shop", 2)]
    assert outcome.parts[0].describe() == "crm, read in place: main.customers"
    assert "note" not in outcome.parts[1].sql, "a column that nobody asked for"


@pytest.mark.heavy
async def test_duckdb_and_data_files_are_read_where_they_are_without_a_bound(
    urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cities.csv").write_text("customer,city\n1,Ghent\n2,Lyon\n1,Rome\n")
    monkeypatch.setattr(many, "PART_ROWS", 1)
    async with connect_all([*urls, str(tmp_path / "cities.csv")]) as connector:
        sql = "SELECT c.name, x.city FROM cities.main.cities AS x JOIN customers AS c ON c.id = x.customer"
        found = sorted(rows(await connector.run(sql, Limits())))
        assert found == [("Ann", "Ghent"), ("Ann", "Rome"), ("Bob", "Lyon")]
        for hidden in ("SELECT * FROM quorum_0.main.customers", "SELECT rowid FROM crm.main.customers"):
            problem = error(await connector.run(hidden, Limits()))
            assert problem.kind in (ErrorKind.TABLE_NOT_FOUND, ErrorKind.COLUMN_NOT_FOUND)


async def test_nested_values_and_documents_stay_usable(both: ManyConnector) -> None:
    sql = (
        "SELECT c.tags[1], c.info.b, c.document->'k'->>1, len(c.tags) FROM crm.main.customers AS c "
        "JOIN shop.main.orders AS o ON o.customer = c.id WHERE o.id = 1"
    )
    assert rows(await both.run(sql, Limits())) == [("x", "z", "2", 2)]


async def test_values_of_sqlite_that_are_of_another_type_than_their_column_are_not_lost(
    both: ManyConnector,
) -> None:
    for sql, expected in (
        ("SELECT v FROM mixed, customers AS c WHERE v = 'x' AND c.id = 1", [("x",)]),
        ("SELECT count(*) FROM mixed, customers AS c WHERE v IS NULL AND c.id = 1", [(1,)]),
        ("SELECT v FROM several, customers AS c WHERE v = 'x' AND c.id = 1", [("x",)]),
        ("SELECT count(*) FROM several, customers AS c WHERE v = '5' AND c.id = 1", [(1,)]),
    ):
        assert rows(await both.run(sql, Limits())) == expected, sql


async def test_names(both: ManyConnector) -> None:
    for name in ("orders", "shop.orders", "SHOP.main.ORDERS", "shop.main.orders"):
        assert rows(await both.run(f"SELECT count(*) FROM {name}", Limits())) == [(3,)]
    assert error(await both.run("SELECT * FROM crm.orders", Limits())).suggestions == ("shop.main.orders",)
    assert error(await both.run("SELECT rowid FROM orders", Limits())).kind is ErrorKind.COLUMN_NOT_FOUND
    twice = "SELECT orders.id FROM orders, customers AS c WHERE shop.orders.id = c.id"
    assert rows(await both.run(twice, Limits())) == [(1,), (2,)]


async def test_two_of_one_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)
    places = [tmp_path / folder / "my shop.db" for folder in "ab"]
    for number, place in enumerate(places):
        place.parent.mkdir()
        build("sqlite", place, f"CREATE TABLE t (x INTEGER); INSERT INTO t VALUES ({number})")
    async with connect_all([f"sqlite:///{place}" for place in places]) as connector:
        catalog = await connector.catalog()
        assert [table.full_name for table in catalog.tables] == ["my_shop.main.t", "my_shop_2.main.t"]
        both = await connector.run("SELECT a.x, b.x FROM my_shop.t a, my_shop_2.t b", Limits())
        assert rows(both) == [(0, 1)]
        problem = error(await connector.run("SELECT * FROM t", Limits()))
        assert "in several databases" in problem.message
        assert problem.suggestions == ("my_shop.main.t", "my_shop_2.main.t")


def test_names_that_duckdb_takes_for_one_differ_and_keys_follow() -> None:
    place = Column("place", "home", fields=(Field("x", "int"),))
    columns = (Column("id", "integer"), Column("ID", "integer"), place)
    key = ForeignKey(("ID",), "public.Users", ("id",))
    tables = (
        Table("users", columns, schema="public", foreign_keys=(key,), primary_key=("ID",)),
        Table("Users", columns, schema="public"),
    )
    mine = Catalog("main", "postgres", tables, notes=("n",), left_out=("n",))
    catalog, held = united([(told("postgres"), mine)])
    assert [table.full_name for table in catalog.tables] == ["main_db.public.users", "main_db.public.Users_2"]
    assert [column.name for column in catalog.tables[0].columns] == ["id", "ID_2", "place"]
    assert catalog.tables[0].primary_key == ("ID_2",)
    assert catalog.tables[0].foreign_keys == (ForeignKey(("ID_2",), "main_db.public.Users_2", ("id",)),)
    assert catalog.tables[0].columns[2].fields == (), "it arrives as text"
    assert (catalog.notes, catalog.left_out) == (("main_db: n",), ("main_db: n",))
    plan = split('SELECT "ID_2" FROM "Users_2"', UnionTables(held), 10)
    assert isinstance(plan, QueryPlan)
    assert plan.parts[0].sql == 'SELECT "p"."ID" FROM "public"."Users" AS "p" LIMIT 11'


async def test_a_part_beyond_the_bounds_is_an_error_and_never_cut(
    both: ManyConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = "SELECT count(*) FROM orders AS o JOIN customers AS c ON o.customer = c.id"
    monkeypatch.setattr(many, "PART_ROWS", 2)
    problem = error(await both.run(joined, Limits()))
    assert problem.kind is ErrorKind.RESOURCES
    assert "part of shop.main.orders" in problem.message
    assert "Compare columns" in problem.message
    assert [part.database for part in problem.parts], "what was read is told"
    assert rows(await both.run(f"{joined} WHERE o.id > 1", Limits())) == [(2,)]
    assert rows(await both.run("SELECT count(*) FROM orders", Limits())) == [(3,)], "it is only counted"
    monkeypatch.setattr(many, "PART_ROWS", 100)
    monkeypatch.setattr(many, "PART_BYTES", 30)
    problem = error(await both.run("SELECT o.id, c.n FROM orders AS o, counts AS c", Limits()))
    assert problem.kind is ErrorKind.RESOURCES
    assert "all parts of the query together" in problem.message


async def test_nothing_else_is_read_or_written(both: ManyConnector) -> None:
    for (sql,) in cases("databases/cases/many_refused", 1):
        await both.run("SELECT * FROM orders", Limits())
        kind = error(await both.run(sql, Limits())).kind
        assert kind not in (ErrorKind.UNAVAILABLE, ErrorKind.RESOURCES, ErrorKind.TIMEOUT), sql


@pytest.mark.heavy
async def test_a_part_that_fails_ends_the_others(
    both: ManyConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    both._attached.clear()  # else only one of them is asked
    ended = asyncio.Event()

    async def endless(sql: str, limits: Limits) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    gone = QueryError(ErrorKind.UNAVAILABLE, "The server is gone.")
    monkeypatch.setattr(both.members[0], "run", endless)
    monkeypatch.setattr(both.members[1], "run", AsyncMock(return_value=gone))
    problem = error(await both.run("SELECT * FROM orders, customers", Limits()))
    assert problem.message == "crm: The server is gone."
    assert ended.is_set()


async def test_bytes_are_the_sum_of_what_the_parts_report(
    both: ManyConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid, allowed = both.members[0], list[int | None]()
    run = paid.run

    async def counted(sql: str, limits: Limits) -> QueryResult:
        allowed.append(limits.scan)
        return replace(result(await run(sql, limits)), bytes_scanned=100)

    monkeypatch.setattr(paid, "run", counted)
    monkeypatch.setattr(paid, "estimate", AsyncMock(return_value=Estimate(bytes=100, billed=True)))
    monkeypatch.setattr(paid, "estimates", True)
    monkeypatch.setattr(both, "estimates", True)
    sql = "SELECT * FROM orders AS o, mixed AS m, customers AS c"
    told = await both.estimate(sql, Limits())
    assert isinstance(told, Estimate)
    assert (told.bytes, told.billed) == (200, True)
    said = [part.partition(":")[0] for part in told.parts]
    assert said == ["crm, read in place", *2 * ["shop, 100 B to be read"]]
    outcome = result(await both.run(sql, Limits(scan=250)))
    assert outcome.bytes_scanned == 200
    assert [part.read for part in outcome.parts if part.database == "crm"] == [None]
    assert sorted(filter(None, allowed)) == [150, 250], "what one read, the next has less"


JOINED = {
    "postgresql://u:p@h/db?schema=a postgresql://u:p@h/db?schema=b": [["a", "b"]],
    "postgresql://u:p@h/db?schema=a postgresql://u:p@h/db": [[]],
    "postgresql://u:p@h/db postgresql://v:p@h/db": [[], []],
    "postgresql://u:p@h/db postgresql://u:p@h/other": [[], []],
    "mysql://u@h/a mariadb://u@h/b mysql://u@i/a": [["a", "b"], ["a"]],
    "bigquery://p/a bigquery://p/b": [[("p", "a"), ("p", "b")]],
    "bigquery://p/a bigquery://q/a": [[("p", "a"), ("q", "a")]],
    "bigquery://p/a bigquery://p": [[]],
    "bigquery://p bigquery://q": [[], []],
    "bigquery://p/a bigquery://p/b?location=EU": [[("p", "a")], [("p", "b")]],
    "snowflake://u@acc/d/s snowflake://u@acc/d/t": [[Schemas("D", ("S", "T"))]],
    "snowflake://u@acc/d snowflake://u@acc/e": [[Schemas("D"), Schemas("E")]],
    "snowflake://u@acc/d snowflake://v@acc/d": [[Schemas("D")], [Schemas("D")]],
}


def test_what_a_server_joins_itself_is_one_database_of_it() -> None:
    for driver in ("psycopg", "pymysql", "google.cloud.bigquery", "snowflake.connector"):
        pytest.importorskip(driver)
    for urls, places in JOINED.items():
        found: Any = connect_all(urls.split())
        targets = [each.target for each in getattr(found, "members", [found])]
        read = [list(each.schemas if hasattr(each, "schemas") else each.places) for each in targets]
        assert read == places, urls


def test_one_database_twice_is_one_and_a_schema_alone_is_not_joined(urls: list[str], tmp_path: Path) -> None:
    assert type(connect_all([urls[0], urls[0]])) is type(connect(urls[0]))
    with pytest.raises(ConfigurationError, match="schema without data"):
        connect_all([urls[0], f"schema:///{tmp_path}"])
