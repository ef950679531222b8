"""What is read when a database is opened: values of text columns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools import database_facts
from quorum.tools.database_facts import read_values
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from tests.engines import build


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Connector]:
    script = f"""
        CREATE TABLE people (id INTEGER, "full name" TEXT, password TEXT, born TEXT, note TEXT, kind);
        INSERT INTO people VALUES (1, 'Ada', 'hunter2', '1815-12-10', NULL, 'poet'),
            (2, 'Bo', 'secret', '1990-01-01', 'x', 8),
            (3, 'Bo', 'secret', '1990-01-01', '{"word " * 100}', 7);
        CREATE TABLE empty (name TEXT);
        CREATE VIEW names AS SELECT "full name" AS name FROM people;
    """
    async with connect(build("sqlite", tmp_path / "shop.db", script)) as connector:
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
    assert not index.unread | index.cut


async def test_what_the_bounds_cut_is_said(shop: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = await shop.catalog()
    monkeypatch.setattr(database_facts, "COLUMN_VALUES", 1)
    assert ("people", "full name") in (await read_values(shop, catalog)).cut
    monkeypatch.setattr(database_facts, "ALL_VALUES", 1)
    assert ("names", "name") in (await read_values(shop, catalog)).unread
    late = await read_values(shop, catalog, 0.0)
    assert (late.values, ("people", "full name") in late.unread) == ({}, True)


async def test_a_slow_column_is_left_out_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'x' || (i - i) AS word"
    script = f"CREATE VIEW a AS {endless} FROM n; CREATE TABLE b (word TEXT); INSERT INTO b VALUES ('Ada');"
    monkeypatch.setattr(database_facts, "COLUMN_SECONDS", 0.2)
    catalog = Catalog("slow", "sqlite", tuple(Table(name, (Column("word", "TEXT"),)) for name in "ab"))
    async with connect(build("sqlite", tmp_path / "slow.db", script)) as connector:
        index = await read_values(connector, catalog)
    assert (index.values, index.unread) == ({("b", "word"): ["Ada"]}, {("a", "word")})
