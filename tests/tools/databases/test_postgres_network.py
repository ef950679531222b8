"""PostgreSQL when networks and servers fail, and over TLS: whom a connection trusts."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.server import Link
from quorum.tools.query import ErrorKind, Limits
from tests.servers.postgres_server import PostgresServer
from tests.servers.process import ADMIN
from tests.servers.proxy import Proxy
from tests.tools.databases.contract import ENDLESS, error, rows
from tests.waiting import PATIENCE, until, wait_until


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[Proxy]:
    async with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[Connector]:
    """A connector whose server is behind the proxy."""
    async with connect(f"postgresql://{ADMIN}@127.0.0.1:{proxy.port}/postgres") as connector:
        yield connector


def working(postgres: PostgresServer, part: str) -> bool:
    """Return True if a backend works at a query that begins so."""
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '{part}%' AND state = 'active'"
    return bool(postgres.execute(sql)[0][0])


async def test_a_connection_that_freezes_in_mid_query_costs_the_querys_own_time(
    far: Connector, proxy: Proxy, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Link, "begin_seconds", 0.5)
    monkeypatch.setattr(Link, "connect_seconds", 2)
    task = asyncio.create_task(far.run(ENDLESS, Limits(seconds=1)))
    await until(lambda: working(postgres, "WITH RECURSIVE spin"))
    proxy.freeze()
    async with asyncio.timeout(PATIENCE):
        assert error(await task).kind is ErrorKind.TIMEOUT
    await until(lambda: not working(postgres, "WITH RECURSIVE spin"))  # by the server's own limit
    proxy.thaw()
    assert rows(await far.run("SELECT 1", Limits())) == [(1,)]


async def test_a_password_that_expires_while_connections_are_open(postgres: PostgresServer) -> None:
    """A token is like that: what is open goes on, what is new is refused, once, in so many words."""
    postgres.execute("DROP ROLE IF EXISTS leaver; CREATE ROLE leaver LOGIN PASSWORD 'pw'")
    async with (
        Proxy(postgres.port) as proxy,
        connect(f"postgresql://leaver:pw@127.0.0.1:{proxy.port}/postgres") as connector,
    ):
        postgres.execute("ALTER ROLE leaver VALID UNTIL '2020-01-01'")
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'leaver'")
        before = proxy.accepted
        outcome = error(await connector.run("SELECT 1", Limits()))
        assert outcome.kind is ErrorKind.UNAVAILABLE
        assert "assword authentication failed" in outcome.message
        assert "valid" in outcome.message
        assert proxy.accepted - before <= 2, "libpq may try twice, over TLS and without; nobody loops"
        postgres.execute("ALTER ROLE leaver VALID UNTIL 'infinity'")
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]


@pytest.mark.heavy
async def test_an_answer_that_trickles_is_cut_at_the_limit(far: Connector, proxy: Proxy) -> None:
    proxy.slow(512)
    started = time.monotonic()
    outcome = error(
        await far.run("SELECT repeat('x', 1000) FROM generate_series(1, 5000)", Limits(seconds=1))
    )
    assert outcome.kind is ErrorKind.TIMEOUT
    assert time.monotonic() - started < PATIENCE
    proxy.slow(0)
    assert rows(await far.run("SELECT 1", Limits())) == [(1,)]


USED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, found = folder / f"{name}.key", folder / f"{name}.crt"
    asked = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(found)]
    subprocess.run(["openssl", *asked, *named], check=True, capture_output=True)
    return found, key


@pytest.fixture
def trusted(postgres: PostgresServer, tmp_path: Path) -> Iterator[Path]:
    """The server's certificate; the server has TLS meanwhile."""
    found, key = certificate(tmp_path, "server")
    own = postgres.folder / "data"
    for path in (found, key):
        shutil.copy(path, own / path.name)
        (own / path.name).chmod(0o600)
        os.chown(own / path.name, own.stat().st_uid, own.stat().st_gid)
    names = {"ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl": "on"}
    configure(postgres, *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in names.items()))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("on",)])
    yield found
    configure(postgres, *(f"ALTER SYSTEM RESET {name}" for name in names))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("off",)])


def configure(postgres: PostgresServer, *settings: str) -> None:
    for setting in settings:
        postgres.execute(setting)
    postgres.execute("SELECT pg_reload_conf()")


def url(postgres: PostgresServer, mode: str, root: Path | None, host: str = "localhost") -> str:
    """A server on 127.0.0.1 that is asked for by a name, which its certificate must bear."""
    trusted = f"&sslrootcert={root}" if root else ""
    return f"postgresql://{ADMIN}@{host}:{postgres.port}/postgres?hostaddr=127.0.0.1&sslmode={mode}{trusted}"


async def test_the_servers_certificate_is_verified(
    postgres: PostgresServer, trusted: Path, tmp_path: Path
) -> None:
    for mode in ("verify-full", "verify-ca", "require"):
        async with connect(url(postgres, mode, trusted)) as connector:
            assert rows(await connector.ask(USED, Limits())) == [(True,)]
    stranger, _ = certificate(tmp_path, "stranger")
    for asked, words in (
        (url(postgres, "verify-full", stranger), "certificate verify failed"),
        (url(postgres, "verify-full", trusted, "db.example"), 'does not match host name "db.example"'),
        (url(postgres, "verify-full", tmp_path / "none.crt"), "does not exist"),
    ):
        with pytest.raises(DatabaseUnavailable) as refused:
            await connect(asked).open()
        assert words in str(refused.value)
        assert "sslrootcert" in refused.value.hint


async def test_a_server_without_tls_is_refused_where_it_is_required(postgres: PostgresServer) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not support SSL") as refused:
        await connect(url(postgres, "require", None)).open()
    assert "sslmode" in refused.value.hint
