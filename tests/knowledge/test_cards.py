"""The dialect cards: short, and every example on them is right."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from quorum.agents.prompting import PromptContext, prompts
from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.syntax import CARDS, card, dialects
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.guard import Passed, check
from quorum.tools.lint import Linter
from quorum.tools.sql import DIALECTS

ROWS = """
    INSERT INTO t VALUES
    ('2024-01-15', '2024-02-15', '2024-01-15 10:00:00', 'ab-12', 'x', 1, 2, 1.5, 20240115, '{doc}', {array}),
    ('2024-03-01', '2024-03-31', '2024-03-01 10:00:00', 'cd-34', 'y', 3, 4, 2.5, 20240301, '{doc}', {array})
"""
DOC = '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A"}, {"sku": "B"}]}'
COLUMNS = ["d", "d2", "ts", "s", "g", "a", "b", "v", "n", "doc", "arr"]
TYPES = {
    "d": "DATE",
    "d2": "DATE",
    "ts": "TIMESTAMP",
    "a": "INTEGER",
    "b": "INTEGER",
    "v": "DOUBLE",
    "n": "INTEGER",
}


def sqlite() -> Callable[[str], list[Any]]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(COLUMNS)})")
    connection.execute(ROWS.format(doc=DOC, array="NULL"))
    return lambda sql: connection.execute(sql).fetchall()


def duck() -> Callable[[str], list[Any]]:
    connection = duckdb.connect()
    columns = [f"{c} {'VARCHAR[]' if c == 'arr' else TYPES.get(c, 'VARCHAR')}" for c in COLUMNS]
    connection.execute(f"CREATE TABLE t ({', '.join(columns)})")
    connection.execute(ROWS.format(doc=DOC, array="['x', 'y']"))
    return lambda sql: connection.execute(sql).fetchall()


ENGINES = {"sqlite": sqlite, "duckdb": duck}
MORE = {"snowflake": ["created_at"], "postgres": ["createdAt"], "bigquery": ["items", "params", "place"]}


def catalog(dialect: str) -> Catalog:
    """The table that the examples ask, and what BigQuery's wildcard stands for."""
    names = [c.upper() if dialect == "snowflake" else c for c in COLUMNS] + MORE.get(dialect, [])
    nested = {
        "items": (Field("[].sku", "STRING"),),
        "params": (Field("[].key", "STRING"), Field("[].value.int_value", "INT64")),
        "place": (Field("city", "STRING"),),
    }
    columns = tuple(Column(name, "TEXT", fields=nested.get(name, ())) for name in names)
    where = ("dataset", "project") if dialect == "bigquery" else ("", "")
    table = Table("T" if dialect == "snowflake" else "t", columns, *where)
    events = Table("events_20240101", columns, *where)
    return Catalog("c", dialect, (table, events))


def examples(dialect: str) -> list[str]:
    """What stands in backticks, as queries."""
    found = [text.strip() for _, text in re.findall(r"(?<!`)(`+)(.+?)\1(?!`)", card(dialect))]
    sql = (text for text in found if text != "/")
    return [text if re.match(r"SELECT|WITH", text) else f"SELECT {text} FROM t" for text in sql]


EVERY = [pytest.param(d, sql, id=f"{d}-{n}") for d in dialects() for n, sql in enumerate(examples(d))]


def test_every_dialect_that_the_guard_knows_has_a_card() -> None:
    assert set(dialects()) == set(CARDS) == set(DIALECTS)
    assert card("postgresql") == card("postgres")
    assert card("cobol") == card("../cards/sqlite") == ""


@pytest.mark.parametrize("dialect", dialects())
def test_a_card_is_short(dialect: str) -> None:
    lines = card(dialect).splitlines()
    assert 10 <= len(lines) <= 40
    assert all(line.startswith("- ") for line in lines)
    assert all("`" in line for line in lines), "a rule, and an example"
    assert estimate_tokens(card(dialect)) <= 900


@pytest.mark.parametrize(("dialect", "sql"), EVERY)
def test_every_example_is_right(dialect: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    assert list(Linter(catalog(dialect)).problems(verdict.tree)) == []
    if dialect in ENGINES:
        assert ENGINES[dialect]()(sql) is not None


@pytest.mark.parametrize("dialect", ENGINES)
def test_what_a_card_says_of_values_is_true(dialect: str) -> None:
    claims = re.findall(r"`([^`]+)` is ([0-9.]*[0-9])", card(dialect))
    assert claims
    for expression, value in claims:
        assert str(ENGINES[dialect]()(f"SELECT {expression}")[0][0]) == value


@pytest.mark.parametrize("dialect", dialects())
def test_the_card_stands_in_the_message_that_all_roles_share(dialect: str) -> None:
    context = PromptContext(dialect=dialect, schema="table t")
    system = prompts().system(dialect, context, True)
    assert card(dialect) in system
    assert system.index(card(dialect)) < system.index("<schema database"), "what databases share comes first"
    assert card(dialect) not in prompts().system(dialect, None, True)
