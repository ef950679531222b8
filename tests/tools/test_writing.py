"""Writing SQL: what is written reads as what it was written from, in every dialect; normal form, layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorum.tools.guard.output import render
from quorum.tools.guard.text import NotPure
from quorum.tools.sql import SyntaxProblem, parse_one_statement, parse_statements
from quorum.tools.sql.writing import format_sql, normalise, same, write, written
from tests.tools.case_files import cases


def test_what_a_dialect_says_is_written_as_it_says_it() -> None:
    """Cases that sqlglot would write in another way, or as something else."""
    for dialect, sql in cases("writing", "kept"):
        tree = parse_one_statement(sql, dialect)
        assert write(tree, dialect) == written([tree], dialect) == sql
        layout = written([tree], dialect, pretty=True, comments=True)
        assert " ".join(layout.split()).replace("( ", "(").replace(" )", ")") == sql


def test_text_may_be_written_in_another_way() -> None:
    tree = parse_one_statement(r"SELECT REGEXP_EXTRACT(s, r'(\d+)') FROM t", "bigquery")
    assert written([tree], "bigquery") == r"SELECT REGEXP_EXTRACT(s, '(\\d+)') FROM t"


def test_trees_are_the_same_to_the_letter() -> None:
    for dialect, one, other in cases("writing", "other tree"):
        tree = parse_one_statement(one, dialect)
        assert same(tree, parse_one_statement(f"{one}  -- why", dialect)), one
        assert not same(tree, parse_one_statement(other, dialect)), other


def test_what_would_mean_another_thing_is_not_written() -> None:
    """sqlglot reads these in a form that it writes as something else."""
    for dialect, sql in cases("writing", "unfaithful"):
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
    for dialect, one, other in cases("writing", kind):
        alike = normalise(one, dialect) == normalise(other, dialect)
        assert alike is (kind == "one form"), (one, other)


def test_layout_for_people_keeps_comments() -> None:
    assert format_sql("select a -- why\n from t where b=1", "sqlite") == (
        "SELECT\n  a /* why */\nFROM t\nWHERE\n  b = 1"
    )


def test_one_statement_is_parsed() -> None:
    assert parse_one_statement("SELECT 1; -- end", "sqlite").sql() == "SELECT 1"
    with pytest.raises(SyntaxProblem, match="there are 2"):
        parse_one_statement("SELECT 1; SELECT 2", "sqlite")
    with pytest.raises(SyntaxProblem) as caught:
        parse_one_statement("SELECT a\nFROM (t", "sqlite")
    assert (caught.value.line, caught.value.message) == (2, "Expecting ).")
