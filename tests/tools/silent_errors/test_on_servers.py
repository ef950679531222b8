"""Checks of silent errors on PostgreSQL and MariaDB: the same shop, the same doubts."""

from __future__ import annotations

import pytest

from quorum.tools.databases import connect
from tests.engines import opened
from tests.tools.silent_errors.shop import CASES, OTHER_CASES, QUIET, SCRIPT, Case, check, said


@pytest.mark.parametrize(
    ("server", "driver", "cases"),
    [("postgres", "psycopg", [*CASES, *OTHER_CASES]), ("mariadb", "pymysql", CASES)],
)
async def test_the_same_is_told(
    server: str, driver: str, cases: list[Case], request: pytest.FixtureRequest
) -> None:
    pytest.importorskip(driver, reason=f"the driver {driver} is not installed")
    there = request.getfixturevalue(server)
    async with connect(f"{there.admin_url}/{there.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in cases:
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql
