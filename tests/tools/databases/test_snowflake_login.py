"""Who asks Snowflake: URLs, credentials, logins, roles; and when networks, sessions and servers fail."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from quorum.checks import _database
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.settings import Settings
from quorum.tools.databases import connect
from quorum.tools.databases.base import Account, Connector
from quorum.tools.databases.server import Link
from quorum.tools.databases.snowflake import session as snowflake_session
from quorum.tools.databases.snowflake.url import Target
from quorum.tools.query import ErrorKind, Limits
from quorum.tools.urls import location
from tests.servers.proxy import Proxy
from tests.servers.snowflake_server import PASSWORD, USER, SnowflakeServer
from tests.tools.databases.contract import ENDLESS, error, rows
from tests.waiting import PATIENCE, until

pytest.importorskip("snowflake.connector", reason="the extra quorum-sql[snowflake] is not installed")

from snowflake.connector.config_manager import CONFIG_MANAGER
from snowflake.connector.platform_detection import detect_platforms


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "snowflake" in request.fixturenames:
        for what in ("engine", "faults", "stop"):
            request.getfixturevalue("snowflake").control(what)


@pytest.fixture
async def shop(snowflake: SnowflakeServer) -> AsyncIterator[Connector]:
    async with connect(snowflake.url("shop/public")) as connector:
        yield connector


def login(snowflake: SnowflakeServer) -> dict[str, Any]:
    """What was said at the last login."""
    return snowflake.control()["logins"][-1]


URLS = {
    "acc/shop": "account=acc | SHOP",
    "me@org-acc/shop/a,b?warehouse=w&role=r": "user=me account=org-acc warehouse=w role=r | SHOP/A,B",
    "a%40b:c%2F@acc.eu-west-1/%22my%20db%22/%22S%22?database=other,third.%22x%22": (
        "user=a@b password=c/ account=acc.eu-west-1 | my db/S OTHER THIRD/x"
    ),
    "acc/d?endpoint=https://x.privatelink.example:444&key_file=k.p8": (
        "account=acc host=x.privatelink.example port=444 protocol=https private_key_file=k.p8 | D"
    ),
    "?connection=dev": " | ",
}


def test_urls() -> None:
    for url, expected in URLS.items():
        target = Target.of(f"snowflake://{url}")
        given = sorted(f"{name}={value}" for name, value in target.parameters.items())
        parameters, _, places = expected.partition(" | ")
        assert (given, " ".join(map(str, target.places))) == (sorted(parameters.split()), places)


def test_connections_of_other_names_are_other_databases() -> None:
    one, other = "snowflake://?connection=dev&role=r", "snowflake://?connection=prod"
    assert location(one) == "snowflake://?connection=dev" != location(other)
    assert location("snowflake://me@acc/shop/a?role=r") == "snowflake://acc/shop/a"


async def test_no_secret_is_told(
    snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "wr0ng/@:#?%"
    for url in (
        snowflake.url("shop/public", who=f"analyst:{quote(wrong, safe='')}@"),
        snowflake.url("shop/public", "&authenticator=oauth", who=""),
    ):
        monkeypatch.setenv("SNOWFLAKE_TOKEN", wrong)
        connector = connect(url)
        with pytest.raises(DatabaseUnavailable) as failed:
            await connector.open()
        told = f"{failed.value!r} {failed.value} {failed.value.__cause__} {failed.value.__context__}"
        assert "Incorrect username or password was specified." in told
        assert "connections.toml" in failed.value.hint
        assert "wr0ng" not in told + repr(vars(connector)) + caplog.text
    monkeypatch.setenv("SNOWFLAKE_PASSWORD", PASSWORD)
    monkeypatch.setenv("SNOWFLAKE_USER", USER)
    for who in (None, ""):  # told by the URL, or by the environment
        async with connect(snowflake.url("shop/public", who=who)) as connector:
            assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
            assert PASSWORD not in repr(vars(connector)) + repr(await connector.identity())


async def test_a_key_pair(
    snowflake: SnowflakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    locked = form.BestAvailableEncryption(b"p4ss phrase")
    file = tmp_path / "key.p8"
    file.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked))
    snowflake.control("secrets", {f"{USER.upper()}:key": public.decode()})
    url = snowflake.url("shop/public", f"&key_file={file}", who=f"{USER}@")
    monkeypatch.setenv("PRIVATE_KEY_PASSPHRASE", "p4ss phrase")
    async with connect(url) as connector:
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
    assert login(snowflake)["AUTHENTICATOR"] == "SNOWFLAKE_JWT"
    monkeypatch.setenv("PRIVATE_KEY_PASSPHRASE", "wr0ng")
    with pytest.raises(DatabaseUnavailable) as failed:
        await connect(url).open()
    assert "wr0ng" not in str(failed.value)
    file.unlink()
    with pytest.raises(DatabaseUnavailable, match="No such file"):
        await connect(url).open()


@pytest.mark.parametrize("way", ["oauth", "programmatic_access_token"])
async def test_tokens(snowflake: SnowflakeServer, tmp_path: Path, way: str) -> None:
    token = secrets.token_urlsafe()
    snowflake.control("secrets", {way.upper(): token})
    file = tmp_path / "token"
    file.write_text(token)
    options = f"&authenticator={way}&token_file={file}"
    async with connect(snowflake.url("shop/public", options, who=f"{USER}@")) as connector:
        assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]
    assert login(snowflake)["AUTHENTICATOR"] == way.upper()


def browser_url(snowflake: SnowflakeServer) -> str:
    return snowflake.url("shop/public", "&authenticator=externalbrowser", who=f"{USER}@")


async def test_a_browser_is_opened_once_and_output_stays_clean(
    snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    token = secrets.token_urlsafe()
    snowflake.control("secrets", {"EXTERNALBROWSER": token})
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        here = f"http://localhost:{url.partition('port=')[2]}/?token={token}"
        threading.Thread(target=urllib.request.urlopen, args=(here,), daemon=True).start()
        return True

    monkeypatch.setattr("webbrowser.open_new", browse)
    async with connect(browser_url(snowflake)) as connector:
        outcomes = await asyncio.gather(*(connector.run("SELECT 1", Limits()) for _ in range(20)))
        assert {rows(outcome)[0] for outcome in outcomes} == {(1,)}
    assert len(opened) == 1
    told = capfd.readouterr()
    assert told.out == "", "it may be read by a program"
    assert f"Going to open: {opened[0]}" in told.err
    assert token not in told.err


async def test_a_login_that_nobody_finishes_ends(
    snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.tools.databases.snowflake.session.BROWSER_SECONDS", 0.2)
    monkeypatch.setattr("webbrowser.open_new", lambda url: True)
    with pytest.raises(DatabaseUnavailable, match=r"Nobody has logged in with the browser within 0.2 s"):
        await connect(browser_url(snowflake)).open()
    monkeypatch.setattr("webbrowser.open_new", lambda url: False)
    with pytest.raises(DatabaseUnavailable, match="there is no terminal to ask at"):
        await connect(browser_url(snowflake)).open()


CONNECTIONS = """
[connections.dev]
account = "testing"
user = "{user}"
password = "{password}"
host = "127.0.0.1"
port = {port}
protocol = "http"
database = "shop"
schema = "public"
session_parameters = {{ QUERY_TAG = "mine", WEEK_START = 1, MULTI_STATEMENT_COUNT = 0 }}

