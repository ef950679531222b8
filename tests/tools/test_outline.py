"""Queries in words: what means the same is said the same way."""

from __future__ import annotations

import pytest

from quorum.tools.outline import outline


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("5 < x", {"`x` is more than 5"}),
        ("x > 5", {"`x` is more than 5"}),
        ("NOT x <= 5", {"`x` is more than 5"}),
        ("t.X = 'a' AND y IS NOT NULL", {"`x` is 'a'", "`y` has a value"}),
        ("x IN (2, 1)", {"`x` is one of 1, 2"}),
        ("x = 1 OR (x = 2)", {"`x` is one of 1, 2"}),
        ("x NOT IN (1, 2)", {"`x` is none of 1, 2"}),
        ("NOT (x = 1 OR x = 2)", {"`x` is none of 1, 2"}),
        ("NOT (x = 1 OR y = 2)", {"`x` is not 1", "`y` is not 2"}),
        ("x BETWEEN 1 AND 3", {"`x` is at least 1", "`x` is at most 3"}),
        ("day >= DATE '2024-01-01'", {"`day` is 2024-01-01 or later"}),
        ("'2024-01-01' > day", {"`day` is before 2024-01-01"}),
        ("name LIKE '%ann%'", {"`name` contains 'ann'"}),
        ("name NOT LIKE 'ann%'", {"`name` does not begin with 'ann'"}),
        ("name LIKE '%ann'", {"`name` ends with 'ann'"}),
        ("name LIKE 'a_n%'", {"`name` matches the pattern 'a_n%'"}),
        ("id IN (SELECT k FROM u)", {"`id` is found in `u`"}),
        ("NOT EXISTS (SELECT 1 FROM u)", {"there is no matching row in `u`"}),
        ("t.id = u.id", set()),
        ("LENGTH(name) = 3", {"`LENGTH(name)` is 3"}),
    ],
)
def test_conditions(condition: str, words: set[str]) -> None:
    found = outline(f"SELECT 1 FROM t WHERE {condition}", "duckdb")
    assert found is not None
    assert found.filters == words


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("COUNT(*)", "the number of rows"),
        ("COUNT(1) AS n", "the number of rows"),
        ("COUNT(DISTINCT t.a)", "the number of different `a`"),
        ("ROUND(AVG(a), 2)", "the average of `a`, rounded"),
        ("MAX(a)", "the greatest `a`"),
        ("SUM(DISTINCT a)", "the sum of the different `a`"),
        ("SUM(a) OVER (PARTITION BY b)", "`SUM(a) OVER (PARTITION BY b)`"),
        ("(SELECT MAX(x) FROM u)", "a value from `u`"),
        ("t.*", "all columns"),
    ],
)
def test_items(item: str, words: str) -> None:
    found = outline(f"SELECT {item} FROM t", "duckdb")
    assert found is not None
    assert found.items == (words,)


def test_names_that_the_query_gives_are_seen_through() -> None:
    written = (
        "WITH c AS (SELECT city, COUNT(*) AS n FROM t GROUP BY 1) SELECT x.n, city FROM c AS x WHERE x.n > 3"
    )
    found, direct = (
        outline(sql, "duckdb")
        for sql in (written, "SELECT COUNT(*), city FROM t GROUP BY city HAVING COUNT(*) > 3")
    )
    assert found == direct
    assert found is not None
    assert found.grain == frozenset({"`city`"})
    assert found.tables == {"t"}


def test_an_alias_does_not_stand_for_the_column_of_its_name_in_where() -> None:
    found = outline("SELECT UPPER(a) AS b FROM t WHERE b = 'x' GROUP BY b ORDER BY b", "duckdb")
    assert found is not None
    assert found.filters == {"`b` is 'x'"}
    assert found.order == ("`UPPER(a)`, least first",)


def test_columns_that_double_at_every_level_end() -> None:
    levels = ", ".join(f"c{n} AS (SELECT x + x + x AS x FROM c{n - 1})" for n in range(1, 30))
    assert outline(f"WITH c0 AS (SELECT x FROM t), {levels} SELECT x FROM c29", "duckdb") is not None


@pytest.mark.parametrize("sql", ["", "SELECT FROM FROM", "DROP TABLE t", "SELECT 1; SELECT 2"])
def test_what_is_no_query_has_no_outline(sql: str) -> None:
    assert outline(sql, "duckdb") is None
