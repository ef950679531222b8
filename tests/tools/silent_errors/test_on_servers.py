"""Checks of silent errors on PostgreSQL and MariaDB: the same shop, the same doubts."""

from __future__ import annotations

import pytest

from quorum.tools.databases import connect
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.tools.silent_errors.shop import (
    CASES,
    OTHER_CASES,
    QUIET,
    SCRIPT,
    check,
    opened,
    said,
)


async def test_postgresql(postgres: PostgresServer) -> None:
    pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")
    async with connect(f"{postgres.admin_url}/{postgres.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in (*CASES, *OTHER_CASES):
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql


async def test_mariadb(mariadb: MariadbServer) -> None:
    pytest.importorskip("pymysql", reason="the extra quorum-sql[mysql] is not installed")
    async with connect(f"{mariadb.admin_url}/{mariadb.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in CASES:
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql
