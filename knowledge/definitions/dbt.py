"""Read what dbt's files say of tables: property files (``schema.yml``) and ``manifest.json``.

Property files (docs.getdbt.com/reference/configs-and-properties): ``models``, ``seeds``, ``snapshots`` and
the ``tables`` of ``sources``; ``{{ doc('name') }}`` is a block of that name in one of the Markdown files.

``manifest.json`` (schemas.getdbt.com/dbt/manifest/v12.json and versions before it): models, seeds,
snapshots and sources, by their names in the database; ``relationships`` tests and ``foreign_key`` constraints
(docs.getdbt.com/reference/resource-properties: data-tests, constraints); semantic models and metrics
(``quorum.knowledge.definitions.dbt_metrics``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.definitions.dbt_metrics import read_semantics
from quorum.knowledge.definitions.model import (
    DefinedTable,
    Definitions,
    Relationship,
    column_name,
    describe,
    endings,
    mapping,
    mappings,
    named,
    table_names,
    text,
    texts,
)
from quorum.knowledge.schema.grammar import one_line

SUFFIXES = (".yml", ".yaml")
_BLOCK = re.compile(r"{%-?\s*docs\s+(\w+)\s*-?%}(.*?){%-?\s*enddocs\s*-?%}", re.DOTALL)
_DOC = re.compile(r"{{\s*doc\(\s*(?:[\"']\w+[\"']\s*,\s*)?[\"'](\w+)[\"']\s*\)\s*}}")


def with_properties(catalog: Catalog, documents: Mapping[str, str]) -> Catalog:
    """The catalog with the descriptions in those of the documents that are dbt's; its own come first.

    The catalog's notes name what describes no table or column, or is no YAML.

    Args:
        documents: Texts by file name.
    """
    blocks = {name: text for document in documents.values() for name, text in _BLOCK.findall(document)}
    for file, document in documents.items():
        notes: list[str] = []
        tables = list(_tables(file, document, blocks, notes))
        catalog = describe(replace(catalog, notes=(*catalog.notes, *notes)), file, tables)
    return catalog


def _tables(file: str, document: str, blocks: Mapping[str, str], notes: list[str]) -> Iterator[DefinedTable]:
    """The tables that a document describes; none if it is not dbt's."""
    if not file.lower().endswith(SUFFIXES):
        return
    import yaml

    try:
        content = yaml.safe_load(document)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date such as 2024-13-45 is a ValueError
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        notes.append(f"{file} is no YAML{where}: it describes no column.")
        return
    for kind in ("models", "seeds", "snapshots"):
        for item in named(content, kind):
            alias = str(item.get("alias") or mapping(item.get("config")).get("alias") or item["name"])
            yield _described((alias,), item, blocks)
    for source in named(content, "sources"):
        schema = str(source.get("schema") or source["name"])
        for item in named(source, "tables"):
            name = str(item.get("identifier") or item["name"])
            yield _described((f"{schema}.{name}", name), item, blocks)


def _described(names: tuple[str, ...], item: dict[str, Any], blocks: Mapping[str, str]) -> DefinedTable:
    columns = {
        column_name(text(column["name"])).casefold(): said
        for column in named(item, "columns")
        if (said := _text(column, blocks))
    }
    return DefinedTable(names, _text(item, blocks), columns)


def _text(item: Mapping[str, Any], blocks: Mapping[str, str]) -> str:
    """Return the description of a thing, and its tags, as ``#pii``."""
    written = text(item.get("description"))
    description = one_line(_DOC.sub(lambda found: blocks.get(found[1], ""), written))
    given = [item.get("tags"), mapping(item.get("config")).get("tags")]
    tags = [tag for each in given for tag in ([each] if isinstance(each, str) else texts(each))]
    return " ".join(filter(None, [description, *dict.fromkeys(f"#{tag}" for tag in tags)]))


NEWEST = 12
"""The latest version of the artifact whose form is known."""

_VERSION = re.compile(r"/manifest/v(\d{1,9})\b")
_TABLES = {"model", "seed", "snapshot", "source"}
_REFERENCE = re.compile(r"\b(ref|source)\s*\(([^()]*)\)")
_QUOTED = re.compile(r"[\"']([^\"']+)[\"']")


def is_manifest(content: Mapping[str, Any]) -> bool:
    """True if a JSON object is dbt's manifest, of any version."""
    return "nodes" in content and bool(_VERSION.search(_version(content)))


