"""Checks of silent errors: each trap is told with what shows it, of right queries nothing is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.catalog import Column as CatalogColumn
from quorum.knowledge.catalog import Table as CatalogTable
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.guard import allowed
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryError
from quorum.tools.silent_errors import Kind, suspicions
from quorum.tools.silent_errors.checking import plan
from quorum.tools.silent_errors.cues import asks_how_many, keeps_ties
from quorum.tools.silent_errors.doubts import Look
from quorum.tools.sql import DIALECTS
from tests.engines import build, opened, start_no_process
from tests.tools.databases.contract import result
from tests.tools.silent_errors.shop import (
    CASES,
    CASES_OF,
    OTHER_CASES,
    QUIET,
    QUIET_OF,
    SCRIPT,
    Case,
    check,
    said,
)


@pytest.fixture(params=["sqlite", "duckdb"])
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Database]:
    start_no_process(monkeypatch)
    async with connect(build(request.param, tmp_path / "shop.db", SCRIPT)) as connector:
        yield await opened(connector)


@pytest.mark.parametrize("kind", list(Kind))
async def test_a_trap_is_told(database: Database, kind: Kind) -> None:
    every = (*CASES, *OTHER_CASES, *CASES_OF[database.catalog.dialect])
    cases = [case for case in every if case.kind is kind]
    assert cases
    for case in cases:
        await check(database, case)


async def test_nothing_is_said_where_nothing_changes(database: Database) -> None:
    for sql in (*QUIET, *QUIET_OF[database.catalog.dialect]):
        assert await said(database, sql) == [], sql


@pytest.mark.parametrize(
    ("server", "cases"),
    [("postgres", [*CASES, *OTHER_CASES]), ("mariadb", CASES)],
    ids=["postgres", "mariadb"],
)
async def test_servers_are_told_the_same(
    server: str, cases: list[Case], request: pytest.FixtureRequest
) -> None:
    there = request.getfixturevalue(server)
    async with connect(f"{there.admin_url}/{there.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in cases:
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql


async def test_a_convention_settles_ties(database: Database) -> None:
    sql = "SELECT name, city FROM customers ORDER BY credit DESC LIMIT 1"
    assert await said(database, sql, "Which customer has the highest credit?") == []
    assert await said(database, sql, "Show the top 1 customer by credit.") == []
    (found,) = await said(database, sql, "Which customers have the highest credit?")
    assert found.kind is Kind.CUT_TIES
    assert "would have 2 rows instead of 1" in found.matters


async def test_subqueries_ctes_and_unions_are_read(database: Database) -> None:
    joined = "orders AS o JOIN items AS i ON i.order_id = o.id"
    inner = f"SELECT o.status AS s, SUM(o.total) AS t FROM {joined} GROUP BY o.status"
    for sql in (
        f"WITH w AS ({inner}) SELECT MAX(t) AS m, s FROM w GROUP BY s",
        f"SELECT s FROM ({inner}) AS w WHERE t > 19",
        f"{inner} UNION ALL SELECT 'none', 0",
    ):
        assert Kind.FAN_OUT in {each.kind for each in await said(database, sql)}, sql


async def test_evidence_is_asked_in_the_agents_name_and_bounded(database: Database) -> None:
    events: list[dict[str, Any]] = []
    noted = replace(database, record=lambda kind, **event: events.append(event), cache=QueryCache())
    sql = CASES[0].sql
    found = result(await execute(noted, sql, agent="writer", candidate="c1"))
    events.clear()
    assert await suspicions(noted, sql, lambda: found.table, agent="checker", candidate="c1", seconds=30)
    assert {(each["agent"], each["candidate"]) for each in events} == {("checker", "c1")}
    assert len(events) <= 8
    events.clear()
    assert await suspicions(noted, sql, lambda: found.table, agent="checker", seconds=0) == []
    assert events == []


async def test_where_reading_is_limited_nothing_is_asked(database: Database) -> None:
    limited = replace(database, limits=Limits(scan=10**9))
    found = result(await execute(database, CASES[0].sql, agent="test"))
    assert await suspicions(limited, CASES[0].sql, lambda: found.table, agent="test", seconds=30) == []


@pytest.mark.parametrize(
    ("column", "says"),
    [("origin", ["No row of flights has `APG` in origin; nearest: ` APG` (1 row)."]), ("password", [])],
)
async def test_blanks_of_a_value_are_shown_and_private_values_are_not(
    column: str, says: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_no_process(monkeypatch)
    script = f"CREATE TABLE flights (id INTEGER, {column} TEXT); INSERT INTO flights VALUES (1, ' APG')"
    async with connect(build("sqlite", tmp_path / "air.db", script)) as connector:
        found = await said(await opened(connector), f"SELECT COUNT(*) FROM flights WHERE {column} = 'APG'")
    assert [each.says for each in found] == says


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_evidence_passes_guard_and_lint_in_every_dialect(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_no_process(monkeypatch)
    upper = str.upper if dialect == "snowflake" else str
    async with connect(build("sqlite", tmp_path / "shop.db", SCRIPT)) as connector:
        known = (await connector.catalog()).tables
    tables = (
        CatalogTable(
            upper(table.name),
            tuple(CatalogColumn(upper(column.name), column.type) for column in table.columns),
            primary_key=tuple(map(upper, table.primary_key)),
        )
        for table in known
    )
    catalog = Catalog("shop", dialect, tuple(tables))
    linter = Linter(catalog)
    asked = 0
    for case in (*CASES, *OTHER_CASES):
        planned = plan(case.sql, catalog, case.question)
        for doubt in planned[1]:
            trees = [doubt.query] if isinstance(doubt, Look) else [doubt.evidence, doubt.mend()]
            for tree in trees:
                passed = await allowed(tree.sql(dialect), linter)
                assert not isinstance(passed, QueryError), (tree.sql(dialect), passed)
                asked += 1
    assert asked > 15


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Which customers have the most orders?", True),
        ("What are the names of the singers who have the highest age?", True),
        ("List the cheapest products.", True),
        ("Which customer has the most orders?", False),
        ("What is the id of the template used by the most documents?", False),
        ("What airline serves the most flights?", False),
        ("List the top 3 products.", False),
        ("", True),
    ],
)
def test_a_plural_without_a_number_keeps_ties(question: str, kept: bool) -> None:
    assert keeps_ties(question) is kept


def test_words_tell_what_is_counted() -> None:
    assert asks_how_many("How many distinct students enrolled?", "Students")
    assert not asks_how_many("How many enrolments does each student have?", "Students")


async def test_a_files_rows_are_told_apart_by_a_unique_column(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,fee\n" + "".join(f"{n},{n + 5}\n" for n in range(1, 11)))
    (tmp_path / "lines.csv").write_text("order_id,sku\n" + "".join(f"{n % 9},{n}\n" for n in range(1, 21)))
    async with connect(str(tmp_path)) as connector:
        sql = "SELECT SUM(o.fee) AS fees FROM orders AS o JOIN lines AS l ON l.order_id = o.order_id"
        (found,) = await said(await opened(connector), sql)
    assert found.kind is Kind.FAN_OUT
    assert "one (order_id 1) 3 times" in found.says
