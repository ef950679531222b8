"""Gold SQL of the shared evaluation data, each query with the schema that it is for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from quorum.evals.scorers.defog import accepted_queries
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.folder import find_database_folders, load_folder


@dataclass(frozen=True)
class Gold:
    """A gold query.

    Attributes:
        schema: A SQLite database, or a folder that describes a database of a warehouse.
    """

    id: str
    dialect: str
    sql: str
    schema: Path


def lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text().splitlines())


def spider1(data: Path) -> Iterator[Gold]:
    for number, item in enumerate(json.loads((data / "spider1" / "dev.json").read_text())):
        name = item["db_id"]
        schema = data / "spider1" / "database" / name / f"{name}.sqlite"
        yield Gold(f"spider1-{number:04}", "sqlite", item["query"], schema)


def defog(data: Path) -> Iterator[Gold]:
    for number, item in enumerate(lines(data / "defog" / "questions.jsonl")):
        for sql in accepted_queries(item["query"]):
            yield Gold(
                f"defog-{number:04}", "sqlite", sql, data / "defog/databases" / f"{item['db_name']}.sqlite"
            )


def spider2_local(data: Path) -> Iterator[Gold]:
    root = data / "spider2-local"
    databases = {path.stem.casefold(): path for path in (root / "resource/databases").glob("*.sqlite")}
    for item in lines(root / "spider2-lite.jsonl"):
        gold = root / "evaluation_suite/gold/sql" / f"{item['instance_id']}.sql"
        if gold.exists():
            yield Gold(gold.stem, "sqlite", gold.read_text(), databases[item["db"].casefold()])


def ambrosia(data: Path) -> Iterator[Gold]:
    for item in lines(data / "ambrosia" / "questions.jsonl"):
        schema = data / "ambrosia" / "databases" / f"{item['database']}.sqlite"
        for sql in item["gold"]:
            yield Gold(item["id"], "sqlite", sql, schema)


def _warehouse(data: Path, name: str, dialect: str) -> Iterator[Gold]:
    root = data / name
    folders = {f.name.casefold(): f for f in find_database_folders(root / "resource" / "databases")}
    asked = lines(root / f"{name}.jsonl")
    databases = {item["instance_id"]: item.get("db_id") or item["db"] for item in asked}
    for path in sorted((root / "evaluation_suite" / "gold" / "sql").glob("*.sql")):
        yield Gold(path.stem, dialect, path.read_text(), folders[databases[path.stem].casefold()])


def spider2_snow(data: Path) -> Iterator[Gold]:
    return _warehouse(data, "spider2-snow", "snowflake")


def spider2_lite(data: Path) -> Iterator[Gold]:
    return _warehouse(data, "spider2-lite", "bigquery")


SETS: dict[str, tuple[Callable[[Path], Iterator[Gold]], int]] = {
    "spider2-snow": (spider2_snow, 67),
    "spider2-lite": (spider2_lite, 50),
    "spider1": (spider1, 642),
    "defog": (defog, 188),
    "spider2-local": (spider2_local, 3),
    "ambrosia": (ambrosia, 411),
}
"""Each set's gold, and how many queries the shared data has of it: 1,361 in all."""


@cache
def catalog_of(schema: Path) -> Catalog:
    if schema.is_dir():
        return load_folder(schema)
    with closing(sqlite3.connect(f"{schema.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        tables = [Table(name, _columns(connection, name)) for (name,) in names.fetchall()]
    return Catalog(schema.stem, "sqlite", tuple(tables))


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return tuple(Column(name, kind) for name, kind in rows)
