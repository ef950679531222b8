"""PostgreSQL: the contract, on a server of the tests' own; what is its own; failing networks, TLS."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from quorum.knowledge.catalog import Field, ForeignKey
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Account, Connector
from quorum.tools.databases.postgres.session import PATIENCE as KEEPALIVES
from quorum.tools.databases.postgres.url import Target
from quorum.tools.databases.server import CANCEL_SECONDS, Link
from quorum.tools.query import ErrorKind, Limits
from tests.servers.postgres_server import PostgresServer
from tests.servers.process import ADMIN, PASSWORD
from tests.servers.proxy import Proxy
from tests.tools.databases.contract import ENDLESS, check_errors, error, result, rows, table
from tests.tools.databases.served import PostgresContract
from tests.waiting import PATIENCE, until, wait_until


class TestPostgres(PostgresContract):
    scheme = "postgresql"
    whole_double = "{}"


ODD = """
CREATE SCHEMA sales; CREATE SCHEMA hidden;
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TYPE place AS (street text, zip int);
CREATE TYPE home AS (at place, since date);
CREATE TABLE sales.orders (
    id int PRIMARY KEY, item varchar(20) NOT NULL, price numeric(10,2), lives home, at place[]
);
COMMENT ON TABLE sales.orders IS 'what was bought';
COMMENT ON COLUMN sales.orders.item IS 'its name';
INSERT INTO sales.orders SELECT i, 'item ' || i % 2, i / 100.0 FROM generate_series(1, 20000) AS i;
CREATE TABLE sales.lines (id int, order_id int REFERENCES sales.orders, day date, PRIMARY KEY (id, day))
    PARTITION BY RANGE (day);
