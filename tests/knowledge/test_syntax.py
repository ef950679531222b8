"""Dialect references and cards: every example is right for its dialect, requests find their sections."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from quorum.knowledge.syntax import CARDS, Section, card, dialects, lookup, sections
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.guard import Passed, check
from quorum.tools.lint import Linter
from quorum.tools.sql import DIALECTS
from tests.knowledge.card_examples import catalog, examples

EVERY = [pytest.param(s, id=f"{d}-{s.topic}") for d in dialects() for s in sections(d)]
RUN: dict[str, Callable[[str], Any]] = {
    "sqlite": lambda sql: sqlite3.connect(":memory:").execute(sql).fetchall(),
    "duckdb": lambda sql: duckdb.connect().execute(sql).fetchall(),
}
NEEDED = [
    "date", "json", "array", "window", "string", "regex", "cast", "quote", "median", "union", "recursive",
    "limit", "null", "shard", "pivot", "trap",
]  # fmt: skip


@pytest.mark.parametrize("section", EVERY)
def test_every_example_is_right(section: Section) -> None:
    (sql,) = re.findall(r"```sql\n(.*?)```", section.text, re.DOTALL)
    tree = sqlglot.parse_one(sql, read=section.dialect)
    assert isinstance(tree, exp.Query)
    assert isinstance(check(sql, section.dialect), Passed)
    if section.dialect in RUN:
        assert RUN[section.dialect](sql)


@pytest.mark.parametrize("section", EVERY)
def test_sections_are_short_and_findable(section: Section) -> None:
    assert len(section.text.splitlines()) <= 16
    assert len(section.text) <= 1400
    assert len(section.keywords) >= 6
    assert "<!--" not in section.text
    assert lookup(section.dialect, [section.topic]) == [section]
    assert lookup(section.dialect, [section.topic.upper()]) == [section]


@pytest.mark.parametrize("dialect", dialects())
@pytest.mark.parametrize("need", NEEDED)
def test_every_dialect_covers_every_need(dialect: str, need: str) -> None:
    found = lookup(dialect, [need])
    assert any(need in " ".join([section.topic, *section.keywords]).lower() for section in found)


@pytest.mark.parametrize(
    ("dialect", "features", "topics"),
    [
        ("snowflake", ["flatten a variant array"], ["Arrays and FLATTEN"]),
        ("bigquery", ["_TABLE_SUFFIX"], ["Sharded and wildcard tables"]),
        ("sqlite", ["days between two dates"], ["Dates and time"]),
        ("duckdb", ["string_agg"], ["Aggregation"]),
        ("postgresql", ["percentile"], ["Aggregation"]),
        ("mariadb", ["regexp_substr"], ["Regular expressions"]),
        ("sqlite", ["Pivoting", "median", "JSON", "Strings"], ["Pivoting", "Aggregation", "JSON"]),
        ("sqlite", [], []),
        ("sqlite", ["", "zzzz", "the of and"], []),
        ("../sqlite", ["JSON"], []),
    ],
)
def test_words_find_their_section_and_every_request_its_best_one_first(
    dialect: str, features: list[str], topics: list[str]
) -> None:
    found = lookup(dialect, features, k=3)
    assert [section.topic for section in found][: len(topics) or None] == topics
    assert len(found) <= 3
    assert lookup(dialect, features * 2, k=3) == found


# What the references claim, asked of the engines.
CLAIMS = [
    ("sqlite", "7 / 2, 1 / 0, CAST('12abc' AS INTEGER), 'a' LIKE 'A', round(2.5)", (3, None, 12, 1, 3.0)),
    ("sqlite", '"nme" FROM (SELECT 1 AS name)', ("nme",)),
    ("sqlite", "SUM(1), COUNT(1) FROM (SELECT 1) WHERE 0", (None, 0)),
    ("sqlite", "1 WHERE 1 NOT IN (2, NULL) UNION ALL SELECT 9", (9,)),
    ("sqlite", "v FROM (SELECT 1 AS v UNION SELECT NULL) ORDER BY v", (None,)),
    ("duckdb", "7 / 2, 7 // 2, CAST(2.7 AS INTEGER), TRY_CAST('x' AS INTEGER)", (3.5, 3, 3, None)),
    ("duckdb", "1 / 0, concat('a', NULL), 'a' || NULL, strpos('b', 'z')", (float("inf"), "a", None, 0)),
    ("duckdb", "typeof(date_trunc('month', DATE '2024-02-29'))", ("TIMESTAMP",)),
    ("duckdb", "DATE '2024-01-01' - DATE '2023-12-31', isodow(DATE '2024-01-01')", (1, 1)),
    ("duckdb", "date_diff('month', DATE '2024-01-31', DATE '2024-02-01')", (1,)),
    ("duckdb", "regexp_matches('xabc', 'abc'), regexp_full_match('xabc', 'abc')", (True, False)),
    ("duckdb", "regexp_extract('a', '([0-9])', 1)", ("",)),
    ("duckdb", "v FROM (VALUES (NULL), (2), (3)) AS t(v) ORDER BY v DESC", (3,)),
    ("duckdb", "'nan'::DOUBLE = 'nan'::DOUBLE, 'nan'::DOUBLE > 1e300, '10' < '9'", (True, True, True)),
]


@pytest.mark.parametrize(("dialect", "sql", "first"), CLAIMS)
def test_claims_hold(dialect: str, sql: str, first: tuple[Any, ...]) -> None:
    assert RUN[dialect](f"SELECT {sql}")[0] == first


OF_CARDS = [pytest.param(d, sql, id=f"{d}-{n}") for d in dialects() for n, sql in enumerate(examples(d))]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_a_short_card(dialect: str) -> None:
    assert set(dialects()) == set(CARDS) == set(DIALECTS)
    assert card("postgresql") == card("postgres")
    assert card("cobol") == card("../cards/sqlite") == ""
    lines = card(dialect).splitlines()
    assert 10 <= len(lines) <= 40
    assert all(line.startswith("- ") for line in lines)
    assert all("`" in line for line in lines), "a rule, and an example"
    assert estimate_tokens(card(dialect)) <= 900


@pytest.mark.parametrize(("dialect", "sql"), OF_CARDS)
def test_every_example_of_a_card_is_right(dialect: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    assert list(Linter(catalog(dialect)).problems(verdict.tree)) == []


@pytest.mark.parametrize(
    ("column", "needs"),
    [
        ("day DATE", {"dates"}),
        ("created_at TEXT [2024-01-05 10:00]", {"dates"}),
        ("d TEXT [5/1/2024]", {"dates"}),
        ("made TEXT [05.01.2024]", {"dates"}),
        ("phone TEXT [555-1234, 12.50]", set()),
        ("doc jsonb", {"nested"}),
        ('doc TEXT ["{""a"": 1}"]', {"nested"}),
        ("tags text[]", {"nested"}),
        ("object_id INTEGER [1, 2, 3]", set()),
    ],
)
def test_a_card_has_no_line_that_the_schema_cannot_need(column: str, needs: set[str]) -> None:
    shown, marks = card("bigquery", f"table t\n  {column}"), {"dates": "DATE_TRUNC", "nested": "STRUCT"}
    assert {need for need, mark in marks.items() if mark in shown} == needs
    assert "_TABLE_SUFFIX" not in shown
    assert "_TABLE_SUFFIX" in card("bigquery", "tables events_{20240101..20240131} (31 tables)")
