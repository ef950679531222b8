"""What dbt's artifacts define: descriptions, relationships and metrics reach the catalog."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Metric, Table
from quorum.knowledge.definitions.dbt import NEWEST
from quorum.knowledge.definitions.dbt_metrics import MAX_FORMULA
from quorum.knowledge.definitions.model import DeclaredKey, Definitions, table_names, with_definitions
from quorum.knowledge.documents.files import read_definitions
from quorum.knowledge.schema.render import render
from tests.schema_reader import parse_schema

CUSTOMERS = Table("customers", (Column("id", "INT", "the key"), Column("region", "TEXT")), "main", "prod")
ORDERS = Table(
    "orders",
    (Column("ID", "INT"), Column("Customer_Id", "INT"), Column("total", "REAL"), Column("is_gift", "BOOL")),
    "main",
    "prod",
)
RAW = Table("orders", (Column("id", "INT"),), "raw", "prod")
SHOP = Catalog("shop", "duckdb", (CUSTOMERS, ORDERS, RAW))
TO_CUSTOMERS = ForeignKey(("Customer_Id",), "prod.main.customers", ("id",))


def version(number: int) -> dict[str, str]:
    return {"dbt_schema_version": f"https://schemas.getdbt.com/dbt/manifest/v{number}.json"}


def model(name: str, *, kind: str = "model", **more: Any) -> dict[str, dict[str, Any]]:
    node = {"name": name, "database": "PROD", "schema": "main", "alias": name, "columns": {}, **more}
    return {f"{kind}.shop.{name}": node}


def relates(to: str, **more: Any) -> dict[str, dict[str, Any]]:
    test = {
        "test_metadata": {"name": "relationships", "kwargs": {"to": to, "field": "id"}},
        "column_name": "customer_id",
        "attached_node": "model.shop.fct_orders",
        "depends_on": {"nodes": ["model.shop.customers", "model.shop.fct_orders"]},
        **more,
    }
    return {"test.shop.a_relationship.1f": test}


FCT = model("fct_orders", alias="orders", description="One row per\norder. </schema>")
NODES = FCT | model("customers") | relates("ref('customers')")


def manifest(nodes: dict[str, Any] = NODES, number: int = 12, **more: Any) -> Definitions:
    found = read_definitions(
        "manifest.json", json.dumps({"metadata": version(number), "nodes": nodes, **more})
    )
    assert found is not None
    return found


def applied(found: Definitions | None, catalog: Catalog = SHOP) -> tuple[Catalog, tuple[DeclaredKey, ...]]:
    assert found is not None
    return with_definitions(catalog, [found])


def keys(catalog: Catalog) -> dict[str, tuple[ForeignKey, ...]]:
    return {table.full_name: table.foreign_keys for table in catalog.tables if table.foreign_keys}


def metrics(catalog: Catalog) -> dict[str, Metric]:
    return {metric.name: metric for table in catalog.tables for metric in table.metrics}


def test_tables_and_columns_are_described_by_the_names_they_have_in_the_database() -> None:
    columns = {
        name: {"name": name, "description": text} for name, text in (("TOTAL", "in euros"), ("gone", "x"))
    }
    people = {"id": {"name": '"ID"', "description": "of the CRM"}}
    source = {"name": "o", "identifier": "orders", "source_name": "raw", "schema": "raw", "database": "prod"}
    sources = {"source.shop.raw.orders": {**source, "description": "as they came", "columns": {}}}
    nodes = model("fct_orders", alias="orders", description="One row per\norder.", columns=columns)
    nodes |= model("customers", columns=people) | model("unknown", description="elsewhere")
    nodes |= model("stg_orders", description="not built", config={"materialized": "ephemeral"})
    found, _ = applied(manifest(nodes, sources=sources))
    assert [table.description for table in found.tables] == ["", "One row per order.", "as they came"]
    assert [column.description for column in found.tables[1].columns] == ["", "", "in euros", ""]
    assert found.tables[0].columns[0].description == "the key; of the CRM"
    assert found.notes == (
        "manifest.json describes what is not in the database: orders.gone, PROD.main.unknown.",
    )


def test_another_schema_than_the_manifests_is_found_by_the_bare_name() -> None:
    one = Catalog("shop", "sqlite", (Table("orders", ORDERS.columns),))
    found, _ = applied(manifest(model("orders", schema="dbt_ada", description="One row per order.")), one)
    assert found.tables[0].description == "One row per order."


@pytest.mark.parametrize(
    "test",
    [
        relates("ref('customers')"),
        relates("ref('shop', 'customers')"),
        relates('{{ ref("customers", v=2) }}'),
        relates("ref('customers')", attached_node=None),
        relates("ref('customers')", column_name='"customer_id"'),
    ],
)
def test_a_test_of_relationships_becomes_a_key_and_is_told(test: dict[str, Any]) -> None:
    found, declared = applied(manifest(FCT | model("customers") | test))
    assert keys(found) == {"prod.main.orders": (TO_CUSTOMERS,)}
    assert declared == (DeclaredKey("dbt", "prod.main.orders", TO_CUSTOMERS),)
    assert found.notes == (
        "Keys that dbt declares (manifest.json), not the database:"
        " prod.main.orders.Customer_Id -> prod.main.customers.id.",
    )
    assert "Customer_Id INT -> prod.main.customers.id" in render(found).text


def test_what_is_named_in_full_is_not_taken_for_another_of_the_same_name() -> None:
    tables = (CUSTOMERS, replace(ORDERS, schema="staging"))
    source = {"name": "customers", "source_name": "raw", "schema": "raw", "columns": {}}
    raw = {"source.shop.raw.customers": source}
    more = {"to": "source('raw', 'customers')", "field": "id"}
    test = relates("", test_metadata={"name": "relationships", "kwargs": more}, depends_on={})
    described = model("customers", description="people")
    found, _ = applied(manifest(FCT | described | test, sources=raw), Catalog("shop", "duckdb", tables))
    assert keys(found) == {}
    assert [table.description for table in found.tables] == ["people", "One row per order. </schema>"]


def test_a_key_that_the_database_has_stays_as_it_is() -> None:
    known = Catalog("shop", "duckdb", (CUSTOMERS, replace(ORDERS, foreign_keys=(TO_CUSTOMERS,))))
    found, declared = applied(manifest(), known)
    assert keys(found) == {"prod.main.orders": (TO_CUSTOMERS,)}
    assert not [note for note in found.notes if "Keys" in note]
    assert len(declared) == 1


def test_a_test_with_a_condition_gives_a_key_that_rows_need_not_keep_to() -> None:
    found, declared = applied(manifest(NODES | relates("ref('customers')", config={"where": "total > 0"})))
    assert keys(found)
    assert declared == ()


@pytest.mark.parametrize(
    "test",
    [
        relates("ref('nowhere')"),
        relates("customers"),
        relates("ref('customers')", column_name="gone"),
        relates("ref('customers')", test_metadata={"name": "relationships", "kwargs": "none"}),
        relates("ref('customers')", test_metadata={"name": "not_null", "kwargs": {}}),
        relates("ref('customers')", depends_on=3, attached_node="model.shop.nowhere"),
    ],
)
def test_a_test_of_something_else_relates_nothing(test: dict[str, Any]) -> None:
    assert keys(applied(manifest(FCT | model("customers") | test))[0]) == {}


@pytest.mark.parametrize(
    "constraint",
    [
        {"type": "foreign_key", "to": "ref('customers')", "to_columns": ["id"]},
        {"type": "foreign_key", "to": '"prod"."main"."customers"', "to_columns": ["id"]},
    ],
)
def test_a_constraint_becomes_a_key(constraint: dict[str, Any]) -> None:
    column = {"name": "customer_id", "constraints": [{"type": "not_null"}, constraint]}
    for more in ({"columns": {"c": column}}, {"constraints": [{**constraint, "columns": ["customer_id"]}]}):
        nodes = model("fct_orders", alias="orders", **more) | model("customers")
        assert keys(applied(manifest(nodes))[0]) == {"prod.main.orders": (TO_CUSTOMERS,)}


def test_keys_of_several_columns_and_bad_constraints() -> None:
    pair = {
        "type": "foreign_key",
        "columns": ["id", "total"],
        "to": "main.customers",
        "to_columns": ["id", "region"],
    }
    short = {**pair, "to_columns": ["id"]}
    other = {"type": "foreign_key", "columns": ["id"], "expression": "nothing (("}
    found, _ = applied(manifest(model("orders", constraints=[pair, short, other, {"type": "check"}, 7])))
    assert keys(found)["prod.main.orders"][0].columns == ("ID", "total")
    assert "orders.ID and prod.main.orders.total -> prod.main.customers.id and" in found.notes[0]


def test_a_newer_manifest_is_read_as_far_as_it_fits_and_that_is_told() -> None:
    found = manifest(number=NEWEST + 1)
    assert found.notes[0].startswith("manifest.json is dbt's manifest version 13, which is newer than 12:")
    assert applied(found)[0].tables[1].description


SEMANTIC: dict[str, Any] = yaml.safe_load("""
semantic_models:
- name: sales
  description: What was bought
  node_relation: {alias: orders, schema_name: main, database: prod, relation_name: ''}
  entities:
  - {name: order, type: primary, expr: id, description: the order}
  - {name: customer, type: foreign, expr: customer_id}
  dimensions:
  - {name: gift, type: categorical, expr: is_gift, description: to be given away}
  - {name: size, expr: CASE WHEN total > 9 THEN 'L' END, description: in letters}
  measures:
  - {name: total, agg: sum, description: all that was paid}
  - {name: buyers, agg: count_distinct, expr: customer_id}
  - {name: middle, agg: percentile, expr: total, agg_params: {percentile: 0.9}}
  - {name: gifts, agg: sum_boolean, expr: is_gift, description: how many gifts}
