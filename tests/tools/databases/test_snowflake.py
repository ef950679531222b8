"""Snowflake: the contract, by its own connector on a server of the tests' own, and what is its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
import sqlglot

from quorum.knowledge.catalog import ForeignKey
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.snowflake.scope import check
from quorum.tools.databases.snowflake.url import Target
from quorum.tools.databases.texts import unsendable
from quorum.tools.guard import Passed
from quorum.tools.guard import check as guard
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.servers.snowflake_server import SnowflakeServer
from tests.tools.databases.contract import ConnectorContract, RightsContract, error, result, rows, table


@pytest.fixture(autouse=True)
def _no_faults(snowflake: SnowflakeServer) -> Iterator[None]:
    yield
    snowflake.control("faults")
    snowflake.control("engine")


def quoted(script: str) -> str:
    """A script or query of the contract in Snowflake's words, every name quoted as it stands."""
    return ";\n".join(sqlglot.transpile(script, read="duckdb", write="snowflake", identify=True))


class TestSnowflake(ConnectorContract):
    """The differences: reading rows is billed, so what is said of a table is what its first rows and its
    metadata tell, and views are not read."""

    scheme = "snowflake"
    long_text = "repeat('x', 100000)"
    server_name = "snowflake"
    scans = False

    def said(self, sql: str) -> str:
        return quoted(sql)

    def build(self, path: Path, script: str) -> None:
        self.names[path] = self.server.new_schema(quoted(script))

    def connect(self, path: Path) -> Connector:
        return connect(self.server.url(f"shop/{self.names[path]}"))

    def at_work(self, connector: Connector) -> int:
        return len(self.server.running())

    def state(self, path: Path) -> object:
        name = self.names[path]
        return self.server.execute('SELECT * FROM "customers"', name), self.server.execute(
            f"SELECT table_name FROM SHOP.INFORMATION_SCHEMA.TABLES WHERE table_schema = '{name}' ORDER BY 1"
        )


class TestRights(RightsContract):
    server_name = "snowflake"

    def urls(self) -> tuple[dict[str, str], dict[str, str]]:
        mine, theirs = (self.server.new_schema("CREATE TABLE t (x INT)") for _ in range(2))
        self.server.control("close", {"schema": theirs})
        self.server.control("engine", {"denied": [f"SHOP.{mine}.T"]})
        names = {"absent": f"{mine}X", "closed": theirs, "unread": mine}
        return {case: self.server.url(f"shop/{schema}") for case, schema in names.items()}, names

    def grants(self, schema: str) -> tuple[str, ...]:
        return (
            f'GRANT USAGE ON SCHEMA "SHOP"."{schema}" TO ROLE "READER";',
            f'GRANT SELECT ON ALL TABLES IN SCHEMA "SHOP"."{schema}" TO ROLE "READER";',
        )

    async def test_tables_may_be_hidden_and_so_may_the_second_schema(self) -> None:
        empty, other = self.server.new_schema(), self.server.new_schema("CREATE TABLE t (x INT)")
        self.server.control("close", {"schema": other})
        for path, message in (
            (f"shop/{empty}", "holds no table, or hides all from READER."),
            (f"shop/{empty},{other}", f"holds no schema {other}, or hides it from READER."),
        ):
            async with connect(self.server.url(path)) as connector:
                with pytest.raises(DatabaseUnavailable, match=message) as caught:
                    await connector.catalog()
            assert self.grants(other if "," in path else empty)[-1] in caught.value.hint


ODD = """
CREATE TABLE orders (
    id INT PRIMARY KEY, item VARCHAR(20) NOT NULL, price NUMBER(10,2), doc VARIANT, made TIMESTAMP_NTZ,
    "lower" TEXT
);
COMMENT ON TABLE orders IS 'what was bought';
COMMENT ON COLUMN orders.id IS 'its number';
INSERT INTO orders SELECT 1, 'a', 1.5,
    PARSE_JSON('{"user": {"name": "Ann"}, "items": [{"sku": "x", "n": 2}]}'), '2024-01-01 10:00:00', 'l';
INSERT INTO orders (id, item) VALUES (2, 'b');
CREATE TABLE lines (id INT, order_id INT REFERENCES orders(id), day DATE, PRIMARY KEY (id, day));
CREATE TABLE visits AS SELECT SEQ4() AS n, SEQ4() % 3 AS page FROM TABLE(GENERATOR(ROWCOUNT => 10000));
CREATE VIEW dear AS SELECT id FROM orders WHERE price > 1;
"""


