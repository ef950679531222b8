"""The promises about size and loss, kept on the real schemas of Spider 2.0 (skipped without the data)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.folder import find_database_folders, load_folder
from quorum.knowledge.schema.render import SchemaText, render
from tests.schema_reader import parse_schema

SETS = {"spider2-snow": (77, 2_200_000, "snowflake"), "spider2-lite": (28, 1_500_000, "bigquery")}
each_set = pytest.mark.parametrize(
    "name",
    [pytest.param("spider2-snow", marks=pytest.mark.heavy), "spider2-lite"],  # 10 s of reading
)


Loaded = Callable[[str], tuple[list[Catalog], list[SchemaText], list[Catalog]]]


@pytest.fixture(scope="module")
def loaded(shared: Path) -> Loaded:
    """Of a set: catalogs, their texts, and what the texts say."""

    @cache
    def load(name: str) -> tuple[list[Catalog], list[SchemaText], list[Catalog]]:
        folder = shared / "data" / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is not here")
        catalogs = [load_folder(path) for path in find_database_folders(folder)]
        texts = [render(catalog) for catalog in catalogs]
        return catalogs, texts, [parse_schema(text.text) for text in texts]

    return load


@each_set
def test_the_texts_keep_to_their_size(loaded: Loaded, name: str) -> None:
    databases, limit, dialect = SETS[name]
    catalogs, texts, _ = loaded(name)
    assert len(catalogs) == databases
    assert {catalog.dialect for catalog in catalogs} == {dialect}
    assert sum(len(text.text.encode("utf-8", "surrogatepass")) for text in texts) <= limit


@each_set
def test_every_table_column_type_and_path_comes_back(loaded: Loaded, name: str) -> None:
    catalogs, _, parsed = loaded(name)
    for catalog, back in zip(catalogs, parsed, strict=True):
        assert (back.name, back.dialect, back.notes) == (catalog.name, catalog.dialect, catalog.notes)
        told = {t.full_name: {(c.name, c.type, c.nullable) for c in t.columns} for t in back.tables}
        assert told == {
            t.full_name: {(c.name, c.type, c.nullable) for c in t.columns} for t in catalog.tables
        }
        paths = {(t.full_name, c.name, f.path) for t in back.tables for c in t.columns for f in c.fields}
        for table, column in catalog.columns():
            assert all((table.full_name, column.name, f.path) in paths for f in column.fields)


@pytest.mark.heavy
def test_no_description_stands_beside_another_column(loaded: Loaded) -> None:
    """The BigQuery originals of the same tables, read from another folder, are the truth."""
    truth = {
        (t.schema.upper(), t.name.upper(), c.name.upper()): c.description
        for catalog in loaded("spider2-lite")[0]
        for t, c in catalog.columns()
    }
    compared = 0
    for catalog in loaded("spider2-snow")[0]:
        for table, column in catalog.columns():
            original = truth.get((table.schema.upper(), table.name.upper(), column.name.upper()))
            if original and column.description:
                compared += 1
                assert column.description == original
    assert compared > 15_000