CREATE TABLE sales.lines_2024 PARTITION OF sales.lines FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE sales.lines_2025 PARTITION OF sales.lines FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
INSERT INTO sales.lines VALUES (1, 1, '2024-05-01'), (2, 1, '2025-05-01');
CREATE MATERIALIZED VIEW sales.totals AS SELECT item, sum(price) AS total FROM sales.orders GROUP BY item;
CREATE MATERIALIZED VIEW sales.empty AS SELECT 1 AS x WITH NO DATA;
CREATE TABLE hidden.salaries (name text, salary int);
CREATE TABLE sales.people (id int, name text, salary int);
INSERT INTO sales.people VALUES (1, 'Ann', 5);
ANALYZE;
DROP ROLE IF EXISTS reader;
CREATE ROLE reader LOGIN PASSWORD '{password}';
GRANT USAGE ON SCHEMA sales TO reader;
GRANT SELECT ON sales.orders, sales.lines, sales.totals, sales.empty TO reader;
GRANT SELECT (id, name) ON sales.people TO reader;
""".replace("{password}", PASSWORD)


@pytest.fixture(scope="module")
def odd_name(postgres: PostgresServer) -> str:
    return postgres.new_database(ODD)


@pytest.fixture
async def odd(postgres: PostgresServer, odd_name: str) -> AsyncIterator[Connector]:
    async with connect(f"{postgres.admin_url}/{odd_name}") as connector:
        yield connector


def reader_url(postgres: PostgresServer, database: str) -> str:
    return f"postgresql://reader:{quote(PASSWORD, safe='')}@127.0.0.1:{postgres.port}/{database}"


async def test_catalog_of_what_the_role_may_read(postgres: PostgresServer, odd_name: str) -> None:
    async with connect(reader_url(postgres, odd_name)) as connector:
        catalog = await connector.catalog()
    assert {t.full_name: t.kind for t in catalog.tables} == {
        "sales.lines": "table",
        "sales.orders": "table",
        "sales.people": "table",
        "sales.totals": "materialized view",
    }
    (left_out,) = catalog.left_out
    assert left_out.startswith("The materialized view sales.empty cannot be read and is left out: ")
    assert [column.name for column in table(catalog, "people").columns] == ["id", "name"]


async def test_types_comments_keys_and_counts(odd: Connector) -> None:
    catalog = await odd.catalog()
    orders, lines = table(catalog, "orders"), table(catalog, "lines")
    assert [column.type for column in orders.columns] == [
        *("integer", "character varying(20)", "numeric(10,2)", "home", "place[]")
    ]
    assert [column.nullable for column in orders.columns] == [False, False, True, True, True]
    assert (orders.description, orders.columns[1].description) == ("what was bought", "its name")
    assert (orders.row_count, lines.row_count) == (20_000, 2)
    assert sorted(orders.columns[1].samples) == ["item 0", "item 1"]
    assert orders.columns[1].complete
    assert orders.columns[3].fields == (
        *(Field("at.street", "text"), Field("at.zip", "integer"), Field("since", "date")),
    )
    assert orders.columns[4].fields == (Field("[].street", "text"), Field("[].zip", "integer"))
    assert lines.primary_key == ("id", "day")
    assert lines.foreign_keys == (ForeignKey(("order_id",), "sales.orders", ("id",)),)
    many = table(await odd.catalog(samples=500), "orders").columns[0]
    assert max(map(int, many.samples)) > 8_000, "from all over a table"


async def test_named_schemas_are_shown_and_searched(postgres: PostgresServer, odd_name: str) -> None:
    async with connect(f"{postgres.admin_url}/{odd_name}?schema=hidden,sales") as connector:
        assert rows(await connector.run("SELECT count(*) FROM salaries", Limits())) == [(0,)]
        assert rows(await connector.run("SELECT count(*) FROM orders", Limits())) == [(20_000,)]
    async with connect(f"{postgres.admin_url}/{odd_name}?schema=hidden") as connector:
        assert [t.full_name for t in (await connector.catalog()).tables] == ["hidden.salaries"]


async def test_every_type_crosses(odd: Connector) -> None:
    sql = """
        SELECT 1::int2 AS i2, 2::int8 AS i8, 0.1::float4 AS f4, 'NaN'::float8 AS f8,
            1.50::numeric(10,2) AS money,
            true AS yes, date '2024-02-29' AS day, timestamp '2024-01-01 10:00:00.5' AS moment,
            timestamptz '2024-01-01 10:00:00+02' AS instant, time '10:00' AS clock,
            timetz '10:00+02' AS zoned,
            interval '1 year 2 mons -3 days -04:05:06.5' AS span, '{"a": 1}'::jsonb AS doc,
            '\\xff00'::bytea AS raw,
            'glad'::mood AS feels, ARRAY[1, NULL] AS list, ARRAY['a', 'b'] AS texts,
            '{{1,2},{3,4}}'::int[] AS grid,
            '00000000-0000-0000-0000-000000000001'::uuid AS id, int4range(1, 3) AS range,
            ROW('Main', 7)::place AS at,
            NULL::numeric AS none, '10.0.0.1'::inet AS ip, B'101' AS bits, ARRAY[1.5, 2.25] AS decimals
    """
    outcome = result(await odd.run(sql, Limits()))
    found = outcome.table
    (row,) = found.drop_columns(["f8", "instant", "span"]).to_pylist()
    assert row == {
        **{"i2": 1, "i8": 2, "f4": 0.1, "money": Decimal("1.50"), "yes": True, "day": date(2024, 2, 29)},
        **{"moment": datetime(2024, 1, 1, 10, 0, 0, 500_000), "clock": datetime(2024, 1, 1, 10).time()},
        **{"zoned": "10:00:00+02", "doc": '{"a": 1}', "raw": b"\xff\0", "feels": "glad", "list": [1, None]},
        **{"texts": ["a", "b"], "grid": [[1, 2], [3, 4]], "range": "[1,3)", "at": "(Main,7)", "none": None},
        **{"id": "00000000-0000-0000-0000-000000000001", "ip": "10.0.0.1", "bits": "101"},
        "decimals": [Decimal("1.50"), Decimal("2.25")],
    }
    assert found["instant"].cast(pa.string())[0].as_py() == "2024-01-01 08:00:00.000000Z"
    assert tuple(found["span"][0].as_py()) == (14, -3, -(4 * 3600 + 5 * 60 + 6) * 10**9 - 500_000_000)
    assert found["f8"][0].as_py() != found["f8"][0].as_py()
    assert outcome.column_types[4:7] == ("numeric(10,2)", "boolean", "date")
    assert outcome.column_types[14] == "mood"


async def test_what_python_cannot_hold_is_text_and_decimals_share_a_type(odd: Connector) -> None:
    sql = """
        SELECT d, n
        FROM (VALUES (date '2024-01-01', 1.5), ('infinity', 'NaN'), (date '0044-03-15 BC', 2)) AS v(d, n)
    """
    assert rows(await odd.run(sql, Limits())) == [
        *(("2024-01-01", "1.5"), ("infinity", "NaN"), ("0044-03-15 BC", "2"))
    ]
    sql = "SELECT CASE WHEN i = 900 THEN 0.125 ELSE i END AS n FROM generate_series(1, 1000) AS i"
    outcome = result(await odd.run(sql, Limits()))
    assert outcome.table.schema.field("n").type == pa.decimal128(7, 3)
    wide = "SELECT * FROM (VALUES (1e40), (1e-40)) AS v(n)"
    assert rows(await odd.run(wide, Limits()))[0] == ("1" + "0" * 40,)


async def test_errors(odd: Connector) -> None:
    lines = (
        ("column_not_found", "2:3", "SELECT 'ü',\n  iid FROM sales.orders", "orders.id"),
        ("column_not_found", "1:8", "SELECT o.iid FROM sales.orders o", "o.id"),
        ("table_not_found", "1:15", "SELECT * FROM kind"),
        ("table_not_found", "1:15", "SELECT * FROM nowhere.orders"),
        ("table_not_found", "1:15", "SELECT * FROM other.sales.orders"),
        ("table_not_found", "1:8", "SELECT nope.id FROM sales.orders"),
        ("ambiguous_column", "1:8", "SELECT id FROM sales.orders a, sales.orders b"),
        ("function", "1:8", "SELECT upper(id, id) FROM sales.orders"),
        ("permission", "-", "SELECT sumx(id) FROM sales.orders"),
        ("syntax", "1:35", "SELECT id FROM sales.orders WHERE ORDER"),
        ("grouping", "1:35", "SELECT id FROM sales.orders WHERE sum(id) > 1"),
        ("grouping", "1:12", "SELECT sum(count(*)) FROM sales.orders"),
        ("grouping", "1:8", "SELECT id, item, count(*) FROM sales.orders GROUP BY item"),
        ("grouping", "1:38", "SELECT id FROM sales.orders GROUP BY 5"),
        ("function", "1:35", "SELECT id FROM sales.orders WHERE row_number() OVER () > 1"),
        ("type_mismatch", "-", "SELECT item::integer FROM sales.orders"),
        ("type_mismatch", "1:40", "SELECT id FROM sales.orders WHERE item = 1"),
        ("type_mismatch", "1:11", "SELECT 1::integr"),
        ("type_mismatch", "1:8", "SELECT '{'::json"),
        ("other", "-", "SELECT 1 / (90000 - i) FROM generate_series(1, 100000) AS i"),
        ("syntax", "-", ""),
        ("syntax", "-", "SELECT $1"),
        ("syntax", "-", "SELECT 1; SELECT 2"),
    )
    await check_errors(odd, lines)


async def test_a_lock_is_not_waited_for_endlessly(
    odd: Connector, postgres: PostgresServer, odd_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.tools.databases.postgres.session.LOCK_SECONDS", 0.1)
    with postgres.connect(odd_name) as other:
        other.execute("BEGIN; LOCK TABLE sales.people")
        assert error(await odd.run("SELECT * FROM sales.people", Limits())).kind is ErrorKind.UNAVAILABLE


def test_a_query_ends_with_its_process(postgres: PostgresServer, odd_name: str, root: Path) -> None:
    program = f"""
