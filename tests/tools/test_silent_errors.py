"""Checks of silent errors: each trap is told with what shows it, of right queries nothing is said."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.guard import allowed
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryError, QueryResult
from quorum.tools.results.values import plain_rows
from quorum.tools.silent_errors import Doubt, Suspicion, suspicions
from quorum.tools.silent_errors.checking import plan
from quorum.tools.silent_errors.cues import asks_how_many, keeps_ties
from quorum.tools.silent_errors.doubts import Look
from quorum.tools.sql import DIALECTS
from tests.engines import Events, build, opened, start_no_process
from tests.tools.case_files import cases
from tests.tools.databases.contract import result

SCRIPT = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40), city VARCHAR(40), credit INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total INTEGER, status VARCHAR(20),
    rating INTEGER, placed TIMESTAMP NULL);
CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, qty INTEGER NOT NULL);
INSERT INTO customers VALUES (1, 'Ann Lee', 'Rome', 10), (2, 'Ann Lee', 'Oslo', 20), (3, 'Bo Ek', 'Rome', 20),
    (4, 'Cy Ot', 'Bern', 5);
INSERT INTO orders VALUES (1, 1, 10, 'open', 5, '2023-03-30 10:00:00'),
    (2, 1, 7, 'open', NULL, '2023-03-30 12:00:00'),
    (3, 2, 7, 'shut', 4, '2023-03-31 18:30:00'), (4, 3, 3, 'Open', 1, '2023-04-02 09:00:00'),
    (5, NULL, 8, 'shut', 2, '2023-04-03 09:00:00'), (6, 3, 1, NULL, 3, '2023-04-04 09:00:00');
INSERT INTO items VALUES (1, 1, 2), (2, 1, 3), (3, 2, 1), (4, 3, 4), (5, 4, 1), (6, 5, 2), (7, 6, 1);
"""


def _inserted(table: str, rows: Iterable[tuple[object, ...]]) -> str:
    values = (", ".join("NULL" if each is None else repr(each) for each in row) for row in rows)
    return f"INSERT INTO {table} VALUES {', '.join(f'({each})' for each in values)};\n"


_SALES = [
    (
        nth,
        ("North", "South", "north", "South ", "North", "West")[nth % 6],
        (f"2024-{nth % 12 + 1:02}-15", f"{nth % 28 + 1:02}.03.2024", f"04/{nth % 15 + 13}/2024")[nth % 3],
        (f"${nth},200.50", f"USD {nth * 10 + 800}", f"{nth}50.25")[nth % 3],
        ("Y", "N", "yes", "no", "Y")[nth % 5],
        -999 if nth % 8 == 0 else 50 + nth,
        (f"C000{nth % 6 + 10}", f"c000{nth % 6 + 10}", f" C000{nth % 6 + 10}")[nth % 3],
        f"{nth}%" if nth % 4 else f"0.{nth:02}",
        ("web", "shop", "web", "n/a", None)[nth % 5],
    )
    for nth in range(1, 25)
]
MESSY = (
    """
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, region VARCHAR(40), sold VARCHAR(40), price VARCHAR(40),
    paid VARCHAR(40), score INTEGER, client VARCHAR(40), share VARCHAR(40), channel VARCHAR(40));
CREATE TABLE clients (client VARCHAR(40) PRIMARY KEY, country VARCHAR(40));
CREATE TABLE weights (weight_id INTEGER PRIMARY KEY, weight INTEGER, unit VARCHAR(40));
CREATE TABLE budget (region VARCHAR(40), amount INTEGER);
CREATE TABLE calls (call_id INTEGER, minutes INTEGER);
"""
    + _inserted("sales", _SALES)
    + _inserted("clients", ((f"C000{nth}", "IT") for nth in range(10, 16)))
    + _inserted("weights", ((nth, nth * 7, "lb" if nth % 3 else "kg") for nth in range(1, 13)))
    + _inserted("budget", [*((f"R{nth} East", nth) for nth in range(1, 10)), ("TOTAL", 45)])
    + _inserted("calls", ((max(nth, 3), 5 + max(nth, 3)) for nth in range(1, 15)))
)
"""Columns whose values are not all written alike, repeated rows, a row that adds up others."""
SCRIPT += MESSY


