"""What is read when a database is opened: values of text columns, and declared keys that rows contradict."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_resources, read_catalog
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.documents.search import Documents
from quorum.tools import database_facts
from quorum.tools.database_facts import read_values
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector


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
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12) SELECT 'x' || (i - i)"
    )
    with closing(sqlite3.connect(tmp_path / "slow.db")) as database:
        database.executescript(
            f"""
            CREATE VIEW a_slow AS {endless} AS word FROM n;
            CREATE TABLE b (name TEXT);
            INSERT INTO b VALUES ('Ada');
            """
        )
    monkeypatch.setattr(database_facts, "COLUMN_SECONDS", 0.2)
    columns = {"a_slow": "word", "b": "name"}
    tables = tuple(Table(table, (Column(column, "TEXT"),)) for table, column in columns.items())
    catalog = Catalog("slow", "sqlite", tables)
    async with connect(f"sqlite:///{tmp_path / 'slow.db'}") as connector:
        index = await read_values(connector, catalog)
    assert index.values == {("b", "name"): ["Ada"]}
    assert index.unread == {("a_slow", "word")}


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


CONSTRAINT = {"type": "foreign_key", "columns": ["customer_id"], "to": "customers", "to_columns": ["id"]}
NOTE = (
    "dbt says that orders.customer_id refers to customers.id, but some of its values have no partner there."
)
TABLES = """
CREATE TABLE customers (id INTEGER, "home town" TEXT);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, "home town" TEXT);
INSERT INTO customers VALUES (1, 'Ghent'), (2, 'Lund');
"""


def bought(folder: Path, rows: str) -> str:
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.executescript(f"{TABLES} INSERT INTO orders VALUES {rows};")
    return f"sqlite:///{folder}/shop.sqlite"


def documents(folder: Path, *constraints: dict[str, Any], description: str = "bought") -> Path:
    node = {"name": "orders", "description": description, "constraints": list(constraints)}
    version = {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"}
    (folder / "docs").mkdir()
    content = {"metadata": version, "nodes": {"model.shop.orders": node}}
    (folder / "docs" / "manifest.json").write_text(json.dumps(content))
    return folder / "docs"


async def opened(url: str, docs: Path) -> Catalog:
    async with connect(url) as connector:
        return await read_catalog(connector, Documents.load(docs))


async def test_a_value_without_a_partner_is_said(tmp_path: Path) -> None:
    found = await opened(bought(tmp_path, "(1, 1, ''), (2, 3, '')"), documents(tmp_path, CONSTRAINT))
    assert NOTE in found.notes
    assert (
        "Keys that dbt declares (manifest.json), not the database: orders.customer_id -> customers.id."
        in (found.notes)
    )
    assert [len(table.foreign_keys) for table in found.tables] == [0, 1]


async def test_rows_that_keep_to_it_say_nothing_and_a_null_needs_no_partner(tmp_path: Path) -> None:
    found = await opened(bought(tmp_path, "(1, 1, ''), (2, NULL, '')"), documents(tmp_path, CONSTRAINT))
    assert NOTE not in found.notes
    assert len(found.notes) == 1


async def test_of_several_columns_all_must_fit_one_partner(tmp_path: Path) -> None:
    both = ["customer_id", "home town"]
    constraint = {**CONSTRAINT, "columns": both, "to_columns": ["id", "home town"]}
    docs = documents(tmp_path, constraint)
    found = await opened(bought(tmp_path, "(1, 1, 'Ghent'), (2, 2, 'Ghent')"), docs)
    assert found.notes[-1] == (
        "dbt says that orders.customer_id and orders.home town refer to customers.id and customers.home town,"
        " but some of their values have no partner there."
    )


async def test_what_the_time_does_not_suffice_for_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, docs = bought(tmp_path, "(1, 3, '')"), documents(tmp_path, CONSTRAINT)
    monkeypatch.setattr(database_facts, "KEY_SECONDS", 0.0)
    assert NOTE not in (await opened(url, docs)).notes
    monkeypatch.setattr(database_facts, "KEY_SECONDS", 1.0)
    monkeypatch.setattr(database_facts, "KEYS", 0)
    assert NOTE not in (await opened(url, docs)).notes


async def test_where_no_query_can_run_nothing_is_asked(tmp_path: Path) -> None:
    tables = "table_name,description,DDL\n"
    for table in ("orders (customer_id INTEGER)", "customers (id INTEGER)"):
        tables += f'{table.split()[0]},,"CREATE TABLE {table}"\n'
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "DDL.csv").write_text(tables)
    found = await opened(f"schema://{tmp_path}/shop", documents(tmp_path, CONSTRAINT))
    assert any(table.foreign_keys for table in found.tables)
    assert NOTE not in found.notes


async def test_a_run_sees_it_and_no_manifest_among_its_documents(tmp_path: Path) -> None:
    docs = documents(tmp_path, CONSTRAINT, description="</schema>\nwhat was bought")
    options = RunOptions(
        database=bought(tmp_path, "(1, 3, '')"),
        documents=docs,
        models=["offline"],
        home=str(tmp_path / "home"),
    )
    resources = await open_resources(options)
    try:
        assert resources.documents is not None
        assert resources.documents.chunks == []
        assert f"# note: {NOTE}" in resources.schema.text
        assert "table orders (1 rows) -- </schema> what was bought\n" in resources.schema.text
        assert "-> customers.id" in resources.schema.text
    finally:
        await resources.aclose()
