"""A catalog as a graph (SQLAgent, paper 001, appendices C and D), for graph databases and for counting.

Nodes are of five types, relationships of five (Table 5); properties are those of Tables 6 to 10, ``id`` among
them, numbered from 1. Tables of one signature in a schema share their fields in a SharedFieldGroup.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.layouts import select_groups, signature

_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Node:
    """A node; ``label`` is Database, Schema, Table, SharedFieldGroup or Field."""

    id: int
    label: str
    properties: dict[str, Any]


@dataclass(frozen=True)
class Relationship:
    """An edge between two nodes, by their ids; ``type`` is one of Table 5."""

    start: int
    type: str
    end: int


@dataclass(frozen=True)
class SchemaGraph:
    """Nodes in the order of their ids, and what connects them."""

    nodes: list[Node]
    relationships: list[Relationship]

    def counts(self) -> dict[str, int]:
        """Nodes by label and relationships by type, as in Table 11."""
        labels = Counter(node.label for node in self.nodes)
        return labels | Counter(edge.type for edge in self.relationships)


def schema_graph(catalog: Catalog, *, groups: bool = True) -> SchemaGraph:
    """The graph of a catalog, in time linear in its fields.

    Args:
        groups: With SharedFieldGroups; without them each table has all of its fields for itself.
    """
    made = _Graph(catalog.name)
    root = made.add("Database", name=catalog.name, type="database")
    schemas: dict[tuple[str, str], list[Table]] = {}
    for table in catalog.tables:
        schemas.setdefault((table.database, table.schema), []).append(table)
    for (database, name), tables in schemas.items():
        schema = made.add("Schema", root, "HAS_SCHEMA", name=name or database or catalog.name, type="schema")
        shared = select_groups(replace(catalog, tables=tuple(tables))) if groups else []
        group_of = {id(table): number for number, members in enumerate(shared) for table in members}
        group_ids: dict[int, int] = {}
        for table in tables:
            made.table(schema, table, group_of.get(id(table)), group_ids)
    return SchemaGraph(made.nodes, made.relationships)


class _Graph:
    """Collects nodes and relationships."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.nodes: list[Node] = []
        self.relationships: list[Relationship] = []

    def add(self, label: str, parent: int = 0, relationship: str = "", **properties: Any) -> int:
        number = len(self.nodes) + 1
        own = {"database": self.database} if parent else {}
        self.nodes.append(Node(number, label, {"id": number, **own, **properties}))
        if parent:
            self.relationships.append(Relationship(parent, relationship, number))
        return number

    def table(self, schema: int, table: Table, group: int | None, group_ids: dict[int, int]) -> None:
        """A table with its fields, or with the group that has them; the group is made for its first table."""
        within = {"schema": self.nodes[schema - 1].properties["name"]}
        own = self.add(
            "Table",
            schema,
            "HAS_TABLE",
            name=table.name,
            fullname=table.full_name,
            ddl_summary=f"Table with {len(table.columns)} columns",
            **within,
            type="table",
        )
        if group is None:
            self._fields(own, "HAS_UNIQUE_FIELD", table.columns, "unique_field", **within, table=table.name)
            return
        if group in group_ids:
            self.relationships.append(Relationship(own, "USES_FIELD_GROUP", group_ids[group]))
            return
        mark = signature(table)
        group_ids[group] = self.add(
            "SharedFieldGroup",
            own,
            "USES_FIELD_GROUP",
            name=f"FieldGroup_{mark[:8]}",
            description=f"FieldGroup_{mark}",
            field_count=len(table.columns),
            field_hash=mark,
            **within,
            type="shared_field_group",
        )
        self._fields(group_ids[group], "HAS_FIELD", table.columns, "shared_field", **within)

    def _fields(
        self, parent: int, relationship: str, columns: Iterable[Column], kind: str, **within: str
    ) -> None:
        for column in columns:
            self.add(
                "Field",
                parent,
                relationship,
                name=column.name,
                description=column.description,
                type=column.type,
                node_type=kind,
                sample_data=list(column.samples),
                **within,
            )


def as_json(graph: SchemaGraph) -> Iterator[str]:
    """Lines of one JSON object: ``nodes`` and ``relationships``."""
    yield '{"nodes": ['
    yield from _joined({"label": node.label} | node.properties for node in graph.nodes)
    yield '], "relationships": ['
    yield from _joined(vars(edge) for edge in graph.relationships)
    yield "]}"


def _joined(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    last = None
    for item in items:
        if last is not None:
            yield f"{last},"
        last = json.dumps(item, ensure_ascii=False)
    if last is not None:
        yield last


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
        properties = ", ".join(f"{name}: {_cypher(value)}" for name, value in node.properties.items())
        yield f"CREATE (:SchemaNode:{node.label} {{{properties}}});"
    for edge in graph.relationships:
        ends = f"(a:SchemaNode {{id: {edge.start}}}), (b:SchemaNode {{id: {edge.end}}})"
        yield f"MATCH {ends} CREATE (a)-[:{edge.type}]->(b);"


def _cypher(value: Any) -> str:
    """A literal: JSON's strings, numbers and lists are Cypher's; what is not ASCII is escaped."""
    return json.dumps(value)


FORMATS = {"json": as_json, "graphml": as_graphml, "cypher": as_cypher}
