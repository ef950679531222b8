"""SQLAlchemy as the last resort: the contract on PostgreSQL, and what is its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.sqlalchemy.catalog import first_rows, how_many, no_rows
from quorum.tools.databases.sqlalchemy.engines import ENGINES
from quorum.tools.databases.sqlalchemy.errors import query_error, refusal_of
from quorum.tools.databases.sqlalchemy.url import Target
from quorum.tools.execute import Database, execute
from quorum.tools.guard import Passed, check
from quorum.tools.query import ErrorKind, Limits
from quorum.tools.urls import mask_url, url_secrets
from tests.engines import build, opened
from tests.servers.postgres_server import PostgresServer
from tests.tools.case_files import cases
from tests.tools.databases.contract import SOON, error, result, rows, table
from tests.tools.databases.served import PostgresContract

sqlalchemy = pytest.importorskip("sqlalchemy", reason="the extra quorum-sql[sqlalchemy] is not installed")
from sqlalchemy.dialects import registry  # noqa: E402
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite  # noqa: E402


class TestPostgres(PostgresContract):
    """No view is read, no column scanned."""

    scheme = "sqlalchemy+postgresql+psycopg"
    scans = False


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("vertica+vertica_python://u@h/d", "cannot be judged: there is no reader"),
        ("cobol+x://h/d", "cannot be judged"),
        ("exasol://h/d", "exa://"),
        ("postgresql+psycopg://h/d", "sqlalchemy+postgresql+psycopg://"),
        ("mysql+pymysql://h/d", "connector for mysql itself"),
        ("sqlalchemy+duckdb:///x.duckdb", "duckdb://"),
        ("sqlalchemy+sqlite:///x.db", "sqlite://"),
        ("sqlalchemy+snowflake://a/b", "snowflake://"),
        ("sqlalchemy+postgresql+psycopg://h/d?plugin=evil", "plugins are not loaded"),
        ("mssql+pyodbc://u:p@ss@h/d", "malformed"),
        ("trino://u@h/c", "pip install 'trino[sqlalchemy]'"),
        ("databricks://token:secret@h?http_path=x", "pip install databricks-sqlalchemy"),
    ],
)
def test_what_is_not_asked_says_why(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)) as raised:
        connect(url)
    assert "secret" not in str(raised.value)


SECRETS = {
    "trino://u:<p%40ss>@h/c": "p%40ss p@ss",
    "mssql+pyodbc://u:<p@ss>@h/d": "p@ss",
    "databricks://token:<dapi1>@h?http_path=x": "dapi1",
    "mssql+pyodbc:///?odbc_connect=<Driver%3DX%3BUID%3Du%3BPWD%3D%7Bp%3Bq%7D%3B>": "{p;q} p;q",
    "awsathena+rest://AKIA:<k%2Fs>@h/d?aws_session_token=<tok>&s3_staging_dir=s3://b": "k%2Fs k/s tok",
    "sqlalchemy+postgresql+psycopg://u:<pw>@h/d": "pw",
}
"""URLs with what is not shown in angle brackets, and the secrets."""


@pytest.mark.parametrize("url", SECRETS)
def test_secrets_of_a_url_are_known_and_not_shown(url: str) -> None:
    plain = re.sub("[<>]", "", url)
    assert {*SECRETS[url].split()} <= {*url_secrets(plain)}
    assert mask_url(plain) == re.sub("<.*?>", "[redacted]", url)


def test_schemas_are_ours_and_the_rest_is_the_drivers() -> None:
    target = Target.of("trino://u@h:8080/c?quorum_schema=a,b%20c&verify=false&quorum_schema=a")
    assert target.schemas == ("a", "b c")
    assert target.url == "trino://u@h:8080/c?verify=false"
    assert (target.place, target.database) == ("trino://h:8080/c", "c")
    assert Target.of("mssql+pyodbc://u:pw@dsn").place == "mssql://dsn/"
    assert "pw" not in repr(Target.of("mssql+pyodbc://u:pw@dsn"))


async def test_a_schema_that_is_absent_is_said_with_those_there_are(postgres: PostgresServer) -> None:
    name = postgres.new_database("CREATE SCHEMA sales")
    url = f"sqlalchemy+postgresql+psycopg://quorum_admin@127.0.0.1:{postgres.port}/{name}?quorum_schema=sale"
    async with connect(url) as connector:
        with pytest.raises(DatabaseUnavailable, match="holds no schema sale") as caught:
            await connector.catalog()
    assert "There are: sales, " in caught.value.hint


@pytest.fixture
async def pg(postgres: PostgresServer) -> AsyncIterator[Connector]:
    url = postgres.admin_url.replace("://", "+psycopg://")
    async with connect(f"sqlalchemy+{url}/postgres") as connector:
        yield connector


async def test_marks_of_parameters_are_text(pg: Connector) -> None:
    sql = "SELECT '100%', '%s %(a)s %%', ':x ::y', '? $1', 7 % 4"
    expected = [("100%", "%s %(a)s %%", ":x ::y", "? $1", 3)]
    assert rows(await pg.run(sql, Limits())) == expected
    operators = """SELECT '{"a": 1}'::jsonb ? 'a', (ARRAY[1,2,3])[1:2]::text, 5::int"""
    assert rows(await pg.run(operators, Limits())) == [(True, "{1,2}", 5)]


async def test_values_cross_exactly(pg: Connector) -> None:
    sql = """
        SELECT 1.50::numeric(10,2) AS money, DATE '2024-02-29' AS day, TIMESTAMP '2024-01-01 10:00' AS moment,
            '{"a": [1]}'::json AS doc, ARRAY[1, 2] AS list, '\\xff00'::bytea AS raw, NULL::int AS none,
            'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS id, 9223372036854775807 AS big,
            'NaN'::numeric AS nan
    """
    outcome = result(await pg.run(sql, Limits()))
    assert outcome.table.to_pylist() == [
        {
            **{"money": Decimal("1.50"), "day": date(2024, 2, 29), "moment": datetime(2024, 1, 1, 10)},
            **{"doc": '{"a": [1]}', "list": "[1, 2]", "raw": b"\xff\0", "none": None, "big": 2**63 - 1},
            **{"id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "nan": "NaN"},
        }
    ]
    assert outcome.column_types[:2] == ("numeric(10,2)", "date")


class Said(Exception):
    """An error as a driver that is not here raises it."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args)
        vars(self).update(more)


