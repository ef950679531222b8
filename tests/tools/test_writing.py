"""Writing SQL: what is written reads as what it was written from, in every dialect; normal form, layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorum.tools.guard import Refused
from quorum.tools.guard.output import render
from quorum.tools.sql import SyntaxProblem, parse_one_statement, parse_statements
from quorum.tools.sql.writing import format_sql, normalise, same, write, written

KEPT = [
    # what sqlglot would write in another way, or as something else
    ("snowflake", 'SELECT t.doc:a."My Key"[0].b AS x FROM t'),
    ("snowflake", 'SELECT PARSE_JSON(s):"it\'s", doc:"q""q" FROM t'),
    ("snowflake", "SELECT GET_PATH(doc, 'a.b') FROM t"),
    ("snowflake", "SELECT CAST(doc:a AS TEXT), CAST(s AS VARCHAR) FROM t"),
    ("bigquery", "SELECT CAST(a AS INT), CAST(b AS INT64), CAST(c AS NUMERIC(10, 2)) FROM t"),
    ("bigquery", "SELECT a AS b, COUNT(*) AS n FROM t GROUP BY a ORDER BY b"),
    ("bigquery", "WITH c AS (SELECT a FROM t UNION ALL SELECT b FROM t) SELECT a FROM c"),
    ("bigquery", "SELECT items[OFFSET(0)], items[SAFE_OFFSET(1)], items[ORDINAL(1)] FROM `p.d.t_*`"),
    ("bigquery", "SELECT SUM(a) OVER (ORDER BY b ROWS 6 PRECEDING) FROM t"),
    ("bigquery", "SELECT SUM(a) OVER (ORDER BY b ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM t"),
    ("duckdb", "SELECT t.a, u.item FROM t, UNNEST(t.items) AS u(item)"),
    ("duckdb", "SELECT CAST(a AS TEXT) FROM information_schema.columns"),
    ("duckdb", "SELECT DISTINCT ON (a) a, b FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY b) = 1"),
    ("mysql", "SELECT a FROM t SEMI JOIN u ON t.a = u.a"),
    ("mysql", "SELECT a FROM t FULL OUTER JOIN u ON t.a = u.a"),
    ("postgres", "SELECT DISTINCT ON (a) a, CAST(b AS TIMESTAMP) FROM t ORDER BY a, b"),
    ("sqlite", "SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS VARCHAR), CAST(c AS INTEGER) FROM t"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "sql"), KEPT)
def test_what_a_dialect_says_is_written_as_it_says_it(dialect: str, sql: str) -> None:
    tree = parse_one_statement(sql, dialect)
    assert write(tree, dialect) == written([tree], dialect) == sql
    layout = written([tree], dialect, pretty=True, comments=True)
    assert " ".join(layout.split()).replace("( ", "(").replace(" )", ")") == sql


def test_text_may_be_written_in_another_way() -> None:
    tree = parse_one_statement(r"SELECT REGEXP_EXTRACT(s, r'(\d+)') FROM t", "bigquery")
    assert written([tree], "bigquery") == r"SELECT REGEXP_EXTRACT(s, '(\\d+)') FROM t"


@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        ("snowflake", "SELECT doc:a FROM t", "SELECT doc:A FROM t"),
        ("snowflake", "SELECT doc:a FROM t", 'SELECT doc:"a" FROM t'),
        ("snowflake", "SELECT doc:a FROM t", "SELECT GET_PATH(doc, 'a') FROM t"),
        ("bigquery", "SELECT a[0] FROM t", "SELECT a[OFFSET(0)] FROM t"),
        ("postgres", "SELECT a FROM t", 'SELECT "a" FROM t'),
        ("sqlite", "SELECT 'a' FROM t", "SELECT 'A' FROM t"),
        ("sqlite", "SELECT a FROM t", "SELECT a FROM t LIMIT 1"),
    ],
)
def test_trees_are_the_same_to_the_letter(dialect: str, one: str, other: str) -> None:
    tree = parse_one_statement(one, dialect)
    assert same(tree, parse_one_statement(f"{one}  -- why", dialect))
    assert not same(tree, parse_one_statement(other, dialect))


# sqlglot reads both in a form that it writes as something else
UNFAITHFUL = [
    ("snowflake", "SELECT TRUNC(DATEADD(year, -1, CURRENT_DATE), 'YEAR') AS a FROM t"),
    ("bigquery", "SELECT a FROM t WHERE NULL = a"),
    ("sqlite", "SELECT count(*), TRUNC(a, 2) FROM t"),
]


@pytest.mark.parametrize(("dialect", "sql"), UNFAITHFUL)
def test_what_would_mean_another_thing_is_not_written(dialect: str, sql: str) -> None:
    trees = parse_statements(sql, dialect)
    with pytest.raises(SyntaxProblem, match="cannot be written again"):
        written(trees, dialect)
    refusal = render(trees, dialect)
    assert isinstance(refusal, Refused)
    assert refusal.rule == "rendering"
    assert format_sql(f" {sql}", dialect) == normalise(f"{sql} ;", dialect) == sql


def test_trees_are_written_in_one_place(root: Path) -> None:
    writes = re.compile(r"""\.sql\([^()]*(dialect|"[a-z]+"|pretty)|\.generate\(""")
    floors = ("agents", "evals", "graph", "knowledge", "quorum", "tools")
    modules = [path for floor in floors for path in (root / floor).rglob("*.py") if not path.is_symlink()]
    found = {path.relative_to(root).as_posix() for path in modules if writes.search(path.read_text("utf-8"))}
    translates = {"tools/databases/many/types.py"}  # another engine's types into DuckDB's
    assert found - translates == {"tools/sql/writing.py"}


@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        ("sqlite", "select A,b from T -- x\n where c<>1;", "SELECT a , B FROM t WHERE C != 1"),
        ("snowflake", 'SELECT "A", b FROM t', "select a, B from T"),
        ("duckdb", 'FROM t SELECT "a"', "select A from T"),
        ("postgres", "SELECT a FROM t AS x", "SELECT a FROM t x"),
        ("mysql", "SELECT /*+ BKA(t) */ `A` FROM T", "select a from T"),
        ("bigquery", "SELECT a FROM d.T", "SELECT `A` FROM d.T # hi"),
    ],
)
def test_equal_queries_have_one_normal_form(dialect: str, one: str, other: str) -> None:
    assert normalise(one, dialect) == normalise(other, dialect)


@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        ("sqlite", "SELECT 1 WHERE 'a' = 'A'", "SELECT 1 WHERE 'a' = 'a'"),
        ("sqlite", 'SELECT * FROM t WHERE x = "France"', 'SELECT * FROM t WHERE x = "france"'),
        ("snowflake", 'SELECT "a" FROM t', "SELECT a FROM t"),
        ("mysql", "SELECT a FROM T", "SELECT a FROM t"),
        ("postgres", 'SELECT "Select" FROM t', "SELECT select_ FROM t"),
    ],
)
def test_different_queries_stay_different(dialect: str, one: str, other: str) -> None:
    assert normalise(one, dialect) != normalise(other, dialect)


def test_what_cannot_be_read_is_only_squeezed() -> None:
    assert normalise(" SELEC  1 ;", "sqlite") == "SELEC 1"
    assert format_sql(" SELEC  1 ;", "sqlite") == "SELEC  1 ;"


def test_layout_for_people_keeps_comments() -> None:
    assert format_sql("select a -- why\n from t where b=1", "sqlite") == (
        "SELECT\n  a /* why */\nFROM t\nWHERE\n  b = 1"
    )
