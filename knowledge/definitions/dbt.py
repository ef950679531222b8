"""Read what dbt's property files (``schema.yml``) say of tables and columns.

Read are ``models``, ``seeds``, ``snapshots`` and the ``tables`` of ``sources``
(docs.getdbt.com/reference/configs-and-properties). ``{{ doc('name') }}`` is a block of that name in one of
the Markdown files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.definitions.descriptions import joined, listed, with_texts
from quorum.knowledge.schema.grammar import one_line

SUFFIXES = (".yml", ".yaml")
_BLOCK = re.compile(r"{%-?\s*docs\s+(\w+)\s*-?%}(.*?){%-?\s*enddocs\s*-?%}", re.DOTALL)
_DOC = re.compile(r"{{\s*doc\(\s*(?:[\"']\w+[\"']\s*,\s*)?[\"'](\w+)[\"']\s*\)\s*}}")


@dataclass(frozen=True)
class _Defined:
    """A table as a file defines it.

    Attributes:
        names: Those that it may have in the database, best first; without case, and perhaps qualified.
        columns: Descriptions by the column's name in lower case.
    """

    names: tuple[str, ...]
    description: str
    columns: Mapping[str, str]


def with_properties(catalog: Catalog, documents: Mapping[str, str]) -> Catalog:
    """Return the catalog with the descriptions in those of the documents that are dbt's; its own come first.

    The catalog's notes name what describes no table or column, or is no YAML.

    Args:
        documents: Texts by file name.
    """
    blocks = {name: text for document in documents.values() for name, text in _BLOCK.findall(document)}
    for file, document in documents.items():
        if file.lower().endswith(SUFFIXES):
            notes: list[str] = []
            defined = list(_tables(_content(file, document, notes), blocks))
            catalog = _described(catalog, file, defined, notes)
            catalog = replace(catalog, notes=(*catalog.notes, *notes))
    return catalog


def _content(file: str, document: str, notes: list[str]) -> Any:
    import yaml

    try:
        return yaml.safe_load(document)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date such as 2024-13-45 is a ValueError
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        notes.append(f"{file} is no YAML{where}: it describes no column.")
        return None


def _tables(content: Any, blocks: Mapping[str, str]) -> Iterator[_Defined]:
    """Yield the tables that a file describes; none if it is not dbt's."""

    def defined(names: tuple[str, ...], item: Mapping[str, Any]) -> _Defined:
        columns = {
            _name(column["name"]).strip().strip('"`').casefold(): said
            for column in _named(item, "columns")
            if (said := _text(column, blocks))
        }
        return _Defined(names, _text(item, blocks), columns)

    for kind in ("models", "seeds", "snapshots"):
        for item in _named(content, kind):
            alias = _name(item.get("alias")) or _name(_mapping(item.get("config")).get("alias"))
            yield defined((alias or _name(item["name"]),), item)
    for source in _named(content, "sources"):
        schema = _name(source.get("schema")) or _name(source["name"])
        for item in _named(source, "tables"):
            name = _name(item.get("identifier")) or _name(item["name"])
            yield defined((f"{schema}.{name}", name), item)


def _text(item: Mapping[str, Any], blocks: Mapping[str, str]) -> str:
    """Return the description of a thing, and its tags, as ``#pii``, on one line."""
    written = item["description"] if isinstance(item.get("description"), str) else ""
    description = _DOC.sub(lambda found: blocks.get(found[1], ""), written)
    given = [item.get("tags"), _mapping(item.get("config")).get("tags")]
    tags = [tag for each in given for tag in (each if isinstance(each, list) else [each])]
    texts = dict.fromkeys(f"#{tag}" for tag in tags if isinstance(tag, str) and tag)
    return one_line(" ".join([description, *texts]))


def _described(catalog: Catalog, file: str, defined: list[_Defined], notes: list[str]) -> Catalog:
    tables = {table.full_name: table for table in catalog.tables}
    strange: dict[str, None] = {}
    for each, found in zip(defined, _found(catalog, defined), strict=True):
        strange |= {} if found else {each.names[0]: None}
        for name in found:
            known, others = with_texts(tables[name], each.columns)
            tables[name] = replace(known, description=joined(known.description, each.description))
            strange |= {f"{known.name}.{other}": None for other in others}
    if strange:
        notes.append(f"{file} describes what is not in the database: {listed(strange)}.")
    return replace(catalog, tables=tuple(tables[table.full_name] for table in catalog.tables))


def _found(catalog: Catalog, defined: list[_Defined]) -> list[list[str]]:
    """Return the full names of each one's tables, by the first of its names that any has.

    What one of them names in full is not taken for another of the same bare name.
    """
    places = []
    nearest: dict[str, int] = {}
    for each in defined:
        name, hits = next(((n, hits) for n in each.names if (hits := catalog.find(n))), ("", tuple[Table]()))
        depth, names = name.count("."), [table.full_name for table in hits]
        places.append((depth, names))
        nearest |= {full: max(depth, nearest.get(full, 0)) for full in names}
    return [[full for full in names if nearest[full] == depth] for depth, names in places]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _named(content: Any, name: str) -> list[dict[str, Any]]:
    """Return the things that have a name in a list of a mapping."""
    found = _mapping(content).get(name)
    return [item for item in (found if isinstance(found, list) else ()) if _name(_mapping(item).get("name"))]


def _name(value: Any) -> str:
    """Return a name; "" for a list or mapping, which YAML's aliases can make too large to write out."""
    return str(value) if isinstance(value, str | int) else ""
