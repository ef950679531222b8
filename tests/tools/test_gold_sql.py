"""Gold SQL of the shared data: it passes guard and lint, and means the same as it is sent and written."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from sqlglot import exp

from quorum.evals.suites import load_suite
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.folder import load_folder
from quorum.tools.guard import Passed
from quorum.tools.guard.output import render
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.sql import parse_statements, without_hints
from quorum.tools.sql.writing import same, write
from tests.tools.test_guard import passed


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


@cache
def linter(schema: Path) -> Linter:
    return Linter(catalog_of(schema))


def faults(given: Gold) -> Iterator[str]:
    """What is wrong with a gold query, or with how it would be sent and shown."""
    verdict = verdict_on(given.sql, given.dialect)
    if not isinstance(verdict, Passed):
        yield f"refused: {verdict.reason}"
        return
    yield from (error.describe() for error in linter(given.schema).problems(verdict.tree))
    judged = [without_hints(tree) for tree in parse_statements(given.sql, given.dialect)]
    texts = {
        "sent": verdict.sql,
        "written": ";\n".join(write(tree, given.dialect) for tree in judged),
        "with capitals": ";\n".join(write(tree, given.dialect, upper=True) for tree in judged),
        "shown": ";\n".join(write(tree, given.dialect, pretty=True, comments=True) for tree in judged),
    }
    for what, text in texts.items():
        again = parse_statements(text, given.dialect)
        exact = len(again) == len(judged) and (what == "with capitals" or all(map(same, judged, again)))
        if again != judged or not exact:
            yield f"means another thing as it is {what}: {text}"


@pytest.mark.heavy
@pytest.mark.parametrize("name", COUNTS)
def test_gold_is_read_judged_and_written_as_it_is(shared: Path, name: str) -> None:
    every = gold(shared / "data", name)
    assert len(every) >= COUNTS[name]
    assert {f"{each.id}: {each.sql}": wrong for each in every if (wrong := list(faults(each)))} == {}


@cache
def connection(schema: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{schema.resolve().as_uri()}?mode=ro", uri=True)


def rows(schema: Path, sql: str) -> list[Any] | str:
    """The rows, or what the database says."""
    try:
        return connection(schema).execute(sql).fetchall()
    except sqlite3.Error as error:
        return str(error)


@pytest.mark.heavy
def test_gold_gives_the_same_rows(shared: Path) -> None:
    different: list[tuple[str, str]] = []
    for each in gold(shared / "data", "spider1", "defog"):
        for text in (passed(each.sql).sql, render(parse_statements(each.sql, "sqlite"), "sqlite")):
            if rows(each.schema, text) != rows(each.schema, each.sql):
                different.append((each.sql, text))
    assert different == []


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


@pytest.mark.heavy
def test_the_lint_agrees_with_sqlite_on_broken_queries(shared: Path) -> None:
    dice = random.Random(20)
    false_alarms, missed, found = [], [], 0
    for each in gold(shared / "data", "spider1", "defog", "spider2-local"):
        tree = broken(passed(each.sql).tree.copy(), catalog_of(each.schema), dice)
        verdict = passed(write(tree, "sqlite"))
        said = rows(each.schema, f"EXPLAIN {verdict.sql}")
        alarmed = linter(each.schema).lint(verdict.tree) is not None
        if alarmed and not isinstance(said, str):
            false_alarms.append(verdict.sql)
        if isinstance(said, str) and said.startswith(("no such column", "no such table", "ambiguous column")):
            found += alarmed
            missed += [] if alarmed else [(said, verdict.sql)]
    assert false_alarms == []
    assert found > 300
    assert len(missed) <= 0.02 * found, missed
