"""The contract on PostgreSQL's and MariaDB's servers, and what every connector to them promises besides."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.query import ErrorKind, Limits
from tests.tools.databases.contract import ENDLESS, ConnectorContract, error, rows
from tests.waiting import PATIENCE, until

POSTGRES_STATE = """
    SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM pg_class),
        (SELECT count(*) FROM pg_attribute),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_prepared_xacts)
"""
MARIADB_STATE = """
    SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM information_schema.tables),
        (SELECT count(*) FROM information_schema.columns)
"""
BROKEN = "CREATE VIEW broken AS SELECT 1 / 0 AS x;"
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


def for_postgres(script: str) -> str:
    """A script of the contract in PostgreSQL's own words."""
    script = re.sub(r"\bDOUBLE\b", "DOUBLE PRECISION", script)
    script = re.sub(r"CAST\('(\w)' AS BLOB\)", r"'\1'::bytea", script)
    script = re.sub(r"\bBLOB\b", "bytea", script)
    return re.sub(r"(?s)CREATE TABLE gone.*DROP TABLE gone;", BROKEN, script)


def for_mariadb(script: str) -> str:
    """A script or query of the contract in MySQL's own words."""

    def name(found: re.Match[str]) -> str:
        text = found[0]
        return text if text[0] == "'" else "`" + text[1:-1].replace('""', '"') + "`"

    script = _QUOTED.sub(name, script)
    script = re.sub(r"\bVARCHAR\b", "LONGTEXT", script)
    script = re.sub(r"'row ' \|\| (\S+)", r"concat('row ', \1)", script)
    return re.sub(r"CAST\('(\w)' AS BLOB\)", r"CAST('\1' AS BINARY)", script)


class ServedContract(ConnectorContract):
    """Subclass it for each connector to one of these servers."""

    engine: ClassVar[str]
    translated: ClassVar[Callable[[str], str]]
    state_of: ClassVar[str]
    sleep: ClassVar[str]
    end: ClassVar[str]  # how somebody else ends a session's query
    options: ClassVar[str] = ""
    long_text = "repeat('x', 100000)"

    @property
    def dialect(self) -> str:
        return self.engine

    def build(self, path: Path, script: str) -> None:
        self.names[path] = self.server.new_database(type(self).translated(script))

    def url(self, name: str, place: str = "") -> str:
        where = place or self.server.admin_url.partition("://")[2]
        return f"{self.scheme}://{where}/{name}{self.options}"

    def connect(self, path: Path) -> Connector:
        return connect(self.url(self.names[path]))

    def at_work(self, connector: Connector) -> int:
        return len(connector._busy)  # type: ignore[attr-defined]

    def running(self, connector: Connector, path: Path) -> object:
        return self.server.sessions(self.names[path], "active")

    def state(self, path: Path) -> object:
        return self.server.execute(self.state_of, self.names[path])

    async def test_fifty_queries_at_once_share_the_links(self, shop: Connector, path: Path) -> None:
        sleep = self.sleep.format(0.02)
        asked = (shop.ask(f"SELECT {i}, {sleep}", Limits()) for i in range(50))  # type: ignore[attr-defined]
        outcomes = await asyncio.gather(*asked)
        assert [rows(outcome)[0][0] for outcome in outcomes] == list(range(50))
        assert len(self.server.sessions(self.names[path])) <= shop.links  # type: ignore[attr-defined]

    async def test_lost_connections_are_opened_again(self, shop: Connector, path: Path) -> None:
        sleep = f"SELECT {self.sleep.format(0.05)}"
        await asyncio.gather(*(shop.ask(sleep, Limits()) for _ in range(4)))  # type: ignore[attr-defined]
        self.server.disconnect(self.names[path])
        await until(lambda: not self.server.sessions(self.names[path]))
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    async def test_a_server_that_dies_in_mid_query(self, shop: Connector, path: Path) -> None:
        sleep = f"SELECT {self.sleep.format(60)}"
        task = asyncio.create_task(shop.ask(sleep, Limits()))  # type: ignore[attr-defined]
        await until(lambda: self.server.sessions(self.names[path], "active"))
        await asyncio.to_thread(self.server.kill)
        try:
            async with asyncio.timeout(PATIENCE):
                assert error(await task).kind is ErrorKind.UNAVAILABLE
            assert error(await shop.run("SELECT 1", Limits())).kind is ErrorKind.UNAVAILABLE
        finally:
            await asyncio.to_thread(self.server.start)
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    async def test_a_query_that_somebody_ends_is_not_told_as_too_slow(
        self, shop: Connector, path: Path
    ) -> None:
        task = asyncio.create_task(shop.run(ENDLESS, Limits(seconds=60)))
        await until(lambda: self.running(shop, path))
        for session in self.server.sessions(self.names[path], "active"):
            self.server.execute(self.end.format(session))
        assert error(await task).kind is ErrorKind.UNAVAILABLE

    async def test_what_cannot_be_opened(self) -> None:
        for url, words in (
            (self.url("nowhere"), "nowhere"),
            (self.url("db", "me@127.0.0.1:1"), "(?i)refused|connect"),
            (
                self.url("db", f"me:wr0ng%2F%40@127.0.0.1:{self.server.port}"),
                "(?i)access denied|authen",
            ),
        ):
            with pytest.raises(DatabaseUnavailable, match=words) as failed:
                await connect(url).open()
            told = f"{failed.value!r} {failed.value} {failed.value.__cause__} {failed.value.__context__}"
            assert "wr0ng" not in told
            assert failed.value.hint


class PostgresContract(ServedContract):
    server_name = "postgres"
    engine = "postgres"
    translated = staticmethod(for_postgres)
    state_of = POSTGRES_STATE
    sleep = "pg_sleep({})::text"
    end = "SELECT pg_terminate_backend({})"


class MariadbContract(ServedContract):
    server_name = "mariadb"
    engine = "mysql"
    translated = staticmethod(for_mariadb)
    state_of = MARIADB_STATE
    sleep = "SLEEP({})"
    end = "KILL QUERY {}"

    def said(self, sql: str) -> str:
        return for_mariadb(sql)
