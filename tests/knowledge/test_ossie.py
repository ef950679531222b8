"""Semantic models of OSI: what they say of tables, columns, joins and metrics reaches the catalog."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Metric, Table
from quorum.knowledge.definitions.model import Definitions, with_definitions
from quorum.knowledge.documents.files import read_definitions
from quorum.knowledge.documents.search import Documents

SHOP = Catalog(
    "shop",
    "snowflake",
    (
        Table("PEOPLE", (Column("ID", "INT"), Column("REGION", "TEXT", "where they live")), "CRM", "DB"),
        Table(
            "ORDERS", (Column("ID", "INT"), Column("PERSON", "INT"), Column("PAID", "REAL")), "SALES", "DB"
        ),
    ),
)


def sql(text: str, dialect: str = "ANSI_SQL") -> dict[str, Any]:
    return {"dialects": [{"dialect": dialect, "expression": text}]}


MODEL: dict[str, Any] = yaml.safe_load("""
name: sales
description: All shops
ai_context: {instructions: Count each purchase once}
custom_extensions: [{vendor_name: SALESFORCE, data: '{"workbook": 7}'}]
datasets:
- name: purchases
  source: db.sales.orders
  primary_key: [id]
  description: "What was\\nbought"
  ai_context: {synonyms: [orders, sales], instructions: No drafts., grain: one a purchase}
  custom_extensions: [{vendor_name: DBT, data: '{"materialized": "table"}'}]
  fields:
  - {name: buyer, expression: person, description: who paid, label: filter, datatype: Integer}
  - {name: amount, expression: '"PAID"', ai_context: in euros, dimension: {is_time: false}}
  - {name: net, expression: PAID / 1.21, description: without tax, unit: euro}
- {name: people, source: '"DB"."CRM"."PEOPLE"', fields: []}
- {name: best, source: SELECT * FROM db.sales.orders WHERE paid > 9}
relationships:
- {name: bought_by, ai_context: always known, from: purchases, to: people,
   from_columns: [buyer], to_columns: [id]}
- {name: odd, from: purchases, to: best, from_columns: [id], to_columns: [id]}
metrics:
- name: revenue
  expression:
    dialects: [{dialect: ANSI_SQL, expression: SUM(purchases.amount)}, {dialect: MDX, expression: '[Paid]'}]
  description: Without returns
  ai_context: {synonyms: [turnover], examples: ['How much did we sell?']}