SAID = {
    "table_not_found": (
        *("ORA-00942: table or view does not exist", "Code: 60. DB::Exception: Table x does not exist"),
        Said("42S02", "[42S02] [Microsoft][SQL Server]Invalid object name 'x'. (208)"),
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found.",
    ),
    "column_not_found": (
        *('ORA-00904: "X": invalid identifier', "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x`"),
        Said("42S22", "[42S22] [Microsoft]Invalid column name 'x'. (207)"),
        Said("x", error_name="COLUMN_NOT_FOUND", message="Column 'x' cannot be resolved"),
    ),
    "grouping": (
        "ORA-00979: not a GROUP BY expression",
        Said("42000", "[42000] Column 'a' is invalid in the select list (8120)"),
    ),
    "timeout": (
        Said("HYT00", "[HYT00] [Microsoft]Query timeout expired"),
        Said("x", error_name="EXCEEDED_TIME_LIMIT", message="Query exceeded"),
    ),
    "function": (Said("x", error_name="FUNCTION_NOT_FOUND", message="Function 'f' not registered"),),
    "syntax": (
        "Code: 62. DB::Exception: Syntax error",
        Said("42000", "[42000] [Microsoft]Incorrect syntax near 'x'. (102)"),
    ),
    "type_mismatch": ("ORA-01722: invalid number",),
    "permission": ("ORA-01031: insufficient privileges",),
    "other": ("something else",),
}


