"""Attacks on every engine that runs here, above the guard and below it, by accounts that may do everything.

``attacks.txt`` and the shared lists: with the guard none runs; without it none leaves anything behind. What
could be left is looked at after each: rows, sequences, objects, roles, settings, files, sessions, locks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database, execute
from quorum.tools.query import ErrorKind, Limits, QueryError
from tests.engines import build, opened
from tests.servers.bigquery_server import BigqueryServer
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.servers.snowflake_server import SnowflakeServer
from tests.tools.case_files import cases
from tests.tools.databases.contract import SOON, listed, rows

TABLES = """
CREATE TABLE customers (id int, name text, email text, parent_id int, x int);
CREATE TABLE orders (id {key}, customer_id int, total int, note text, created_at timestamp, status text,
    amount int, x int);
CREATE TABLE t (a int, b int, x int, s text, g int, d date, ts timestamp);
INSERT INTO orders (id) VALUES (1), (2);
"""
POSTGRES = """
CREATE EXTENSION IF NOT EXISTS dblink; CREATE EXTENSION IF NOT EXISTS pg_surgery;
CREATE EXTENSION IF NOT EXISTS adminpack;
"""
POSTGRES_EFFECTS = """
    SELECT (SELECT md5(string_agg(o::text, ',' ORDER BY id)) FROM orders o), (SELECT count(*) FROM customers),
        (SELECT count(*) FROM t), (SELECT last_value::text || is_called FROM orders_id_seq),
        (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_database),
        (SELECT count(*) FROM pg_largeobject_metadata),
        (SELECT md5(string_agg(a::text, ',' ORDER BY oid)) FROM pg_authid a),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
        (SELECT count(*) FROM pg_replication_slots),
        (SELECT count(*) FROM pg_replication_origin), (SELECT count(*) FROM pg_prepared_xacts),
        (SELECT relacl::text FROM pg_class WHERE relname = 'orders'), (SELECT count(*) FROM pg_ls_dir('.')),
        (SELECT md5(string_agg(name || setting, ',' ORDER BY name)) FROM pg_settings), pg_conf_load_time(),
        (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()),
        (SELECT stats_reset FROM pg_stat_bgwriter), pg_walfile_name(pg_current_wal_lsn()),
        (SELECT count(*) FROM pg_stat_activity WHERE pid = {pid})
"""
MYSQL = "CREATE SEQUENCE s1; CREATE PROCEDURE made() INSERT INTO t (a) VALUES (1)"
MYSQL_EFFECTS = """
    SELECT (SELECT group_concat(id) FROM orders), (SELECT count(*) FROM customers), (SELECT count(*) FROM t),
        (SELECT next_not_cached_value FROM s1), (SELECT count(*) FROM information_schema.tables),
        (SELECT count(*) FROM information_schema.routines),
        (SELECT md5(group_concat(priv)) FROM mysql.global_priv),
        (SELECT md5(group_concat(variable_name, variable_value ORDER BY 1))
            FROM information_schema.global_variables
            WHERE variable_name NOT LIKE 'gtid%' AND variable_name NOT LIKE 'innodb_buffer%'),
        IS_FREE_LOCK('held'), (SELECT count(*) FROM information_schema.processlist WHERE id = {pid})
"""
SNOWFLAKE = """
CREATE SEQUENCE s1; ALTER TABLE orders ADD COLUMN payload VARIANT; ALTER TABLE t ADD COLUMN arr VARIANT;
ALTER TABLE t ADD COLUMN e TEXT; ALTER TABLE t ADD COLUMN u TEXT;
"""
HEAVY = ("repeat", "lpad", "array_fill", "space(4")
COSTLY = {
    "bigquery": ("lpad", "generate_array"),
    "snowflake": ("generator(timelimit", "randstr", "connect by", "encrypt"),
}
"""What only asks for memory or time is left to the guard; by dialect, else ``HEAVY``."""


@dataclass
class Target:
    """A database that its account may write to, a view of what an attack would change, another session."""

    database: Database
    look: Callable[[], object]
    dialect: str
    pid: int = 0


ENGINES = [
    *("sqlite", "duckdb", "bigquery"),
    *(pytest.param(name, marks=pytest.mark.heavy) for name in ("postgresql", "mysql", "snowflake")),
    pytest.param("sqlalchemy+postgresql+psycopg", marks=pytest.mark.heavy),
]


@pytest.fixture(params=ENGINES)
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    engine, pid, other, tables = request.param, 0, None, TABLES.format(key="int")
    if engine == "bigquery":
        bigquery: BigqueryServer = request.getfixturevalue("bigquery")
        url = bigquery.url(bigquery.new_dataset(tables))

        def look() -> object:
            return {job.plan.kind for job in bigquery.jobs.values()} - {"SELECT"}

    elif engine == "snowflake":
        snowflake: SnowflakeServer = request.getfixturevalue("snowflake")
        schema = snowflake.new_schema(tables + SNOWFLAKE)
        url = snowflake.url(f"shop/{schema}")
        asked: list[object] = []

        def look() -> object:
            names = ("orders", "customers", "t")
            counts = [snowflake.execute(f"SELECT count(*) FROM {name}", schema) for name in names]
            sent = snowflake.asked()[len(asked) :] if asked else []
            asked[:] = asked or snowflake.asked()
            tables = snowflake.execute(f"SHOW TABLES IN SCHEMA SHOP.{schema}", schema)
            schemas = snowflake.execute("SELECT schema_name FROM SHOP.INFORMATION_SCHEMA.SCHEMATA ORDER BY 1")
            return counts, sorted(row[1] for row in tables), schemas, sent

    elif "postgresql" in engine:
        server: PostgresServer = request.getfixturevalue("postgres")
        name = server.new_database(POSTGRES + TABLES.format(key="serial"))
        url = f"{engine}://{server.admin_url.partition('://')[2]}/{name}"
        other = server.connect(name)
        pid = other.info.backend_pid
        other.execute("LISTEN held")

        def look() -> object:
            told = list(other.notifies(timeout=0))
            return server.execute(POSTGRES_EFFECTS.format(pid=pid), name), told, sorted(tmp_path.iterdir())

    elif "mysql" in engine:
        maria: MariadbServer = request.getfixturevalue("mariadb")
        name = maria.new_database(TABLES.format(key="int auto_increment primary key") + MYSQL)
        url = f"{engine}://{maria.admin_url.partition('://')[2]}/{name}"
        other = maria.connect(name)
        pid = other.thread_id()

        def look() -> object:
            kept = {p.name for p in maria.folder.rglob("*") if "#sql" not in p.name and p.suffix != ".TMD"}
            return maria.execute(MYSQL_EFFECTS.format(pid=pid), name), kept, sorted(tmp_path.iterdir())

    else:
        folder = tmp_path / "data"
        folder.mkdir()
        url = build(engine, folder / "a.db", tables)
        look = partial(_contents, tmp_path)
    async with connect(url) as connector:
        yield Target(await opened(connector, limits=Limits(seconds=5)), look, connector.dialect, pid)
    if other is not None:
        other.close()


def _contents(folder: Path) -> object:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def attacks(dialect: str, made: Path, pid: int, shared: Path | None) -> list[str]:
    """The project's own attacks on an engine, and those of the shared lists where they are here."""
    own = (sql for (sql,) in cases("databases/attacks", 2, kind=dialect))
    found = [sql.replace("{made}", str(made)).replace("{pid}", str(pid)) for sql in own]
    return [*found, *(listed(shared, dialect, "refuse") if shared else ())]