@pytest.fixture(scope="module")
def odd_name(snowflake: SnowflakeServer) -> str:
    snowflake.execute(
        "CREATE TABLE secrets AS SELECT 1 AS x; CREATE VIEW seen AS SELECT x FROM secrets", database="OTHER"
    )
    return snowflake.new_schema(ODD)


@pytest.fixture
async def odd(snowflake: SnowflakeServer, odd_name: str) -> AsyncIterator[Connector]:
    async with connect(snowflake.url(f"shop/{odd_name}")) as connector:
        yield connector


async def test_types_comments_keys_counts_and_storage_by_few_questions(
    odd: Connector, odd_name: str, snowflake: SnowflakeServer
) -> None:
    snowflake.control("cluster", {"path": f"SHOP.{odd_name}.VISITS", "key": "LINEAR(page, n)"})
    before = len(snowflake.asked())
    catalog = await odd.catalog()
    asked = snowflake.asked()[before:]
    orders, lines, visits = (table(catalog, name) for name in ("ORDERS", "LINES", "VISITS"))
    assert (orders.database, orders.schema, orders.full_name) == ("SHOP", odd_name, f"SHOP.{odd_name}.ORDERS")
    assert [c.type for c in orders.columns] == [
        *("NUMBER(38,0)", "VARCHAR(20)", "NUMBER(10,2)", "VARIANT", "TIMESTAMP_NTZ", "VARCHAR")
    ]
    assert [c.nullable for c in orders.columns] == [False, False, True, True, True, True]
    assert (orders.description, orders.columns[0].description) == ("what was bought", "its number")
    assert orders.columns[-1].name == "lower"
    assert (orders.row_count, visits.row_count, table(catalog, "DEAR").row_count) == (2, 10_000, None)
    assert lines.primary_key == ("ID", "DAY")
    assert lines.foreign_keys == (ForeignKey(("ORDER_ID",), orders.full_name, ("ID",)),)
    assert visits.description == "Clustered by page, n."
    assert sorted(visits.columns[1].samples) == ["0", "1", "2"]
    assert not visits.columns[1].complete, "not all rows were read"
    found = {field.path: field.type for field in orders.columns[3].fields}
    assert found == {"user.name": "string", "items[].sku": "string", "items[].n": "number"}
    assert any("of tables the first 200 rows were read, of views none" in note for note in catalog.notes)
    reading = [sql for sql in asked if sql.startswith("SELECT") and "INFORMATION_SCHEMA" not in sql]
    assert len(asked) - len(reading) == 5  # tables, columns, two kinds of keys; what may be read
    assert sorted(sql.partition(" FROM ")[2].split('"')[5] for sql in reading) == ["ORDERS", "VISITS"]
    assert all(sql.endswith(" LIMIT 201") for sql in reading)
    await odd.catalog(samples=0)
    assert not [sql for sql in snowflake.asked()[before + len(asked) :] if "LIMIT" in sql], "nothing is read"


async def test_tables_that_may_not_be_read_are_not_offered(
    odd: Connector, odd_name: str, snowflake: SnowflakeServer
) -> None:
    snowflake.control("engine", {"denied": [f"SHOP.{odd_name}.ORDERS"]})
    catalog = await odd.catalog()
    assert {t.name for t in catalog.tables} == {"LINES", "VISITS", "DEAR"}
    assert table(catalog, "LINES").foreign_keys == ()
    assert catalog.left_out == ()


async def test_schemas_and_databases_that_are_named_are_read_and_joined(
    snowflake: SnowflakeServer, odd_name: str
) -> None:
    other = snowflake.new_schema("CREATE TABLE t AS SELECT 1 AS id")
    url = snowflake.url(f"shop/{odd_name},{other}", "&database=other.public")
    async with connect(url) as connector:
        names = {t.full_name for t in (await connector.catalog()).tables}
        assert {f"SHOP.{odd_name}.ORDERS", f"SHOP.{other}.T", "OTHER.PUBLIC.SECRETS"} <= names
        sql = f"""
            SELECT o.item, t.id FROM orders AS o JOIN {other}.t AS t ON t.id = o.id
            JOIN other.public.secrets AS s ON s.x = t.id
        """
        assert rows(await connector.run(sql, Limits())) == [("a", 1)]
        assert rows(await connector.run("SELECT id FROM t", Limits())) == [(1,)], "it is in a named schema"
    async with connect(snowflake.url("other")) as connector:
        names = {t.full_name for t in (await connector.catalog()).tables}
        assert {"OTHER.PUBLIC.SECRETS", "OTHER.PUBLIC.SEEN"} <= names


