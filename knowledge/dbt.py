"""Descriptions in dbt's property files (``schema.yml``): tables and columns as their authors explain them.

See docs.getdbt.com/reference/configs-and-properties: ``models``, ``seeds``, ``snapshots``, and the ``tables``
of ``sources``. ``{{ doc('name') }}`` stands for a block of that name in one of the Markdown files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.definitions import DefinedTable, describe
from quorum.knowledge.schema_grammar import one_line
from quorum.knowledge.shapes import mapping, named, text

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
        str(column["name"]).strip().casefold(): said
        for column in named(item, "columns")
        if (said := _text(column, blocks))
    }
    return DefinedTable(names, _text(item, blocks), columns)


def _text(item: Mapping[str, Any], blocks: Mapping[str, str]) -> str:
    return one_line(_DOC.sub(lambda found: blocks.get(found[1], ""), text(item.get("description"))))
