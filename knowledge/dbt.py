"""Descriptions in dbt's property files (``schema.yml``): tables and columns as their authors explain them.

See docs.getdbt.com/reference/configs-and-properties: ``models``, ``seeds``, ``snapshots``, and the ``tables``
of ``sources``. ``{{ doc('name') }}`` stands for a block of that name in one of the Markdown files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.described import joined, listed, with_texts
from quorum.knowledge.schema_grammar import one_line

SUFFIXES = (".yml", ".yaml")
_BLOCK = re.compile(r"{%-?\s*docs\s+(\w+)\s*-?%}(.*?){%-?\s*enddocs\s*-?%}", re.DOTALL)
_DOC = re.compile(r"{{\s*doc\(\s*(?:[\"']\w+[\"']\s*,\s*)?[\"'](\w+)[\"']\s*\)\s*}}")


@dataclass(frozen=True)
class _Described:
    """A table as a file describes it: the names it may have, best first, and its columns' texts by name."""

    names: tuple[str, ...]
    text: str
    columns: dict[str, str]


def with_properties(catalog: Catalog, documents: Mapping[str, str]) -> Catalog:
    """The catalog with the descriptions in those of the documents that are dbt's; its own come first.

    The catalog's notes name what describes no table or column, or is no YAML.

    Args:
        documents: Texts by file name.
    """
    blocks = {name: text for document in documents.values() for name, text in _BLOCK.findall(document)}
    tables = {table.full_name: table for table in catalog.tables}
    notes: list[str] = []
    for file, document in documents.items():
        strange = []
        for described in _tables(file, document, blocks, notes):
            found = next(filter(None, map(catalog.find, described.names)), ())
            strange += [] if found else [described.names[-1]]
            for table in found:
                known = tables[table.full_name]
                told, others = with_texts(known, described.columns)
                tables[table.full_name] = replace(told, description=joined(told.description, described.text))
                strange += [f"{table.name}.{name}" for name in others]
        if strange:
            notes.append(f"{file} describes what is not in the database: {listed(strange)}.")
    return replace(catalog, tables=tuple(tables.values()), notes=(*catalog.notes, *notes))


def _tables(file: str, document: str, blocks: Mapping[str, str], notes: list[str]) -> Iterator[_Described]:
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
        for item in _items(content, kind):
            alias = str(item.get("alias") or _mapping(item.get("config")).get("alias") or item["name"])
            yield _described((alias,), item, blocks)
    for source in _items(content, "sources"):
        schema = str(source.get("schema") or source["name"])
        for item in _items(source, "tables"):
            name = str(item.get("identifier") or item["name"])
            yield _described((f"{schema}.{name}", name), item, blocks)


def _described(names: tuple[str, ...], item: dict[str, Any], blocks: Mapping[str, str]) -> _Described:
    columns = {
        str(column["name"]).strip().casefold(): text
        for column in _items(item, "columns")
        if (text := _text(column, blocks))
    }
    return _Described(names, _text(item, blocks), columns)


def _text(item: Mapping[str, Any], blocks: Mapping[str, str]) -> str:
    text = _DOC.sub(lambda found: blocks.get(found[1], ""), str(item.get("description") or ""))
    return one_line(text)


def _items(content: Any, name: str) -> list[dict[str, Any]]:
    """The named things in a list of a mapping; whatever has another shape is not dbt's."""
    listing = _mapping(content).get(name)
    found = listing if isinstance(listing, list) else []
    return [item for item in found if isinstance(item, dict) and item.get("name")]


def _mapping(content: Any) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}
