"""Choosing a connector by URL or by the file's mark."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import CONNECTORS, connect
from quorum.tools.databases.bigquery.session import BigqueryLink
from quorum.tools.databases.server import Link
from quorum.tools.databases.sqlalchemy.session import AlchemyLink
from quorum.tools.query import ErrorKind, Estimate, Limits
from quorum.tools.urls import mask_url
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.servers.proxy import Proxy
from tests.tools.databases.contract import error, rows


def test_unknown_scheme_lists_the_known() -> None:
    with pytest.raises(ConfigurationError) as raised:
        connect("cobol://host/db")
    assert all(f"{scheme}://" in str(raised.value) for scheme in CONNECTORS)


def test_plain_paths(tmp_path: Path) -> None:
    for content, message in ((None, "no file"), (b"", "neither"), (b"name,price\n", "neither")):
        if content is not None:
            (tmp_path / "shop.db").write_bytes(content)
        with pytest.raises(DatabaseUnavailable, match=message):
            connect(str(tmp_path / "shop.db"))
    for path in ("~nobody-at-all/shop.db", "a\0b", "x" * 5000, ""):
        with pytest.raises(DatabaseUnavailable):
            connect(path)


MALFORMED = {
    "postgresql": """
        me:wr0ng/x@host/db me:wr0ng?x@host/db me:wr0ng#x@host/db me:wr0ng@x@host/db me:wr0ng:x@host:port/db
        me:wr0ng@host/db?pasword=x me:wr0ng@host/db?options=-cx me:wr0ng@[::1/db
    """,
    "mysql": """
        me:wr0ng/x@host/db me:wr0ng@x@host/db me:wr0ng@host:port/db me:wr0ng@host/db?pasword=x me:wr0ng@host
    """,
    "snowflake": """
        acc /shop acc/a/b/c acc/1x me:wr0ng@x@acc/shop :wr0ng@acc/shop me:wr0ng@acc/shop?pasword=x
        me:wr0ng@acc/shop?password=wr0ng me:wr0ng@acc/shop?database=a.b.c
        me:wr0ng@acc/shop?endpoint=http://elsewhere.example me:wr0ng@acc/shop?endpoint=ftp://127.0.0.1
        me:wr0ng@acc/shop?authenticator=x;y me:wr0ng@acc/shop?connection=dev me:wr0ng@a/b@acc/shop
    """,
    "bigquery": "/d p/d/t me:wr0ng@p/d p/d?nope=1 p?anonymous=1 p/d?dataset=",
}


@pytest.mark.parametrize("scheme", MALFORMED)
def test_a_malformed_url_is_said_without_its_secrets(scheme: str) -> None:
    for rest in MALFORMED[scheme].split():
        url = f"{scheme}://{rest}"
        with pytest.raises(ConfigurationError) as malformed:
            connect(url)
        assert "wr0ng" not in str(malformed.value) + malformed.value.hint, url
        assert "wr0ng" not in mask_url(url), url


def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorum.tools.databases.server.is_installed", lambda name: False)
    for url, package in (
        ("postgresql://h/x", "psycopg"),
        ("mysql://h/x", "pymysql"),
        ("snowflake://me:pw@acc/d", "snowflake-connector-python"),
        ("bigquery://p/d", "google-cloud-bigquery"),
    ):
        with pytest.raises(ConfigurationError, match=rf"{package}.*pip install"):
            connect(url)


def test_a_connector_shows_no_password() -> None:
    for url in ("postgresql://me:wr0ng@host/db?sslpassword=wr0ng", "mysql://me:wr0ng@host/db"):
        assert "wr0ng" not in repr(vars(connect(url)))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers have a second to answer."""
    for link in (Link, AlchemyLink, BigqueryLink):
        monkeypatch.setattr(link, "connect_seconds", 1)
        monkeypatch.setattr(link, "begin_seconds", 1)
    monkeypatch.setattr("quorum.tools.databases.snowflake.session.LOGIN_SECONDS", 1)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


SILENT = {
    "mysql://u@{place}/d": "pymysql",
    "postgresql://u@{place}/d": "psycopg",
    "bigquery://a/b?endpoint=http://{place}&anonymous=1": "google.cloud.bigquery",
    "snowflake://u:p@testing/d/s?endpoint={quoted}": "snowflake.connector",
    "sqlalchemy+postgresql+psycopg://u@{place}/d": "sqlalchemy",
}


@pytest.mark.heavy
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("url", SILENT)
async def test_a_server_that_says_nothing_is_not_waited_for(url: str, silent: int) -> None:
    pytest.importorskip(SILENT[url])
    place = f"127.0.0.1:{silent}"
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await connect(url.format(place=place, quoted=quote(f"http://{place}", safe=""))).open()
    assert time.monotonic() - began < 15


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("scheme", ["mysql", "postgresql", "sqlalchemy+postgresql+psycopg"])
async def test_a_server_that_falls_silent_is_not_waited_for(
    mariadb: MariadbServer, postgres: PostgresServer, scheme: str
) -> None:
    pytest.importorskip("sqlalchemy")
    server, name = (mariadb, "mysql") if "mysql" in scheme else (postgres, "postgres")
    async with (
        Proxy(server.port) as proxy,
        connect(f"{scheme}://quorum_admin@127.0.0.1:{proxy.port}/{name}") as connector,
    ):
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
        proxy.freeze()
        began = time.monotonic()
        lost = error(await connector.run("SELECT 1", Limits(seconds=1)))
        assert (lost.kind, proxy.swallowed > 0) == (ErrorKind.UNAVAILABLE, True)
        assert time.monotonic() - began < 15
        proxy.thaw()
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)], "it is replaced"


@pytest.mark.live
@pytest.mark.parametrize("name", ["QUORUM_LIVE_BIGQUERY", "QUORUM_LIVE_SNOWFLAKE"])
async def test_a_real_account_is_asked(name: str) -> None:
    """Of the database that the variable names by its URL, with the machine's own credentials."""
    if name not in os.environ:
        pytest.skip(f"{name} names no database")
    async with connect(os.environ[name]) as connector:
        assert (await connector.catalog()).tables
        assert isinstance(await connector.estimate("SELECT 1 AS one", Limits()), Estimate)
        assert rows(await connector.run("SELECT 1 AS one", Limits(scan=10**7))) == [(1,)]
        assert error(await connector.run("SELECT nope", Limits())).kind is ErrorKind.COLUMN_NOT_FOUND
        assert await connector.account()
