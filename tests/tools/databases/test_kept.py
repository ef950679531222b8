"""Catalogs on disk: kept and used, for who may see them alone, and done without where they cannot be used."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases import connect
from quorum.tools.databases.base import Snapshot
from quorum.tools.databases.kept import FORGOTTEN_SECONDS, WHOLE_SECONDS, Keeping
from quorum.tools.databases.postgres.connector import PostgresConnector
from tests.servers.postgres_server import PASSWORD, PostgresServer

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

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


def new_shop(postgres: PostgresServer) -> str:
    """The name of a new database, which has a reader."""
    database = postgres.new_database(SHOP)
    postgres.execute(READER.format(database=database, password=PASSWORD), database)
    return database


@pytest.fixture(scope="module")
def quiet(postgres: PostgresServer) -> str:
    """A database that nobody changes."""
    return new_shop(postgres)


@pytest.fixture
def shop(postgres: PostgresServer) -> str:
    """A database of the test's own."""
    return new_shop(postgres)


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    return Keeping(tmp_path / "catalogs", HOUR)


async def read(url: str, keeping: Keeping) -> Catalog:
    async with connect(url) as connector:
        return await keeping.catalog(connector)


async def names(url: str, keeping: Keeping) -> set[str]:
    return {table.full_name for table in (await read(url, keeping)).tables}


def kept_files(keeping: Keeping) -> list[Path]:
    return sorted(keeping.folder.glob("*.json.gz"))


def reader_url(postgres: PostgresServer, database: str) -> str:
    who = f"{database}_reader:{quote(PASSWORD, safe='')}"
    return f"postgresql://{who}@127.0.0.1:{postgres.port}/{database}"


def admin_url(postgres: PostgresServer, database: str) -> str:
    return f"{postgres.admin_url}/{database}"


async def test_a_catalog_is_read_once_in_its_age(
    postgres: PostgresServer, shop: str, keeping: Keeping
) -> None:
    url = admin_url(postgres, shop)
    first = await read(url, keeping)
    postgres.execute("CREATE TABLE late (x int)", shop)
    assert await read(url, keeping) == first
    assert await names(url, Keeping(keeping.folder, 0)) == {"other.plans", "public.late", "public.orders"}
    assert "public.late" in await names(url, keeping), "what was read anew is kept"


async def test_files_and_databases_of_one_process_are_not_kept(tmp_path: Path, keeping: Keeping) -> None:
    (tmp_path / "people.csv").write_text("name\nAnn\n")
    assert (await read(str(tmp_path / "people.csv"), keeping)).tables
    assert not keeping.folder.exists()


