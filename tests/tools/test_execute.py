"""The one way to a database: what passes, what is charged, what is shared, what is recorded."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from quorum.knowledge.errors import BudgetExceeded, LeaseLost
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.guard import process
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from tests.engines import Events, build, opened
from tests.tools.databases.contract import at_work, children, result
from tests.waiting import until

SLOW = "SELECT count(*) FROM numbers AS a, numbers AS b, numbers AS c, numbers AS d WHERE a.n + b.n < d.n"


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
async def database(tmp_path: Path, events: Events) -> AsyncIterator[Database]:
    values = ", ".join(f"({i})" for i in range(1000))
    script = f"CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES {values}"
    async with connect(build("sqlite", tmp_path / "shop.db", script)) as connector:
        yield await opened(connector, limits=Limits(seconds=20), record=events)


async def run(database: Database, sql: str, agent: str = "action") -> QueryResult:
    return result(await execute(database, sql, agent=agent, candidate="1"))


async def fail(database: Database, sql: str) -> QueryError:
    outcome = await execute(database, sql, agent="action", candidate="1")
    assert isinstance(outcome, QueryError)
    return outcome


async def test_runs_charges_and_records(database: Database, events: Events) -> None:
    outcome = await run(database, "select sum(n) as total -- all\nfrom numbers;")
    assert outcome.table.to_pylist() == [{"total": 499_500}]
    assert "all" not in outcome.sql  # the guard's text, not the agent's
    used = database.ledger.by_agent["action"]
    assert (used.queries, used.rows, used.bytes) == (1, 1, outcome.table.nbytes)
    assert used.query_seconds == outcome.seconds
    (event,) = events
    assert event["kind"] == "query"
    assert (event["agent"], event["candidate"], event["cached"]) == ("action", "1", False)
    assert event["executed"] == outcome.sql
    assert (event["rows"], event["columns"], event["truncated"]) == (1, ["total"], "")
    assert event["usage"] == used.as_dict()


@pytest.mark.parametrize(
    ("sql", "by", "kind"),
    [
        ("DROP TABLE numbers", "guard", ErrorKind.REFUSED),
        ("SELECT 1; SELECT 2", "guard", ErrorKind.REFUSED),
        ("SELEC n FROM numbers", "guard", ErrorKind.SYNTAX),
        ("SELECT n FROM number", "lint", ErrorKind.TABLE_NOT_FOUND),
        ('SELECT "m" FROM numbers', "lint", ErrorKind.COLUMN_NOT_FOUND),
    ],
)
async def test_what_guard_and_lint_stop_costs_nothing(
    database: Database, events: Events, sql: str, by: str, kind: ErrorKind
) -> None:
    problem = await fail(database, sql)
    assert (problem.by, problem.kind) == (by, kind)
    assert database.ledger.total.queries == 0
    (event,) = events
    assert event["error"]["kind"] == kind.value
    assert "usage" not in event


async def test_same_text_runs_once(database: Database, events: Events) -> None:
    first, *others = await asyncio.gather(*(run(database, "SELECT max(n) FROM numbers") for _ in range(5)))
    again = await run(database, "SELECT max(n) FROM numbers -- again", "refiner")
    assert all(outcome is first for outcome in (*others, again))
    assert database.ledger.total.queries == 1
    assert "refiner" not in database.ledger.by_agent
    assert [event["cached"] for event in events].count(True) == 5
    assert "usage" not in events[-1]


async def test_errors_are_remembered_unless_they_may_pass(database: Database) -> None:
    for _ in range(2):
        await fail(database, "SELECT json_extract('{', '$.a') FROM numbers")
    assert database.ledger.total.queries == 1
    hurried = replace(database, limits=Limits(seconds=0.1))
    for _ in range(2):
        await fail(hurried, SLOW)
    assert database.ledger.total.queries == 3


async def test_a_text_is_judged_once_for_a_catalog_however_many_ask(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Mock(wraps=process.PROCESS.ask)
    monkeypatch.setattr(process.PROCESS, "ask", ask)
    same = "SELECT max(n) FROM numbers"
    await asyncio.gather(*(run(database, same) for _ in range(3)))
    await run(replace(database, cache=QueryCache()), same)  # another run's
    assert [call.args[0] for call in ask.call_args_list] == [same]
    for _ in range(2):
        assert (await fail(database, "SELECT m FROM numbers")).kind is ErrorKind.COLUMN_NOT_FOUND
    assert ask.call_count == 2
    other = replace(database, linter=Linter(database.catalog))  # of another catalog, for all that is known
    await run(other, same)
    assert ask.call_count == 3


async def test_one_asker_may_leave(database: Database, events: Events) -> None:
    few = "(SELECT n FROM numbers WHERE n < 10)"
    sql = f"SELECT count(*) FROM numbers AS a, numbers AS b, {few} AS c WHERE a.n + b.n + c.n >= 0"
    first = asyncio.create_task(run(database, sql, "writer"))
    await until(lambda: at_work(database.connector))
    (shared,) = database.cache._running.values()
    second = asyncio.create_task(run(database, sql, "refiner"))
    await until(lambda: shared.callers == 2)
    first.cancel()
    outcome = await second
    assert outcome.table[0][0].as_py() == 10_000_000
    assert database.ledger.by_agent["writer"].queries == 1  # charged and recorded though it left
    assert [event["agent"] for event in events] == ["writer", "refiner"]
    assert await run(database, sql) is outcome


async def test_query_stops_when_the_last_asker_leaves(database: Database) -> None:
    await run(database, "SELECT 1 FROM numbers")
    asking = [asyncio.create_task(run(database, SLOW)) for _ in range(2)]
    await until(lambda: at_work(database.connector))
    (child,) = children()
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await until(lambda: not child.is_running())
    assert (await run(database, "SELECT min(n) FROM numbers")).row_count == 1


async def test_a_query_that_fails_when_its_last_asker_has_left_says_so_to_nobody() -> None:
    """It is cancelled, and its event cannot be written, for the run is another process's by then."""
    cache, begun, told = QueryCache(), asyncio.Event(), list[str]()

    async def query() -> QueryError:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise LeaseLost("This process has lost the run.")

    asyncio.get_running_loop().set_exception_handler(lambda _, about: told.append(about["message"]))
    asking = asyncio.create_task(cache.outcome("SELECT 1", query))
    await begun.wait()
    asking.cancel()
    await asyncio.wait([asking])
    await until(lambda: len(asyncio.all_tasks()) == 1)
    del asking
    gc.collect()
    assert told == []


async def test_deadline_that_cuts_a_query_ends_the_run(
    database: Database, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]  # the run has 0.2 s left when a query begins, and none when it ends
    ledger = Ledger(Budget(seconds=0.2), clock=lambda: now[0])
    late, run = replace(database, limits=Limits(seconds=600), ledger=ledger), database.connector.run

    async def begun(sql: str, limits: Limits) -> QueryResult | QueryError:
        now[0] = 1.0
        return await run(sql, limits)

    monkeypatch.setattr(database.connector, "run", begun)
    with pytest.raises(BudgetExceeded) as raised:
        await execute(late, SLOW, agent="action")
    assert raised.value.limit == "deadline"
    assert late.ledger.total.queries == 1
    assert events[0]["error"]["kind"] == "timeout"
    with pytest.raises(BudgetExceeded):
        await execute(late, "SELECT 1 FROM numbers", agent="action")
