"""No false alarm: the lint is silent on every gold query, and agrees with SQLite on broken ones."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.folder import find_database_folders, load_folder
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter

NAMES = ("no such column", "no such table", "ambiguous column")


class SqliteLinters:
    """A linter and a connection for each SQLite database, made when first asked for."""

    def __init__(self) -> None:
        self.made: dict[Path, tuple[sqlite3.Connection, Linter]] = {}

    def __getitem__(self, path: Path) -> tuple[sqlite3.Connection, Linter]:
        if path not in self.made:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            tables = [
                Table(name, tuple(Column(row[1], row[2]) for row in self.columns(connection, name)))
                for (name,) in names.fetchall()
            ]
            self.made[path] = connection, Linter(Catalog(path.stem, "sqlite", tuple(tables)))
        return self.made[path]

    @staticmethod
    def columns(connection: sqlite3.Connection, name: str) -> list[tuple[object, ...]]:
        return connection.execute("SELECT * FROM pragma_table_info(?)", (name,)).fetchall()

    def close(self) -> None:
        for connection, _ in self.made.values():
            connection.close()


@pytest.fixture(scope="module")
def linters() -> Iterator[SqliteLinters]:
    made = SqliteLinters()
    yield made
    made.close()


def sqlite_questions(data: Path) -> Iterator[tuple[Path, str]]:
    for item in json.loads((data / "spider1" / "dev.json").read_text()):
        name = item["db_id"]
        yield data / "spider1" / "database" / name / f"{name}.sqlite", item["query"]
    for line in (data / "defog" / "questions.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for sql in filter(str.strip, entry["query"].split(";")):
            yield data / "defog" / "databases" / f"{entry['db_name']}.sqlite", sql
    databases = {p.stem.casefold(): p for p in (data / "spider2-local/resource/databases").glob("*.sqlite")}
    for line in (data / "spider2-local" / "spider2-lite.jsonl").read_text().splitlines():
        entry = json.loads(line)
        gold = data / "spider2-local/evaluation_suite/gold/sql" / f"{entry['instance_id']}.sql"
        if gold.exists():
            yield databases[entry["db"].casefold()], gold.read_text()


def passed(sql: str, dialect: str) -> exp.Expr:
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    assert verdict.tree is not None
    return verdict.tree


def test_silent_on_sqlite_gold(shared: Path, linters: SqliteLinters) -> None:
    alarms = [
        (sql, found)
        for path, sql in sqlite_questions(shared / "data")
        if (found := list(linters[path][1].problems(passed(sql, "sqlite"))))
    ]
    assert alarms == []


@pytest.mark.parametrize(("name", "dialect"), [("spider2-snow", "snowflake"), ("spider2-lite", "bigquery")])
def test_silent_on_warehouse_gold(shared: Path, name: str, dialect: str) -> None:
    root = shared / "data" / name
    folders = {f.name.casefold(): f for f in find_database_folders(root / "resource" / "databases")}
    entries = [json.loads(line) for line in (root / f"{name}.jsonl").read_text().splitlines()]
    databases = {entry["instance_id"]: entry.get("db_id") or entry["db"] for entry in entries}
    linter_of: dict[Path, Linter] = {}
    alarms, checked = [], 0
    for path in sorted((root / "evaluation_suite" / "gold" / "sql").glob("*.sql")):
        folder = folders[databases[path.stem].casefold()]
        linter = linter_of.setdefault(folder, linter_of.get(folder) or Linter(load_folder(folder)))
        checked += 1
        if found := list(linter.problems(passed(path.read_text(), dialect))):
            alarms.append((path.stem, [error.describe() for error in found]))
    assert checked >= 50
    assert alarms == []


def broken(tree: exp.Expr, catalog: Catalog, dice: random.Random) -> exp.Expr:
    """The query with one or two of its names changed, dropped or swapped."""
    names = [column.name for _, column in catalog.columns()]
    tables = [table.name for table in catalog.tables if not table.name.startswith("sqlite_")]
    for _ in range(dice.choice([1, 2])):
        columns, sources = list(tree.find_all(exp.Column)), list(tree.find_all(exp.Table))
        way = dice.random()
        if columns and way < 0.7:
            column = dice.choice(columns)
            if way < 0.3:
                column.set("this", exp.to_identifier(dice.choice([*names, f"{column.name}x"])))
            elif way < 0.5:
                column.set("table", None)
            else:
                column.set("table", exp.to_identifier(dice.choice(["T1", "T2", "T9", *tables])))
        elif sources and way < 0.85:
            dice.choice(sources).set("this", exp.to_identifier(dice.choice([*tables, "nowhere"])))
        elif sources:
            source = dice.choice(sources)
            if isinstance(source.parent, exp.From | exp.Join):
                inner = source.copy()
                inner.set("alias", None)
                source.replace(exp.select("*").from_(inner).subquery(source.alias_or_name))
    return tree


def test_agrees_with_sqlite_on_broken_queries(shared: Path, linters: SqliteLinters) -> None:
    dice = random.Random(20)
    false_alarms, missed, found = [], [], 0
    for path, sql in sqlite_questions(shared / "data"):
        connection, linter = linters[path]
        tree = broken(passed(sql, "sqlite").copy(), linter.catalog, dice)
        verdict = verdict_on(tree.sql("sqlite"), "sqlite")
        assert isinstance(verdict, Passed), verdict
        try:
            connection.execute(f"EXPLAIN {verdict.sql}")
            said = ""
        except sqlite3.Error as error:
            said = str(error)
        alarmed = linter.lint(verdict.tree) is not None
        if alarmed and not said:
            false_alarms.append(verdict.sql)
        if said.startswith(NAMES):
            found += alarmed
            missed += [] if alarmed else [(said, verdict.sql)]
    assert false_alarms == []
    assert found > 300
    assert len(missed) <= 0.02 * found, missed
