"""DuckDB by the contract, and what is its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.duckdb.catalog import fields_of
from quorum.tools.query import ErrorKind, Limits
from tests.engines import build, start_no_process
from tests.tools.case_files import cases
from tests.tools.databases.contract import FileContract, check_errors, error, result, rows, table

ODD = """
CREATE TABLE kinds AS SELECT
    1::TINYINT AS tiny, 170141183460469231731687303715884105727::HUGEINT AS huge, 7::HUGEINT AS small_huge,
    340282366920938463463374607431768211455::UHUGEINT AS unsigned, 12345678901234567890123::BIGNUM AS big,
    1.50::DECIMAL(12, 2) AS money, 'a'::ENUM('a', 'it''s') AS choice,
    '00000000-0000-0000-0000-000000000001'::UUID AS id, '0101'::BIT AS bits, '\\xAA'::BLOB AS bytes,
    {'x': 1, 'BIT': ['b'::ENUM('b')]} AS nested, MAP {'k': [1, 2]} AS dictionary, [1, NULL, 3] AS list,
    [1, 2]::INTEGER[2] AS pair, '{"a": 1}'::JSON AS doc, 5::UNION(n DECIMAL(4, 1), s VARCHAR) AS either,
    DATE '2024-02-29' AS day, TIME '10:00:01' AS clock, TIMETZ '10:00:00+02' AS zoned,
    TIMESTAMP '2024-01-01 00:00:00.5' AS moment, TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS fine,
    TIMESTAMPTZ '2024-01-01 00:00:00+00' AS absolute, INTERVAL 3 MONTH AS span, 'infinity'::DOUBLE AS endless,
    {'v': 1}::VARIANT AS anything;
