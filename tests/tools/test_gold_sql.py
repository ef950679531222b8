"""Gold SQL of the shared data: it passes guard and lint, and means the same as it is sent and written."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.guard import Passed
from quorum.tools.guard.output import render
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.sql import parse_statements, without_hints
from quorum.tools.sql.writing import same, write
from tests.tools.gold import COUNTS, Gold, catalog_of, gold
from tests.tools.test_guard import passed


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
@pytest.mark.parametrize("way", ["rebuilt", "rendered"])
def test_gold_gives_the_same_rows(shared: Path, way: str) -> None:
    different: list[tuple[str, str]] = []
    for each in gold(shared / "data", "spider1", "defog"):
        text = (
            passed(each.sql).sql
            if way == "rebuilt"
            else render(parse_statements(each.sql, "sqlite"), "sqlite")
        )
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
