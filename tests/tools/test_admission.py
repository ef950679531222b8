"""What queries would read: limits are kept before anything runs, and what was read is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from unittest.mock import AsyncMock, Mock

import pytest

from quorum.knowledge.errors import BudgetExceeded
from quorum.tools.admission import Approver
from quorum.tools.database_facts import read_values
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Budget, Ledger, Usage
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.engines import Events, opened
from tests.servers.bigquery_server import VISITS, BigqueryServer, Job
from tests.tools.databases.contract import result

SECONDS = "SELECT sum(seconds) AS s FROM visits"
"""Reads 800,000 bytes, of which a MiB is billed."""
BOTH = "SELECT sum(seconds) AS s, max(day) AS d FROM visits"
"""Reads twice as much."""
MIB = 2**20


@pytest.fixture
async def database(bigquery: BigqueryServer) -> AsyncIterator[Database]:
    async with connect(bigquery.url(bigquery.new_dataset(VISITS))) as connector:
        yield await opened(connector)


Jobs = Callable[[], list[Job]]


@pytest.fixture
def jobs(database: Database, bigquery: BigqueryServer) -> Jobs:
    """The jobs that the server was given since the database was opened."""
    before = len(bigquery.jobs)
    return lambda: list(bigquery.jobs.values())[before:]


async def fail(database: Database, sql: str) -> QueryError:
    outcome = await execute(database, sql, agent="action")
    assert isinstance(outcome, QueryError), outcome
    return outcome


async def test_a_query_over_the_limit_is_refused_before_it_runs(database: Database, jobs: Jobs) -> None:
    events = Events()
    limited = replace(database, limits=Limits(scan=10**6), record=events)
    refused = await fail(limited, BOTH)
    assert (refused.kind, refused.by) == (ErrorKind.RESOURCES, "limit")
    assert "would read 1.53 MiB; at most 977 KiB may be read. It was not run." in refused.message
    assert jobs() == []
    assert database.ledger.total == Usage()
    assert (events[0]["executed"], events[0]["error"]["kind"]) == (BOTH, "resources")


async def test_what_may_run_carries_the_limit_to_the_server(database: Database, jobs: Jobs) -> None:
    ledger = Ledger(Budget(read_bytes=10 * MIB))
    limited = replace(database, limits=Limits(scan=3 * MIB), ledger=ledger)
    assert isinstance(await execute(limited, SECONDS, agent="action"), QueryResult)
    assert jobs()[-1].query["maximumBytesBilled"] == str(3 * MIB)
    free = replace(limited, limits=Limits())
    assert isinstance(await execute(free, BOTH, agent="action"), QueryResult)
    assert jobs()[-1].query["maximumBytesBilled"] == str(10 * MIB - MIB), "what the run has left"


async def test_what_the_engine_says_is_counted_not_what_was_expected(database: Database) -> None:
    ledger = Ledger(Budget(read_bytes=10 * MIB))
    outcome = result(await execute(replace(database, ledger=ledger), SECONDS, agent="action"))
    used = ledger.by_agent["action"]
    assert (used.read_bytes, used.estimated_bytes, used.slot_seconds) == (MIB, 0, 1.5)
    assert used.bytes == outcome.table.nbytes
    assert ledger.remaining_bytes() == 9 * MIB


async def test_the_runs_bytes_end_it_before_the_query_that_is_too_much(
    database: Database, jobs: Jobs
) -> None:
    ledger = Ledger(Budget(read_bytes=2 * MIB))
    limited = replace(database, ledger=ledger)
    assert isinstance(await execute(limited, SECONDS, agent="action"), QueryResult)
    with pytest.raises(BudgetExceeded, match=r"1 MiB of 2 MiB are used .* would read 1\.53 MiB") as error:
        await execute(limited, BOTH, agent="action")
    assert (error.value.limit, len(jobs())) == ("max_run_bytes", 1)
    again = await execute(limited, SECONDS, agent="action")
    assert isinstance(again, QueryResult), "what is known costs nothing"


async def test_queries_beside_each_other_share_the_runs_bytes(database: Database) -> None:
    ledger = Ledger(Budget(read_bytes=3 * 10**6))
    limited = replace(database, ledger=ledger)
    queries = [f"SELECT sum(seconds) + {n} AS s, max(day) AS d FROM visits" for n in range(4)]
    outcomes = await asyncio.gather(
        *(execute(limited, sql, agent="action") for sql in queries), return_exceptions=True
    )
    assert sum(isinstance(each, QueryResult) for each in outcomes) == 1
    assert sum(isinstance(each, BudgetExceeded) for each in outcomes) == 3
    assert ledger.reserved_bytes == 0


async def test_of_a_query_that_failed_all_that_was_expected_counts(database: Database) -> None:
    ledger = Ledger(Budget(read_bytes=10 * MIB))
    error = await fail(replace(database, ledger=ledger), "SELECT CAST(page AS INT64) AS n FROM visits")
    assert error.by == "database"
    assert ledger.total.read_bytes == 0
    assert ledger.total.estimated_bytes > 100_000
    assert ledger.remaining_bytes() == 10 * MIB - ledger.total.estimated_bytes


async def test_what_cannot_be_told_is_refused_where_a_limit_was_asked_for(database: Database) -> None:
    told = AsyncMock(return_value=Estimate(unknown="it calls the function f"))
    hidden = Mock(spec=Connector, dialect="bigquery", estimates=True, live=True, estimate=told)
    for limits, ledger, words in (
        (Limits(scan=10**9), Ledger(), "at most 954 MiB may be read"),
        (Limits(), Ledger(Budget(read_bytes=10**9)), "the run may read 954 MiB more"),
    ):
        error = await fail(replace(database, connector=hidden, limits=limits, ledger=ledger), SECONDS)
        assert error.kind is ErrorKind.RESOURCES
        assert f"cannot be told before it runs (it calls the function f), and {words}" in error.message


def approver(reply: bool) -> Mock:
    """One that says the same of everything."""
    unknown = {"answered.return_value": None, "was_recorded.return_value": False}
    return Mock(spec=Approver, **unknown, **{"approves.return_value": reply})


async def test_what_is_not_approved_does_not_run(database: Database, jobs: Jobs) -> None:
    no = approver(False)
    error = await fail(replace(database, approver=no), SECONDS)
    assert (error.kind, error.by, jobs()) == (ErrorKind.NOT_APPROVED, "user", [])
    (proposal,) = no.approves.call_args.args
    estimate = Estimate(800_000, billed=True)
    assert (proposal.sql, proposal.estimate, proposal.estimable) == (SECONDS, estimate, True)


async def test_nobody_is_asked_about_what_is_refused_or_known(database: Database) -> None:
    yes = approver(True)
    limited = replace(database, approver=yes, limits=Limits(scan=MIB))
    await fail(limited, BOTH)
    await fail(limited, "SELECT nope FROM visits")
    await execute(limited, SECONDS, agent="action")
    await execute(limited, SECONDS, agent="other")
    assert [call.args[0].sql for call in yes.approves.call_args_list] == [SECONDS]


async def test_nothing_is_read_unasked_where_reading_is_paid_for(database: Database, jobs: Jobs) -> None:
    index = await read_values(database.connector, database.catalog)
    assert index.unread
    assert jobs() == []