CREATE TABLE deep (
    s STRUCT(a INTEGER, "b c" VARCHAR, l STRUCT(x DECIMAL(4, 2), m MAP(VARCHAR, DATE))[]), tags VARCHAR[]
);
COMMENT ON TABLE deep IS 'all the way down';
COMMENT ON COLUMN deep.tags IS 'free words';
CREATE SCHEMA sales;
CREATE TABLE sales.orders AS SELECT range AS id, 'item ' || range % 2 AS item FROM range(50000);
CREATE VIEW sales.items AS SELECT DISTINCT item FROM sales.orders;
CREATE TEMP TABLE passing AS SELECT 1;
"""


class TestDuckdb(FileContract):
    scheme = "duckdb"
    long_text = "repeat('x', 100000)"


@pytest.fixture
async def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connector]:
    start_no_process(monkeypatch)
    async with connect(build("duckdb", tmp_path / "odd.duckdb", ODD)) as connector:
        yield connector


async def test_schemas_comments_counts_and_declared_fields(odd: Connector) -> None:
    catalog = await odd.catalog()
    names = {item.full_name for item in catalog.tables}
    assert names == {"main.kinds", "main.deep", "sales.orders", "sales.items"}
    deep = table(catalog, "deep")
    assert (deep.description, deep.columns[1].description) == ("all the way down", "free words")
    orders = table(catalog, "sales.orders")
    assert orders.row_count == 50_000
    assert orders.columns[1].samples == ("item 0", "item 1")
    assert [(field.path, field.type) for field in deep.columns[0].fields] == [
        *(("a", "INTEGER"), ('["b c"]', "VARCHAR"), ("l[].x", "DECIMAL(4,2)"), ("l[].m.*", "DATE"))
    ]
    assert deep.columns[1].fields == ()


async def test_every_type_crosses(odd: Connector) -> None:
    outcome = result(await odd.run("SELECT * FROM kinds", Limits()))
    found = outcome.table
    assert not any(isinstance(item.type, pa.BaseExtensionType) for item in found.schema)
    assert found["fine"].cast(pa.string())[0].as_py() == "2024-01-01 00:00:00.123456789"
    values = found.drop_columns(["fine", "moment", "absolute", "span", "day", "clock"]).to_pylist()[0]
    assert values == {
        **{"tiny": 1, "huge": Decimal(2**127 - 1), "small_huge": 7, "unsigned": str(2**128 - 1)},
        **{"big": "12345678901234567890123", "money": Decimal("1.50"), "choice": "a", "bits": "0101"},
        **{"id": "00000000-0000-0000-0000-000000000001", "bytes": b"\xaa", "list": [1, None, 3]},
        **{"nested": {"x": 1, "BIT": ["b"]}, "dictionary": [("k", [1, 2])], "pair": [1, 2]},
        **{"doc": '{"a": 1}', "either": "5.0", "zoned": "10:00:00+02", "endless": float("inf")},
        "anything": "{'v': 1}",
    }
    assert outcome.column_types[6] == "ENUM('a', 'it''s')"
    whole = result(await odd.run("SELECT sum(id) AS s FROM sales.orders", Limits()))
    assert (whole.table.schema.field("s").type, whole.column_types) == (pa.int64(), ("HUGEINT",))


async def test_errors(odd: Connector) -> None:
    await check_errors(odd, cases("databases/cases/duckdb_errors", 4))


async def test_error_after_many_rows(odd: Connector) -> None:
    """DuckDB's error then comes through Arrow's reader, as another exception."""
    sql = "SELECT CASE WHEN range = 900000 THEN 'x' ELSE '1' END::INTEGER FROM range(1000000)"
    outcome = error(await odd.run(sql, Limits(rows=10**6)))
    assert outcome.kind is ErrorKind.TYPE_MISMATCH
    assert outcome.message == "Could not convert string 'x' to INT32."


@pytest.mark.heavy
async def test_queries_after_those_that_ran_out_of_memory(tmp_path: Path) -> None:
    """What one of them leaves behind would fail the next good query, or the one after it."""
    words = "CREATE TABLE words AS SELECT repeat('x', 100) || range AS word FROM range(200000)"
    limits = Limits(memory=256 * 2**20)
    async with connect(build("duckdb", tmp_path / "words.duckdb", words)) as connector:
        for _ in range(8):
            bomb = "SELECT list(a.word || b.word) FROM words a, words b"
            assert error(await connector.run(bomb, limits)).kind is ErrorKind.RESOURCES
            good = await connector.run("SELECT count(*), max(length(word)) FROM words", limits)
            assert rows(good) == [(200_000, 106)]


# Safety, with the guard out of the way


async def test_refuses(odd: Connector) -> None:
    expected = {ErrorKind.PERMISSION, ErrorKind.TABLE_NOT_FOUND, ErrorKind.FUNCTION, ErrorKind.SYNTAX}
    python = (
        (f"SELECT * FROM {name}",) for name in ("self", "relation", "statements", "sql")
    )  # the engine's
    for (sql,) in (*cases("databases/cases/duckdb_refused", 1), *python):
        outcome = error(await odd.run(sql, Limits()))
        assert outcome.kind in expected, (sql, outcome)
    assert rows(await odd.run("SELECT count(*) FROM deep", Limits())) == [(0,)]


async def test_reads_that_are_no_plain_select(odd: Connector) -> None:
    assert rows(await odd.run("PIVOT (SELECT 'x' AS a, 1 AS b) ON a USING sum(b)", Limits())) == [(1,)]
    for sql in (
        "EXPLAIN (FORMAT json) SELECT 1",
        "EXPLAIN ANALYZE PIVOT (SELECT 1 AS a) ON a",
        "EXPLAIN (SELECT 1)",
        "PRAGMA table_info('deep')",
        "PRAGMA version;",
    ):
        assert rows(await odd.run(sql, Limits())), sql


async def test_a_message_that_quotes_a_huge_value_is_cut(odd: Connector) -> None:
    outcome = error(await odd.run("SELECT CAST(repeat('x', 1000000) AS INTEGER)", Limits()))
    assert outcome.kind is ErrorKind.TYPE_MISMATCH
    assert len(outcome.message) < 5000


async def test_locked(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "busy.duckdb")) as writer:
        writer.execute("CREATE TABLE t (x INTEGER)")
        with pytest.raises(DatabaseUnavailable, match=rf"locked by the process with PID {os.getpid()}"):
            await connect(str(tmp_path / "busy.duckdb")).open()


LEAVES = {
    'STRUCT(a INTEGER, "b ""c, (" VARCHAR[])': {"a": "INTEGER", '["b \\"c, ("][]': "VARCHAR"},
    "MAP(VARCHAR, STRUCT(x DECIMAL(4,2), e ENUM('a', 'it''s, (b)')))[]": {
        **{"[].*.x": "DECIMAL(4,2)", "[].*.e": "ENUM('a', 'it''s, (b)')"}
    },
    "STRUCT(s STRUCT(t TIME WITH TIME ZONE)[3])": {"s[].t": "TIME WITH TIME ZONE"},
    "MAP(INTEGER, MAP(VARCHAR, DATE))": {"*.*": "DATE"},
    "UNION(n INTEGER, s VARCHAR)": {"n": "INTEGER", "s": "VARCHAR"},
    "INTEGER[][]": {},
}


def test_every_leaf_is_found() -> None:
    for kind, leaves in LEAVES.items():
        assert {field.path: field.type for field in fields_of(str(duckdb.sqltype(kind)))} == leaves
