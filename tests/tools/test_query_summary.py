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
        ("x IN (2, 1)", ["x IN (1, 2)"]),
        ("x = 2 OR (x = 1)", ["x IN (1, 2)"]),
        ("x NOT IN (2, 1)", ["NOT x IN (1, 2)"]),
        ("NOT (x = 1 OR x = 2)", ["NOT x IN (1, 2)"]),
        ("NOT (x = 1 OR y = 2)", ["x <> 1", "y <> 2"]),
        ("x BETWEEN 1 AND 3", ["x <= 3", "x >= 1"]),
        ("b * a > 1 AND 2 > b + a", ["a * b > 1", "a + b < 2"]),
        ("id IN (SELECT u.k FROM u WHERE k > 1)", ["id IN (SELECT k FROM u)", "k > 1"]),
        ("NOT EXISTS (SELECT 1 FROM u)", ["NOT EXISTS(SELECT 1 FROM u)"]),
        ("t.id = u.id", []),
        ("1 = 1", []),
    ],
)
def test_conditions(condition: str, texts: list[str]) -> None:
    assert summary(f"SELECT 1 FROM t WHERE {condition}").clauses["requires"] == texts


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("COUNT(*)", "COUNT(*)"),
        ("COUNT(1) AS n", "COUNT(*)"),
        ("COUNT(DISTINCT t.A)", "COUNT(DISTINCT a)"),
        ("SUM(t.a) OVER (PARTITION BY t.b)", "SUM(a) OVER (PARTITION BY b)"),
        ("(SELECT MAX(u.x) FROM db.u AS u WHERE u.x < 5)", "(SELECT MAX(x) FROM u)"),
    ],
)
def test_columns(item: str, text: str) -> None:
    assert summary(f"SELECT {item} FROM t").columns == (text,)


def test_names_that_the_query_gives_are_seen_through() -> None:
    through = (
        "WITH c AS (SELECT city, COUNT(*) AS n FROM t GROUP BY 1) SELECT x.n, x.city FROM c AS x WHERE n > 3"
    )
    star = f"SELECT d.* FROM (SELECT * FROM ({through})) AS d"
    direct = "SELECT COUNT(*) AS n, city FROM t GROUP BY city HAVING n > 3"
    assert summary(through) == summary(star) == summary(direct)
    assert summary(direct).clauses == {
        "requires": ["COUNT(*) > 3"],
        "reads": ["t"],
        "keeps rows without a match in": [],
        "removes duplicates by": [],
        "groups by": ["city"],
        "keeps": [],
    }


def test_what_stands_inside_is_seen() -> None:
    found = summary(
        "WITH top AS (SELECT a, SUM(b) AS s FROM t LEFT JOIN u USING (id) GROUP BY a ORDER BY s DESC LIMIT 5"
        " OFFSET 1) SELECT a FROM (SELECT DISTINCT a FROM top UNION SELECT a FROM v) ORDER BY a"
    )
    assert found.columns == ("a",)
    assert found.order == ("a",)
    assert found.clauses["keeps"] == ["ORDER BY SUM(b) DESC LIMIT 5 OFFSET 1"]
    assert found.clauses["keeps rows without a match in"] == ["u"]
    assert found.clauses["removes duplicates by"] == ["DISTINCT", "UNION"]
    assert found.clauses["reads"] == ["t", "u", "v"]


def test_an_expression_stays_together_where_it_replaces_a_name() -> None:
    found = summary("SELECT 2 * s, ROUND(s, 1) FROM (SELECT a + b AS s FROM t)")
    assert found.columns == ("(a + b) * 2", "ROUND(a + b, 1)")


def test_of_the_columns_of_a_table_with_a_star_nothing_is_known() -> None:
    assert summary("SELECT a, t.* FROM t").columns == ()


def test_an_alias_does_not_stand_for_the_column_of_its_name_in_where() -> None:
    found = summary("SELECT UPPER(a) AS b FROM t WHERE b = 'x' GROUP BY b ORDER BY b")
    assert found.clauses["requires"] == ["b = 'x'"]
    assert found.clauses["groups by"] == ["UPPER(a)"]
    assert found.order == ("UPPER(a)",)


@pytest.mark.heavy
def test_columns_that_double_at_every_level_end() -> None:
    levels = ", ".join(f"c{n} AS (SELECT x + x + x AS x FROM c{n - 1})" for n in range(1, 30))
    assert summarise(f"WITH c0 AS (SELECT x FROM t), {levels} SELECT x FROM c29", "duckdb") is not None


@pytest.mark.parametrize("sql", ["", "SELECT FROM FROM", "DROP TABLE t", "SELECT 1; SELECT 2"])
def test_what_is_no_query_has_no_summary(sql: str) -> None:
    assert summarise(sql, "duckdb") is None
