"""Catalogs on disk: kept and used, for who may see them alone, and done without where they cannot be used."""

from __future__ import annotations

import gzip
import json
import resource
import sqlite3
import time
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table, from_json, to_json
from quorum.tools.databases import connect
from quorum.tools.databases.catalog_cache import CatalogCache
from quorum.tools.databases.embedded import TICK_SECONDS
from quorum.tools.databases.sqlite.connector import SqliteConnector
from tests.servers.postgres_server import PostgresServer
from tests.servers.process import PASSWORD

SHOP = """
CREATE SCHEMA other;
CREATE TABLE orders (id int PRIMARY KEY, city text);
INSERT INTO orders VALUES (1, 'Oslo'), (2, 'Rome');
CREATE TABLE other.plans (name text);
INSERT INTO other.plans VALUES ('secret plan');
"""
READER = (
    "CREATE ROLE {database}_reader LOGIN PASSWORD '{password}'; GRANT SELECT ON orders TO {database}_reader"
)
HOUR = 3600.0
T = TypeVar("T")


class Shop:
    """A new database, which has a reader."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.name = server, server.new_database(SHOP)
        self.execute(READER.format(database=self.name, password=PASSWORD))
        self.admin = f"{server.admin_url}/{self.name}"
        who = f"{self.name}_reader:{quote(PASSWORD, safe='')}"
        self.reader = f"postgresql://{who}@127.0.0.1:{server.port}/{self.name}"

    def execute(self, script: str) -> None:
        self.server.execute(script, self.name)


@pytest.fixture
def shop(postgres: PostgresServer) -> Shop:
    """A database of the test's own."""
    return Shop(postgres)


@pytest.fixture
def cache(tmp_path: Path) -> CatalogCache:
    return CatalogCache(tmp_path / "catalogs", HOUR)


async def read(url: str, cache: CatalogCache) -> Catalog:
    async with connect(url) as connector:
        return await cache.catalog(connector)


async def names(url: str, cache: CatalogCache) -> set[str]:
    return {table.full_name for table in (await read(url, cache)).tables}


def cached_files(cache: CatalogCache) -> list[Path]:
    return sorted(cache.folder.glob("*.json.gz"))