@dataclass(frozen=True)
class Case:
    """A query, the kind that is suspected, and a part of what is said."""

    kind: str
    sql: str
    says: str
    question: str = ""


def cases_of(kind: str) -> list[Case]:
    return [Case(*fields) for fields in cases("sql_cases/silent_errors", kind=f"{kind}case")]


def quiet_of(kind: str) -> list[str]:
    """Right queries of which nothing is to be said."""
    return [sql for (sql,) in cases("sql_cases/silent_errors", kind=f"{kind}quiet")]


CASES, OTHER_CASES, QUIET = cases_of(""), cases_of("other "), quiet_of("")
"""Of all engines; where the case of letters counts."""


async def said(database: Database, sql: str, question: str = "") -> list[Suspicion]:
    """Return the suspicions about a query."""
    found = result(await execute(database, sql, agent="test"))
    return await suspicions(database, sql, lambda: found.table, agent="test", question=question, seconds=30)


async def check(database: Database, case: Case) -> None:
    """The case's kind is suspected, each value that is said is in the evidence, and what is mended runs."""
    every = await said(database, case.sql, case.question)
    for each in every:  # asked again
        shown = result(await execute(replace(database, cache=QueryCache()), each.sql, agent="test"))
        cells = {
            part for row in plain_rows(shown.table) for cell in row for part in (str(cell), str(cell)[:10])
        }
        written = re.sub(r"[\s()]", "", f"{case.sql} {each.sql}")
        for text in re.findall(r"`([^`]*)`", each.says):
            assert text in cells or re.sub(r"[\s()]", "", text) in written, (each.says, cells)
    found = [each for each in every if each.kind == case.kind]
    assert len(found) == 1, (case, every)
    assert case.says in found[0].says, found[0].says
    assert bool(found[0].matters) is bool(found[0].mended)
    if found[0].mended:
        assert isinstance(await execute(database, found[0].mended, agent="test"), QueryResult)


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)


