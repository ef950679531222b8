"""The dialect cards: short, and every example on them passes guard and lint (engines: test_engines_agree)."""

from __future__ import annotations

import pytest

from quorum.knowledge.syntax import CARDS, card, dialects
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.guard import Passed, check
from quorum.tools.lint import Linter
from quorum.tools.sql import DIALECTS
from tests.knowledge.card_examples import catalog, examples

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