import asyncio
from quorum.tools.databases import connect
from quorum.tools.query import Limits

async def main():
    async with connect("{postgres.admin_url}/{odd_name}?application_name=lonely") as connector:
        await connector.run({ENDLESS!r}, Limits())

asyncio.run(main())
"""

    def running() -> int:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lonely' AND state = 'active'"
        return int(postgres.execute(sql)[0][0])

    with subprocess.Popen([sys.executable, "-c", program], cwd=root) as process:
        wait_until(running)
        process.kill()
    wait_until(lambda: not running())


URLS = {
    "postgresql://": "",
    "postgres:///shop?service=mine": "dbname=shop|service=mine",
    "postgresql://a%40b:c%2F@h/my%20shop": "user=a@b|password=c/|host=h|dbname=my shop",
    "postgresql://h1:1,h2:2/x": "host=h1,h2|port=1,2|dbname=x",
    "postgresql://[::1]:5433/x": "host=::1|port=5433|dbname=x",
    "postgresql:///x?host=/run/pg&sslmode=require": "dbname=x|host=/run/pg|sslmode=require",
}


def test_urls() -> None:
    for text, expected in URLS.items():
        given = {f"{name}={value}" for name, value in Target.of(text).parameters.items()}
        assert given == {*filter(None, expected.split("|"))}, text


async def test_accounts(odd: Connector, postgres: PostgresServer, odd_name: str) -> None:
    assert "is a superuser" in (await odd.account()).powers[0]
    async with connect(reader_url(postgres, odd_name)) as connector:
        assert await connector.account() == Account("reader", ())
        postgres.execute("GRANT UPDATE ON sales.people TO reader", odd_name)
        postgres.execute("GRANT pg_read_server_files TO reader")
        try:
            account = await connector.account()
        finally:
            postgres.execute("REVOKE UPDATE ON sales.people FROM reader", odd_name)
            postgres.execute("REVOKE pg_read_server_files FROM reader")
    assert account.powers == ("may read files on the server", "may write to tables: 1")


async def test_settings_of_the_role_change_no_meaning(postgres: PostgresServer, odd_name: str) -> None:
    settings = {
        **{"standard_conforming_strings": "off", "datestyle": "'SQL, DMY'", "intervalstyle": "iso_8601"},
        **{"bytea_output": "escape", "default_transaction_read_only": "off", "statement_timeout": "100"},
    }
    postgres.execute("; ".join(f"ALTER ROLE reader SET {name} = {to}" for name, to in settings.items()))
    sql = r"""
        SELECT '\' AS text, date '2024-02-01' AS day, interval '1 mon' AS span, '\x00ff'::bytea AS raw,
            (SELECT count(*) FROM generate_series(1, 3000000))
    """
    try:
        async with connect(reader_url(postgres, odd_name)) as connector:
            ((text, day, span, raw, _),) = rows(await connector.ask(sql, Limits()))
    finally:
        postgres.execute("ALTER ROLE reader RESET ALL")
    assert (text, day, raw) == ("\\", date(2024, 2, 1), b"\0\xff")
    assert tuple(span) == (1, 0, 0)  # type: ignore[call-overload]


async def test_bytes_that_are_no_text(postgres: PostgresServer) -> None:
    name = postgres.new_database()
    postgres.execute(f"CREATE DATABASE {name}_ascii ENCODING SQL_ASCII TEMPLATE template0 LOCALE 'C'")
    postgres.execute(r"CREATE TABLE t (x text); INSERT INTO t VALUES (E'\xe4bc')", f"{name}_ascii")
    async with connect(f"{postgres.admin_url}/{name}_ascii") as connector:
        assert error(await connector.run("SELECT x FROM t", Limits())).kind is ErrorKind.OTHER
        assert [t.name for t in (await connector.catalog()).tables] == ["t"]


# Networks that fail, and whom a connection trusts


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[Proxy]:
    async with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[Connector]:
    """A connector whose server is behind the proxy."""
    async with connect(f"postgresql://{ADMIN}@127.0.0.1:{proxy.port}/postgres") as connector:
        yield connector


def working(postgres: PostgresServer, part: str) -> bool:
    """Return True if a backend works at a query that begins so."""
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '{part}%' AND state = 'active'"
    return bool(postgres.execute(sql)[0][0])


async def test_a_connection_that_freezes_in_mid_query_costs_the_querys_own_time(
    far: Connector, proxy: Proxy, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Link, "begin_seconds", 0.5)
    monkeypatch.setattr(Link, "connect_seconds", 2)
    task = asyncio.create_task(far.run(ENDLESS, Limits(seconds=1)))
    await until(lambda: working(postgres, "WITH RECURSIVE spin"))
    proxy.freeze()
    async with asyncio.timeout(PATIENCE):
        assert error(await task).kind is ErrorKind.TIMEOUT
    await until(lambda: not working(postgres, "WITH RECURSIVE spin"))  # by the server's own limit
    proxy.thaw()
    assert rows(await far.run("SELECT 1", Limits())) == [(1,)]


async def test_a_password_that_expires_while_connections_are_open(postgres: PostgresServer) -> None:
    """A token is like that: what is open goes on, what is new is refused, once, in so many words."""
    postgres.execute("DROP ROLE IF EXISTS leaver; CREATE ROLE leaver LOGIN PASSWORD 'pw'")
    async with (
        Proxy(postgres.port) as proxy,
        connect(f"postgresql://leaver:pw@127.0.0.1:{proxy.port}/postgres") as connector,
    ):
        postgres.execute("ALTER ROLE leaver VALID UNTIL '2020-01-01'")
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'leaver'")
        before = proxy.accepted
        outcome = error(await connector.run("SELECT 1", Limits()))
        assert outcome.kind is ErrorKind.UNAVAILABLE
        assert "assword authentication failed" in outcome.message
        assert "valid" in outcome.message
        assert proxy.accepted - before <= 2, "libpq may try twice, over TLS and without; nobody loops"
        postgres.execute("ALTER ROLE leaver VALID UNTIL 'infinity'")
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]


USED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, found = folder / f"{name}.key", folder / f"{name}.crt"
    asked = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(found)]
    subprocess.run(["openssl", *asked, *named], check=True, capture_output=True)
    return found, key


@pytest.fixture
def trusted(postgres: PostgresServer, tmp_path: Path) -> Iterator[Path]:
    """The server's certificate; the server has TLS meanwhile."""
    found, key = certificate(tmp_path, "server")
    own = postgres.folder / "data"
    for path in (found, key):
        shutil.copy(path, own / path.name)
        (own / path.name).chmod(0o600)
        os.chown(own / path.name, own.stat().st_uid, own.stat().st_gid)
    names = {"ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl": "on"}
    configure(postgres, *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in names.items()))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("on",)])
    yield found
    configure(postgres, *(f"ALTER SYSTEM RESET {name}" for name in names))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("off",)])