async def test_nested_data_and_exact_names(odd: Connector) -> None:
    sql = """
        SELECT o.doc:user.name::STRING AS who, f.value:sku::STRING AS sku, o."lower" AS low
        FROM orders AS o, LATERAL FLATTEN(input => o.doc:items) AS f WHERE o.item ILIKE 'A'
        QUALIFY ROW_NUMBER() OVER (ORDER BY o.id) = 1
    """
    assert rows(await odd.run(sql, Limits())) == [("Ann", "x", "l")]
    assert error(await odd.run("SELECT lower FROM orders", Limits())).kind is ErrorKind.COLUMN_NOT_FOUND


async def test_every_type_crosses(odd: Connector) -> None:
    sql = """
        SELECT 1 AS i, 0.5::FLOAT AS f, true AS yes, '2024-02-29'::DATE AS day, 'ä' AS text, NULL AS none,
            '2024-01-01 10:00:00.123456'::TIMESTAMP_NTZ AS moment, 1.50::NUMBER(10,2) AS money,
            '2024-01-01 10:00:00+00'::TIMESTAMP_TZ AS instant, '10:11:12.5'::TIME AS clock,
            PARSE_JSON('{"a": 1}') AS doc, 12345678901234567890 AS big, 7 % 4 AS percent
    """
    outcome = result(await odd.run(sql, Limits()))
    assert outcome.table.to_pylist() == [
        {
            **{"I": 1, "F": 0.5, "YES": True, "DAY": date(2024, 2, 29), "TEXT": "ä", "NONE": None},
            **{"MOMENT": datetime(2024, 1, 1, 10, 0, 0, 123456), "MONEY": Decimal("1.50")},
            **{"INSTANT": datetime(2024, 1, 1, 10, tzinfo=UTC), "CLOCK": time(10, 11, 12, 500_000)},
            **{"DOC": '{"a":1}', "BIG": Decimal(12345678901234567890), "PERCENT": 3},
        }
    ]
    assert outcome.table.schema.field("MONEY").type == pa.decimal128(10, 2)
    assert outcome.column_types[:3] == ("NUMBER(38,0)", "FLOAT", "BOOLEAN")
    assert outcome.column_types[7] == "NUMBER(10,2)"


async def test_results_of_many_chunks_are_one(odd: Connector) -> None:
    sql = """
        SELECT SEQ4() AS n, IFF(SEQ4() < 60000, 1, 12345678901234567890) AS big
        FROM TABLE(GENERATOR(ROWCOUNT => 120000))
    """
    outcome = result(await odd.run(sql, Limits(rows=10**6)))
    assert (outcome.row_count, outcome.truncated) == (120_000, "")
    assert outcome.table["N"].to_pylist() == list(range(120_000))
    assert outcome.table["BIG"][-1].as_py() == 12345678901234567890, "numbers grow wider on the way"


async def test_the_server_sends_no_more_rows_than_are_kept(
    odd: Connector, snowflake: SnowflakeServer
) -> None:
    outcome = result(await odd.run("SELECT * FROM visits", Limits(rows=10, seconds=2.5)))
    assert (outcome.row_count, outcome.truncated) == (10, "rows")
    sent = snowflake.control()["asked"][-1]["parameters"]
    assert sent == {"ROWS_PER_RESULTSET": 11, "STATEMENT_TIMEOUT_IN_SECONDS": 3, "MULTI_STATEMENT_COUNT": 1}


