"""SQL as data: parsing, normal form, layout."""

from __future__ import annotations

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.sql import (
    SyntaxProblem,
    dialect_name,
    format_sql,
    normalise,
    parse_one_statement,
)


def test_one_statement_is_parsed() -> None:
    assert parse_one_statement("SELECT 1; -- end", "sqlite").sql() == "SELECT 1"
    with pytest.raises(SyntaxProblem, match="there are 2"):
        parse_one_statement("SELECT 1; SELECT 2", "sqlite")
    with pytest.raises(SyntaxProblem) as caught:
        parse_one_statement("SELECT a\nFROM (t", "sqlite")
    assert (caught.value.line, caught.value.message) == (2, "Expecting ).")


def test_dialects_have_other_names() -> None:
    assert dialect_name(" PostgreSQL ") == "postgres"
    assert dialect_name("mariadb") == "mysql"
    with pytest.raises(ConfigurationError, match="no SQL dialect 'oracle'"):
        dialect_name("oracle")


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