- {name: per head, expression: SUM(Purchases.amount) / COUNT(DISTINCT people.id)}
- {name: net, expression: {dialects: [{dialect: SNOWFLAKE, expression: SUM(net)}]}}
- {name: cube, expression: {dialects: [{dialect: MDX, expression: '[Measures].[amount]'}]}}
- {name: best, expression: COUNT(best.id)}
- {name: now, expression: MAX(x)}
""")
for _each in (*MODEL["datasets"][0]["fields"], *MODEL["metrics"]):
    if isinstance(_each["expression"], str):
        _each["expression"] = sql(_each["expression"])
PURCHASES = MODEL["datasets"][0]
TOLD = "also called orders, sales; No drafts.; grain: one a purchase"


def osi(version: str = "0.1.1", **more: Any) -> dict[str, Any]:
    return {"version": version, "semantic_model": [MODEL], **more}


def dumped(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False)


def read(content: dict[str, Any], file: str = "sales.osi.yaml") -> Definitions:
    found = read_definitions(file, dumped(content))
    assert found is not None
    return found


def metrics(catalog: Catalog) -> dict[str, dict[str, Metric]]:
    return {table.name: {m.name: m for m in table.metrics} for table in catalog.tables}


def test_a_model_describes_relates_and_measures_its_tables() -> None:
    found, declared = with_definitions(SHOP, [read(osi())])
    people, orders = found.tables
    assert orders.description.startswith(f"What was bought; {TOLD}; ")
    assert orders.description.endswith(
        'DBT: {"materialized": "table"}; net (without tax; unit: euro) is PAID / 1.21'
    )
    assert [c.description for c in orders.columns] == [
        "",
        "who paid; label: filter; always known",
        "in euros",
    ]
    assert [c.description for c in people.columns] == ["", "where they live"]
    assert orders.foreign_keys == (ForeignKey(("PERSON",), "DB.CRM.PEOPLE", ("ID",)),)
    assert [each.by for each in declared] == ["OSI"]
    assert read(osi()).notes == ("sales.osi.yaml has metrics of no dataset that is a table: best, now.",)
    assert found.notes == (
        "sales.osi.yaml, model sales: All shops; Count each purchase once",
        "Keys that OSI declares (sales.osi.yaml), not the database:"
        " DB.SALES.ORDERS.PERSON -> DB.CRM.PEOPLE.ID.",
    )


def test_metrics_name_tables_and_columns_instead_of_datasets_and_fields() -> None:
    found, _ = with_definitions(SHOP, [read(osi())])
    assert metrics(found)["PEOPLE"] == {}
    made = metrics(found)["ORDERS"]
    assert made["revenue"] == Metric(
        "revenue",
        'SUM(orders."PAID")',
        "Without returns; also called turnover; asked for as How much did we sell?",
    )
    assert made["per head"].expression == 'SUM(orders."PAID") / COUNT(DISTINCT PEOPLE.id)'
    assert made["net"].expression == "SUM(net)"
    assert made["cube"].expression == "[Measures].[amount] /* MDX */"


def test_the_databases_own_dialect_comes_first() -> None:
    both = {"dialects": [*sql("COUNT(*)")["dialects"], *sql("COUNT_IF(TRUE)", "SNOWFLAKE")["dialects"]]}
    model = {**MODEL, "datasets": [PURCHASES], "metrics": [{"name": "n", "expression": both}]}
    content = osi(semantic_model=[model])
    for dialect, expression in (("snowflake", "COUNT_IF(TRUE)"), ("duckdb", "COUNT(*)")):
        found, _ = with_definitions(replace(SHOP, dialect=dialect), [read(content)])
        assert metrics(found)["ORDERS"]["n"].expression == expression


@pytest.mark.parametrize(
    "content",
    [
        osi("0.2.0.dev0"),
        osi(semantic_model=MODEL),
        {"version": "0.2.0.dev0", **MODEL},
        {"version": "0.2.1", **MODEL, "vendors": ["DBT"]},
    ],
)
def test_drafts_of_the_next_version_are_read(content: dict[str, Any]) -> None:
    wanted, _ = with_definitions(SHOP, [read(osi())])
    for file, text in (("s.yml", dumped(content)), ("s.json", json.dumps(content))):
        found = read_definitions(file, text)
        assert found is not None
        catalog, _ = with_definitions(SHOP, [found])
        assert catalog.tables == wanted.tables
        assert not any("version" in note for note in found.notes)


@pytest.mark.parametrize("version", ["1.0", "0.3.0", "", None])
def test_an_unknown_version_is_told_and_read_as_far_as_it_fits(version: str | None) -> None:
    found = read({**osi(), "version": version})
    known = version or "unknown"
    assert found.notes[0] == (
        f"sales.osi.yaml is of OSI version {known}, not 0.1 and 0.2: it was read as far as it fits."
    )
    assert with_definitions(SHOP, [found])[0].tables[1].metrics


@pytest.mark.parametrize(
    "content",
    [
        {"version": "0.1.1", **MODEL},
        {"version": "0.1.1", "semantic_model": []},
        {"version": "0.1.1", "semantic_model": [{"name": "x"}]},
        {"version": 2, "models": []},
        {"name": "x", "datasets": []},
    ],
)
def test_what_is_no_model_is_a_document(content: dict[str, Any]) -> None:
    assert read_definitions("a.yaml", dumped(content)) is None
    assert read_definitions("a.json", json.dumps(content)) is None


def test_a_text_that_grows_when_it_is_written_out_is_left_alone() -> None:
    layers = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    model = "semantic_model:\n- name: m\n  ai_context: *l29\n  datasets: []\n"
    text = f"version: 0.1.1\nx:\n  l0: &l0 [a]\n{layers}{model}"
    found = read_definitions("bomb.yaml", text)
    assert found is not None
    assert found.notes == ()


def test_what_defines_tables_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "terms.md").write_text("A loyal customer has bought in three months.")
    (tmp_path / "sales.yaml").write_text(dumped(osi()))
    (tmp_path / "rules.yaml").write_text("loyal: three months")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "manifest.json").write_text("{")
    found = Documents.load(tmp_path)
    assert list(found.texts) == ["rules.yaml", "terms.md"]
    assert [each.file for each in found.definitions] == ["sales.yaml", "target/manifest.json"]
    assert found.notes == [
        "sales.yaml has metrics of no dataset that is a table: best, now.",
        "target/manifest.json is no JSON, line 1: it defines nothing.",
    ]
    (tmp_path / "sales.yaml").write_text(dumped(osi(semantic_model=[{**MODEL, "description": "x"}])))
    assert Documents.load(tmp_path).hash != found.hash
    for path in ("terms.md", "rules.yaml"):
        (tmp_path / path).unlink()
    assert Documents.load(tmp_path).all_text(100) == ""
