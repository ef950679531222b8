"""The promises about size and loss, kept on the real schemas of Spider 2.0 (skipped without the data)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.folder import find_database_folders, load_folder
from quorum.knowledge.schema.nested import bare_path
from quorum.knowledge.schema.render import SchemaText, render
from tests.schema_reader import parse_schema

SETS = {"spider2-snow": (77, 2_200_000, "snowflake"), "spider2-lite": (28, 1_500_000, "bigquery")}
each_set = pytest.mark.parametrize(
    "name",
    [pytest.param("spider2-snow", marks=pytest.mark.heavy), "spider2-lite"],  # 10 s of reading
)
ENGINE = {"VALUE", "KEY", "INDEX", "SEQ", "PATH", "THIS"}  # columns of Snowflake's FLATTEN
ENGINE |= {"_TABLE_SUFFIX", "_PARTITIONTIME", "_PARTITIONDATE"}  # pseudo-columns of BigQuery

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


@each_set
def test_every_column_of_every_gold_query_is_visible(shared: Path, loaded: Loaded, name: str) -> None:
    folder = shared / "data" / name
    by_name = {catalog.name.casefold(): catalog for catalog in loaded(name)[2]}
    lines = (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
    questions = {q["instance_id"]: q.get("db_id") or q["db"] for q in map(json.loads, lines)}
    checked, foreign = 0, 0
    for path in sorted((folder / "evaluation_suite" / "gold" / "sql").glob("*.sql")):
        catalog = by_name[questions[path.stem].casefold()]
        for query in sqlglot.parse(path.read_text("utf-8"), dialect=SETS[name][2]):
            if query is not None:
                if not all(members(table, catalog) for table in physical(query)):
                    foreign += 1  # asks for a table that the folder does not describe
                    continue
                missing, seen = invisible(query, catalog)
                assert not missing, (path.stem, missing)
                checked += seen
    assert checked > 200
    assert foreign <= {"spider2-snow": 0, "spider2-lite": 3}[name]


def invisible(query: exp.Expression, catalog: Catalog) -> tuple[set[str], int]:
    """Columns that neither the query defines nor its tables have; how many columns it asks of tables."""
    defined = {a.name.upper() for a in query.find_all(exp.CTE, exp.TableAlias)}
    defined |= {a.alias.upper() for a in query.find_all(exp.Alias, exp.Subquery, exp.Table) if a.alias}
    defined |= {i.name.upper() for a in query.find_all(exp.TableAlias) for i in a.args.get("columns") or []}
    defined |= ENGINE | {
        i.name.upper() for p in query.find_all(exp.Parameter, exp.Lambda) for i in p.find_all(exp.Identifier)
    }
    tables = [t for table in query.find_all(exp.Table) for t in members(table, catalog)]
    known = {c.name.upper() for t in tables for c in t.columns}
    known |= {
        part.upper()
        for t in tables
        for c in t.columns
        for f in c.fields
        for part in bare_path(f.path).split(".")
    }
    asked = {
        c.name.upper() for c in query.find_all(exp.Column) if c.name and not isinstance(c.this, exp.Star)
    }
    return asked - known - defined, len(asked & known)


def physical(query: exp.Expression) -> list[exp.Table]:
    """The tables of the query that are neither its own CTEs nor table functions."""
    own = {cte.alias.casefold() for cte in query.find_all(exp.CTE)}
    tables = [t for t in query.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    return [t for t in tables if t.db and t.name.casefold() not in own]


def members(table: exp.Table, catalog: Catalog) -> list[Table]:
    name = ".".join(part.name for part in table.parts)
    if "*" in name:
        prefix = name.split("*")[0].casefold()
        return [t for t in catalog.tables if t.full_name.casefold().startswith(prefix)]
    return list(catalog.find(name))
