"""The data files of a folder that is read as a database, and the tables that they make.

A file is a table; of a workbook each sheet is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quorum.knowledge.errors import DatabaseUnavailable

READERS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
PACKED = (".gz", ".zst")
"""Compression that DuckDB reads in CSV and JSON; Parquet has its own inside."""
KINDS = ", ".join(READERS)
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
DOCUMENTS = (".md", ".markdown", ".txt", ".rst", ".pdf", ".yml", ".yaml")
"""Never taken for data, and so not said to be left out."""
BESIDE = "database_description"
"""A folder of descriptions (``quorum.knowledge.definitions``)."""
MAX_TABLES = 500
NAMED = 10


@dataclass(frozen=True)
class FileTable:
    """A table to be.

    Attributes:
        table: Its name: the file's, as far as that fits into SQL without quotation marks. Until ``named``
            what it is named after instead, if anything.
        reader: ``csv``, ``parquet``, ``json`` or ``xlsx``.
        file: Absolute path.
        size: In bytes.
        shown: The file as the user knows it.
    """

    table: str
    reader: str
    file: str
    size: int
    shown: str


def reader_of(name: str) -> str:
    """Return the reader for a file of that name; empty if it is no data file."""
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    if suffix in PACKED:
        inner = READERS.get(Path(stem).suffix.lower(), "")
        return inner if inner in ("csv", "json") else ""
    return READERS.get(suffix, "")


def sources_of(path: Path) -> tuple[list[FileTable], list[str]]:
    """Return the sources in a data file or folder (see ``named``), and sentences on what is left out.

    Raises:
        DatabaseUnavailable: There is no data file, or the folder holds something else than plain files.
    """
    if not path.is_dir():
        if not path.is_file():
            raise DatabaseUnavailable(f"There is no file {path}.", hint="Is the path right?")
        if not reader_of(path.name):
            raise DatabaseUnavailable(f"{path} is no data file.", hint=f"Known are {KINDS}.")
        return [_source(path)], []
    if reader_of(path.name):  # as Spark writes a table
        hint = "Write it as one file, e.g. with DuckDB: COPY (FROM '.../*.parquet') TO 'orders.parquet'."
        raise DatabaseUnavailable(f"{path} is a folder of parts, which is not read as one table.", hint=hint)
    for mark, kind in (("_delta_log", "a Delta table"), ("DDL.csv", "a folder of schema files")):
        if (path / mark).exists():
            hint = "Write schema:/// before its path." if mark == "DDL.csv" else "Export it as Parquet."
            raise DatabaseUnavailable(f"{path} is {kind}, not a folder of data files.", hint=hint)
    left_out: list[str] = []
    found = _inside(path, left_out)
    if not found:
        why = f" {' '.join(left_out)}" if left_out else ""
        databases = sorted(file for file in path.iterdir() if file.suffix.lower() in DATABASES)
        hint = f"Name a database file itself, e.g. {databases[0]}." if databases else f"Known are {KINDS}."
        raise DatabaseUnavailable(f"{path} holds no data file.{why}", hint=hint)
    if len(found) > MAX_TABLES:
        left_out.append(f"{found[MAX_TABLES].shown} and what follows are left out: {MAX_TABLES} are enough.")
    return found[:MAX_TABLES], left_out


def _inside(folder: Path, left_out: list[str]) -> list[FileTable]:
    """Return a source for each data file of a folder."""
    found: list[FileTable] = []
    others: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_", "~$")) or path.name == BESIDE:  # ~$: Excel's lock
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            left_out.append(f"{path.name} is left out: it is a link out of the folder.")
        elif path.is_dir():
            left_out.append(f"The folder {path.name} is left out: a data folder's own files are read.")
        elif reader_of(path.name) and path.is_file():
            found.append(_source(path))
        elif path.suffix.lower() not in DOCUMENTS:
            others.append(path.name)
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        left_out.append(f"Left out, for they are no data files: {', '.join(others[:NAMED])}{more}.")
    return found


def _source(file: Path) -> FileTable:
    """Return a source without its name yet."""
    return FileTable("", reader_of(file.name), str(file), file.stat().st_size, file.name)


def named(sources: Sequence[FileTable]) -> list[FileTable]:
    """Return the sources with names that differ even without case: ``orders_csv`` if ``orders`` is taken."""
    stems = [_identifier(source) for source in sources]
    often = Counter(stem.casefold() for stem in stems)
    found: dict[str, FileTable] = {}
    for stem, source in zip(stems, sources, strict=True):
        name = stem if often[stem.casefold()] == 1 else f"{stem}_{source.reader}"
        number, first = 2, name
        while name.casefold() in found or (name != stem and name.casefold() in often):
            name, number = f"{first}_{number}", number + 1
        found[name.casefold()] = replace(source, table=name)
    return list(found.values())


def _identifier(source: FileTable) -> str:
    stem = source.table or Path(source.shown).name
    while Path(stem).suffix.lower() in (*READERS, *PACKED):
        stem = Path(stem).stem
    name = re.sub(r"\W+", "_", stem).strip("_") or source.reader
    return f"t_{name}" if name[0].isdigit() else name
