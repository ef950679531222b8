"""The lint's findings: what is reported, where, and what is suggested; and where it is silent."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from sqlglot import parse_one
from sqlglot.dialects.dialect import Dialect

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.render import render
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.lint.messages import KEYWORDS
from quorum.tools.lint.tables import likeness, nearest
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import DIALECTS


def table(name: str, columns: str, schema: str = "", database: str = "") -> Table:
    return Table(name, tuple(Column(c, "TEXT") for c in columns.split()), schema, database)


SHOP = Linter(
    Catalog(
        "shop",
        "sqlite",
        (
            table("orders", "id customer_id order_date total_amount status"),
            table("customers", "id first_name region created_at"),
            table("order_items", "order_id product_id quantity unit_price"),
            table('order "x"', "id weird"),
        ),
    )
)
SNOW = Linter(
    Catalog(
        "SHOP",
        "snowflake",
        (
            table("ORDERS", "ID CUSTOMER_ID amount META", "PUBLIC", "SHOP"),
            table("CUSTOMERS", "ID REGION", "PUBLIC", "SHOP"),
            table("Mixed", "Key", "PUBLIC", "SHOP"),
        ),
    )
)
EVENTS = Linter(
    Catalog(
        "events",
        "bigquery",
        (
            table("events_20200101", "user_id event_name items", "web", "proj"),
            table("events_20200102", "user_id event_name items device", "web", "proj"),
            table("users", "user_id country", "crm", "proj"),
        ),
    )
)
POSTGRES = Linter(Catalog("pg", "postgres", (table("orders", "id Total", "public"),)))


def problems(sql: str, linter: Linter = SHOP) -> list[QueryError]:
    verdict = verdict_on(sql, linter.catalog.dialect)
    assert isinstance(verdict, Passed), verdict
    return list(linter.problems(verdict.tree))


def only(sql: str, linter: Linter = SHOP) -> QueryError:
    found = problems(sql, linter)
    assert len(found) == 1, found
    assert found[0].by == "lint"
    return found[0]


def test_an_unknown_table_has_its_place_and_the_nearest_names() -> None:
    error = only("SELECT *\nFROM ordrs")
    assert error == QueryError(
        ErrorKind.TABLE_NOT_FOUND, "There is no table ordrs.", 2, 6, error.suggestions, by="lint"
    )
    assert error.suggestions[0] == "orders"


def test_a_misspelt_column_gets_the_nearest_names() -> None:
    error = only("SELECT o.id,\n  o.totl_amount FROM orders AS o")
    assert (error.kind, error.line, error.column) == (ErrorKind.COLUMN_NOT_FOUND, 2, 5)
    assert error.message == "orders (o) has no column totl_amount."
    assert error.suggestions == ("total_amount",)
    assert "Did you mean: total_amount?" in error.describe()


def test_words_in_another_order_are_near() -> None:
    assert only("SELECT amount_total FROM orders").suggestions[0] == "total_amount"
    assert only("SELECT price FROM order_items").suggestions[0] == "unit_price"


def test_a_column_of_another_table_of_the_query_is_named() -> None:
    error = only("SELECT o.region FROM orders o JOIN customers c ON o.customer_id = c.id")
    assert error.message == "orders (o) has no column region. customers has it."
    assert error.suggestions[0] == "c.region"


def test_a_column_of_a_table_that_is_not_joined_is_named() -> None:
    error = only("SELECT region FROM orders")
    assert error.message == "There is no column region in orders. customers has it; join it."


def test_an_ambiguous_column_names_its_tables() -> None:
    error = only("SELECT id FROM orders o JOIN customers c ON o.customer_id = c.id")
    assert error.kind is ErrorKind.AMBIGUOUS_COLUMN
    assert "it is in o and c" in error.message
    assert error.suggestions == ("o.id", "c.id")


def test_a_missing_or_hidden_table_name() -> None:
    error = only("SELECT customers.region FROM orders")
    assert (error.kind, error.message) == (
        ErrorKind.COLUMN_NOT_FOUND,
        "customers is not in the FROM clause here.",
    )
    assert only("SELECT orders.id FROM orders AS o").suggestions == ("o",)
    error = only("SELECT t9.id FROM orders AS t1")
    assert (error.kind, error.suggestions) == (ErrorKind.TABLE_NOT_FOUND, ("t1",))


def test_double_quotes_around_no_column_are_explained() -> None:
    error = only('SELECT "nope" FROM orders')
    assert error.kind is ErrorKind.COLUMN_NOT_FOUND
    assert "single quotes" in error.message
    assert only("SELECT id FROM orders WHERE \"stats\" = 'open'").suggestions == ("status",)
    assert only('SELECT sum("totl_amount") FROM orders').suggestions == ("total_amount",)


def test_double_quotes_that_mean_text_are_left_alone() -> None:
    for sql in (
        'SELECT id FROM orders WHERE status = "open"',
        'SELECT id FROM orders WHERE status IN ("open", "closed")',
        'SELECT CASE status WHEN "open" THEN "yes" ELSE "no" END FROM orders',
        'SELECT strftime("%Y", order_date), status || " " || id FROM orders',
        'SELECT id FROM orders WHERE order_date BETWEEN "2020" AND "2021"',
    ):
        assert problems(sql) == []


def test_an_alias_that_the_clause_cannot_see() -> None:
    error = only("SELECT total_amount * 2 AS twice, twice + 1 FROM orders")
    assert "alias of this SELECT and cannot be used in its SELECT list" in error.message


@pytest.mark.parametrize(
    ("sql", "linter", "word"),
    [
        ("SELECT id FROM orders WHERE ORDER", SHOP, "ORDER"),
        ("SELECT id, GROUP FROM orders", SHOP, "GROUP"),
        ("SELECT ID FROM ORDERS WHERE ORDER", SNOW, "ORDER"),
        ("SELECT id FROM orders WHERE ORDER", POSTGRES, "ORDER"),
    ],
)
def test_a_keyword_where_a_name_should_stand_is_an_error_of_syntax(
    sql: str, linter: Linter, word: str
) -> None:
    error = only(sql, linter)
    assert error.kind is ErrorKind.SYNTAX
    assert f"Syntax error near {word}" in error.message
    assert error.column == sql.rindex(word) + 1


@pytest.mark.parametrize("word", ["offset", "user", "row", "key", "current", "partition"])
def test_a_word_that_some_engine_takes_for_a_name_is_one_that_is_missing(word: str) -> None:
    for linter in (SHOP, POSTGRES):
        assert only(f"SELECT o.id, {word} FROM orders o", linter).kind is ErrorKind.COLUMN_NOT_FOUND


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_no_engine_here_reads_a_keyword_as_a_name(word: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    sql = f'SELECT id FROM (SELECT 1 AS id, 2 AS "{word}") AS t WHERE {word} > 1'
    with closing(sqlite3.connect(":memory:")) as database, pytest.raises(sqlite3.OperationalError):
        database.execute(sql)
    with duckdb.connect() as database, pytest.raises(duckdb.ParserException):
        database.execute(sql)


@pytest.mark.parametrize("linter", [SHOP, POSTGRES])
def test_a_missing_column_is_missing_where_its_alias_has_its_name(linter: Linter) -> None:
    error = only("SELECT COALESCE(town, '?') AS town, COUNT(*) FROM orders GROUP BY 1", linter)
    assert "no column town" in error.message


def test_a_keyword_in_quotes_is_a_name() -> None:
    assert only('SELECT "order" FROM orders').kind is ErrorKind.COLUMN_NOT_FOUND


def test_several_problems_come_together() -> None:
    sql = "SELECT nope, statu FROM orders WHERE regio = 1"
    assert [error.column for error in problems(sql)] == [8, 14, 38]
    verdict = verdict_on(sql, "sqlite")
    assert isinstance(verdict, Passed)
    first = SHOP.lint(verdict.tree)
    assert first is not None
    assert len(first.also) == 2
    assert "Also: There is no column statu in orders. (line 1, column 14)" in first.describe()


def test_a_name_is_reported_once_and_inspections_not_at_all() -> None:
    assert len(problems("SELECT nope FROM orders WHERE nope > 1 GROUP BY nope")) == 1
    assert SHOP.lint(None) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM sqlite_master",
        "SELECT name FROM pragma_table_info('orders')",
        "SELECT rowid, _rowid_, ORDERS.ID FROM Orders",
        'SELECT "weird" FROM "order ""x"""',
        "SELECT j.value, j.key FROM orders, json_each(orders.status) AS j",
        "SELECT total_amount AS t FROM orders WHERE t > 1 GROUP BY t HAVING t > 2 ORDER BY t",
        "WITH a(x, y) AS (SELECT id, status FROM orders) SELECT x, y FROM a",
        "WITH a AS (SELECT *, 1 AS one FROM orders) SELECT one, status FROM a, customers c",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT n FROM r",
        "SELECT id FROM orders JOIN (SELECT id FROM customers) USING (id)",
        "SELECT region, id FROM orders NATURAL JOIN customers",
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers WHERE id = o.id AND status = 1)",
        "SELECT (SELECT max(quantity) FROM order_items WHERE order_id = id) AS m FROM orders ORDER BY m",
        "SELECT o.id AS id FROM orders o JOIN customers c ON o.id = c.id ORDER BY id",
        "SELECT id FROM orders UNION SELECT product_id FROM order_items ORDER BY id",
        "SELECT x.status FROM (orders AS x JOIN customers AS y ON x.customer_id = y.id)",
        "SELECT sum(total_amount) OVER w FROM orders WINDOW w AS (PARTITION BY status)",
        "VALUES (1, 2)",
        "SELECT column1 FROM (VALUES (1))",
        "SELECT q.* FROM (SELECT id FROM orders) AS q WHERE q.id > 1",
    ],
)
def test_right_queries_are_left_alone(sql: str) -> None:
    assert problems(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT id FROM orders) SELECT status FROM a",
        "SELECT q.status FROM (SELECT id FROM orders) AS q",
        "SELECT * FROM (SELECT * FROM orders) WHERE regio = 1",
        "WITH a(x) AS (SELECT id FROM orders) SELECT id FROM a",
        "SELECT id FROM orders UNION SELECT id FROM customers ORDER BY regio",
        "SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.nope)",
        "SELECT count(*) FROM orders GROUP BY nope",
        "SELECT rank() OVER (ORDER BY nope) FROM orders",
        "SELECT j.nope FROM orders, json_each(orders.status) AS j",
        "SELECT id FROM (SELECT nope FROM orders)",
    ],
)
def test_wrong_names_are_found_wherever_they_stand(sql: str) -> None:
    assert problems(sql) != []