@pytest.fixture
def lists(request: pytest.FixtureRequest) -> Path | None:
    """The shared folder, or None without it."""
    try:
        return request.getfixturevalue("shared")
    except pytest.skip.Exception:
        return None


async def test_no_attack_runs_above_the_guard(target: Target, tmp_path: Path, lists: Path | None) -> None:
    before, tried = target.look(), attacks(target.dialect, tmp_path / "made", target.pid, lists)
    for sql in tried:
        outcome = await execute(target.database, sql, agent="attacker")
        assert isinstance(outcome, QueryError), sql
        assert outcome.by in ("guard", "lint"), (sql, outcome)
    assert target.look() == before
    assert len(tried) > (15 if lists or target.dialect not in COSTLY else 2)


@pytest.mark.heavy
async def test_no_attack_leaves_anything_behind_below_the_guard(
    target: Target, tmp_path: Path, lists: Path | None
) -> None:
    before = target.look()
    for sql in attacks(target.dialect, tmp_path / "made", target.pid, lists):
        if any(word in sql.lower() for word in COSTLY.get(target.dialect, HEAVY)):
            continue
        await target.database.connector.run(sql, SOON)
        assert target.look() == before, sql
    assert rows(await target.database.connector.run("SELECT 1", Limits())) == [(1,)]


@pytest.mark.parametrize("target", ENGINES[2:], indirect=True)
async def test_good_queries_run(target: Target, shared: Path) -> None:
    """Or name what is not here, or what this version of the server lacks."""
    good = listed(shared, target.dialect, "pass")
    missing = (ErrorKind.TABLE_NOT_FOUND, ErrorKind.COLUMN_NOT_FOUND, ErrorKind.FUNCTION)
    only_queries = target.database.connector.scheme not in ("postgresql", "mysql")  # SHOW, say, is not sent
    ran = 0
    for sql in good:
        outcome = await execute(target.database, sql, agent="analyst")
        if isinstance(outcome, QueryError):
            assert outcome.by != "guard", (sql, outcome)
            assert only_queries or outcome.kind in missing or "WITH TIES" in sql, (sql, outcome)
        ran += not isinstance(outcome, QueryError)
    assert ran > 2


ACCOUNTS = {
    "postgres": (
        *("SELECT rolpassword FROM pg_authid", 'SELECT 1 FROM t, pg_catalog."pg_shadow"', "SHOW ALL"),
        *("SELECT * FROM (pg_hba_file_rules CROSS JOIN t)", "TABLE pg_user_mappings"),
        *("SELECT query FROM pg_stat_activity", "SHOW primary_conninfo"),
    ),
    "mysql": (
        *("SELECT * FROM mysql.global_priv", "SHOW CREATE USER root@localhost", "SHOW BINLOG EVENTS"),
        *("SHOW GRANTS FOR root@localhost", "SHOW FULL PROCESSLIST"),
    ),
}
"""Reads of accounts, settings and other sessions."""


@pytest.mark.parametrize("target", ENGINES[3:5], indirect=True)
async def test_no_account_is_read_below_the_guard(target: Target) -> None:
    for sql in ACCOUNTS[target.dialect]:
        outcome = await target.database.connector.run(sql, SOON)
        assert isinstance(outcome, QueryError), sql
        assert outcome.kind is ErrorKind.PERMISSION, (sql, outcome)
    for sql in ("SHOW TIME ZONE", "SELECT pg_type.typname FROM pg_type JOIN pg_class ON true LIMIT 1"):
        if target.dialect == "postgres":
            assert len(rows(await target.database.connector.run(sql, Limits()))) == 1