[connections.bare]
account = "testing"
"""


async def test_connections_toml(
    snowflake: SnowflakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snowflake.execute("CREATE OR REPLACE TABLE told AS SELECT 1 AS x", database="OTHER")
    file = tmp_path / "connections.toml"
    file.write_text(CONNECTIONS.format(user=USER, password=PASSWORD, port=snowflake.port))
    file.chmod(0o600)
    monkeypatch.setattr(CONFIG_MANAGER, "file_path", file)
    monkeypatch.setattr(CONFIG_MANAGER, "conf_file_cache", None)
    async with connect("snowflake://?connection=dev&database=other") as connector:
        assert rows(await connector.run("SELECT x FROM other.public.told", Limits())) == [(1,)]
        assert (connector.name, connector.place) == ("SHOP", "snowflake://?connection=dev")
    with monkeypatch.context() as environment:
        environment.setenv("SNOWFLAKE_CONNECTIONS", file.read_text().replace("connections.", ""))
        async with connect("snowflake://?connection=dev&database=other") as connector:
            assert rows(await connector.run("SELECT x FROM other.public.told", Limits())) == [(1,)]
    for name, said in (("bare", "connection bare names no database"), ("none", "has no connection none")):
        with pytest.raises(DatabaseUnavailable, match=said):
            await connect(f"snowflake://?connection={name}").open()
    parameters = login(snowflake)["parameters"]
    said = [parameters[name] for name in ("QUERY_TAG", "WEEK_START", "MULTI_STATEMENT_COUNT")]
    assert said == ["quorum", 1, 1], "ours, where both say something"


async def test_all_links_share_one_login_and_what_it_says(snowflake: SnowflakeServer) -> None:
    before, url = snowflake.control(), snowflake.url("shop/public", "&role=READER&warehouse=small")
    async with connect(url) as connector:
        outcomes = await asyncio.gather(*(connector.run(f"SELECT {i} AS n", Limits()) for i in range(50)))
        assert [rows(outcome) for outcome in outcomes] == [[(i,)] for i in range(50)]
        assert snowflake.control()["sessions"] <= before["sessions"] + 1  # earlier tests' may end meanwhile
    assert len(snowflake.control()["logins"]) == len(before["logins"]) + 1
    assert snowflake.control()["sessions"] <= before["sessions"], "it has logged out"
    said = login(snowflake)
    wanted = {"QUERY_TAG": "quorum", "SEARCH_PATH": "$current", "ABORT_DETACHED_QUERY": True}
    assert snowflake_session.search_path(Target.of("snowflake://acc/d/a,b,%22c%22,D1")) == "$current, B, D1"
    assert said["parameters"] == said["parameters"] | wanted | {"QUOTED_IDENTIFIERS_IGNORE_CASE": False}
    assert said["CLIENT_ENVIRONMENT"]["APPLICATION"] == "quorum"
    assert said["SECONDARY_ROLES"] == "NONE", "a role that is named is the only one"
    asked = {"roleName": "READER", "warehouse": "small", "schemaName": '"PUBLIC"'}
    assert said["asked"] == said["asked"] | asked


async def test_nobody_else_is_asked_or_told_anything(
    snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the client asks the clouds' metadata services at each login, and sends telemetry."""
    asked: set[object] = set()
    real = socket.socket.connect

    def connecting(self: socket.socket, address: object) -> None:
        asked.add(address)
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connecting)
    detect_platforms.cache_clear()
    async with connect(snowflake.url("shop/public")) as connector:
        error(await connector.run("SELECT nope", Limits()))
        await connector.run("SELECT 1", Limits())
    assert asked == {("127.0.0.1", snowflake.port)}
    assert login(snowflake)["CLIENT_ENVIRONMENT"]["PLATFORM"] == []
    assert snowflake.control()["telemetry"] == 0


