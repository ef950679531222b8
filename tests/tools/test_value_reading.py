"""Values of text columns are read within bounds, kept beside the run folders, and shown to the models."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from quorum.tools import value_reading
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.value_reading import read_values


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Connector]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(
            """
            CREATE TABLE people (id INTEGER, "full name" TEXT, password TEXT, born TEXT, note TEXT, kind);
            INSERT INTO people VALUES (1, 'Ada', 'hunter2', '1815-12-10', NULL, 'poet'),
                (2, 'Bo', 'secret', '1990-01-01', 'x', 8), (3, 'Bo', 'secret', '1990-01-01', '', 7);
            CREATE TABLE empty (name TEXT);
            CREATE VIEW names AS SELECT "full name" AS name FROM people;
            """
        )
        database.execute("UPDATE people SET note = ? WHERE id = 3", ["word " * 100])
        database.commit()
    async with connect(f"sqlite:///{tmp_path / 'shop.db'}") as connector:
        yield connector


async def test_short_texts_of_columns_that_may_be_shown_are_read(shop: Connector) -> None:
    index = await read_values(shop, await shop.catalog())
    kept = {f"{table}.{column}": sorted(texts) for (table, column), texts in index.values.items() if texts}
    assert kept == {
        "people.full name": ["Ada", "Bo"],
        "people.note": ["x"],
        "people.kind": ["poet"],
        "names.name": ["Ada", "Bo"],
    }
    assert index.left_out == ()


async def test_what_the_bounds_cut_is_said(shop: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = await shop.catalog()
    monkeypatch.setattr(value_reading, "COLUMN_VALUES", 1)
    assert "Of people.full name, " in (await read_values(shop, catalog)).left_out[0]
    monkeypatch.setattr(value_reading, "ALL_VALUES", 1)
    left_out = (await read_values(shop, catalog)).left_out
    assert left_out[0].startswith("No values were read of people.")
    monkeypatch.setattr(value_reading, "SECONDS", 0.0)
    assert (await read_values(shop, catalog)).values == {}


async def test_they_are_kept_until_the_catalog_changes(shop: Connector, tmp_path: Path) -> None:
    catalog = await shop.catalog()
    first = await read_values(shop, catalog, tmp_path)
    (file,) = (tmp_path / "values").iterdir()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("DELETE FROM people WHERE id = 1")
        database.commit()
    assert (await read_values(shop, catalog, tmp_path)).values == {k: v for k, v in first.values.items() if v}
    file.write_bytes(b"PAR1 damaged")
    assert "Ada" not in str((await read_values(shop, catalog, tmp_path)).values), "read anew"
    await read_values(shop, await shop.catalog(), tmp_path)
    assert file not in (tmp_path / "values").iterdir(), "one file a database"


async def test_duckdb_too(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute("CREATE TYPE mood AS ENUM ('glad', 'sad')")
        database.execute("CREATE TABLE people (name VARCHAR, mood mood, tags VARCHAR[], doc JSON)")
        database.execute("INSERT INTO people VALUES ('Ada', 'glad', ['a'], '{}')")
    async with connect(f"duckdb:///{tmp_path / 'shop.duckdb'}") as connector:
        index = await read_values(connector, await connector.catalog())
    assert {column: texts for (_, column), texts in index.values.items()} == {
        "name": ["Ada"],
        "mood": ["glad"],
    }
