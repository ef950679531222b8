"""Read descriptions kept next to a database: one CSV file per table, as BIRD ships them.

    FOLDER/<table>.csv   original_column_name, column_name, column_description, data_format, value_description

``data_format`` is left out: the database knows its types better. The files are in UTF-8 or in Windows'
western code page.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

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
        tables.append(_described(table, path, notes) if path else table)
    if files:
        notes.append(f"{folder.name} has files of no table: {listed(path.name for path in files.values())}.")
    return replace(catalog, tables=tuple(tables), notes=(*catalog.notes, *notes))


def _described(table: Table, path: Path, notes: list[str]) -> Table:
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
            yield name.casefold(), _text(name, row)


def _decoded(content: bytes) -> str:
    for encoding in ENCODINGS:
        with suppress(UnicodeDecodeError):
            return content.decode(encoding)
    raise AssertionError("the last encoding reads any bytes")


def _text(name: str, row: Mapping[str, str]) -> str:
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