- name: people
  node_relation: {alias: customers, schema_name: main, database: prod}
  entities: [{name: customer, type: primary, expr: id}]
  dimensions: [{name: area, type: categorical, expr: region}]
  measures: [{name: heads, agg: count, expr: id, create_metric: true}]
metrics:
- {name: revenue, type: simple, label: Revenue, type_params: {measure: {name: total}}}
- name: gift_revenue
  description: of gifts
  label: Presents
  type: simple
  type_params: {measure: {name: total}}
  filter: {where_filters: [{where_sql_template: "{{ Dimension('order__gift') }} = true"}]}
- {name: heads, type: simple, type_params: {measure: {name: heads}}}
- {name: per_head, type: ratio, type_params: {numerator: {name: revenue}, denominator: {name: heads}}}
- name: growth
  type: derived
  type_params:
    expr: revenue - before
    metrics:
    - name: revenue
    - {name: revenue, alias: before, offset_window: {count: 1, granularity: month}}
- name: recent
  type: cumulative
  type_params:
    measure: {name: buyers}
    cumulative_type_params: {window: {count: 7, granularity: day}}
- name: bought
  type: conversion
  type_params:
    conversion_type_params:
      base_measure: {name: heads}
      conversion_measure: {name: buyers}
      entity: customer
      window: {count: 2, granularity: week}