async def test_a_catalog_is_read_once_in_its_age(
    shop: Shop, cache: CatalogCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url, now = shop.admin, time.time()
    first = await read(url, cache)
    shop.execute("CREATE TABLE late (x int)")
    assert await read(url, cache) == first
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert "public.late" in await names(url, CatalogCache(cache.folder, 0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be cached" in caplog.text
    assert await read(url, cache) == first, "a full disk leaves what was there"
    assert await names(url, CatalogCache(cache.folder, 0)) == {"other.plans", "public.late", "public.orders"}
    assert "public.late" in await names(url, cache), "what was read anew is kept"
    shop.execute("CREATE TABLE later (x int)")
    monkeypatch.setattr(time, "time", lambda: now - 10 * HOUR)
    assert "public.later" in await names(url, cache), "a clock was set back"


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_a_database_file_is_read_again_when_it_has_changed(
    mode: str, tmp_path: Path, cache: CatalogCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, readings = tmp_path / "shop.sqlite", []
    real = SqliteConnector.catalog

    async def counted(self: SqliteConnector, *, samples: int = 3) -> Catalog:
        readings.append(samples)
        return await real(self, samples=samples)

    monkeypatch.setattr(SqliteConnector, "catalog", counted)
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE orders (city TEXT)")
        db.commit()
        for _ in range(2):
            assert (await read(f"sqlite:///{file}", cache)).tables[0].row_count == 0
        assert len(readings) == 2, "it may change again before its clock ticks"
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + TICK_SECONDS + 1)
        first, second = [await read(f"sqlite:///{file}", cache) for _ in range(2)]
        assert (first, len(readings)) == (second, 3)
        db.execute("INSERT INTO orders VALUES ('Oslo')")
        db.commit()
        monkeypatch.setattr(time, "time", lambda: now + 2 * TICK_SECONDS + 2)
        assert (await read(f"sqlite:///{file}", cache)).tables[0].row_count == 1
    assert len(cached_files(cache)) == 1


async def test_data_files_are_not_cached(tmp_path: Path, cache: CatalogCache) -> None:
    (tmp_path / "people.csv").write_text("name\nAnn\n")
    assert (await read(str(tmp_path / "people.csv"), cache)).tables
    assert not cache.folder.exists()


async def test_nobody_else_is_shown_what_was_kept(
    shop: Shop, cache: CatalogCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, reader = shop.admin, shop.reader
    assert await names(admin, cache) == {"other.plans", "public.orders"}
    assert await names(reader, cache) == {"public.orders"}
    assert await names(f"{admin}?schema=other", cache) == {"other.plans"}
    assert len(cached_files(cache)) == 3
    view = "CREATE VIEW mine AS SELECT * FROM orders WHERE city = current_setting('app.tenant', true)"
    shop.execute(f"{view}; GRANT SELECT ON mine TO {shop.name}_reader")
    now = CatalogCache(cache.folder, 10 * HOUR)

    def cities(catalog: Catalog) -> tuple[str, ...]:
        return next(t.columns[1].samples for t in catalog.tables if t.name == "mine")

    monkeypatch.setenv("PGOPTIONS", "-c app.tenant=Oslo")
    assert cities(await read(reader, now)) == ("Oslo",)
    monkeypatch.setenv("PGOPTIONS", "-c app.tenant=Rome")
    assert cities(await read(reader, now)) == ("Rome",)
    monkeypatch.delenv("PGOPTIONS")
    shop.execute(f"ALTER ROLE {shop.name}_reader SET app.tenant = 'Oslo'")
    assert cities(await read(reader, now)) == ("Oslo",)
    shop.execute(f"ALTER ROLE {shop.name}_reader SET app.tenant = 'Rome'")
    assert cities(await read(reader, now)) == ("Rome",)


async def test_who_has_lost_a_membership_is_somebody_else(shop: Shop, cache: CatalogCache) -> None:
    group = f"{shop.name}_planners"
    shop.execute(
        f"CREATE ROLE {group}; GRANT USAGE ON SCHEMA other TO {group};"
        f"GRANT SELECT ON other.plans TO {group}; GRANT {group} TO {shop.name}_reader"
    )
    reader = shop.reader
    assert await names(reader, cache) == {"other.plans", "public.orders"}
    shop.execute(f"REVOKE {group} FROM {shop.name}_reader")
    assert await names(reader, cache) == {"public.orders"}


async def test_a_database_made_anew_under_its_name_is_another_one(shop: Shop, cache: CatalogCache) -> None:
    url = shop.admin
    await read(url, cache)
    shop.server.execute(f"DROP DATABASE {shop.name}")
    shop.server.execute(f"CREATE DATABASE {shop.name}")
    shop.execute("CREATE TABLE fresh (x int)")
    assert await names(url, cache) == {"public.fresh"}


async def test_where_row_policies_hide_rows_they_are_asked_each_time(shop: Shop, cache: CatalogCache) -> None:
    reader = shop.reader
    shop.execute(
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY one ON orders FOR SELECT USING (city = 'Oslo')"
    )
    (orders,) = (await read(reader, cache)).tables
    assert orders.columns[1].samples == ("Oslo",)
    shop.execute("DROP POLICY one ON orders")
    (orders,) = (await read(reader, cache)).tables
    assert orders.columns[1].samples == ()
    shop.execute(f"CREATE TABLE towns AS SELECT 'Oslo' AS town; GRANT SELECT ON towns TO {shop.name}_reader")
    assert {table.name for table in (await read(reader, cache)).tables} == {"orders"}, "the others are cached"
    for path in cached_files(cache):
        assert b"Oslo" not in gzip.decompress(path.read_bytes())


async def test_files_are_their_owners_and_hold_no_secret(
    shop: Shop, cache: CatalogCache, caplog: pytest.LogCaptureFixture
) -> None:
    await read(shop.reader, cache)
    (file,) = cached_files(cache)
    assert (file.stat().st_mode & 0o777, cache.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    content = gzip.decompress(file.read_bytes()).decode()
    assert "Oslo" in content
    assert not any(text in content + file.name for text in (PASSWORD, "reader", "127.0.0.1"))
    await read(shop.admin, cache)
    (admins,) = {*cached_files(cache)} - {file}
    file.write_bytes(admins.read_bytes())
    assert await names(shop.reader, cache) == {"public.orders"}, "what lies under another's name is not used"
    assert "another catalog" in caplog.text


async def test_a_damaged_file_is_said_and_read_anew(
    shop: Shop, cache: CatalogCache, caplog: pytest.LogCaptureFixture
) -> None:
    first = await read(shop.admin, cache)
    (file,) = cached_files(cache)
    whole = file.read_bytes()
    other_format = json.loads(gzip.decompress(whole)) | {"format": 0}
    for damaged in (
        whole[: len(whole) // 2],
        gzip.compress(json.dumps(other_format).encode()),
        gzip.compress(b"[" * 10**6),
        b"text",
    ):
        file.write_bytes(damaged)
        assert await read(shop.admin, cache) == first
        assert "cannot be used" in caplog.text
        caplog.clear()
        assert await read(shop.admin, cache) == first
        assert not caplog.text


def any_of(kind: type[T], **fixed: Any) -> st.SearchStrategy[T]:
    """Objects of a dataclass with whatever fits its fields' types, those with defaults too."""
    free = {each.name: ... for each in fields(kind) if each.name not in fixed}  # type: ignore[arg-type]
    return st.builds(kind, **free, **fixed)  # type: ignore[arg-type]


for kind in (Field, ForeignKey, Column, Table):
    st.register_type_strategy(kind, any_of(kind))


@pytest.mark.heavy
@settings(max_examples=150)
@given(any_of(Catalog, withheld=st.none()))  # what rules withhold is not written
def test_a_catalog_comes_back_as_it_was(catalog: Catalog) -> None:
    assert from_json(json.loads(json.dumps(to_json(catalog)))) == catalog


def test_columns_that_are_equal_stand_once() -> None:
    columns = (Column("id", "integer"), Column("name", "text", samples=("Ann",)))
    catalog = Catalog("c", "postgres", tuple(Table(f"t{i}", columns) for i in range(50)))
    assert len(to_json(catalog)["columns"]) == 2


@pytest.mark.parametrize(
    "damaged",
    [{}, {"columns": 1, "tables": []}, {"columns": [["a"]], "tables": []}, {"columns": [], "tables": [[1]]}],
)
def test_what_is_no_catalog_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_json(damaged)
