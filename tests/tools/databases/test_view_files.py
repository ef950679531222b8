"""A DuckDB whose views read files: what is read, what is left out and said, and that nothing else opens."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.query import ErrorKind, Limits, QueryError
from tests.engines import start_no_process
from tests.tools.databases.cases import cases
from tests.tools.databases.contract import children, error, rows

VIEWS = """
CREATE TABLE regions (id INTEGER, name VARCHAR);
CREATE VIEW orders AS FROM 'data/orders.csv';
CREATE VIEW parts AS FROM read_csv('data/part-*.csv');
CREATE VIEW "listed ""AS"" x" (a, "b c") AS
    WITH q AS (FROM read_csv(['{folder}/data/part-1.csv', 'data/part-2.csv'], header = true))
    SELECT q.n, r.name FROM q LEFT JOIN regions AS r ON r.id = q.n;
CREATE VIEW counted AS SELECT (SELECT count(*) FROM 'data/orders.csv') AS n;
CREATE SCHEMA more;
CREATE VIEW more.again AS FROM orders;
"""
UNREAD = """
CREATE VIEW outside AS FROM read_csv('{outside}/secret.csv');
CREATE VIEW several AS FROM '{outside}/*.csv';
CREATE VIEW upwards AS FROM 'data/../../outside/secret.csv';
CREATE VIEW linked AS FROM 'data/link.csv';
CREATE VIEW hidden AS FROM 'data/.hidden.csv';
CREATE VIEW built AS FROM read_csv('data/' || 'other.csv');
CREATE VIEW gone AS FROM 'data/gone.csv';
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a database of views and the files that they read, and a file outside."""
    folder, outside = tmp_path / "project", tmp_path / "outside"
    (folder / "data").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.csv").write_text("secret\n42\n")
    (folder / "data" / "orders.csv").write_text("id,amount\n1,10\n2,20\n")
    (folder / "data" / "other.csv").write_text("other\n1\n")
    (folder / "data" / ".hidden.csv").write_text("hidden\n1\n")
    (folder / "data" / "gone.csv").write_text("n\n1\n")
    for n in (1, 2):
        (folder / "data" / f"part-{n}.csv").write_text(f"n\n{n}\n")
    (folder / "data" / "link.csv").symlink_to(outside / "secret.csv")
    script = (VIEWS + UNREAD).format(folder=folder, outside=outside)
    here = Path.cwd()
    os.chdir(folder)  # views are bound when they are made
    try:
        with duckdb.connect("shop.duckdb") as connection:
            connection.execute(script)
    finally:
        os.chdir(here)
    (folder / "data" / "gone.csv").unlink()
    return folder


@pytest.fixture
async def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connector]:
    start_no_process(monkeypatch)
    async with connect(f"duckdb:///{project}/shop.duckdb") as connector:
        yield connector


async def test_views_below_the_databases_folder_are_read(shop: Connector) -> None:
    catalog = await shop.catalog()
    names = {table.full_name for table in catalog.tables}
    assert names == {
        *("main.regions", "main.orders", "main.parts", 'main.listed "AS" x', "main.counted", "more.again")
    }
    assert rows(await shop.run("SELECT sum(amount) FROM more.again", Limits())) == [(30,)]
    assert rows(await shop.run("SELECT count(*) FROM parts", Limits())) == [(2,)]
    listed = await shop.run('SELECT a, "b c" FROM "listed ""AS"" x" ORDER BY a', Limits())
    assert rows(listed) == [(1, None), (2, None)]


@pytest.mark.heavy
async def test_relative_names_start_where_the_process_does_or_else_at_the_database(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (project, tmp_path):
        monkeypatch.chdir(place)
        async with connect(f"duckdb:///{project}/shop.duckdb") as connector:
            assert rows(await connector.run("SELECT sum(amount) FROM orders", Limits())) == [(30,)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("id,amount\n1,999\n")
    async with connect(f"duckdb:///{project}/shop.duckdb") as connector:
        assert f"?files={tmp_path}/data" in said(await connector.catalog(), "orders"), "DuckDB would read it"
        assert isinstance(await connector.run("SELECT * FROM orders", Limits()), QueryError)
    async with connect(f"duckdb:///{project}/shop.duckdb?files={tmp_path}/data") as connector:
        assert rows(await connector.run("SELECT sum(amount) FROM orders", Limits())) == [(999,)]


def said(catalog: Catalog, name: str) -> str:
    """The sentence on what is left out that names ``name``."""
    (found,) = [sentence for sentence in catalog.left_out if f" main.{name} " in sentence]
    return found


async def test_what_is_left_out_is_said_with_the_reason(shop: Connector, project: Path) -> None:
    catalog = await shop.catalog()
    outside = project.parent / "outside"
    assert len(catalog.left_out) == 7
    assert said(catalog, "several").endswith(f"duckdb:///…?files={outside}")
    assert set(catalog.left_out) <= set(catalog.notes)
    for name in ("outside", "upwards", "linked"):
        assert said(catalog, name).endswith(f"duckdb:///…?files={outside}/secret.csv"), name
    assert said(catalog, "hidden").endswith(f"duckdb:///…?files={project}/data/.hidden.csv")
    assert "there is no file data/gone.csv" in said(catalog, "gone")
    assert "cannot be read" in said(catalog, "built")


@pytest.mark.heavy
async def test_a_folder_that_the_user_names_is_read_too(project: Path) -> None:
    for named in (project.parent / "outside", "../outside", "../outside/secret.csv"):
        async with connect(f"duckdb:///{project}/shop.duckdb?files={named}") as connector:
            for view in ("outside", "upwards", "linked"):
                assert rows(await connector.run(f"SELECT secret FROM {view}", Limits())) == [(42,)]
            assert "hidden" not in {table.name for table in (await connector.catalog()).tables}
    async with connect(f"duckdb:///{project}/shop.duckdb?files=data/.hidden.csv") as connector:
        assert rows(await connector.run("SELECT hidden FROM hidden", Limits())) == [(1,)]


@pytest.mark.parametrize("option", ["file=x", "files=", "files=../nowhere"])
async def test_options_that_do_not_fit_are_refused(project: Path, option: str) -> None:
    with pytest.raises((ConfigurationError, DatabaseUnavailable), match=r"files|nowhere"):
        await connect(f"duckdb:///{project}/shop.duckdb?{option}").open()
    assert children() == []


async def test_nothing_else_is_read_and_nothing_written(shop: Connector, project: Path) -> None:
    """The session alone, without the guard above it."""
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    for (attack,) in cases("files_refused", 1):
        failed = error(await shop.run(attack.replace("{data}", str(project / "data")), Limits()))
        assert failed.kind in (ErrorKind.PERMISSION, ErrorKind.OTHER), (attack, failed)
        assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before, attack


async def test_a_file_that_becomes_a_link_is_not_followed(shop: Connector, project: Path) -> None:
    assert rows(await shop.run("SELECT count(*) FROM orders", Limits())) == [(2,)]
    orders = project / "data" / "orders.csv"
    orders.unlink()
    orders.symlink_to(project.parent / "outside" / "secret.csv")
    assert isinstance(await shop.run("SELECT * FROM orders", Limits()), QueryError)


async def test_a_database_of_views_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with duckdb.connect(str(tmp_path / "bare.duckdb")) as connection:
        connection.execute(f"CREATE VIEW a AS FROM '{tmp_path}/a.csv'")
    (tmp_path / "a.csv").unlink()
    async with connect(f"duckdb:///{tmp_path}/bare.duckdb") as connector:
        with pytest.raises(DatabaseUnavailable, match=r"main\.a cannot be read .* there is no file"):
            await connector.catalog()