async def test_nobody_else_is_shown_what_was_kept(
    postgres: PostgresServer, shop: str, keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, reader = admin_url(postgres, shop), reader_url(postgres, shop)
    assert await names(admin, keeping) == {"other.plans", "public.orders"}
    assert await names(reader, keeping) == {"public.orders"}
    assert await names(f"{admin}?schema=other", keeping) == {"other.plans"}
    assert len(kept_files(keeping)) == 3
    view = "CREATE VIEW mine AS SELECT * FROM orders WHERE city = current_setting('app.tenant', true)"
    postgres.execute(f"{view}; GRANT SELECT ON mine TO {shop}_reader", shop)
    now = Keeping(keeping.folder, 10 * HOUR)

    def cities(catalog: Catalog) -> tuple[str, ...]:
        return next(t.columns[1].samples for t in catalog.tables if t.name == "mine")

    monkeypatch.setenv("PGOPTIONS", "-c app.tenant=Oslo")
    assert cities(await read(reader, now)) == ("Oslo",)
    monkeypatch.setenv("PGOPTIONS", "-c app.tenant=Rome")
    assert cities(await read(reader, now)) == ("Rome",)
    monkeypatch.delenv("PGOPTIONS")
    postgres.execute(f"ALTER ROLE {shop}_reader SET app.tenant = 'Oslo'", shop)
    assert cities(await read(reader, now)) == ("Oslo",)
    postgres.execute(f"ALTER ROLE {shop}_reader SET app.tenant = 'Rome'", shop)
    assert cities(await read(reader, now)) == ("Rome",)


async def test_who_has_lost_a_membership_is_somebody_else(
    postgres: PostgresServer, shop: str, keeping: Keeping
) -> None:
    group = f"{shop}_planners"
    postgres.execute(
        f"CREATE ROLE {group}; GRANT USAGE ON SCHEMA other TO {group};"
        f"GRANT SELECT ON other.plans TO {group}; GRANT {group} TO {shop}_reader",
        shop,
    )
    reader = reader_url(postgres, shop)
    assert await names(reader, keeping) == {"other.plans", "public.orders"}
    postgres.execute(f"REVOKE {group} FROM {shop}_reader", shop)
    assert await names(reader, keeping) == {"public.orders"}


async def test_a_database_made_anew_under_its_name_is_another_one(
    postgres: PostgresServer, shop: str, keeping: Keeping
) -> None:
    url = admin_url(postgres, shop)
    await read(url, keeping)
    postgres.execute(f"DROP DATABASE {shop}")
    postgres.execute(f"CREATE DATABASE {shop}")
    postgres.execute("CREATE TABLE fresh (x int)", shop)
    assert await names(url, keeping) == {"public.fresh"}


async def test_where_row_policies_hide_rows_they_are_asked_each_time(
    postgres: PostgresServer, shop: str, keeping: Keeping
) -> None:
    reader = reader_url(postgres, shop)
    postgres.execute(
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY one ON orders FOR SELECT USING (city = 'Oslo')",
        shop,
    )
    (orders,) = (await read(reader, keeping)).tables
    assert orders.columns[1].samples == ("Oslo",)
    postgres.execute("DROP POLICY one ON orders", shop)
    (orders,) = (await read(reader, keeping)).tables
    assert orders.columns[1].samples == ()
    for path in kept_files(keeping):
        assert b"Oslo" not in gzip.decompress(path.read_bytes())


async def test_files_are_their_owners_and_hold_no_secret(
    postgres: PostgresServer, quiet: str, keeping: Keeping
) -> None:
    await read(reader_url(postgres, quiet), keeping)
    (file,) = kept_files(keeping)
    assert (file.stat().st_mode & 0o777, keeping.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    content = gzip.decompress(file.read_bytes()).decode()
    assert "Oslo" in content
    assert not any(text in content + file.name for text in (PASSWORD, "reader", "127.0.0.1"))


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def other_format(content: bytes) -> bytes:
    return gzip.compress(json.dumps(json.loads(gzip.decompress(content)) | {"format": 0}).encode())


def without_tables(content: bytes) -> bytes:
    return gzip.compress(json.dumps(json.loads(gzip.decompress(content)) | {"catalog": {}}).encode())


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        flipped,
        other_format,
        without_tables,
        lambda _: b"",
        lambda _: b"text",
        lambda _: gzip.compress(b"[" * 10**6),
    ],
    ids=["cut", "flipped", "other_format", "without_tables", "empty", "text", "deep"],
)
async def test_a_damaged_file_is_said_and_read_anew(
    damage: object, postgres: PostgresServer, quiet: str, keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    url = admin_url(postgres, quiet)
    first = await read(url, keeping)
    (file,) = kept_files(keeping)
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    assert await read(url, keeping) == first
    assert "cannot be used" in caplog.text
    assert "Traceback" not in caplog.text
    caplog.clear()
    assert await read(url, keeping) == first
    assert not caplog.text


async def test_a_file_under_anothers_name_is_not_used(
    postgres: PostgresServer, quiet: str, keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    await read(admin_url(postgres, quiet), keeping)
    (admins,) = kept_files(keeping)
    await read(reader_url(postgres, quiet), keeping)
    (readers,) = {*kept_files(keeping)} - {admins}
    readers.write_bytes(admins.read_bytes())
    assert await names(reader_url(postgres, quiet), keeping) == {"public.orders"}
    assert "another catalog" in caplog.text


async def test_a_folder_that_cannot_be_written_is_said(
    postgres: PostgresServer, quiet: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").write_text("a file")
    found = await names(admin_url(postgres, quiet), Keeping(tmp_path / "home" / "catalogs", HOUR))
    assert found == {"other.plans", "public.orders"}
    assert "cannot be kept" in caplog.text


async def test_a_full_disk_is_said_and_leaves_what_was_there(
    postgres: PostgresServer, shop: str, keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    url = admin_url(postgres, shop)
    first = await read(url, keeping)
    postgres.execute("CREATE TABLE late (x int)", shop)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert "public.late" in await names(url, Keeping(keeping.folder, 0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be kept" in caplog.text
    assert not list(keeping.folder.glob("*.part"))
    assert await read(url, keeping) == first


async def test_a_clock_that_was_set_back_makes_no_catalog_eternal(
    postgres: PostgresServer, shop: str, keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = admin_url(postgres, shop)
    await read(url, keeping)
    postgres.execute("CREATE TABLE late (x int)", shop)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 10 * HOUR)
    assert "public.late" in await names(url, keeping)


async def test_files_that_nobody_renews_are_deleted(
    postgres: PostgresServer, quiet: str, keeping: Keeping
) -> None:
    await read(reader_url(postgres, quiet), keeping)
    (old,) = kept_files(keeping)
    (keeping.folder / "mine.txt").write_text("not ours")
    past = time.time() - FORGOTTEN_SECONDS - 1
    for path in keeping.folder.iterdir():
        os.utime(path, (past, past))
    await read(admin_url(postgres, quiet), keeping)
    assert old not in kept_files(keeping)
    assert len(kept_files(keeping)) == 1
    assert (keeping.folder / "mine.txt").exists()


async def test_who_comes_second_waits_and_takes_what_the_first_one_read(
    postgres: PostgresServer, quiet: str, keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = []
    real = PostgresConnector.snapshot

    async def counted(
        self: PostgresConnector, before: Snapshot | None = None, *, samples: int = 3
    ) -> Snapshot:
        readings.append(before)
        return await real(self, before, samples=samples)

    monkeypatch.setattr(PostgresConnector, "snapshot", counted)
    url = admin_url(postgres, quiet)
    one, *others = await asyncio.gather(*(read(url, keeping) for _ in range(4)))
    assert all(other == one for other in others)
    assert len(readings) == 1


READ = """
import asyncio, sys
from pathlib import Path
from urllib.parse import quote
from quorum.tools.databases import connect
from quorum.tools.databases.kept import Keeping

async def main():
    for _ in range(5):
        async with connect(sys.argv[1]) as connector:
            catalog = await Keeping(Path(sys.argv[2]), float(sys.argv[3])).catalog(connector)
            assert len(catalog.tables) == 2, catalog
asyncio.run(main())
"""


def test_two_processes_at_once_never_see_half_a_file(
    postgres: PostgresServer, quiet: str, keeping: Keeping
) -> None:
    url = admin_url(postgres, quiet)
    commands = [[sys.executable, "-c", READ, url, str(keeping.folder), age] for age in ("0", "3600")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = [subprocess.Popen(command, **pipes) for command in commands]  # type: ignore[call-overload]
    for process in running:
        said, _ = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, "")
    assert len(kept_files(keeping)) == 1


async def test_after_a_week_everything_is_read_anew(
    postgres: PostgresServer, quiet: str, keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = admin_url(postgres, quiet)
    await read(url, keeping)
    given: list[Snapshot | None] = []
    real = PostgresConnector.snapshot

    async def watched(
        self: PostgresConnector, before: Snapshot | None = None, *, samples: int = 3
    ) -> Snapshot:
        given.append(before)
        return await real(self, before, samples=samples)

    monkeypatch.setattr(PostgresConnector, "snapshot", watched)
    now = time.time()
    for later in (2 * HOUR, WHOLE_SECONDS + 2 * HOUR, WHOLE_SECONDS + 4 * HOUR):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        await read(url, keeping)
    assert [before is None for before in given] == [False, True, False]