HIDDEN = [
    "",
    "SELECT * FROM other.public.secrets",
    'SELECT * FROM "OTHER"."PUBLIC"."SECRETS"',
    "SELECT * FROM other..secrets",
    "WITH secrets AS (SELECT 1) SELECT * FROM other..secrets",
    "SELECT * FROM public.anything",
    'SELECT "Upper"(item) FROM orders',
    "SELECT * FROM TABLE(TO_QUERY('SELECT * FROM other.public.secrets'))",
    "SELECT SNOWFLAKE.CORTEX.COMPLETE('model', item) FROM orders",
    "SELECT AI_CLASSIFY(item, ['a', 'b']) FROM orders",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM shop.information_schema.tables",
    "SELECT * FROM snowflake.account_usage.query_history",
    "SELECT (SELECT max(x) FROM other.public.secrets)",
    "SELECT 1 UNION ALL SELECT x FROM other.public.secrets",
    "SELECT id FROM orders WHERE id IN (SELECT x FROM other.public.secrets)",
    "SELECT * FROM orders, LATERAL (SELECT x FROM other.public.secrets)",
    "SELECT * FROM IDENTIFIER('other.public.secrets')",
    "SELECT * FROM TABLE('other.public.secrets')",
    "SELECT IDENTIFIER('id') FROM orders",
    "SELECT * FROM TABLE(RESULT_SCAN(LAST_QUERY_ID()))",
    "SELECT GET_DDL('table', 'other.public.secrets')",
    "SELECT * FROM TABLE(information_schema.query_history())",
    "SELECT * FROM TABLE(other.public.f())",
    "SELECT * FROM TABLE(f())",
    "SELECT other.public.f(1)",
    "SELECT f(1)",
    "SELECT SYSTEM$WHITELIST()",
    "SELECT * FROM @~",
    "SELECT $1 FROM @stage/file.csv",
    "SELECT * FROM 'file.csv'",
    "SELECT * FROM $name",
    "SELECT * FROM a.b.c.d",
    "SELECT 1 ->> SELECT * FROM other.public.secrets",
    "WITH p AS PROCEDURE () RETURNS INT LANGUAGE SQL AS $$ BEGIN DROP TABLE orders; END $$ CALL p()",
    "SELECT s.NEXTVAL",
    'SELECT s."NEXTVAL"',
    "SELECT 1; SELECT 2",
    "SELECT 1 /* , */ -- x\n",
    "CALL p()",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "SHOW TABLES",
    "EXPLAIN SELECT 1",
    "PUT file:///etc/passwd @~",
]


async def test_only_what_was_named_is_read(odd: Connector, snowflake: SnowflakeServer) -> None:
    before = len(snowflake.asked())
    for sql in HIDDEN:
        for outcome in (await odd.run(sql, Limits()), await odd.estimate(sql, Limits())):
            assert isinstance(outcome, QueryError), sql
            assert outcome.kind in (ErrorKind.PERMISSION, ErrorKind.SYNTAX), (sql, outcome)
        assert len(snowflake.asked()) == before, f"this was sent: {sql}"
    snowflake.execute("CREATE TABLE hidden AS SELECT 1 AS x")  # in PUBLIC
    assert error(await odd.run("SELECT * FROM hidden", Limits())).kind is ErrorKind.TABLE_NOT_FOUND


async def test_what_only_looks_forbidden_is_read(odd: Connector, odd_name: str) -> None:
    for sql in (
        "SELECT '@~ ->> other.public.secrets; /* -- */' AS text",
        f"SELECT id FROM shop.{odd_name}.orders",
        f'SELECT orders.id FROM "SHOP".{odd_name.lower()}.orders',
        "WITH other AS (SELECT 1 AS x) SELECT other.x FROM other",
        "SELECT o.id FROM orders AS o, lines AS l WHERE o.id = l.order_id (+)",
        "SELECT count(*) FROM TABLE(GENERATOR(ROWCOUNT => 3))",
        "SELECT id FROM orders UNION SELECT id FROM lines;",
    ):
        outcome = await odd.run(sql, Limits())
        assert isinstance(outcome, QueryResult), (sql, outcome)


async def test_a_query_over_the_limit_is_refused_before_it_runs(
    odd: Connector, snowflake: SnowflakeServer
) -> None:
    sql, size = "SELECT n FROM visits LIMIT 1", 10_000 * 2 * 8
    before = len(snowflake.asked())
    outcome = error(await odd.run(sql, Limits(scan=size - 1)))
    assert outcome.kind is ErrorKind.RESOURCES
    assert "160,000 bytes; 159,999 are allowed" in outcome.message
    assert snowflake.asked()[before:] == [f"EXPLAIN USING JSON {sql}"]
    assert rows(await odd.run(sql, Limits(scan=size))) == [(0,)]
    assert snowflake.asked()[before + 1 :] == [sql], "it was explained before"
    assert await odd.estimate(sql, Limits()) == Estimate(bytes=size)


def test_gold_queries_are_sent(shared: Path) -> None:
    """The databases are named: the grammar refuses nothing that people write."""
    everywhere = Mock(spec=Target, allows=Mock(return_value=True))
    texts = [file.read_text() for file in sorted((shared / "data" / "spider2-snow").rglob("*.sql"))]
    assert len(texts) > 60
    for text in texts:
        passed = guard(text, "snowflake")
        assert isinstance(passed, Passed), text
        assert unsendable(passed.sql, "snowflake") is None
        check(passed.sql, everywhere)
