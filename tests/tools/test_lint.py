"""The lint's findings: what is reported, where, and what is suggested; and where it is silent.

``lint_cases/`` has the queries: ``messages.txt`` with a catalog and what is said (nothing of a right query),
``strict.txt`` with a dialect and ``right`` or ``wrong``; for the others see ``lint_tables``.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from sqlglot import parse_one
from sqlglot.dialects.dialect import Dialect

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.render import render
from quorum.tools.lint import Linter
from quorum.tools.lint.tables import nearest
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import DIALECTS
from tests.tools import case_files
from tests.tools.lint_tables import EVENTS, SNOW, TABLES, cases, table
from tests.tools.lint_tables import catalog as catalog_of
from tests.tools.test_guard import passed

SHOP = (
    table("orders", "id customer_id order_date total_amount status"),
    table("customers", "id first_name region created_at"),
    table("order_items", "order_id product_id quantity unit_price"),
    table('order "x"', "id weird"),
)
LINTERS = {
    "shop": Linter(Catalog("shop", "sqlite", SHOP)),
    "snow": Linter(Catalog("SHOP", "snowflake", SNOW)),
    "events": Linter(Catalog("events", "bigquery", EVENTS)),
    "postgres": Linter(Catalog("pg", "postgres", (table("orders", "id Total", "public"),))),
}
PEOPLE = Table(
    "people",
    (
        *(Column("id", "integer"), Column("name", "text"), Column("tags", "text[]"), Column("doc", "jsonb")),
        Column("home", "address", fields=(Field("city", "text"), Field("zip", "text"))),
        Column("work", "address_without_fields"),
    ),
    schema="public",
)
BOUGHT = table("orders", "id:integer person_id:integer total:numeric", "public")


def problems(sql: str, linter: Linter) -> list[QueryError]:
    return list(linter.problems(passed(sql, linter.catalog.dialect).tree))


@pytest.mark.parametrize("name", LINTERS)
def test_each_problem_has_its_place_and_what_was_probably_meant(name: str) -> None:
    expected = {sql: says for says, sql in case_files.cases("lint_cases/messages", kind=name)}
    assert len(expected) > 5
    found = {sql: problems(sql, LINTERS[name]) for sql in expected}
    assert {
        sql: " ‖ ".join(f"{e.kind}: {e.describe()}" for e in each) for sql, each in found.items()
    } == expected
    assert {error.by for each in found.values() for error in each} == {"lint"}


@pytest.mark.parametrize("dialect", TABLES)
def test_a_wrong_name_is_found_and_a_right_one_left_alone(dialect: str) -> None:
    linter, kinds = Linter(catalog_of(dialect)), set()
    for kind, says, sql in cases(dialect):
        found = [error.describe() for error in problems(sql, linter)]
        assert bool(found) is (kind == "wrong"), (sql, found)
        assert says in "".join(found[:1]), sql
        kinds.add(kind)
    assert kinds == {"right", "wrong"}
    assert set(TABLES) == set(DIALECTS)


@cache
def strict(dialect: str) -> Linter:
    fold = str.upper if dialect == "oracle" else str
    tables = (table("t", fold("a b doc arr"), "s"), table("u", fold("a c"), "s"))
    named = (Table(fold(each.name), each.columns, fold(each.schema)) for each in tables)
    return Linter(Catalog("db", dialect, tuple(named)))


def test_where_no_session_forbids_to_write_what_the_catalog_lacks_is_one_too_many() -> None:
    """On Oracle a bare name that is no column calls a function."""
    for dialect, kind, sql in case_files.cases("lint_cases/strict"):
        found = problems(sql, strict(dialect))
        assert bool(found) is (kind == "wrong"), (dialect, sql, found)


def test_a_field_on_postgresql_that_may_be_a_call_is_none() -> None:
    linter = Linter(Catalog("test", "postgres", (PEOPLE, BOUGHT)))
    for kind, sql in case_files.cases("guard_cases/fields", 2):
        found = problems(sql, linter)
        assert bool(found) is (kind != "known"), (sql, found)
        assert all(each.kind is ErrorKind.COLUMN_NOT_FOUND and "evil_fn" in each.message for each in found)
    (error,) = problems("SELECT 1,\n  (p.home).citi FROM people p", linter)
    assert error.describe() == "There is no field citi in (p.home). (line 2, column 12) Did you mean: city?"


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_name_is_misread_for_a_word_of_the_dialect_as_the_schema_text_writes_it(dialect: str) -> None:
    words = {"Total", "a-b", "18_share", "two words", "naïve"} | {
        word.upper() if dialect == "snowflake" else word.lower()
        for known in DIALECTS
        for word in Dialect.get_or_raise(known).tokenizer_class.KEYWORDS
        if re.fullmatch("[A-Z]\\w*", word)
    }
    assert len(words) > 300
    catalog = Catalog("c", dialect, tuple(Table(word, (Column(word, "TEXT"),)) for word in words))
    linter, text = Linter(catalog), render(catalog).text
    for word in sorted(words):
        name = write_name(word, dialect)
        assert f"{name} TEXT" in text
        sql = f"SELECT {name}, x.{name} AS {name} FROM {name} AS x WHERE {name} = 7 GROUP BY {name}"
        assert problems(sql, linter) == []
        assert problems(f"SELECT 1 FROM {name} JOIN {name} AS y ON y.{name} = {name}.{name}", linter) == []


JSON = tuple(Column(f"c{i}", "JSON", "said", ("x",), (Field("a.b", "string"),)) for i in range(5))
BIG = Catalog("big", "postgres", tuple(Table(f"t{i}_2024", JSON, "public") for i in range(9)))
"""With all that a lint does not need."""


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT c9 FROM t1_2024", "SELECT c1 FROM t99"),
        *("SELECT (c1).zz FROM t1_2024", "SELECT x.c1, nope FROM t2_2024"),
    ],
)
def test_the_guards_process_says_the_same_of_an_outline_without_going_through_all_columns(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check has 0.7 s, which many thousands of tables would take."""
    linter, tree = Linter(BIG), parse_one(sql, read="postgres")
    expected, prepared = linter.lint(tree.copy()), Linter(linter.outline)
    assert len(expected.also) == sql.count(",")
    assert not any(column.samples or column.description for _, column in linter.outline.columns())
    prepared.prepare()
    monkeypatch.delattr(Catalog, "columns")
    assert prepared.lint(tree) == expected


def test_near_names_in_any_script() -> None:
    assert nearest("custmer", ["order", "customer", "customers", "total"]) == ["customer", "customers"]
    assert nearest("order_date", ["date_order", "dates", "id"]) == ["date_order"]
    assert nearest("заказ", ["клиенты", "заказы", "orders"]) == ["заказы"]
    assert nearest("注文", ["顧客", "商品"]) == nearest("xyz", ["order", "customer"]) == []