async def test_what_cannot_be_opened(snowflake: SnowflakeServer) -> None:
    for url, words in (
        (snowflake.url("nowhere"), "requested database does not exist"),
        (snowflake.url("shop/nowhere"), "holds no schema NOWHERE, or hides it from READER"),
        (snowflake.url("shop", who="analyst@"), "Password is empty"),
        (snowflake.url("shop", who=""), "User is empty"),
    ):
        with pytest.raises(DatabaseUnavailable, match=words) as failed:
            await connect(url).open()
        assert failed.value.hint


async def test_accounts(shop: Connector, snowflake: SnowflakeServer) -> None:
    account = await shop.account()
    assert account == Account("ANALYST in the role READER", (), sealed=False)
    boss = "USAGE ROLE WRITER,USAGE ROLE SYSADMIN,OWNERSHIP TABLE SHOP.PUBLIC.T,SELECT TABLE SHOP.PUBLIC.U"
    writer = ",".join(f"INSERT TABLE SHOP.PUBLIC.T{i}" for i in range(5))
    grants = {
        "BOSS": f"{boss},USAGE WAREHOUSE W,OPERATE WAREHOUSE W",
        "WRITER": f"{writer},USAGE PROCEDURE SHOP.PUBLIC.P(),USAGE ROLE BOSS",
    }
    told = {role: [grant.split() for grant in held.split(",")] for role, held in grants.items()}
    snowflake.control("engine", {"role": "BOSS", "grants": told})
    account = await shop.account()
    assert account.name == "ANALYST in the role BOSS"
    assert account.powers == (
        "acts as SYSADMIN",
        "has OWNERSHIP on table SHOP.PUBLIC.T",
        "has OPERATE on warehouse W",
        "has INSERT on table SHOP.PUBLIC.T0, table SHOP.PUBLIC.T1, table SHOP.PUBLIC.T2 and 2 more",
        "has USAGE on procedure SHOP.PUBLIC.P()",
    )