def test_snowflake_folds_what_is_not_quoted() -> None:
    assert problems('SELECT o.id, O."amount", meta:x.y FROM orders o, shop.public."Mixed" m', SNOW) == []
    assert only("SELECT amount FROM orders", SNOW).suggestions == ('"amount"',)
    assert only('SELECT "id" FROM orders', SNOW).suggestions == ("ID",)
    error = only('SELECT * FROM "orders"', SNOW)
    assert error.suggestions == ("SHOP.PUBLIC.ORDERS",)
    assert "upper and lower case count" in error.message
    assert only("SELECT * FROM Mixed", SNOW).suggestions == ('SHOP.PUBLIC."Mixed"',)
    assert "another schema" in only("SELECT * FROM shop.sales.orders", SNOW).message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT value:a, f.index, key FROM orders, LATERAL FLATTEN(input => meta) f",
        "SELECT g.value FROM orders, TABLE(FLATTEN(meta:items)) g",
        "SELECT id AS k, k + 1 AS l FROM orders WHERE k > 1 QUALIFY ROW_NUMBER() OVER (ORDER BY l) = 1",
        "SELECT * FROM other_database.public.orders",
        "SELECT table_name FROM shop.information_schema.tables",
        "SELECT $1 FROM VALUES (1)",
        "SELECT x FROM orders PIVOT (SUM(id) FOR customer_id IN (1, 2)) AS p (x, y)",
        "SELECT level FROM customers START WITH id = 1 CONNECT BY PRIOR id = region",
        "SELECT orders.id FROM shop.public.orders",
    ],
)
def test_snowflake_forms_are_left_alone(sql: str) -> None:
    assert problems(sql, SNOW) == []


