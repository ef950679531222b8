"""A relationship that a team declares and the rows contradict is said, where there are rows."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_resources, read_catalog
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.documents.search import Documents
from quorum.tools import database_facts
from quorum.tools.databases import connect

CONSTRAINT = {"type": "foreign_key", "columns": ["customer_id"], "to": "customers", "to_columns": ["id"]}
NOTE = (
    "dbt says that orders.customer_id refers to customers.id, but some of its values have no partner there."
)
TABLES = """
CREATE TABLE customers (id INTEGER, "home town" TEXT);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, "home town" TEXT);
INSERT INTO customers VALUES (1, 'Ghent'), (2, 'Lund');
"""


def shop(folder: Path, rows: str) -> str:
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
    found = await opened(shop(tmp_path, "(1, 1, ''), (2, 3, '')"), documents(tmp_path, CONSTRAINT))
    assert NOTE in found.notes
    assert (
        "Keys that dbt declares (manifest.json), not the database: orders.customer_id -> customers.id."
        in (found.notes)
    )
    assert [len(table.foreign_keys) for table in found.tables] == [0, 1]


async def test_rows_that_keep_to_it_say_nothing_and_a_null_needs_no_partner(tmp_path: Path) -> None:
    found = await opened(shop(tmp_path, "(1, 1, ''), (2, NULL, '')"), documents(tmp_path, CONSTRAINT))
    assert NOTE not in found.notes
    assert len(found.notes) == 1


async def test_of_several_columns_all_must_fit_one_partner(tmp_path: Path) -> None:
    both = ["customer_id", "home town"]
    constraint = {**CONSTRAINT, "columns": both, "to_columns": ["id", "home town"]}
    docs = documents(tmp_path, constraint)
    found = await opened(shop(tmp_path, "(1, 1, 'Ghent'), (2, 2, 'Ghent')"), docs)
    assert found.notes[-1] == (
        "dbt says that orders.customer_id and orders.home town refer to customers.id and customers.home town,"
        " but some of their values have no partner there."
    )


async def test_what_the_time_does_not_suffice_for_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, docs = shop(tmp_path, "(1, 3, '')"), documents(tmp_path, CONSTRAINT)
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
        database=shop(tmp_path, "(1, 3, '')"), documents=docs, models=["offline"], home=str(tmp_path / "home")
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
