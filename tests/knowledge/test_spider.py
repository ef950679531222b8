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

SETS = {
    "spider2-snow": ("snowflake", 2_200_000, (77, 3_787, 171_573, 28_977)),
    "spider2-lite": ("bigquery", 1_500_000, (28, 1_007, 27_692, 24_294)),
}
"""The dialect, the most bytes of text; databases, tables, columns and paths, with which every column of every
gold query was there."""
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
def test_everything_is_read_and_the_texts_keep_to_their_size(loaded: Loaded, name: str) -> None:
    dialect, limit, counts = SETS[name]
    catalogs, texts, _ = loaded(name)
    columns = [column for catalog in catalogs for _, column in catalog.columns()]
    paths = sum(len(column.fields) for column in columns)
    tables = sum(len(catalog.tables) for catalog in catalogs)
    assert (len(catalogs), tables, len(columns), paths) == counts
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
