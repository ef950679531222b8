"""Gold SQL of the shared evaluation data, each query with the schema that it is for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from quorum.evals.suites import load_suite
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.folder import load_folder


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


COUNTS = {"spider2-snow": 67, "spider2-lite": 50, "spider1": 642, "defog": 188, "spider2-local": 3} | {
    "ambrosia": 411
}
"""How many queries the shared data has of each suite: 1,361 in all."""


def gold(data: Path, *suites: str) -> list[Gold]:
    """The gold queries of suites."""
    questions = [question for name in suites for question in load_suite(name, data / name).questions]
    folders = {q.url: Path("/", unquote(q.url.partition(":///")[2])) for q in questions}
    return [Gold(q.id, q.dialect, sql, folders[q.url]) for q in questions for sql in q.gold_sql]


@cache
def catalog_of(schema: Path) -> Catalog:
    if schema.is_dir():
        return load_folder(schema)
    with closing(sqlite3.connect(f"{schema.as_uri()}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        tables = [Table(name, _columns(connection, name)) for (name,) in names.fetchall()]
    return Catalog(schema.stem, "sqlite", tuple(tables))


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return tuple(Column(name, kind) for name, kind in rows)