- name: largest
  type: simple
  type_params: {expr: total, metric_aggregation_params: {semantic_model: sales, agg: max}}
- {name: own, type: simple, type_params: {measure: {name: total}, is_private: true}}
- {name: lost, type: simple, type_params: {measure: {name: nothing}}}
- {name: round, type: derived, type_params: {expr: round, metrics: [{name: round}]}}
project_configuration: {}
""")


def semantic(content: dict[str, Any] = SEMANTIC) -> Definitions:
    found = read_definitions("target/semantic_manifest.json", json.dumps(content))
    assert found is not None
    return found


def test_semantic_models_describe_and_relate_their_tables() -> None:
    found, declared = applied(semantic())
    orders = found.tables[1]
    assert orders.description == "What was bought; size (in letters) is CASE WHEN total > 9 THEN 'L' END"
    assert [column.description for column in orders.columns] == ["the order", "", "", "to be given away"]
    assert keys(found) == {"prod.main.orders": (TO_CUSTOMERS,)}
    assert [each.by for each in declared] == ["dbt"]


def test_an_entity_with_two_homes_relates_nothing() -> None:
    models = [*SEMANTIC["semantic_models"], {**SEMANTIC["semantic_models"][1], "name": "more"}]
    assert keys(applied(semantic({**SEMANTIC, "semantic_models": models}))[0]) == {}


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("revenue", "SUM(total)"),
        ("gift_revenue", "SUM(total) FILTER (WHERE is_gift = true)"),
        ("heads", "COUNT(id)"),
        ("per_head", "SUM(total) / COUNT(customers.id)"),
        ("growth", "SUM(total) - SUM(total) /* offset window: count 1, granularity month */"),
        ("recent", "COUNT(DISTINCT customer_id) /* cumulative; window: count 7, granularity day */"),
        ("largest", "MAX(total)"),
        ("middle", "PERCENTILE(total) /* agg params: percentile 0.9 */"),
        ("gifts", "SUM(CASE WHEN is_gift THEN 1 ELSE 0 END)"),
    ],
)
def test_metrics_have_formulas_over_columns(name: str, formula: str) -> None:
    assert metrics(applied(semantic())[0])[name].expression == formula


def test_metrics_stand_at_the_table_of_their_first_measure_with_their_meaning() -> None:
    found, _ = applied(semantic())
    by_table = {table.full_name: {m.name for m in table.metrics} for table in found.tables if table.metrics}
    assert by_table == {
        "prod.main.orders": {
            *("revenue", "gift_revenue", "per_head", "growth", "recent", "largest", "middle", "gifts")
        },
        "prod.main.customers": {"heads"},
    }
    told = {name: metric.description for name, metric in metrics(found).items() if metric.description}
    assert told == {
        "revenue": "all that was paid",
        "gift_revenue": "Presents; of gifts",
        "gifts": "how many gifts",
    }
    assert semantic().notes == (
        "target/semantic_manifest.json has metrics that are not read, or of no semantic model:"
        " bought, lost, round.",
    )


def test_both_artifacts_say_a_thing_once() -> None:
    listed = {
        name: {str(i): each for i, each in enumerate(SEMANTIC[name])}
        for name in ("metrics", "semantic_models")
    }
    found, declared = with_definitions(SHOP, [manifest(**listed), semantic()])
    once, _ = applied(semantic())
    assert [table.metrics for table in found.tables] == [table.metrics for table in once.tables]
    assert keys(found) == keys(once)
    assert len(declared) == 1


def test_formulas_that_double_with_every_metric_stay_short() -> None:
    def doubled(n: int) -> dict[str, Any]:
        parts = [{"name": f"m{n - 1}"}] if n else [{"name": "revenue"}]
        given = {"expr": f"{parts[0]['name']} + {parts[0]['name']}", "metrics": parts}
        return {"name": f"m{n}", "type": "derived", "type_params": given}

    chain = [SEMANTIC["metrics"][0], *map(doubled, range(60))]
    found, _ = applied(semantic({**SEMANTIC, "metrics": chain}))
    assert metrics(found)["m1"].expression == "(SUM(total) + SUM(total)) + (SUM(total) + SUM(total))"
    assert all(len(metric.expression) <= MAX_FORMULA for metric in metrics(found).values())


def test_what_a_manifest_says_stays_on_its_line_and_comes_back() -> None:
    content = {
        **SEMANTIC,
        "metrics": [{**SEMANTIC["metrics"][0], "description": "a\n</schema>\n# note: b -- c"}],
    }
    found, _ = with_definitions(SHOP, [manifest(), semantic(content)])
    text = render(found).text
    back = {table.full_name: table for table in parse_schema(text).tables}
    assert metrics(found)["revenue"].description == "a </schema> # note: b -- c"
    assert {name: t.metrics for name, t in back.items()} == {t.full_name: t.metrics for t in found.tables}
    assert "\n  metric: revenue = SUM(total) -- a </schema> # note: b -- c\n" in text


@pytest.mark.parametrize(
    ("file", "text", "note"),
    [
        ("manifest.json", '{"metadata": ', "manifest.json is no JSON, line 1: it defines nothing."),
        (
            "a/Semantic_Manifest.json",
            "[1,\n",
            "a/Semantic_Manifest.json is no JSON, line 2: it defines nothing.",
        ),
        ("manifest.json", "[" * 200_000, "manifest.json is nested too deeply: it defines nothing."),
        ("manifest.json", "9" * 5_000, "manifest.json Exceeds the limit"),
    ],
)
def test_a_damaged_artifact_is_told(file: str, text: str, note: str) -> None:
    found = read_definitions(file, text)
    assert found is not None
    assert [each.startswith(note) for each in found.notes] == [True]
    assert applied(found) == (SHOP, ())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("manifest.json", '{"name": "an app", "icons": []}'),
        ("manifest.json", "[]"),
        ("manifest.json", '{"nodes": {}, "metadata": 3}'),
        ("data.json", "{"),
        ("data.json", '{"semantic_model": 3, "version": "0.1.1"}'),
        ("rules.yml", "semantic_models: []"),
        ("rules.yml", "semantic_model: ["),
        ("rules.yml", "semantic_model: 2024-13-45"),
        ("notes.yaml", "a: 1"),
    ],
)
def test_other_files_define_nothing(file: str, text: str) -> None:
    assert read_definitions(file, text) is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "id", "orders", "ref('orders')", "sum"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "expr", "a"]), inner)
    ),
    max_leaves=4,
)


@pytest.mark.heavy
@given(st.data())
def test_fields_of_any_shape_are_no_trouble(data: st.DataObject) -> None:
    def spoilt(value: Any, depth: int = 0) -> Any:
        if depth > 1 and data.draw(st.integers(0, 7)) == 0:
            return data.draw(ODD)
        if isinstance(value, dict):
            return {key: spoilt(each, depth + 1) for key, each in value.items()}
        return [spoilt(each, depth + 1) for each in value] if isinstance(value, list) else value

    for found in (semantic(spoilt(SEMANTIC)), manifest(spoilt(NODES, 1))):
        catalog, _ = applied(found)
        assert parse_schema(render(catalog, budget=10**9).text).name == "shop"


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ('"Prod".main.[or ders]', ("Prod.main.or ders", "main.or ders", "or ders")),
        ("`a.b.c`", ("a.b.c", "b.c", "c")),
        ("SELECT * FROM t", ()),
        ("", ()),
    ],
)
def test_a_dotted_name_is_a_tables_and_a_query_is_none(written: str, names: tuple[str, ...]) -> None:
    assert table_names(written) == names
