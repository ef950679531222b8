"""Query summaries: what means the same has the same text."""

from __future__ import annotations

import pytest

from quorum.tools.sql.summary import QuerySummary, summarise


def summary(sql: str) -> QuerySummary:
    found = summarise(sql, "duckdb")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("condition", "texts"),
    [
        ("5 < x", ["x > 5"]),
        ("NOT x <= 5", ["x > 5"]),
        ("t.X = 'a' AND y IS NOT NULL", ["NOT y IS NULL", "x = 'a'"]),
        ("x = 2 OR (x = 1)", ["x IN (1, 2)"]),
        ("NOT (x = 1 OR x = 2)", ["NOT x IN (1, 2)"]),
        ("NOT (x = 1 OR y = 2)", ["x <> 1", "y <> 2"]),
        ("x BETWEEN 1 AND 3", ["x <= 3", "x >= 1"]),
        ("b * a > 1 AND 2 > b + a", ["a * b > 1", "a + b < 2"]),
        ("id IN (SELECT u.k FROM u WHERE k > 1)", ["id IN (SELECT k FROM u)", "k > 1"]),
        ("t.id = u.id AND 1 = 1", []),
    ],
)
def test_conditions(condition: str, texts: list[str]) -> None:
    assert summary(f"SELECT 1 FROM t WHERE {condition}").clauses["requires"] == texts


def test_what_stands_inside_is_seen_and_own_names_are_what_they_stand_for() -> None:
    found = summary(
        "WITH top AS (SELECT a AS k, SUM(b) AS s FROM t LEFT JOIN u USING (id) GROUP BY 1 HAVING s > 3"
        " ORDER BY s DESC LIMIT 5 OFFSET 1)"
        " SELECT k, COUNT(1) AS n FROM (SELECT DISTINCT k FROM top UNION SELECT a FROM v)"
        " GROUP BY k ORDER BY 2"
    )
    assert found == QuerySummary(
        ("k", "COUNT(*)"),
        ("COUNT(*)",),
        {
            "requires": ["SUM(b) > 3"],
            "reads": ["t", "u", "v"],
            "keeps rows without a match in": ["u"],
            "removes duplicates by": ["DISTINCT", "UNION"],
            "groups by": ["a", "k"],
            "keeps": ["ORDER BY SUM(b) DESC LIMIT 5 OFFSET 1"],
        },
    )
    assert summary("SELECT a, t.* FROM t").columns == ()


@pytest.mark.parametrize("sql", ["", "SELECT FROM FROM", "DROP TABLE t", "SELECT 1; SELECT 2"])
def test_what_is_no_query_has_no_summary(sql: str) -> None:
    assert summarise(sql, "duckdb") is None
