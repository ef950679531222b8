"""A database of which only the schema is here: what it tells, and that nothing runs on it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.databases.schema import NOT_LIVE, folder_of
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, Limits, QueryError
from tests.engines import opened
from tests.schema_folders import write_schema
from tests.tools.databases.contract import error

PEOPLE = {"PEOPLE": {"NAME": "TEXT", "PASSWORD": "TEXT"}}
ROWS = {"PEOPLE": [{"NAME": f"n{i}" + 80 * "x", "PASSWORD": f"p{i}"} for i in range(5)]}


def url_of(folder: Path) -> str:
    return f"schema://{quote(str(folder))}"


def shop(root: Path) -> Connector:
    write_schema(root / "SHOP" / "PUBLIC")
    return connect(url_of(root / "SHOP"))


async def test_the_catalog_is_the_folders(tmp_path: Path) -> None:
    async with shop(tmp_path) as connector:
        catalog = await connector.catalog()
        assert (catalog.name, connector.dialect, connector.live) == ("SHOP", "snowflake", False)
        assert [t.full_name for t in catalog.tables] == ["SHOP.PUBLIC.CUSTOMERS", "SHOP.PUBLIC.ORDERS"]
        assert [c.name for c in catalog.tables[0].columns] == ["ID", "CITY"]
    for engine, inner in (("bigquery", "project.data"), ("snowflake", "PUBLIC"), ("sqlite", "")):
        write_schema(tmp_path / engine / "shop" / inner)
        connector = connect(url_of(tmp_path / engine / "shop"))
        assert connector.dialect == "", "it is known once it is open"
        async with connector:
            assert connector.dialect == (await connector.catalog()).dialect == engine


def test_urls() -> None:
    for rest, path in (("/data/SHOP", "/data/SHOP"), ("//größe", "/größe"), ("/a%20b/%3F%23", "/a b/?#")):
        assert folder_of(f"schema://{rest}") == Path(path)
    for rest in ("", "/", "///", "host/SHOP", "SHOP", "/SHOP?mode=rw"):
        with pytest.raises(ConfigurationError):
            connect(f"schema://{rest}")


async def test_what_is_no_schema_does_not_open(tmp_path: Path) -> None:
    for name in ("two/ONE/PUBLIC", "two/OTHER/PUBLIC", "broken/PUBLIC"):
        write_schema(tmp_path / name)
    (tmp_path / "broken" / "PUBLIC" / "ORDERS.json").write_text("{", encoding="utf-8")
    (tmp_path / "bare" / "PUBLIC").mkdir(parents=True)
    (tmp_path / "bare" / "PUBLIC" / "DDL.csv").write_text("table_name,DDL\n", encoding="utf-8")
    cases = {
        "nowhere": "There is no folder",
        "two": "2 databases",
        "broken": "ORDERS.json",
        "bare": "no table",
        "a\0b": "There is no folder",
        300 * "x": "cannot be read",
    }
    for name, message in cases.items():
        with pytest.raises(DatabaseUnavailable, match=message):
            await connect(url_of(tmp_path / name)).open()


async def test_guard_and_lint_speak_first(tmp_path: Path) -> None:
    async with shop(tmp_path) as connector:
        database = await opened(connector)
        for sql, kind in (
            ("DELETE FROM SHOP.PUBLIC.ORDERS", ErrorKind.REFUSED),
            ("SELECT TOWN FROM SHOP.PUBLIC.CUSTOMERS", ErrorKind.COLUMN_NOT_FOUND),
            ("SELECT CITY FROM SHOP.PUBLIC.CUSTOMERS", ErrorKind.UNAVAILABLE),
        ):
            assert error(await execute(database, sql, agent="test")).kind is kind
        assert await connector.run("SELECT 1", Limits()) == QueryError(ErrorKind.UNAVAILABLE, NOT_LIVE)


async def test_samples_are_few_short_and_never_private(tmp_path: Path) -> None:
    folder = write_schema(tmp_path / "SHOP" / "PUBLIC", PEOPLE, ROWS).parent
    async with connect(url_of(folder)) as connector:
        for samples, shown in ((0, 0), (2, 2), (3, 3), (9, 3)):
            catalog = await connector.catalog(samples=samples)
            name, password = catalog.tables[0].columns
            assert (len(name.samples), password.samples) == (shown, ())
            assert all(len(value) <= 60 for value in name.samples)
            assert any("privacy" in note and "PASSWORD" in note for note in catalog.notes) == (samples > 0)


PRIVATE = (
    *("password", "userPassword", "PASSWORD_HASH", "EntSSN", "ssn", "api_key", "credit_card_no", "IBAN"),
    *("accessToken", "social security", "passport_number", "client_secret"),
)
PLAIN = ("passenger", "session_id", "token_count", "card_type", "lesson", "secretary", "pin")


def test_private_columns_are_known_by_their_names() -> None:
    assert tuple(filter(is_private, (*PRIVATE, *PLAIN))) == PRIVATE
