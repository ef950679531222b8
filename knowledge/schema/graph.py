"""A catalog as a graph (SQLAgent, paper 001, appendices C and D), for graph databases and for counting.

Nodes are of five types, relationships of five (Table 5); properties are those of Tables 6 to 10, ``id`` among
them, numbered from 1. Tables of one signature in a schema share their fields in a SharedFieldGroup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from quorum.knowledge.catalog import Catalog, Column
from quorum.knowledge.schema.layouts import signature, units

_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


class Node(NamedTuple):
    """A node; ``label`` is Database, Schema, Table, SharedFieldGroup or Field."""

    id: int
    label: str
    properties: dict[str, Any]


class Relationship(NamedTuple):
    """An edge between two nodes, by their ids; ``type`` is one of Table 5."""

    start: int
    type: str
    end: int


class SchemaGraph:
    """Nodes in the order of their ids, and what connects them."""

    def __init__(self, database: str) -> None:
        self.nodes = [Node(1, "Database", {"id": 1, "name": database, "type": "database"})]
        self.relationships: list[Relationship] = []

    def add(self, parent: int, relationship: str, label: str, **properties: Any) -> int:
        """Add a node below another; return its id."""
        number, database = len(self.nodes) + 1, self.nodes[0].properties["name"]
        self.nodes.append(Node(number, label, {"id": number, "database": database, **properties}))
        self.relationships.append(Relationship(parent, relationship, number))
        return number

    def add_fields(
        self, parent: int, relationship: str, columns: Iterable[Column], **properties: Any
    ) -> None:
        """Add fields below their table, or below the group that has them."""
        for column in columns:
            about = {"name": column.name, "description": column.description, "type": column.type}
            samples = list(column.samples)
            self.add(parent, relationship, "Field", **about, sample_data=samples, **properties)


def schema_graph(catalog: Catalog, *, groups: bool = True) -> SchemaGraph:
    """The graph of a catalog, in time linear in its fields.

    Args:
        groups: With SharedFieldGroups; without them each table has all of its fields for itself.
    """
    graph = SchemaGraph(catalog.name)
    found = [each for each in units(catalog) if len(each) > 1] if groups else []
    group_of = {id(table): number for number, members in enumerate(found) for table in members}
    schemas, shared = dict[tuple[str, str], int](), dict[int, int]()
    for table in catalog.tables:
        place, name = (table.database, table.schema), table.schema or table.database or catalog.name
        if place not in schemas:
            schemas[place] = graph.add(1, "HAS_SCHEMA", "Schema", name=name, type="schema")
        own = graph.add(
            schemas[place],
            "HAS_TABLE",
            "Table",
            name=table.name,
            fullname=table.full_name,
            ddl_summary=f"Table with {len(table.columns)} columns",
            schema=name,
            type="table",
        )
        group = group_of.get(id(table))
        if group is None:
            about = {"node_type": "unique_field", "schema": name, "table": table.name}
            graph.add_fields(own, "HAS_UNIQUE_FIELD", table.columns, **about)
        elif group in shared:
            graph.relationships.append(Relationship(own, "USES_FIELD_GROUP", shared[group]))
        else:
            mark = signature(table)
            shared[group] = graph.add(
                own,
                "USES_FIELD_GROUP",
                "SharedFieldGroup",
                name=f"FieldGroup_{mark[:8]}",
                description=f"FieldGroup_{mark}",
                field_count=len(table.columns),
                field_hash=mark,
                schema=name,
                type="shared_field_group",
            )
            graph.add_fields(shared[group], "HAS_FIELD", table.columns, node_type="shared_field", schema=name)
    return graph


def as_json(graph: SchemaGraph) -> Iterator[str]:
    """One JSON object: ``nodes`` and ``relationships``."""
    nodes = [{"label": node.label} | node.properties for node in graph.nodes]
    edges = [edge._asdict() for edge in graph.relationships]
    yield json.dumps({"nodes": nodes, "relationships": edges}, ensure_ascii=False, indent=0)


def as_graphml(graph: SchemaGraph) -> Iterator[str]:
    """Lines of a GraphML file; lists are JSON, and characters that XML cannot hold are left out."""
    names = dict.fromkeys(name for node in graph.nodes for name in node.properties)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for name in ("label", *names):
        yield f'<key id="{name}" for="all" attr.name="{name}" attr.type="string"/>'
    yield '<graph edgedefault="directed">'
    for node in graph.nodes:
        values = {"label": node.label} | node.properties
        data = "".join(f'<data key="{name}">{_xml(value)}</data>' for name, value in values.items())
        yield f'<node id="n{node.id}">{data}</node>'
    for edge in graph.relationships:
        label = f'<data key="label">{edge.type}</data>'
        yield f'<edge source="n{edge.start}" target="n{edge.end}" label={quoteattr(edge.type)}>{label}</edge>'
    yield "</graph></graphml>"


def _xml(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape(_NOT_XML.sub("", text))


def as_cypher(graph: SchemaGraph) -> Iterator[str]:
    """Statements for Neo4j, one a line; every node is a SchemaNode beside its label."""
    yield "CREATE INDEX schema_node IF NOT EXISTS FOR (n:SchemaNode) ON (n.id);"
    for node in graph.nodes:
        # JSON's strings, numbers and lists are Cypher's; what is not ASCII is escaped
        properties = ", ".join(f"{name}: {json.dumps(value)}" for name, value in node.properties.items())
        yield f"CREATE (:SchemaNode:{node.label} {{{properties}}});"
    for edge in graph.relationships:
        ends = f"(a:SchemaNode {{id: {edge.start}}}), (b:SchemaNode {{id: {edge.end}}})"
        yield f"MATCH {ends} CREATE (a)-[:{edge.type}]->(b);"


FORMATS = {"json": as_json, "graphml": as_graphml, "cypher": as_cypher}