def read_manifest(file: str, content: Mapping[str, Any]) -> Definitions:
    """Read a manifest; a note says so if it is newer than ``NEWEST``."""
    version = _VERSION.search(_version(content))
    notes = []
    if version and int(version[1]) > NEWEST:
        newer = f"{file} is dbt's manifest version {version[1]}, which is newer than {NEWEST}:"
        notes.append(f"{newer} it was read as far as it has the older form.")
    project = _Project(content)
    semantics = read_semantics(file, content)
    return Definitions(
        file,
        "dbt",
        (*project.described(), *semantics.tables),
        (*project.tested(), *project.constrained(), *semantics.relationships),
        (*notes, *semantics.notes),
    )


def _version(content: Mapping[str, Any]) -> str:
    return text(mapping(content.get("metadata")).get("dbt_schema_version"))


class _Project:
    """The nodes of a manifest by their ids (``model.shop.orders``), and which of them are tables."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.nodes = {
            str(key): node
            for group in ("nodes", "sources")
            for key, node in mapping(content.get(group)).items()
            if isinstance(node, dict)
        }
        self.names = {
            key: names
            for key, node in self.nodes.items()
            if key.partition(".")[0] in _TABLES
            and mapping(node.get("config")).get("materialized") != "ephemeral"
            and (names := _names(node))
        }
        self._by_reference: dict[tuple[str, str], list[str]] = {}
        for key in self.names:
            source = text(self.nodes[key].get("source_name")) if key.startswith("source.") else ""
            self._by_reference.setdefault((source, text(self.nodes[key].get("name"))), []).append(key)

    def described(self) -> Iterator[DefinedTable]:
        """Yield the tables with a description of their own or of a column."""
        for key, names in self.names.items():
            table = _described(names, self.nodes[key], {})
            if table.description or table.columns:
                yield table

    def tested(self) -> Iterator[Relationship]:
        """Yield the relationships that tests declare; one with a condition is partial."""
        for key, node in self.nodes.items():
            test = mapping(node.get("test_metadata"))
            if not key.startswith("test.") or test.get("name") != "relationships":
                continue
            given = mapping(test.get("kwargs"))
            parents = texts(mapping(node.get("depends_on")).get("nodes"))
            there = self._referred(text(given.get("to")), parents)
            others = [parent for parent in parents if parent != there] or parents
            here = text(node.get("attached_node")) or next(iter(others), "")
            column = text(node.get("column_name") or given.get("column_name") or given.get("from"))
            if here in self.names and there in self.names:
                partner, partial = text(given.get("field")), mapping(node.get("config")).get("where")
                yield Relationship(
                    self.names[here],
                    (column_name(column),),
                    self.names[there],
                    (column_name(partner),),
                    bool(partial),
                )

    def constrained(self) -> Iterator[Relationship]:
        """Yield the relationships that constraints declare, whether or not the database enforces them."""
        for key, names in self.names.items():
            node = self.nodes[key]
            own = [(texts(item.get("columns")), item) for item in mappings(node.get("constraints"))]
            own += [
                ([text(column["name"])], item)
                for column in named(node, "columns")
                for item in mappings(column.get("constraints"))
            ]
            for columns, item in own:
                if item.get("type") == "foreign_key" and (target := self._target(item)):
                    yield Relationship(names, tuple(map(column_name, columns)), *target)

    def _target(self, constraint: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return the names and columns that a constraint refers to (dbt 1.9 and newer)."""
        to, columns = text(constraint.get("to")), texts(constraint.get("to_columns"))
        names = self.names.get(self._referred(to, ()), ()) or table_names(to)
        return (names, tuple(map(column_name, columns))) if names else None

    def _referred(self, written: str, among: Collection[str]) -> str:
        """Return the id of ``ref('…')`` or ``source('…', '…')`` means, if possible of ``among``, else ""."""
        found = _REFERENCE.search(written)
        words = _QUOTED.findall(found[2]) if found else []
        if not found or not words:
            return ""
        source = words[0] if found[1] == "source" else ""
        fitting = self._by_reference.get((source, words[-1]), [])
        return next((key for key in fitting if key in among), fitting[0] if fitting else "")


def _names(node: Mapping[str, Any]) -> tuple[str, ...]:
    """``database.schema.name`` and what is left of it without its first parts."""
    name = text(node.get("identifier")) or text(node.get("alias")) or text(node.get("name"))
    return endings((text(node.get("database")), text(node.get("schema")), name))
