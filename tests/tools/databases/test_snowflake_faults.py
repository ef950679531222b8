"""Snowflake when networks, sessions and servers fail, and under load."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.server import Link
from quorum.tools.databases.snowflake import session as snowflake_session
from quorum.tools.query import ErrorKind, Limits
from tests.servers.proxy import Proxy
from tests.servers.snowflake_server import SnowflakeServer
from tests.tools.databases.contract import ENDLESS, error, rows
from tests.waiting import PATIENCE, until

SLOW = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
    SELECT count(*) AS n FROM n AS a CROSS JOIN n AS b WHERE sqrt(a.i * b.i) > 1
"""


@pytest.fixture(autouse=True)
def _no_faults(snowflake: SnowflakeServer) -> Iterator[None]:
    yield
    snowflake.control("faults")
    snowflake.control("stop")


@pytest.fixture
async def near(snowflake: SnowflakeServer) -> AsyncIterator[Connector]:
    async with connect(snowflake.url("shop/public")) as connector:
        yield connector


@pytest.fixture
async def proxy(snowflake: SnowflakeServer) -> AsyncIterator[Proxy]:
    async with Proxy(snowflake.port) as proxy:
        yield proxy


@pytest.fixture
async def far(snowflake: SnowflakeServer, proxy: Proxy) -> AsyncIterator[Connector]:
    """A connector whose server is behind the proxy."""
    async with connect(snowflake.url("shop/public", port=proxy.port)) as connector:
        yield connector


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are always asked whether they are still there, and with little patience."""
    monkeypatch.setattr(snowflake_session, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(Link, "begin_seconds", 0.5)
    monkeypatch.setattr(snowflake_session, "LOGIN_SECONDS", 1)


def threads() -> int:
    """Links at work, or idle."""
    return sum(thread.name.startswith("quorum-database") for thread in threading.enumerate())


def logins(snowflake: SnowflakeServer) -> int:
    return len(snowflake.control()["logins"])


async def test_a_token_that_expires_under_a_query_is_renewed(
    near: Connector, snowflake: SnowflakeServer
) -> None:
    renewed = snowflake.control()["renewed"]
    snowflake.control("faults", {"token_expired": True})
    assert rows(await near.run("SELECT 1", Limits())) == [(1,)], "nobody has asked before"
    assert snowflake.control()["renewed"] == renewed + 1


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("lost", ["cannot be renewed", "has ended"])
async def test_a_lost_session_is_logged_in_anew_once_for_all(
    near: Connector, snowflake: SnowflakeServer, lost: str
) -> None:
    await asyncio.gather(*(near.run("SELECT 1", Limits()) for _ in range(8)))
    before = logins(snowflake)
    if lost == "has ended":
        snowflake.control("end_sessions")
    else:
        snowflake.control("faults", {"token_expired": True, "master_expired": True})
    outcomes = await asyncio.gather(*(near.run("SELECT 1", Limits()) for _ in range(20)))
    assert {rows(outcome)[0] for outcome in outcomes} == {(1,)}
    assert logins(snowflake) == before + 1


def test_a_lost_connection_is_closed_once_and_its_drivers_races_harm_nobody() -> None:
    closed: list[str] = []

    def close() -> None:
        closed.append("once")
        raise RuntimeError("Set changed size during iteration")

    session = snowflake_session.Session(cast("Any", None))
    lost: Any = SimpleNamespace(rest=SimpleNamespace(close=close), _close_at_exit=None)
    session.current = lost
    session.drop(lost)
    session.drop(lost)
    assert (session.current, closed) == (None, ["once"])


async def test_a_session_that_ends_between_two_quick_queries_costs_one(
    near: Connector, snowflake: SnowflakeServer
) -> None:
    await near.run("SELECT 1", Limits())
    snowflake.control("end_sessions")
    outcome = error(await near.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.UNAVAILABLE
    assert "session has ended" in outcome.message
    assert rows(await near.run("SELECT 1", Limits())) == [(1,)]


async def test_a_line_that_freezes_in_mid_query_costs_the_querys_own_time(
    far: Connector, proxy: Proxy, snowflake: SnowflakeServer
) -> None:
    await far.run("SELECT 1", Limits())
    before = threads()
    started = time.monotonic()
    task = asyncio.create_task(far.run(ENDLESS, Limits(seconds=1)))
    await until(snowflake.running)
    proxy.freeze()
    assert error(await task).kind is ErrorKind.TIMEOUT
    assert time.monotonic() - started < 1 + 2 + PATIENCE / 12  # the machine may be busy
    await until(lambda: not snowflake.running())  # by the server's own limit
    await until(lambda: threads() < before)  # nobody waits for what does not come
    proxy.thaw()
    assert rows(await far.run("SELECT 1", Limits())) == [(1,)]


async def test_closing_waits_for_no_line_that_is_frozen(
    snowflake: SnowflakeServer, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snowflake_session, "LOGOUT_SECONDS", 0.5)
    connector = connect(snowflake.url("shop/public", port=proxy.port))
    await connector.open()
    task = asyncio.create_task(connector.run(ENDLESS, Limits(seconds=20)))
    await until(snowflake.running)
    proxy.freeze()
    async with asyncio.timeout(15):
        await connector.close()
    assert error(await task).kind is ErrorKind.UNAVAILABLE


async def test_a_query_whose_line_breaks_is_answered_and_runs_once(
    far: Connector, proxy: Proxy, snowflake: SnowflakeServer
) -> None:
    before = len(snowflake.asked())
    task = asyncio.create_task(far.run(SLOW, Limits()))
    await until(snowflake.running)
    proxy.drop()
    assert len(rows(await task)) == 1
    assert len(snowflake.asked()) == before + 1


async def test_a_service_that_is_not_to_be_had_for_a_moment_is_asked_again(
    near: Connector, snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snowflake_session, "AGAIN", (0, 0, 0))
    before = len(snowflake.asked())
    snowflake.control("faults", {"unavailable": 1})
    assert rows(await near.run("SELECT 1", Limits())) == [(1,)]
    assert len(snowflake.asked()) == before + 1
    snowflake.control("faults", {"unavailable": 9})
    outcome = error(await near.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.UNAVAILABLE
    assert "The server does not answer: HTTP 503: Service Unavailable" in outcome.message


async def test_a_server_that_asks_for_a_file_gets_none(
    near: Connector, snowflake: SnowflakeServer, tmp_path: Path
) -> None:
    """Snowflake's client sends files that an answer names, whatever was asked."""
    file = tmp_path / "secret"
    file.write_text("secret")
    snowflake.control("faults", {"files": str(file)})
    outcome = error(await near.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.PERMISSION
    assert "asks for a file" in outcome.message
    assert rows(await near.run("SELECT 1", Limits())) == [(1,)]