def test_what_drivers_say_has_its_kind() -> None:
    for kind, errors in SAID.items():
        for raised in errors:
            refusal = refusal_of(Said(raised) if isinstance(raised, str) else raised)
            found = query_error(refusal, "SELECT 1", "trino")
            assert found.kind == kind, raised
            assert not re.search(r"\[Microsoft|\x1b", found.message)


class Unsealed(SQLiteDialect_pysqlite):
    """Stands for an engine without read-only sessions: a file that anyone may write, asked as Trino is."""

    name = "trino"
    supports_statement_cache = True


@pytest.fixture
async def unsealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    registry.register("trino", __name__, "Unsealed")
    trino = EntryPoint("trino", "trino.sqlalchemy:TrinoDialect", "sqlalchemy.dialects")
    monkeypatch.setattr("quorum.tools.databases.sqlalchemy.connector.installed", lambda group: [trino])
    script = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)"
    place = build("sqlite", tmp_path / "a.db", script).partition(":")[2]
    async with connect(f"trino:{place}") as connector:
        yield await opened(connector, limits=Limits(seconds=5))


async def test_the_guard_stands_alone_where_nothing_else_does(unsealed: Database, tmp_path: Path) -> None:
    before = (tmp_path / "a.db").read_bytes(), sorted(tmp_path.iterdir())
    attacks = [sql for _, sql in cases("guard_cases/refused", 3, kind="trino")]
    attacks += [
        *("INSERT INTO main.t VALUES (3, 'y')", "WITH x AS (SELECT 1 AS a) DELETE FROM main.t"),
        *("DROP TABLE main.t", f"ATTACH '{tmp_path}/made.db' AS made", f"VACUUM INTO '{tmp_path}/made.db'"),
        *("SELECT load_extension('x')", "SELECT a FROM main.t; DELETE FROM main.t"),
        *("PRAGMA user_version = 7", "CREATE TEMP TABLE x AS SELECT 1 AS a"),
    ]
    assert len(attacks) > 15
    for sql in attacks:
        assert error(await execute(unsealed, sql, agent="attacker")).by in ("guard", "lint"), sql
        assert error(await unsealed.connector.run(sql, SOON)).by in ("guard", "database"), sql
    assert ((tmp_path / "a.db").read_bytes(), sorted(tmp_path.iterdir())) == before


async def test_only_relations_of_the_catalog_are_read(unsealed: Database) -> None:
    assert rows(await execute(unsealed, "SELECT a FROM main.t ORDER BY a", agent="analyst")) == [(1,), (2,)]
    for sql in ("SELECT name FROM main.sqlite_master", "SELECT a FROM t", "SELECT a FROM other.main.t"):
        assert error(await execute(unsealed, sql, agent="attacker")).kind is ErrorKind.TABLE_NOT_FOUND


async def test_what_does_not_hold_is_told(unsealed: Database, pg: Connector) -> None:
    assert unsealed.catalog.dialect == "trino"
    assert table(unsealed.catalog, "t").columns[1].cells == ("x", None)
    account = await unsealed.connector.account()
    assert (account.sealed, account.name) == (False, "nobody")
    assert "Nothing in the engine is known to forbid writing" in account.gaps[0]
    known = await pg.account()
    assert (known.sealed, known.name) == (True, "quorum_admin")
    assert [gap for gap in known.gaps if "forbid" in gap or "go on" in gap] == []
    for told in ("not known before it runs", "A row is held whole in memory"):
        assert any(told in gap for gap in known.gaps)


def test_what_the_catalog_asks_is_the_engines_own_sql_and_passes_the_guard() -> None:
    columns = (sqlalchemy.column("a"), sqlalchemy.column("b"))
    source = sqlalchemy.table("t x", *columns, schema="s").alias("t")
    for dialect in ("mssql", "oracle"):
        module = import_module(f"sqlalchemy.dialects.{dialect}").dialect()
        for statement in (no_rows(source), how_many(source), first_rows(source, {"b"})):
            sql = str(statement.compile(dialect=module, compile_kwargs={"literal_binds": True}))
            assert isinstance(check(sql, ENGINES[dialect].dialect), Passed), sql
