"""Fields on PostgreSQL: what is no column and no field of a composite value may be the call of a function."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, QueryError
from tests.tools.test_guard_lists import cases

PEOPLE = Table(
    "people",
    (
        *(Column("id", "integer"), Column("name", "text"), Column("tags", "text[]"), Column("doc", "jsonb")),
        Column("home", "address", fields=(Field("city", "text"), Field("zip", "text"))),
        Column("work", "address_without_fields"),
    ),
    schema="public",
)
ORDERS = Table(
    "orders",
    (Column("id", "integer"), Column("person_id", "integer"), Column("total", "numeric")),
    schema="public",
)
LINTER = Linter(Catalog("test", "postgres", (PEOPLE, ORDERS)))


def problem(sql: str) -> QueryError | None:
    verdict = verdict_on(sql, "postgres")
    assert isinstance(verdict, Passed), verdict
    return LINTER.lint(verdict.tree)


@pytest.mark.parametrize(("kind", "sql"), cases("fields.txt", 2))
def test_a_field_that_may_be_a_call_is_none(kind: str, sql: str) -> None:
    error = problem(sql)
    assert (error is None) is (kind == "known"), error
    if error is not None:
        assert error.kind is ErrorKind.COLUMN_NOT_FOUND
        assert "evil_fn" in error.message


def test_the_error_names_the_value_and_what_it_may_have() -> None:
    error = problem("SELECT 1,\n  (p.home).citi FROM people p")
    assert error is not None
    assert error.message == "There is no field citi in (p.home)."
    assert (error.line, error.column) == (2, 12)
    assert error.suggestions == ("city",)


def test_elsewhere_a_field_calls_nothing_but_has_to_be_there() -> None:
    linter = Linter(Catalog("test", "duckdb", (PEOPLE, ORDERS)))
    for field, message in (
        ("work.street", ""),
        ("(home).city", ""),
        ("(home).street", "home has no field street"),
    ):
        verdict = verdict_on(f"SELECT {field} FROM people", "duckdb")
        assert isinstance(verdict, Passed)
        error = linter.lint(verdict.tree)
        assert (error.message if error else "").startswith(message)
        assert (error is None) is (not message)
