"""A catalog from a Spider 2.0 resource folder: ``DDL.csv`` and one JSON file per table.

Layouts read: ``DATABASE/SCHEMA/{DDL.csv,*.json}`` (Snowflake), ``DATABASE/PROJECT.DATASET/...``
(BigQuery) and ``DATABASE/{DDL.csv,*.json}`` (engines without schemas).
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.ddl import parse_columns
from quorum.knowledge.errors import ConfigurationError, read_errors
from quorum.knowledge.folder_columns import DdlTable, build_columns

ENGINES = ("bigquery", "snowflake", "sqlite", "duckdb", "postgres", "mysql")
_AGAIN = "Fetch this file of the data set again."
_LARGEST_CELL = 1 << 30  # the csv module refuses cells over 128 kB; a DDL can be longer


def find_database_folders(path: str | Path) -> tuple[Path, ...]:
    """The database folders at or below ``path``, sorted by path.

    Args:
        path: A benchmark's folder, its ``resource/databases``, an engine's folder in that, or
            one database.

    Raises:
        ConfigurationError: There is no such folder, or no database in it.
    """
    root = Path(path)
    if not root.is_dir():
        raise ConfigurationError(f"There is no folder {root}.", hint="Name a folder with schema files.")
    inner = (root / "resource" / "databases", root / "databases")
    root = next((folder for folder in inner if folder.is_dir()), root)
    found = tuple(_databases(root))
    if not found:
        raise ConfigurationError(
            f"{root} holds no database description.",
            hint="Expected DATABASE/SCHEMA/DDL.csv with one JSON file per table beside it.",
        )
    return found


def _databases(folder: Path) -> list[Path]:
    if _is_database(folder):
        return [folder]
    found: list[Path] = []
    for child in _folders(folder):
        found += _databases(child) if child.name in ENGINES else [child] if _is_database(child) else []
    return found


def _folders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def is_described(folder: Path) -> bool:
    """True if a folder holds files that describe tables, and no data."""
    if (folder / "DDL.csv").is_file():
        return True
    first = next(folder.glob("*.json"), None)
    return first is not None and b'"table_name"' in first.read_bytes()[:4096]


def _is_database(folder: Path) -> bool:
    """A folder named like an engine holds databases; it is none, whatever lies in it."""
    if folder.name in ENGINES:
        return False
    inner = _folders(folder)
    if any(child.name in ENGINES for child in inner):
        return False
    return is_described(folder) or any(map(is_described, inner))


def load_folder(path: str | Path) -> Catalog:
    """The catalog of one database folder, tables sorted by schema and name.

    Names keep their true case. ``Catalog.notes`` says what was missing, repaired or dropped.

    Raises:
        ConfigurationError: No such folder, more than one database in it, or a file that is
            not what its name says.
    """
    folders = find_database_folders(path)
    if len(folders) != 1:
        raise ConfigurationError(
            f"{path} holds {len(folders)} databases.",
            hint=f"Name one of them, for example {folders[0]}.",
        )
    folder = folders[0]
    schemas = [folder] if is_described(folder) else [f for f in _folders(folder) if is_described(f)]
    notes: Counter[str] = Counter()
    tables: list[Table] = []
    dialect = ""
    for schema in schemas:
        described = {d["table_name"]: d for d in map(_read_json, sorted(schema.glob("*.json")))}
        dialect = dialect or _dialect(folder, schema, described)
        tables += _schema_tables(folder, schema, dialect, described, notes)
    counted = tuple(text.replace("#", f"{count:,}", 1) for text, count in notes.items())
    return Catalog(folder.name, dialect, tuple(tables), counted)


def _dialect(folder: Path, schema: Path, described: dict[str, dict[str, Any]]) -> str:
    if folder.parent.name in ENGINES:
        return folder.parent.name
    nested = any("nested_column_names" in table for table in described.values())
    return "bigquery" if nested or "." in schema.name else "snowflake"


def _read_json(path: Path) -> dict[str, Any]:
    with read_errors(path, hint=_AGAIN):
        table = json.loads(path.read_text("utf-8"))
        names, types = table["column_names"], table["column_types"]
        if len(names) != len(types) or not isinstance(table["table_name"], str):
            raise ValueError("column_names and column_types differ in length")
    return dict(table)


def _read_ddl(schema: Path, prefix: str) -> dict[str, DdlTable]:
    path = schema / "DDL.csv"
    if not path.is_file():
        return {}
    rows: dict[str, DdlTable] = {}
    csv.field_size_limit(_LARGEST_CELL)
    with read_errors(path, hint=_AGAIN), path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            ddl = row.get("DDL") or row.get("ddl") or ""
            name = row["table_name"]
            if name.casefold().startswith(prefix.casefold() + "."):
                name = name[len(prefix) + 1 :]
            native = not ddl.lstrip().startswith("create or replace")
            description = " ".join((row.get("description") or "").split())
            rows[name] = DdlTable(description, native, parse_columns(ddl))
    return rows


def _schema_tables(
    folder: Path, schema: Path, dialect: str, described: dict[str, dict[str, Any]], notes: Counter[str]
) -> list[Table]:
    database, schema_name = _qualifier(folder, schema, dialect)
    prefix = ".".join(part for part in (database, schema_name) if part)
    ddl = _read_ddl(schema, prefix)
    if not ddl:
        notes[f"{schema.name}: DDL.csv is missing; columns come from the JSON files alone"] += 1
    by_name = {name.removeprefix(f"{schema_name}."): table for name, table in described.items()}
    tables = []
    for name in sorted({*ddl, *by_name}):
        row = ddl.get(name, DdlTable())
        columns = build_columns(dialect, row, by_name.get(name, {}), notes)
        if ddl and name not in ddl:
            notes[f"{schema.name}: # tables are missing in DDL.csv"] += 1
        if name not in by_name and columns:
            notes[f"{schema.name}: # tables have no JSON file: no samples"] += 1
        if not columns:
            notes[f"{schema.name}: # tables are named without columns"] += 1
        tables.append(Table(name, columns, schema_name, database, description=row.description))
    return tables


def _qualifier(folder: Path, schema: Path, dialect: str) -> tuple[str, str]:
    if schema == folder:
        return "", ""
    if dialect == "bigquery" and "." in schema.name:
        project, _, dataset = schema.name.partition(".")
        return project, dataset
    return folder.name, schema.name
