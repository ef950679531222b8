"""Read what files say of tables and columns: CSV files beside a database, and dbt's property files.

BIRD ships one CSV file per table, in UTF-8 or in Windows' western code page:

    FOLDER/<table>.csv   original_column_name, column_name, column_description, data_format, value_description

``data_format`` is left out: the database knows its types better. Of dbt's files (``schema.yml``) are read
``models``, ``seeds``, ``snapshots`` and the ``tables`` of ``sources``
(docs.getdbt.com/reference/configs-and-properties). ``{{ doc('name') }}`` is a block of that name in one of
the Markdown files.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.schema.grammar import one_line

FOLDER = "database_description"
"""BIRD's name for the folder, next to the database's file."""

ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
"""Tried in turn; the last one reads any bytes."""

NAMED = 5


def with_descriptions(catalog: Catalog, folder: Path) -> Catalog:
    """The catalog with the descriptions in ``folder``; where a column has one of its own, that comes first.

    Names are compared without case and outer blanks. The catalog's notes name what describes no table or
    column, or cannot be read.
    """
    files = {path.stem.strip().casefold(): path for path in sorted(folder.glob("*.csv")) if path.is_file()}
    notes: list[str] = []
    tables = []
    for table in catalog.tables:
        path = files.pop(table.name.strip().casefold(), None)
        tables.append(_from_file(table, path, notes) if path else table)
    if files:
        notes.append(f"{folder.name} has files of no table: {listed(path.name for path in files.values())}.")
    return replace(catalog, tables=tuple(tables), notes=(*catalog.notes, *notes))


def _from_file(table: Table, path: Path, notes: list[str]) -> Table:
    where = f"{path.name} in {path.parent.name}"
    try:
        texts = dict(_texts(path))
    except (OSError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error  # without the file's place
        notes.append(f"{where} cannot be read: {why}.")
        return table
    table, strange = with_texts(table, texts)
    if strange:
        notes.append(f"{where} describes no column of {table.name}: {listed(strange)}.")
    return table


def with_texts(table: Table, texts: Mapping[str, str]) -> tuple[Table, list[str]]:
    """The table with texts added to its columns' descriptions, and the names that are no column's.

    Args:
        texts: By the column's name without case.
    """
    names = [column.name.strip().casefold() for column in table.columns]
    columns = tuple(
        replace(column, description=joined(column.description, texts.get(name, "")))
        for name, column in zip(names, table.columns, strict=True)
    )
    return replace(table, columns=columns), [name for name in texts if name not in names]


def joined(known: str, more: str) -> str:
    """Two descriptions of one thing; what the first says is not said again."""
    if not more or f"; {more};" in f"; {known};":
        return known
    return f"{known}; {more}" if known else more


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The description of each column in a file, by name in lower case."""
    rows = csv.reader(io.StringIO(_decoded(path.read_bytes()), newline=""))
    head = [name.strip().casefold() for name in next(rows, [])]
    for cells in rows:
        row = {name: one_line(cell) for name, cell in zip(head, cells, strict=False)}
        if name := row.get("original_column_name", ""):
            yield name.casefold(), _said(name, row)


def _decoded(content: bytes) -> str:
    for encoding in ENCODINGS:
        with suppress(UnicodeDecodeError):
            return content.decode(encoding)
    raise AssertionError("the last encoding reads any bytes")


def _said(name: str, row: Mapping[str, str]) -> str:
    """``full name: meaning; values: their meaning``, without what repeats the column's name."""
    full, meaning = row.get("column_name", ""), row.get("column_description", "")
    parts = ["" if full.casefold() in (name.casefold(), meaning.casefold()) else full]
    parts += ["" if meaning.casefold() == name.casefold() else meaning]
    values = row.get("value_description", "")
    return "; ".join(filter(None, (": ".join(filter(None, parts)), f"values: {values}" if values else "")))


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    given = list(names)
    more = f" and {len(given) - NAMED} more" if len(given) > NAMED else ""
    return ", ".join(given[:NAMED]) + more


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
