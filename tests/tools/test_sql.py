"""SQL as text: written again in every dialect, cut into stages that run, summarised by what it means."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quorum.tools.guard.output import render
from quorum.tools.guard.text import NotPure
from quorum.tools.sql import SyntaxProblem, parse_one_statement, parse_statements
from quorum.tools.sql.stages import replace_stage, split_stages
from quorum.tools.sql.summary import QuerySummary, summarise
from quorum.tools.sql.writing import format_sql, normalise, same, write, written
from tests.tools.case_files import cases


def test_what_a_dialect_says_is_written_as_it_says_it() -> None:
    """Cases that sqlglot would write in another way, or as something else."""
    for dialect, sql in cases("sql_cases/writing", kind="kept"):
        tree = parse_one_statement(sql, dialect)
        assert write(tree, dialect) == written([tree], dialect) == sql
        layout = written([tree], dialect, pretty=True, comments=True)
        assert " ".join(layout.split()).replace("( ", "(").replace(" )", ")") == sql


def test_trees_are_the_same_to_the_letter() -> None:
    for dialect, one, other in cases("sql_cases/writing", kind="other tree"):
        tree = parse_one_statement(one, dialect)
        assert same(tree, parse_one_statement(f"{one}  -- why", dialect)), one
        assert not same(tree, parse_one_statement(other, dialect)), other


def test_what_would_mean_another_thing_is_not_written() -> None:
    """sqlglot reads these in a form that it writes as something else."""
    for dialect, sql in cases("sql_cases/writing", kind="unfaithful"):
        trees = parse_statements(sql, dialect)
        with pytest.raises(SyntaxProblem, match="cannot be written again"):
            written(trees, dialect)
        with pytest.raises(NotPure, match="rendered faithfully"):
            render(trees, dialect)
        assert format_sql(f" {sql}", dialect) == normalise(f"{sql} ;", dialect) == sql


def test_trees_are_written_in_one_place(root: Path) -> None:
    writes = re.compile(r"""\.sql\([^()]*(dialect|"[a-z]+"|pretty)|\.generate\(""")
    floors = ("agents", "evals", "graph", "knowledge", "quorum", "tools")
    modules = [path for floor in floors for path in (root / floor).rglob("*.py") if not path.is_symlink()]
    found = {path.relative_to(root).as_posix() for path in modules if writes.search(path.read_text("utf-8"))}
    translates = {"tools/databases/many/types.py"}  # another engine's types into DuckDB's
    assert found - translates == {"tools/sql/writing.py"}


@pytest.mark.parametrize("kind", ["one form", "two forms"])
def test_queries_have_one_normal_form_if_they_are_equal(kind: str) -> None:
    for dialect, one, other in cases("sql_cases/writing", kind=kind):
        alike = normalise(one, dialect) == normalise(other, dialect)
        assert alike is (kind == "one form"), (one, other)


def test_layout_for_people_keeps_comments() -> None:
    layout = "SELECT\n  a /* why */\nFROM t\nWHERE\n  b = 1"
    assert format_sql("select a -- why\n from t where b=1", "sqlite") == layout


def test_one_statement_is_parsed() -> None:
    assert parse_one_statement("SELECT 1; -- end", "sqlite").sql() == "SELECT 1"
    with pytest.raises(SyntaxProblem, match="there are 2"):
        parse_one_statement("SELECT 1; SELECT 2", "sqlite")
    with pytest.raises(SyntaxProblem) as caught:
        parse_one_statement("SELECT a\nFROM (t", "sqlite")
    assert (caught.value.line, caught.value.message) == (2, "Expecting ).")


QUERY = """-- how many
WITH RECURSIVE n(x) AS MATERIALIZED (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3 -- not )
), "odd ones" AS (SELECT ')' AS mark, x FROM n WHERE x % 2 = 1)
SELECT COUNT(*), MAX(mark) FROM "odd ones" WHERE x IN (SELECT x FROM n);"""


def rows(sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute(sql).fetchall()


def test_every_stage_runs_over_those_before_it() -> None:
    stages = split_stages(QUERY, "sqlite")
    assert [stage.name for stage in stages] == ["n", '"odd ones"', "result"]
    assert [stage.last for stage in stages] == [False, False, True]
    assert [rows(stage.sql) for stage in stages] == [[(1,), (2,), (3,)], [(")", 1), (")", 3)], [(2, ")")]]
    assert stages[1].body == "SELECT ')' AS mark, x FROM n WHERE x % 2 = 1"
    faulty = split_stages("WITH a AS (SELECT 1 AS x), b AS (SELEC FROM a) SELECT * FROM b", "duckdb")
    assert ([stage.name for stage in faulty], rows(faulty[0].sql)) == (["a", "b", "result"], [(1,)])


def test_a_stage_gets_a_new_body_and_the_rest_stays_to_the_letter() -> None:
    mended = replace_stage(QUERY, "sqlite", 1, "SELECT '!' AS mark, x FROM n -- all;\n;")
    assert rows(mended) == [(3, "!")]
    assert split_stages(mended, "sqlite")[0] == split_stages(QUERY, "sqlite")[0]
    assert rows(replace_stage(QUERY, "sqlite", 2, "SELECT SUM(x) FROM n")) == [(6,)]
    with pytest.raises(IndexError):
        replace_stage(QUERY, "sqlite", 3, "SELECT 1")


@pytest.mark.parametrize("sql", ["WITH a AS (SELECT 1", "WITH a", "WITH a AS", "SELECT 'open"])
def test_what_cannot_be_cut_says_so(sql: str) -> None:
    with pytest.raises(SyntaxProblem):
        split_stages(sql, "sqlite")


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
    ("query", "columns"),
    [
        ("COUNT(1) AS n, COUNT(*) FROM t", ("COUNT(*)", "COUNT(*)")),
        ("COUNT(DISTINCT t.A) FROM t", ("COUNT(DISTINCT a)",)),
        ("SUM(t.a) OVER (PARTITION BY t.b) FROM t", ("SUM(a) OVER (PARTITION BY b)",)),
        ("(SELECT MAX(u.x) FROM db.u AS u WHERE u.x < 5) FROM t", ("(SELECT MAX(x) FROM u)",)),
        ("2 * s, ROUND(s, 1) FROM (SELECT a + b AS s FROM t)", ("(a + b) * 2", "ROUND(a + b, 1)")),
        ("a, t.* FROM t", ()),  # which they are is not known
    ],
)
def test_columns(query: str, columns: tuple[str, ...]) -> None:
    assert summary(f"SELECT {query}").columns == columns


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
    named = summary("SELECT UPPER(a) AS b FROM t WHERE b = 'x' GROUP BY b ORDER BY b")
    assert (named.clauses["requires"], named.clauses["groups by"]) == (["b = 'x'"], ["UPPER(a)"])
    assert named.order == ("UPPER(a)",)
    for sql in ("", "SELECT FROM FROM", "DROP TABLE t", "SELECT 1; SELECT 2"):
        assert summarise(sql, "duckdb") is None


@pytest.mark.heavy
def test_columns_that_double_at_every_level_end() -> None:
    levels = ", ".join(f"c{n} AS (SELECT x + x + x AS x FROM c{n - 1})" for n in range(1, 30))
    assert summarise(f"WITH c0 AS (SELECT x FROM t), {levels} SELECT x FROM c29", "duckdb") is not None