@pytest.fixture(params=["sqlite", "duckdb"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with connect(build(request.param, tmp_path / "shop.db", SCRIPT)) as connector:
        yield await opened(connector)


@pytest.mark.parametrize("kind", list(Doubt))
async def test_a_trap_is_told(database: Database, kind: Doubt) -> None:
    every = (*CASES, *OTHER_CASES, *cases_of(f"{database.catalog.dialect} "))
    ours = [case for case in every if case.kind == kind]
    assert ours
    for case in ours:
        await check(database, case)


async def test_nothing_is_said_where_nothing_changes(database: Database) -> None:
    for sql in (*QUIET, *quiet_of(f"{database.catalog.dialect} ")):
        assert await said(database, sql) == [], sql


@pytest.mark.parametrize("server", ["postgres", "mariadb"])
async def test_servers_are_told_the_same(server: str, request: pytest.FixtureRequest) -> None:
    there = request.getfixturevalue(server)
    async with connect(f"{there.admin_url}/{there.new_database(SCRIPT)}") as connector:
        database = await opened(connector)
        for case in CASES + OTHER_CASES * (server == "postgres"):
            await check(database, case)
        for sql in QUIET:
            assert await said(database, sql) == [], sql


async def test_a_convention_settles_ties(database: Database) -> None:
    sql = "SELECT name, city FROM customers ORDER BY credit DESC LIMIT 1"
    assert await said(database, sql, "Which customer has the highest credit?") == []
    assert await said(database, sql, "Show the top 1 customer by credit.") == []
    (found,) = await said(database, sql, "Which customers have the highest credit?")
    assert found.kind is Doubt.CUT_TIES
    assert "would have 2 rows instead of 1" in found.matters


async def test_subqueries_ctes_and_unions_are_read(database: Database) -> None:
    joined = "orders AS o JOIN items AS i ON i.order_id = o.id"
    inner = f"SELECT o.status AS s, SUM(o.total) AS t FROM {joined} GROUP BY o.status"
    for sql in (
        f"WITH w AS ({inner}) SELECT MAX(t) AS m, s FROM w GROUP BY s",
        f"SELECT s FROM ({inner}) AS w WHERE t > 19",
        f"{inner} UNION ALL SELECT 'none', 0",
    ):
        assert Doubt.FAN_OUT in {each.kind for each in await said(database, sql)}, sql


async def test_evidence_is_asked_in_the_agents_name_and_bounded(database: Database) -> None:
    events = Events()
    noted = replace(database, record=events, cache=QueryCache())
    sql = CASES[0].sql
    found = result(await execute(noted, sql, agent="writer", candidate="c1"))
    events.clear()
    assert await suspicions(noted, sql, lambda: found.table, agent="checker", candidate="c1", seconds=30)
    assert {(each["agent"], each["candidate"]) for each in events} == {("checker", "c1")}
    assert len(events) <= 8
    events.clear()
    limited = replace(noted, limits=Limits(scan=10**9))
    for asked, seconds in ((noted, 0), (limited, 30)):
        assert await suspicions(asked, sql, lambda: found.table, agent="checker", seconds=seconds) == []
    assert events == []


@pytest.mark.parametrize(
    ("column", "says"),
    [("origin", ["No row of flights has `APG` in origin; nearest: ` APG` (1 row)."]), ("password", [])],
)
async def test_blanks_of_a_value_are_shown_and_private_values_are_not(
    column: str, says: list[str], tmp_path: Path
) -> None:
    script = f"CREATE TABLE flights (id INTEGER, {column} TEXT); INSERT INTO flights VALUES (1, ' APG')"
    async with connect(build("sqlite", tmp_path / "air.db", script)) as connector:
        found = await said(await opened(connector), f"SELECT COUNT(*) FROM flights WHERE {column} = 'APG'")
    assert [each.says for each in found] == says


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_evidence_passes_guard_and_lint_in_every_dialect(dialect: str, tmp_path: Path) -> None:
    fold = str.upper if dialect == "snowflake" else str
    async with connect(build("sqlite", tmp_path / "shop.db", SCRIPT)) as connector:
        known = await connector.catalog()
    tables = (
        replace(
            table,
            name=fold(table.name),
            columns=tuple(replace(column, name=fold(column.name)) for column in table.columns),
            primary_key=tuple(map(fold, table.primary_key)),
        )
        for table in known.tables
    )
    catalog = replace(known, dialect=dialect, tables=tuple(tables))
    linter = Linter(catalog)
    asked = 0
    for case in (*CASES, *OTHER_CASES):
        for doubt in plan(case.sql, catalog, case.question)[1]:
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
    assert asks_how_many("How many distinct students enrolled?", "Students")
    assert not asks_how_many("How many enrolments does each student have?", "Students")


async def test_a_files_rows_are_told_apart_by_a_unique_column(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,fee\n" + "".join(f"{n},{n + 5}\n" for n in range(1, 11)))
    (tmp_path / "lines.csv").write_text("order_id,sku\n" + "".join(f"{n % 9},{n}\n" for n in range(1, 21)))
    async with connect(str(tmp_path)) as connector:
        sql = "SELECT SUM(o.fee) AS fees FROM orders AS o JOIN lines AS l ON l.order_id = o.order_id"
        (found,) = await said(await opened(connector), sql)
    assert found.kind is Doubt.FAN_OUT
    assert "one (order_id 1) 3 times" in found.says


async def test_a_greatest_value_is_found_among_many_that_are_read_wrongly(tmp_path: Path) -> None:
    amounts = [f"{nth % 9 + 1}.{nth},50 €" for nth in range(100, 1000)] + ["0,50 €"] * 9 + ["6000.25"]
    rows = f"CREATE TABLE bills (id INTEGER, amount TEXT); {_inserted('bills', enumerate(amounts))}"
    async with connect(build("sqlite", tmp_path / "b.sqlite", rows)) as connector:
        for sql in (
            "SELECT MAX({0}) FROM bills",
            "SELECT MIN({0}) FROM bills",
            "SELECT COUNT(*) FROM bills WHERE {0} = 0",
        ):
            (found,) = await said(await opened(connector), sql.format("CAST(amount AS REAL)"))
            assert found.kind is Doubt.MISREAD, sql
