"""Descriptions in dbt's property files reach the tables and columns that they are about."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.definitions import with_properties

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


@pytest.mark.parametrize(
    "text", ["", "- 1", "models: 3", "models: [1, {columns: x}]", "models: [{name: orders, columns: 5}]"]
)
def test_other_yaml_describes_nothing(text: str) -> None:
    assert with_properties(CATALOG, {"a.yml": text}) == CATALOG


def test_a_name_that_aliases_make_large_is_no_name() -> None:
    """Written out it would have 3^40 parts."""
    nested = "".join(
        f"a{level + 1}: &a{level + 1} [*a{level}, *a{level}, *a{level}]\n" for level in range(40)
    )
    models = "models: [{name: *a40}, {name: orders, alias: *a40, description: paid}]"
    text = f"a0: &a0 [x]\n{nested}{models}"
    found = with_properties(CATALOG, {"a.yml": text})
    assert found.tables[0].description == "paid"


@pytest.mark.parametrize("text", ["a: [", "a: !!python/object:os.system {}", "a: 2024-13-45"])
def test_what_is_no_yaml_is_noted(text: str) -> None:
    found = with_properties(CATALOG, {"a.yml": text, "b.md": text})
    assert len(found.notes) == 1
    assert found.notes[0].startswith("a.yml is no YAML")
    assert found.tables == CATALOG.tables


def test_columns_that_differ_in_case_only_stay() -> None:
    both = Table("t", (Column("a", "INT"), Column("A", "INT")))
    found = with_properties(Catalog("c", "snowflake", (both,)), {"s.yml": "models: [{name: t, columns: []}]"})
    assert found.tables == (both,)