def test_flatten_has_known_columns() -> None:
    assert only("SELECT f.valu FROM orders, LATERAL FLATTEN(input => meta) f", SNOW).suggestions == ("VALUE",)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT user_id, device FROM `proj.web.events_*` WHERE _TABLE_SUFFIX > '2020'",
        "SELECT items.price, e.items FROM proj.web.events_20200101 e",
        "SELECT i.name, name FROM `proj.web.events_20200101` AS e, UNNEST(e.items) AS i",
        "SELECT i FROM proj.web.events_20200101 AS e, e.items AS i",
        "SELECT user_id FROM `proj.web.events_20240202`",
        "SELECT * FROM `proj.other_dataset.t`",
        "SELECT u.country FROM crm.users u GROUP BY country",
        "DECLARE x INT64 DEFAULT 1; SELECT user_id + x FROM crm.users",
        "SELECT e.user_id FROM web.events_20200101 e, crm.users u GROUP BY user_id",
    ],
)
def test_bigquery_forms_are_left_alone(sql: str) -> None:
    assert problems(sql, EVENTS) == []


def test_bigquery_names_are_checked() -> None:
    assert only("SELECT countr FROM crm.users", EVENTS).suggestions == ("country",)
    assert only("SELECT 1 FROM `proj.crm.user`", EVENTS).suggestions == ("proj.crm.users",)
    assert only("SELECT devic FROM `proj.web.events_*`", EVENTS).suggestions == ("device",)