def test_doctor_says_that_no_session_forbids_writing(snowflake: SnowflakeServer, tmp_path: Path) -> None:
    snowflake.control("engine", {"grants": {"READER": [["INSERT", "TABLE", "SHOP.PUBLIC.T"]]}})
    url = snowflake.url(f"shop/{snowflake.new_schema('CREATE TABLE t AS SELECT 1 AS x')}")
    opens, who, powers, *_ = _database(url, Settings(database=url, home=tmp_path), None)
    assert "opens; it has no read-only sessions, so only queries are sent; snowflake, 1 table" in opens.text
    assert PASSWORD not in opens.text
    assert who.text == "asks as ANALYST in the role READER"
    assert powers.text == "ANALYST in the role READER has INSERT on table SHOP.PUBLIC.T"
    assert "No session forbids it" in powers.hint


# When networks, sessions and servers fail

SLOW = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
    SELECT count(*) AS n FROM n AS a CROSS JOIN n AS b WHERE sqrt(a.i * b.i) > 1
"""


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


async def test_a_token_that_expires_under_a_query_is_renewed(
    shop: Connector, snowflake: SnowflakeServer
) -> None:
    renewed = snowflake.control()["renewed"]
    snowflake.control("faults", {"token_expired": True})
    assert rows(await shop.run("SELECT 1", Limits())) == [(1,)], "nobody has asked before"
    assert snowflake.control()["renewed"] == renewed + 1


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("lost", ["cannot be renewed", "has ended"])
async def test_a_lost_session_is_logged_in_anew_once_for_all(
    shop: Connector, snowflake: SnowflakeServer, lost: str
) -> None:
    await asyncio.gather(*(shop.run("SELECT 1", Limits()) for _ in range(8)))
    before = len(snowflake.control()["logins"])
    if lost == "has ended":
        snowflake.control("end_sessions")
    else:
        snowflake.control("faults", {"token_expired": True, "master_expired": True})
    outcomes = await asyncio.gather(*(shop.run("SELECT 1", Limits()) for _ in range(20)))
    assert {rows(outcome)[0] for outcome in outcomes} == {(1,)}
    assert len(snowflake.control()["logins"]) == before + 1


def test_a_lost_connection_is_closed_once_and_its_drivers_races_harm_nobody() -> None:
    closed: list[str] = []

    def close() -> None:
        closed.append("once")
        raise RuntimeError("Set changed size during iteration")

    unused: Any = None
    session = snowflake_session.Session(unused)
    lost: Any = SimpleNamespace(rest=SimpleNamespace(close=close), _close_at_exit=None)
    session.current = lost
    session.drop(lost)
    session.drop(lost)
    assert (session.current, closed) == (None, ["once"])


async def test_a_session_that_ends_between_two_quick_queries_costs_one(
    shop: Connector, snowflake: SnowflakeServer
) -> None:
    await shop.run("SELECT 1", Limits())
    snowflake.control("end_sessions")
    outcome = error(await shop.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.UNAVAILABLE
    assert "session has ended" in outcome.message
    assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]


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
    shop: Connector, snowflake: SnowflakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snowflake_session, "AGAIN", (0, 0, 0))
    before = len(snowflake.asked())
    snowflake.control("faults", {"unavailable": 1})
    assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]
    assert len(snowflake.asked()) == before + 1
    snowflake.control("faults", {"unavailable": 9})
    outcome = error(await shop.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.UNAVAILABLE
    assert "The server does not answer: HTTP 503: Service Unavailable" in outcome.message


async def test_a_server_that_asks_for_a_file_gets_none(
    shop: Connector, snowflake: SnowflakeServer, tmp_path: Path
) -> None:
    """Snowflake's client sends files that an answer names, whatever was asked."""
    file = tmp_path / "secret"
    file.write_text("secret")
    snowflake.control("faults", {"files": str(file)})
    outcome = error(await shop.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.PERMISSION
    assert "asks for a file" in outcome.message
    assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]
