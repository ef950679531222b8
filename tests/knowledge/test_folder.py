"""Catalogs from resource folders, built here in the layouts of Spider 2.0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorum.knowledge.ddl import nested_fields, parse_columns
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.folder import find_database_folders, load_folder
from quorum.knowledge.folder_columns import trusted_descriptions
from tests.schema_folders import write_ddl, write_table

GET_DDL = """create or replace TABLE EVENTS (
\tDAY VARCHAR(16777216) NOT NULL,
\tPARAMS VARIANT,
\t"zip ""x\""" NUMBER(10,2),
\trevenue FLOAT
);"""


def snowflake(root: Path) -> Path:
    """A converted table: columns shuffled in the JSON, descriptions shifted behind PARAMS."""
    schema = root / "resource" / "databases" / "SHOP" / "PUBLIC"
    alone = ("ONLY_DDL", "", "create or replace TABLE ONLY_DDL (\n\tA NUMBER(38,0)\n);")
    write_ddl(schema, [("EVENTS", "", GET_DDL), alone, ("NAMED", "about it", "")])
    shuffled = {"REVENUE": "FLOAT", "PARAMS": "VARIANT", "DAY": "TEXT", 'zip "x"': "NUMBER"}
    told = ["name of the parameter", "the params record", "day of the event", "a nested key"]
    value = json.dumps([{"key": "page", "value": {"int_value": 1}}])
    rows = [{"DAY": "20240101", "PARAMS": value, 'zip "x"': 1.5, "REVENUE": None}] * 2
    write_table(schema, "PUBLIC.EVENTS", shuffled, description=told, sample_rows=rows)
    write_table(schema, "PUBLIC.ONLY_JSON", {"x": "NUMBER"}, description=["the x"], sample_rows=[])
    return schema


def test_a_converted_snowflake_folder(tmp_path: Path) -> None:
    snowflake(tmp_path)
    catalog = load_folder(tmp_path)
    assert (catalog.name, catalog.dialect) == ("SHOP", "snowflake")
    assert [t.full_name for t in catalog.tables] == [
        f"SHOP.PUBLIC.{n}" for n in ("EVENTS", "NAMED", "ONLY_DDL", "ONLY_JSON")
    ]
    events = catalog.tables[0]
    assert [(c.name, c.type, c.nullable) for c in events.columns] == [
        ("DAY", "TEXT", False),
        ("PARAMS", "VARIANT", True),
        ('zip "x"', "NUMBER(10,2)", True),
        ("REVENUE", "FLOAT", True),
    ]
    assert [c.description for c in events.columns] == ["day of the event", "the params record", "", ""]
    assert [f.path for f in events.columns[1].fields] == ["[].key", "[].value.int_value"]
    assert events.columns[0].samples == ("20240101",)
    assert events.columns[2].samples == ("1.5",)


@pytest.mark.parametrize(
    ("value", "kept"),
    [('[{"key": "page"}]', False), ('{"type": "Point", "coordinates": [1, 2]}', True), ("[1, 2]", True)],
)
def test_text_that_holds_objects_had_fields_in_the_source(value: str, kept: bool, tmp_path: Path) -> None:
    schema = snowflake(tmp_path)
    (schema / "DDL.csv").write_text((schema / "DDL.csv").read_text().replace("PARAMS VARIANT", "PARAMS TEXT"))
    path = schema / "EVENTS.json"
    table = json.loads(path.read_text().replace('"VARIANT"', '"TEXT"'))
    table["sample_rows"] = [table["sample_rows"][0] | {"PARAMS": value}]
    path.write_text(json.dumps(table))
    described = [column.description for column in load_folder(tmp_path).tables[0].columns]
    assert described[:2] == ["day of the event", "the params record"]
    assert described[2:] == (["a nested key", "name of the parameter"] if kept else ["", ""])


def test_what_was_missing_or_dropped_is_noted(tmp_path: Path) -> None:
    schema = snowflake(tmp_path)
    said = " / ".join(load_folder(tmp_path).notes)
    assert "2 descriptions were dropped" in said
    assert "PUBLIC: 1 tables have no JSON file" in said
    assert "PUBLIC: 1 tables are missing in DDL.csv" in said
    assert "PUBLIC: 1 tables are named without columns" in said
    (schema / "DDL.csv").unlink()
    catalog = load_folder(tmp_path)
    assert {t.name for t in catalog.tables} == {"EVENTS", "ONLY_JSON"}, "the JSON files serve"
    assert "DDL.csv is missing" in catalog.notes[0]


def test_a_bigquery_folder_spells_nested_paths(tmp_path: Path) -> None:
    schema = tmp_path / "resource" / "databases" / "bigquery" / "web" / "proj-1.data"
    kind = "ARRAY<STRUCT<key STRING, value STRUCT<n INT64>>>"
    first = 'id INT64 NOT NULL OPTIONS(description="the id, (once)")'
    ddl = f"CREATE TABLE `proj-1.data.logs`\n(\n  {first},\n  params {kind}\n);"
    write_ddl(schema, [(" logs", ddl)], ("table_name", "ddl"))
    whole = {"id": "INT64", "params": kind}
    parts = {"params.key": "STRING", "params.value": "STRUCT<n INT64>", "params.value.n": "INT64"}
    nested = whole | parts
    write_table(
        schema,
        " logs",
        whole,
        nested_column_names=list(nested),
        nested_column_types=list(nested.values()),
        description=[None, "all", "its key", None, "count"],
        sample_rows=[],
    )
    catalog = load_folder(tmp_path)
    assert catalog.dialect == "bigquery"
    (logs,) = catalog.tables
    assert logs.full_name == "proj-1.data. logs"
    assert logs.columns[0].description == "the id, (once)"
    assert logs.columns[0].nullable is False
    assert [(f.path, f.description) for f in logs.columns[1].fields] == [
        ("[].key", "its key"), ("[].value", ""), ("[].value.n", "count"),
    ]  # fmt: skip


def test_a_folder_of_databases_lists_them_and_errors_say_what_to_do(tmp_path: Path) -> None:
    for folder, said in ((tmp_path / "nope", "There is no folder"), (tmp_path, "no database description")):
        with pytest.raises(ConfigurationError, match=said):
            find_database_folders(folder)
    schema = snowflake(tmp_path)
    other = tmp_path / "resource" / "databases" / "bigquery" / "web" / "p.d"
    write_table(other, "t", {"a": "INT64"}, nested_column_names=["a"])
    assert [path.name for path in find_database_folders(tmp_path)] == ["SHOP", "web"]
    assert find_database_folders(schema.parent) == (schema.parent,)
    with pytest.raises(ConfigurationError, match="holds 2 databases"):
        load_folder(tmp_path)
    (schema / "BAD.json").write_text('{"table_name": "BAD"', "utf-8")
    with pytest.raises(ConfigurationError, match=r"BAD\.json cannot be read.*again"):
        load_folder(schema.parent)


def test_native_descriptions_are_kept_behind_a_variant_where_they_speak_of_their_columns() -> None:
    told = {"id": "the id", "data": "data of it", "fax": "fax number", "phone": "phone number"}
    shifted = told | {"fax": "phone number", "phone": "something else"}
    for given, kept in ((told, [*told]), (shifted, ["id", "data"])):
        assert [*trusted_descriptions([*told], given, lambda n: n == "data", native=True)] == kept


def test_ddl_with_quotes_commas_and_constraints() -> None:
    described = 'OPTIONS(description="g, \\"h\\"")'
    columns = ["a DECIMAL(10, 2) DEFAULT 'b, c'", f"`d` STRUCT<e STRING, f ARRAY<INT64>> {described}"]
    ddl = f"CREATE TABLE x (\n {', '.join(columns)},\n PRIMARY KEY (a)\n);"
    a, d = parse_columns(ddl)
    assert (a.name, a.type) == ("a", "DECIMAL(10, 2)")
    assert (d.name, d.type, d.description) == ("d", "STRUCT<e STRING, f ARRAY<INT64>>", 'g, "h"')
    assert [f.path for f in nested_fields(d.type)] == ["e", "f"]
