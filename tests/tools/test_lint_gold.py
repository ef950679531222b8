"""The lint agrees with SQLite on broken gold queries; its silence on whole ones is test_gold_sql's."""

from __future__ import annotations

import random
import sqlite3
from functools import cache
from pathlib import Path

import pytest
from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.sql.writing import write
from tests.tools.gold import catalog_of, defog, spider1, spider2_local

NAMES = ("no such column", "no such table", "ambiguous column")


def passed(sql: str, dialect: str) -> exp.Expr:
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    assert verdict.tree is not None
    return verdict.tree


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
def test_agrees_with_sqlite_on_broken_queries(shared: Path) -> None:
    dice = random.Random(20)
    linter = cache(lambda schema: Linter(catalog_of(schema)))
    connection = cache(lambda schema: sqlite3.connect(f"{schema.resolve().as_uri()}?mode=ro", uri=True))
    data = shared / "data"
    false_alarms, missed, found = [], [], 0
    for gold in [*spider1(data), *defog(data), *spider2_local(data)]:
        tree = broken(passed(gold.sql, "sqlite").copy(), catalog_of(gold.schema), dice)
        verdict = verdict_on(write(tree, "sqlite"), "sqlite")
        assert isinstance(verdict, Passed), verdict
        try:
            connection(gold.schema).execute(f"EXPLAIN {verdict.sql}")
            said = ""
        except sqlite3.Error as error:
            said = str(error)
        alarmed = linter(gold.schema).lint(verdict.tree) is not None
        if alarmed and not said:
            false_alarms.append(verdict.sql)
        if said.startswith(NAMES):
            found += alarmed
            missed += [] if alarmed else [(said, verdict.sql)]
    assert false_alarms == []
    assert found > 300
    assert len(missed) <= 0.02 * found, missed
