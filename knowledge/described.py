"""Descriptions that somebody wrote beside a database: one CSV file per table, as BIRD ships them.

    FOLDER/<table>.csv   original_column_name, column_name, column_description, data_format, value_description

``data_format`` is left out: the database knows its types better. The files are in UTF-8 or in Windows'
western code page.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema_grammar import one_line

FOLDER = "database_description"
"""What BIRD calls the folder, beside the database's file."""

ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
"""Tried in turn; the last one reads any bytes."""

NAMED = 5


def with_descriptions(catalog: Catalog, folder: Path) -> Catalog:
    """The catalog with the descriptions in ``folder``; where a column has one of its own, that comes first.

    Names are compared without case and outer blanks. What describes no table or column, or cannot be read,
    is told in the catalog's notes.
    """
    files = {path.stem.strip().casefold(): path for path in sorted(folder.glob("*.csv")) if path.is_file()}
    said: list[str] = []
    tables = []
    for table in catalog.tables:
        path = files.pop(table.name.strip().casefold(), None)
        tables.append(_described(table, path, said) if path else table)
    if files:
        said.append(f"{folder.name} has files of no table: {_listed(path.name for path in files.values())}.")
    return replace(catalog, tables=tuple(tables), notes=(*catalog.notes, *said))


def _described(table: Table, path: Path, said: list[str]) -> Table:
    try:
        texts = dict(_texts(path))
    except (OSError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error  # without the file's place
        said.append(f"{path.name} in {path.parent.name} cannot be read: {why}.")
        return table
    columns = tuple(_with(column, texts.pop(column.name.strip().casefold(), "")) for column in table.columns)
    if texts:
        unknown = f"describes no column of {table.name}: {_listed(texts)}"
        said.append(f"{path.name} in {path.parent.name} {unknown}.")
    return replace(table, columns=columns)


def _with(column: Column, text: str) -> Column:
    both = "; ".join(part for part in (column.description, text) if part)
    return replace(column, description=both) if text else column


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """What a file says of columns, by name in lower case."""
    rows = csv.reader(io.StringIO(_decoded(path.read_bytes()), newline=""))
    head = [name.strip().casefold() for name in next(rows, [])]
    for cells in rows:
        row = {name: one_line(cell) for name, cell in zip(head, cells, strict=False)}
        if name := row.get("original_column_name", ""):
            yield name.casefold(), _text(name, row)


def _decoded(content: bytes) -> str:
    for encoding in ENCODINGS[:-1]:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode(ENCODINGS[-1])


def _text(name: str, row: Mapping[str, str]) -> str:
    """``full name: what it is; values: what they mean``, without what repeats the column's name."""
    called, told = row.get("column_name", ""), row.get("column_description", "")
    parts = [] if called.casefold() in (name.casefold(), told.casefold()) else [called]
    parts += [] if told.casefold() == name.casefold() else [told]
    text = ": ".join(filter(None, parts))
    values = row.get("value_description", "")
    return "; ".join(filter(None, (text, f"values: {values}" if values else "")))


def _listed(names: Iterable[str]) -> str:
    given = list(names)
    more = f" and {len(given) - NAMED} more" if len(given) > NAMED else ""
    return ", ".join(given[:NAMED]) + more
