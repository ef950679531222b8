"""Folders that describe databases, in the layout of Spider 2.0's resources."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Columns = Mapping[str, str]
"""Types by name."""
HEADER = ("table_name", "description", "DDL")

SHOP: dict[str, Columns] = {
    "CUSTOMERS": {"ID": "NUMBER", "CITY": "TEXT"},
    "ORDERS": {"ID": "NUMBER", "CUSTOMER_ID": "NUMBER", "TOTAL": "FLOAT"},
}


def write_ddl(folder: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER) -> None:
    """Write ``DDL.csv``: name, description and DDL of each table."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "DDL.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def write_table(folder: Path, name: str, columns: Columns, **more: Any) -> None:
    """Write a table's JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {"table_name": name, "column_names": [*columns], "column_types": [*columns.values()]}
    (folder / f"{name.split('.')[-1].strip()}.json").write_text(json.dumps(table | more), "utf-8")


def write_schema(
    folder: Path, tables: Mapping[str, Columns] = SHOP, rows: Mapping[str, Sequence[Any]] | None = None
) -> Path:
    """Describe tables in ``folder``, with sample rows; returns it."""
    made = {
        name: ",\n".join(f"\t{each} {kind}" for each, kind in own.items()) for name, own in tables.items()
    }
    write_ddl(
        folder, [(n, "", f"create or replace TABLE {n} (\n{columns}\n);") for n, columns in made.items()]
    )
    for name, columns in tables.items():
        write_table(folder, name, columns, sample_rows=(rows or {}).get(name, ()))
    return folder
