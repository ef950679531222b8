"""Checks of silent errors on PostgreSQL and MariaDB: the same shop, the same doubts."""

from __future__ import annotations

import pytest

from quorum.tools.databases import connect
from tests.engines import opened
from tests.tools.silent_errors.shop import CASES, OTHER_CASES, QUIET, SCRIPT, Case, check, said


@pytest.mark.parametrize(("server", "cases"), [("postgres", [*CASES, *OTHER_CASES]), ("mariadb", CASES)])
async def test_the_same_is_told(server: str, cases: list[Case], request: pytest.FixtureRequest) -> None:
    there = request.getfixturevalue(server)
    async with connect(f"{there.admin_url}/{there.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in cases:
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql
