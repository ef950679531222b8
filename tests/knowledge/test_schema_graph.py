"""A schema as a graph: the paper's types and counts, and files that other programs can read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.graph import SchemaGraph, as_cypher, as_graphml, as_json, schema_graph


def table(name: str, columns: Iterable[str], schema: str = "main") -> Table:
    return Table(name, tuple(Column(column, "TEXT", samples=("a", "b")) for column in columns), schema)


def counts(graph: SchemaGraph) -> dict[str, int]:
    """Nodes by label and relationships by type, as in Table 11."""
    return Counter([*(node.label for node in graph.nodes), *(edge.type for edge in graph.relationships)])


SHARDS = [table(f"day_{number}", "abc") for number in range(10)]
SHOP = Catalog("shop", "duckdb", (*SHARDS, table("other", "xy"), table("day_1", "abc", "archive")))


def test_shards_share_one_group_of_fields() -> None:
    assert counts(schema_graph(SHOP)) == {
        "Database": 1,
        "Schema": 2,
        "Table": 12,
        "SharedFieldGroup": 1,
        "Field": 3 + 2 + 3,
        "HAS_SCHEMA": 2,
        "HAS_TABLE": 12,
        "USES_FIELD_GROUP": 10,
        "HAS_FIELD": 3,
        "HAS_UNIQUE_FIELD": 5,
    }
    assert counts(schema_graph(SHOP, groups=False))["Field"] == 35


def test_nodes_have_the_papers_properties() -> None:
    kinds = {
        node.properties.get("node_type", node.label): {*node.properties} for node in schema_graph(SHOP).nodes
    }
    field = {"id", "database", "schema", "name", "description", "type", "node_type", "sample_data"}
    group = {"id", "database", "schema", "name", "description", "field_count", "field_hash", "type"}
    assert kinds == {
        "Database": {"id", "name", "type"},
        "Schema": {"id", "database", "name", "type"},
        "Table": {"id", "database", "schema", "name", "fullname", "ddl_summary", "type"},
        "SharedFieldGroup": group,
        "shared_field": field,
        "unique_field": field | {"table"},
    }


NAMES = st.text(max_size=8)
CATALOGS = st.lists(
    st.builds(table, NAMES, st.lists(NAMES, max_size=4), st.sampled_from(["", "a", "b"])), max_size=8
).map(lambda tables: Catalog("shop \x00 <&", "sqlite", tuple(tables)))


@given(CATALOGS, st.booleans())
def test_every_form_holds_every_node_and_every_relationship(catalog: Catalog, groups: bool) -> None:
    graph = schema_graph(catalog, groups=groups)
    fields = sum(len(each.columns) for each in catalog.tables)
    assert groups or counts(graph).get("Field", 0) == fields
    assert len(graph.relationships) >= len(graph.nodes) - 1
    ends = {edge.end for edge in graph.relationships}
    assert ends == set(range(2, len(graph.nodes) + 1)), "one root, and every node is reached"
    found = json.loads("".join(as_json(graph)))
    assert (len(found["nodes"]), len(found["relationships"])) == (len(graph.nodes), len(graph.relationships))
    tree = ET.fromstring("".join(as_graphml(graph)).encode("utf-8", "surrogatepass"))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(list(tree.iter(f"{space}node"))) == len(graph.nodes)
    assert len(list(tree.iter(f"{space}edge"))) == len(graph.relationships)
    statements = list(as_cypher(graph))
    assert all(line.isascii() and line.endswith(";") for line in statements)
    assert len(statements) == 1 + len(graph.nodes) + len(graph.relationships)
