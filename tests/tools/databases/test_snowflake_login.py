"""Who asks Snowflake, and how: URLs, credentials, what is said at a login, what a role may do."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
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
from quorum.tools.databases.snowflake.session import search_path
from quorum.tools.databases.snowflake.url import Target
from quorum.tools.query import Limits
from quorum.tools.urls import location
from tests.servers.snowflake_server import PASSWORD, USER, SnowflakeServer
from tests.tools.databases.contract import error, rows

pytest.importorskip("snowflake.connector", reason="the extra quorum-sql[snowflake] is not installed")

from snowflake.connector.config_manager import CONFIG_MANAGER
from snowflake.connector.platform_detection import detect_platforms


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "snowflake" in request.fixturenames:
        request.getfixturevalue("snowflake").control("engine")


@pytest.fixture
async def shop(snowflake: SnowflakeServer) -> AsyncIterator[Connector]:
    async with connect(snowflake.url("shop/public")) as connector:
        yield connector


def login(snowflake: SnowflakeServer) -> dict[str, Any]:
    """What was said at the last login."""
    return snowflake.control()["logins"][-1]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("acc/shop", "account=acc | SHOP"),
        ("me@org-acc/shop/a,b?warehouse=w&role=r", "user=me account=org-acc warehouse=w role=r | SHOP/A,B"),
        (
            "a%40b:c%2F@acc.eu-west-1/%22my%20db%22/%22S%22?database=other,third.%22x%22",
            "user=a@b password=c/ account=acc.eu-west-1 | my db/S OTHER THIRD/x",
        ),
        (
            "acc/d?endpoint=https://x.privatelink.example:444&key_file=k.p8",
            "account=acc host=x.privatelink.example port=444 protocol=https private_key_file=k.p8 | D",
        ),
        ("?connection=dev", " | "),
    ],
)
def test_urls(url: str, expected: str) -> None:
    target = Target.of(f"snowflake://{url}")
    given = sorted(f"{name}={value}" for name, value in target.parameters.items())
    parameters, _, places = expected.partition(" | ")
    assert (given, " ".join(map(str, target.places))) == (sorted(parameters.split()), places)


def test_connections_of_other_names_are_other_databases() -> None:
    one, other = "snowflake://?connection=dev&role=r", "snowflake://?connection=prod"
    assert location(one) == "snowflake://?connection=dev" != location(other)
    assert location("snowflake://me@acc/shop/a?role=r") == "snowflake://acc/shop/a"


async def test_no_secret_is_told(
    snowflake: SnowflakeServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
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
schema = "{schema}"
session_parameters = {{ QUERY_TAG = "mine", WEEK_START = 1, MULTI_STATEMENT_COUNT = 0 }}

[connections.bare]
account = "testing"
"""


async def test_connections_toml(
    snowflake: SnowflakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snowflake.execute("CREATE OR REPLACE TABLE told AS SELECT 1 AS x", database="OTHER")
    file = tmp_path / "connections.toml"
    file.write_text(CONNECTIONS.format(user=USER, password=PASSWORD, port=snowflake.port, schema="public"))
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


async def test_what_a_login_says(snowflake: SnowflakeServer) -> None:
    url = snowflake.url("shop/public", "&role=READER&warehouse=small")
    async with connect(url) as connector:
        await connector.run("SELECT 1", Limits())
    said = login(snowflake)
    wanted = {"QUERY_TAG": "quorum", "SEARCH_PATH": "$current", "ABORT_DETACHED_QUERY": True}
    assert search_path(Target.of("snowflake://acc/d/a,b,%22c%22,D1")) == "$current, B, D1"
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


async def test_all_links_share_one_login(snowflake: SnowflakeServer) -> None:
    before, earlier = len(snowflake.control()["logins"]), snowflake.control()["sessions"]
    async with connect(snowflake.url("shop/public")) as connector:
        outcomes = await asyncio.gather(*(connector.run(f"SELECT {i} AS n", Limits()) for i in range(50)))
        assert [rows(outcome) for outcome in outcomes] == [[(i,)] for i in range(50)]
        assert snowflake.control()["sessions"] <= earlier + 1  # earlier tests' may end meanwhile
    assert len(snowflake.control()["logins"]) == before + 1
    assert snowflake.control()["sessions"] <= earlier, "it has logged out"


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
    boss = [
        *(
            ["USAGE", "ROLE", "WRITER"],
            ["USAGE", "ROLE", "SYSADMIN"],
            ["OWNERSHIP", "TABLE", "SHOP.PUBLIC.T"],
        ),
        *(["SELECT", "TABLE", "SHOP.PUBLIC.U"], ["USAGE", "WAREHOUSE", "W"], ["OPERATE", "WAREHOUSE", "W"]),
    ]
    writer = [
        *(["INSERT", "TABLE", f"SHOP.PUBLIC.T{i}"] for i in range(5)),
        *(["USAGE", "PROCEDURE", "SHOP.PUBLIC.P()"], ["USAGE", "ROLE", "BOSS"]),
    ]
    snowflake.control("engine", {"role": "BOSS", "grants": {"BOSS": boss, "WRITER": writer}})
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
    schema = snowflake.new_schema("CREATE TABLE t AS SELECT 1 AS x")
    url = snowflake.url(f"shop/{schema}")
    found = list(_database(url, Settings(database=url, home=tmp_path), None))
    unsealed = "opens; it has no read-only sessions, so only queries are sent"
    assert f"{unsealed}; snowflake, 1 table, 1 column" in found[0].text
    assert PASSWORD not in found[0].text
    assert [check.text for check in found[1:3]] == [
        "asks as ANALYST in the role READER",
        "ANALYST in the role READER has INSERT on table SHOP.PUBLIC.T",
    ]
    assert found[2].hint == "No session forbids it: give Quorum a role that may only read."