def test_postgres_folds_to_lower_case() -> None:
    assert problems('SELECT ID, "Total" FROM Orders', POSTGRES) == []
    assert only("SELECT total FROM orders", POSTGRES).suggestions == ('"Total"',)


def test_nearness() -> None:
    assert likeness("CustomerID", "customer_id") == 1.0
    assert nearest("custmer", ["order", "customer", "customers", "total"]) == ["customer", "customers"]
    assert nearest("xyz", ["order", "customer"]) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "name",
    ["created_at", "Total", "ORDERS", "order", "rank", "qualify", "a-b", "18_share", "two words", "naïve"],
)
def test_names_copied_from_the_schema_text_are_right(dialect: str, name: str) -> None:
    catalog = Catalog("c", dialect, (Table(name, (Column(name, "TEXT"),), "Main"),))
    header, line = [line for line in render(catalog).text.splitlines() if line and not line.startswith("#")]
    table, column = header.removeprefix("table "), line.strip().removesuffix(" TEXT")
    sql = f"SELECT {column}, x.{column} AS {column} FROM {table} AS x ORDER BY {column}"
    assert problems(sql, Linter(catalog)) == []


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_name_is_misread_for_a_word_of_the_dialect(dialect: str) -> None:
    words = {
        word.upper() if dialect == "snowflake" else word.lower()
        for known in DIALECTS
        for word in Dialect.get_or_raise(known).tokenizer_class.KEYWORDS
        if re.fullmatch("[A-Z]\\w*", word)
    }
    assert len(words) > 300
    linter = Linter(Catalog("c", dialect, tuple(Table(word, (Column(word, "TEXT"),)) for word in words)))
    for word in sorted(words):
        name = write_name(word, dialect)
        sql = f"SELECT {name}, x.{name} AS {name} FROM {name} AS x WHERE {name} = 7 GROUP BY {name}"
        assert problems(sql, linter) == []
        assert problems(f"SELECT 1 FROM {name} JOIN {name} AS y ON y.{name} = {name}.{name}", linter) == []


def big() -> Catalog:
    """Many tables, with all that a lint does not need."""
    columns = tuple(
        Column(f"c{i}", "JSON", "said", ("x",), (Field("a.b", "string"),), complete=True) for i in range(5)
    )
    return Catalog("big", "postgres", tuple(Table(f"t{i}_2024", columns, "public") for i in range(9)))


WRONG = (
    "SELECT c9 FROM t1_2024",
    "SELECT c1 FROM t99",
    "SELECT (c1).zz FROM t1_2024",
    "SELECT x.c1 FROM t2_2024",
)


@pytest.mark.parametrize("sql", [*WRONG, "SELECT (c1).a FROM t1_2024 AS t"])
def test_the_outline_that_the_guards_process_gets_says_the_same(sql: str) -> None:
    linter, tree = Linter(big()), parse_one(sql, read="postgres")
    assert Linter(linter.outline).lint(tree.copy()) == linter.lint(tree)
    assert not any(column.samples or column.description for _, column in linter.outline.columns())


@pytest.mark.parametrize("sql", WRONG)
def test_no_check_of_a_prepared_lint_goes_through_all_columns(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check has 0.7 s, which many thousands of tables would take."""
    linter = Linter(big())
    linter.prepare()
    monkeypatch.delattr(Catalog, "columns")
    assert linter.lint(parse_one(sql, read="postgres")) is not None
