"""Copies of a SQLite database with traps: ties, and times of day.

What is changed follows from a row's place and its values, so that a copy is the same each time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}( 00:00:00)?")
_KEY = re.compile(r"(?i)(id|code|key|no|number|symbol|abbreviation|_ts)$")


@dataclass(frozen=True)
class Column:
    """A column as SQLite has it."""

    table: str
    name: str
    type: str
    required: bool
    key: bool
    first: bool

    @property
    def plain(self) -> bool:
        """Whether it holds what a thing is like, not which thing it is."""
        return not (self.key or self.first or _KEY.search(self.name))


Change = Callable[[sqlite3.Connection, Column, list[tuple[int, Any]]], dict[int, Any]]
"""Rows by number with the values that they get, from all rows of a column."""


def columns(connection: sqlite3.Connection) -> Iterator[Column]:
    """All columns of all tables."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    ).fetchall()
    for (table,) in tables:
        for place, (_, name, kind, required, _, key) in enumerate(
            connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        ):
            yield Column(table, name, kind, bool(required), bool(key), place == 0)


def _numbers(rows: list[tuple[int, Any]]) -> bool:
    values = [value for _, value in rows if value is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def ties(_: sqlite3.Connection, column: Column, rows: list[tuple[int, Any]]) -> dict[int, Any]:
    """Of each four neighbours in a column's order all have the value of the first."""
    if not column.plain or not (_numbers(rows) or all(_DAY.match(str(value)) for _, value in rows)):
        return {}
    ordered = sorted((row for row in rows if row[1] is not None), key=lambda row: (str(type(row[1])), row[1]))
    edge = len(ordered) % 4 if len(ordered) > 4 else 0  # the greatest four are whole, too
    return {
        row: ordered[max(edge, (place - edge) // 4 * 4 + edge) if place >= edge else 0][1]
        for place, (row, _) in enumerate(ordered)
    }


def times(_: sqlite3.Connection, column: Column, rows: list[tuple[int, Any]]) -> dict[int, Any]:
    """Days get a time of day."""
    values = [str(value) for _, value in rows if value is not None]
    if not values or not all(_DAY.fullmatch(value) for value in values):
        return {}
    return {
        row: f"{str(value)[:10]} {8 + place % 12:02}:{7 * place % 60:02}:00"
        for place, (row, value) in enumerate(rows)
        if value is not None
    }


def copy_with(change: Change, source: Path, target: Path) -> Path:
    """A copy of a database with one change, without constraints but for primary and foreign keys."""
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        new.execute("PRAGMA synchronous = OFF")
        by_table: dict[str, list[Column]] = {}
        for column in columns(old):
            by_table.setdefault(column.table, []).append(replace(column, required=False))
        for table, its in by_table.items():
            rows = [list(row) for row in old.execute(f'SELECT * FROM "{table}"').fetchall()]
            parts = []
            for place, column in enumerate(its):
                changed = change(old, column, [(number, row[place]) for number, row in enumerate(rows)])
                for number, value in changed.items():
                    rows[number][place] = value
                parts.append(f'"{column.name}" {column.type}')
            keys = ", ".join(f'"{column.name}"' for column in its if column.key)
            parts += [f"PRIMARY KEY ({keys})"] if keys else []
            for _, _, other, mine, theirs, *_ in old.execute(
                f'PRAGMA foreign_key_list("{table}")'
            ).fetchall():
                parts.append(f'FOREIGN KEY ("{mine}") REFERENCES "{other}" ("{theirs or mine}")')
            new.execute(f'CREATE TABLE "{table}" ({", ".join(parts)})')
            new.executemany(f'INSERT OR IGNORE INTO "{table}" VALUES ({", ".join("?" * len(its))})', rows)
        new.commit()
    return target


def as_duckdb(source: Path, target: Path) -> Path:
    """A SQLite database as one of DuckDB: days and moments are such where all values are."""
    import duckdb

    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
        duckdb.connect(str(target)) as new,
    ):
        old.text_factory = lambda raw: raw.decode(errors="replace")
        by_table: dict[str, list[Column]] = {}
        for column in columns(old):
            by_table.setdefault(column.table, []).append(column)
        for table, its in by_table.items():
            rows = old.execute(f'SELECT * FROM "{table}"').fetchall()
            kinds = [_duckdb_type(column, [row[place] for row in rows]) for place, column in enumerate(its)]
            keys = [column.name for column in its if column.key]
            parts = [f'"{column.name}" {kind}' for column, kind in zip(its, kinds, strict=True)]
            named = ", ".join(f'"{key}"' for key in keys)
            parts += [f"PRIMARY KEY ({named})"] if keys else []
            new.execute(f'CREATE TABLE "{table}" ({", ".join(parts)})')
            cells = [
                [None if row[place] is None else str(row[place]) for row in rows] for place in range(len(its))
            ]
            held = pa.table({f"c{place}": pa.array(texts, pa.string()) for place, texts in enumerate(cells)})
            new.register("held", held)
            casts = ", ".join(f"TRY_CAST(c{place} AS {kind})" for place, kind in enumerate(kinds))
            new.execute(f'INSERT INTO "{table}" SELECT {casts} FROM held')
            new.unregister("held")
    return target


def _duckdb_type(column: Column, values: list[Any]) -> str:
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, int) for value in given):
        return "BIGINT"
    if given and all(isinstance(value, int | float) for value in given):
        return "DOUBLE"
    texts = [str(value) for value in given]
    if texts and all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) for text in texts):
        return "DATE"
    if texts and all(re.fullmatch(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}", text) for text in texts):
        return "TIMESTAMP"
    return "VARCHAR"
