"""Descriptions in property files of dbt and beside a database reach the tables and columns they are about."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_resources
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.definitions import FOLDER, with_descriptions, with_properties
from tests.engines import build

ORDERS = Table(
    "orders",
    (Column("id", "INT", "the key"), Column("Amount", "INT"), Column("status", "TEXT")),
    schema="main",
)
CATALOG = Catalog("shop", "duckdb", (ORDERS, Table("raw_people", (Column("name", "TEXT"),), schema="raw")))
SCHEMA = """
version: 2
models:
  - name: fct_orders
    config: {alias: orders, tags: [core]}
    description: "One row per order. {{ doc('orders') }}"
    columns:
      - name: '"AMOUNT"'
        description: >
          In cents,
          without tax.
        data_tests: [not_null]
      - name: status
        description: '{{ doc("shop", "status") }}'
        tags: pii
      - name: id
        description: the key
      - name: gone
        description: was here
  - name: stg_nothing
sources:
  - name: crm
    schema: raw
    tables:
      - name: people
        identifier: raw_people
        description: From the CRM
        columns: [{name: name, description: as typed}]
"""
DOCS = "{% docs orders %}\nNo drafts.\n{% enddocs %}\n{% docs status %} open or closed {% enddocs %}"


def told(catalog: Catalog) -> dict[str, str]:
    return {column.name: column.description for _, column in catalog.columns() if column.description}


def test_models_and_sources_are_described() -> None:
    found = with_properties(CATALOG, {"models/schema.yml": SCHEMA, "docs.md": DOCS})
    descriptions = [table.description for table in found.tables]
    assert descriptions == ["One row per order. No drafts. #core", "From the CRM"]
    orders = {"id": "the key", "Amount": "In cents, without tax.", "status": "open or closed #pii"}
    assert told(found) == orders | {"name": "as typed"}
    assert found.notes == (
        "models/schema.yml describes what is not in the database: orders.gone, stg_nothing.",
    )


def test_what_is_named_in_full_is_not_taken_for_another_of_the_same_name() -> None:
    tables = tuple(Table("people", (Column("id", "INT"),), schema=schema) for schema in ("main", "raw"))
    text = """
models: [{name: people, description: cleaned}]
sources: [{name: crm, schema: raw, tables: [{name: people, description: as they came}]}]
"""
    found = with_properties(Catalog("shop", "duckdb", tables), {"schema.yml": text})
    assert [table.description for table in found.tables] == ["cleaned", "as they came"]
    alone = with_properties(Catalog("shop", "duckdb", tables[:1]), {"schema.yml": text})
    assert alone.tables[0].description == "cleaned; as they came", "a source whose schema has another name"
    both = Catalog("c", "snowflake", (Table("t", (Column("a", "INT"), Column("A", "INT"))),))
    assert with_properties(both, {"s.yml": "models: [{name: t, columns: []}]"}).tables == both.tables


@pytest.mark.parametrize(
    ("texts", "noted"),
    [
        (
            ["", "- 1", "models: 3", "models: [1, {columns: x}]", "models: [{name: orders, columns: 5}]"],
            False,
        ),
        (["a: [", "a: !!python/object:os.system {}", "a: 2024-13-45"], True),
    ],
)
def test_other_yaml_describes_nothing_and_what_is_no_yaml_is_noted(texts: list[str], noted: bool) -> None:
    for text in texts:
        found = with_properties(CATALOG, {"a.yml": text, "b.md": text})
        assert found.tables == CATALOG.tables
        assert [note[:16] for note in found.notes] == ["a.yml is no YAML"] * noted, text


def test_a_name_that_aliases_make_large_is_no_name() -> None:
    """Written out it would have 3^40 parts."""
    nested = "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}, *a{n}]\n" for n in range(40))
    models = "models: [{name: *a40}, {name: orders, alias: *a40, description: paid}]"
    text = f"a0: &a0 [x]\n{nested}{models}"
    found = with_properties(CATALOG, {"a.yml": text})
    assert found.tables[0].description == "paid"


HEAD = "original_column_name,column_name,column_description,data_format,value_description\n"
KIND = Column("kind", "TEXT", "as the vet says")
PET = Table("Pet", (Column("CDSCode", "TEXT"), KIND, Column("age", "INT")))
ZOO = Catalog("zoo", "sqlite", (PET, Table("owner", (Column("name", "TEXT"),))))


def described(folder: Path, text: str | bytes, name: str = "Pet.csv", catalog: Catalog = ZOO) -> Catalog:
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(content)
    return with_descriptions(catalog, folder)


def test_a_column_gets_its_name_its_meaning_and_its_values(tmp_path: Path) -> None:
    lines = 'CDSCode,CDS code,"the school, as counted",text,\nkind,kind,,text,"cat: a cat\ndog:  a dog"\n'
    found = described(tmp_path, HEAD + lines + "age,age,age,integer,\n")
    assert told(found) == {
        "CDSCode": "CDS code: the school, as counted",
        "kind": "as the vet says; values: cat: a cat dog: a dog",
    }
    assert found.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_files_in_any_of_the_encodings(tmp_path: Path, encoding: str) -> None:
    text = HEAD + " AGE ,,in années,integer,é\r\n"
    assert told(described(tmp_path, text.encode(encoding), "PET.csv"))["age"] == "in années; values: é"
    for byte, shown in ((b"\x80", "€"), (b"\x81", "\x81")):  # of Windows' code page, and of none
        content = HEAD.encode() + b"age,,x" + byte + b"y,,\n"
        assert told(described(tmp_path, content, "PET.csv"))["age"] == f"x{shown}y"


def test_what_fits_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "moon.csv").write_text(HEAD)
    found = described(tmp_path, HEAD + "age,,years,integer,\nweight,,kilos,real,\n\n,,,,\n")
    assert told(found)["age"] == "years"
    assert found.notes == (
        f"Pet.csv in {tmp_path.name} describes no column of Pet: weight.",
        f"{tmp_path.name} has files of no table: moon.csv.",
    )


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEAD, HEAD + "age\n", HEAD + "age,,,,\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    assert described(tmp_path, text) == ZOO


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=PermissionError(13, "Permission denied")))
    found = described(tmp_path, HEAD)
    assert found.notes == (f"Pet.csv in {tmp_path.name} cannot be read: Permission denied.",)
    assert told(found) == {"kind": "as the vet says"}


async def test_a_run_sees_them_in_the_schema(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "pet.csv").write_text(HEAD + "age,,years since birth,integer,\n")
    script = "CREATE TABLE pet (name TEXT, age INTEGER)"
    url = build("sqlite", tmp_path / "zoo.sqlite", script)
    resources = await open_resources(
        RunOptions(database=url, models=["offline"], home=str(tmp_path / "home"))
    )
    await resources.aclose()
    assert told(resources.catalog) == {"age": "years since birth"}
    assert "years since birth" in resources.schema.text
