"""Sample rows: what is read of which tables, what is never shown, and what is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools.databases import connect
from quorum.tools.execute import Database
from quorum.tools.lint import Linter
from quorum.tools.sample_rows import Sample, SampleRows, sample_rows
from quorum.tools.sql.linking import Linked, prune
from tests.engines import build, opened

SCHEMA = """
CREATE TABLE people (id INTEGER PRIMARY KEY, "full name" TEXT, password TEXT, "group" INTEGER);
INSERT INTO people VALUES (1, 'Ann  Lee', 'hunter2', 7), (2, NULL, 'pw', 8),
  (3, 'Cy', 'x', 9), (4, 'D', 'y', 9);
CREATE TABLE "order" (id INTEGER, note TEXT);
INSERT INTO "order" VALUES (1, printf('%.80c', 'z'));
CREATE TABLE day_1 (n INTEGER);
CREATE TABLE day_2 (n INTEGER);
INSERT INTO day_1 VALUES (5);
INSERT INTO day_2 VALUES (6);
CREATE TABLE bare (x TEXT, y TEXT);
CREATE TABLE locked (secret TEXT);
INSERT INTO locked VALUES ('s3cr3t');
"""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with connect(build("sqlite", tmp_path / "people.db", SCHEMA)) as connector:
        yield await opened(connector)


async def test_three_rows_of_each_table_stand_column_by_column(database: Database) -> None:
    found = await sample_rows(database, agent="test")
    lines = found.text(database.catalog).splitlines()
    assert 'people(id [1, 2, 3], "full name" [Ann Lee, NULL, Cy], "group" [7, 8, 9]);' in lines
    assert f'"order"(id [1], note [{"z" * 39}…]);' in lines
    assert found.notes == ()
    pruned = prune(database.catalog, Linked(("people",), (("people", "group"),)))
    assert SampleRows.from_json(found.to_json()).text(pruned) == 'people(id [1, 2, 3], "group" [7, 8, 9]);'
    assert SampleRows.from_json("").text(database.catalog) == ""


def test_a_column_of_one_value_is_shown_as_in_figure_3_and_a_comma_is_no_border() -> None:
    cells: Sample = {"a": ["x, y", "z]"], "b": ["1", "1"], "c": ["", ""], "d": [None, None], "e": [None, "2"]}
    many = Table("t", tuple(Column(name, "TEXT") for name in cells))
    catalog = Catalog("d", "sqlite", (many, replace(many, name="one"), replace(many, name="none")))
    text = SampleRows({"t": cells, "one": {"a": ["x"]}, "none": {}}).text(catalog)
    first, second = text.splitlines()
    assert first == 't(a ["x, y", "z]"], b [1, 1], c ["", ""], d [NULL, NULL], e [NULL, 2]);'
    assert second == "one(a [x]);"


async def test_tables_with_the_same_columns_are_read_once_and_limits_hold(database: Database) -> None:
    assert await sample_rows(database, agent="test", rows=0) == SampleRows({})
    assert await sample_rows(database, agent="test", max_tables=0) == SampleRows({})
    assert database.ledger.total.queries == 0
    found = await sample_rows(database, agent="test", rows=1, max_tables=2)
    assert database.ledger.total.queries == 2
    assert all(len(values) <= 1 for table in found.tables.values() for values in table.values())
    assert found.notes == ("Rows are sampled of 2 tables; 4 differ in their columns.",)
    found = await sample_rows(database, agent="test", rows=2)
    assert set(found.tables) == {"people", "order", "day_1"}
    assert database.ledger.total.queries == 6, "people, order, one of the days, and the empty table"


async def test_no_rows_are_read_where_every_row_would_be_billed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database.connector, "dialect", "bigquery")
    found = await sample_rows(database, agent="test")
    assert found.tables == {}
    assert "bigquery" in found.notes[0]
    assert database.ledger.total.queries == 0


async def test_a_table_that_cannot_be_read_is_said_and_loses_only_itself(database: Database) -> None:
    gone = replace(database.catalog.tables[0], name="gone")
    catalog = replace(database.catalog, tables=(gone, *database.catalog.tables[1:]))
    found = await sample_rows(replace(database, catalog=catalog, linter=Linter(catalog)), agent="test")
    assert (len(found.tables), len(found.notes)) == (2, 1)
    assert "gone" in found.notes[0]