def configure(postgres: PostgresServer, *settings: str) -> None:
    for setting in settings:
        postgres.execute(setting)
    postgres.execute("SELECT pg_reload_conf()")


def tls_url(postgres: PostgresServer, mode: str, root: Path | None, host: str = "localhost") -> str:
    """A server on 127.0.0.1 that is asked for by a name, which its certificate must bear."""
    trusted = f"&sslrootcert={root}" if root else ""
    return f"postgresql://{ADMIN}@{host}:{postgres.port}/postgres?hostaddr=127.0.0.1&sslmode={mode}{trusted}"


async def test_the_servers_certificate_is_verified(
    postgres: PostgresServer, trusted: Path, tmp_path: Path
) -> None:
    for mode in ("verify-full", "verify-ca", "require"):
        async with connect(tls_url(postgres, mode, trusted)) as connector:
            assert rows(await connector.ask(USED, Limits())) == [(True,)]
    stranger, _ = certificate(tmp_path, "stranger")
    for asked, words in (
        (tls_url(postgres, "verify-full", stranger), "certificate verify failed"),
        (tls_url(postgres, "verify-full", trusted, "db.example"), 'does not match host name "db.example"'),
        (tls_url(postgres, "verify-full", tmp_path / "none.crt"), "does not exist"),
    ):
        with pytest.raises(DatabaseUnavailable) as refused:
            await connect(asked).open()
        assert words in str(refused.value)
        assert "sslrootcert" in refused.value.hint


async def test_a_server_without_tls_is_refused_where_it_is_required(postgres: PostgresServer) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not support SSL") as refused:
        await connect(tls_url(postgres, "require", None)).open()
    assert "sslmode" in refused.value.hint


def test_the_longest_silence() -> None:
    """A dead peer costs an answer on an open connection, the end of that, and one try to connect."""
    assert Link.begin_seconds + 3 * CANCEL_SECONDS + 2 * Link.connect_seconds < 60
    given = {name: int(value) for name, value in KEEPALIVES.items()}
    assert given["keepalives_idle"] + given["keepalives_interval"] * given["keepalives_count"] < 60
    assert given["tcp_user_timeout"] < 60_000
