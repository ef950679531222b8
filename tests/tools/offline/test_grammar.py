"""From questions to SQL: results on the sample shop must equal those of SQL written by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.render import render
from quorum.tools.offline.grammar import read
from quorum.tools.offline.model import tables_of
from quorum.tools.offline.schema import read_tables
from quorum.tools.sample import DEMO_QUESTIONS
from quorum.tools.sql import parse_one_statement
from tests.tools.test_sample import GOLD

BY_ORDERS = "JOIN orders AS o USING (customer_id) GROUP BY c.customer_id ORDER BY COUNT(*) DESC"

QUESTIONS = {
    "How many customers are there?": "SELECT COUNT(*) FROM customers",
    "How many orders did each channel bring?": "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "What is the average salary of employees in each department?": (
        "SELECT department, AVG(salary) FROM employees GROUP BY department"
    ),
    "What is the total amount of settled payments?": (
        "SELECT SUM(amount) FROM payments WHERE status = 'settled'"
    ),
    "What is the average list_price of products?": "SELECT AVG(list_price) FROM products",
    "revenue by channel": "SELECT channel, SUM(total_amount) FROM orders GROUP BY channel",
    "Which customer has placed the most orders?": (
        f"SELECT c.full_name FROM customers AS c {BY_ORDERS} LIMIT 1"
    ),
    "top 5 customers by number of orders": f"SELECT c.full_name FROM customers AS c {BY_ORDERS} LIMIT 5",
    "Which five products earned most in 2024?": """SELECT p.name FROM products AS p
        JOIN order_items USING (product_id) JOIN orders AS o USING (order_id) WHERE o.created_at LIKE '2024%'
        GROUP BY p.product_id ORDER BY SUM(o.total_amount) DESC LIMIT 5""",
    "How many orders were placed by customers from France?": (
        "SELECT COUNT(*) FROM orders JOIN customers USING (customer_id) WHERE country = 'France'"
    ),
    "How many support tickets have priority 'urgent' and status 'open'?": (
        "SELECT COUNT(*) FROM support_tickets WHERE priority = 'urgent' AND status = 'open'"
    ),
    "How many orders were created in March 2024?": (
        "SELECT COUNT(*) FROM orders WHERE created_at LIKE '2024-03%'"
    ),
    "How many orders were created on 2024-01-02?": (
        "SELECT COUNT(*) FROM orders WHERE created_at LIKE '2024-01-02%'"
    ),
    "How many orders were created after December 2023?": (
        "SELECT COUNT(*) FROM orders WHERE created_at >= '2024-01-01'"
    ),
    "How many events were there in June 2024?": "SELECT COUNT(*) FROM events_2024_06",
    "Show customers from Atlantis": "SELECT full_name FROM customers WHERE country = 'Atlantis'",
} | {sample.question: sql for sample, sql in zip(DEMO_QUESTIONS[:2], GOLD, strict=False)}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_query_gives_what_the_question_asks(
    question: str, schema_text: str, result_of: Callable[[str], Counter[tuple[str, ...]]]
) -> None:
    reading = read(tables_of(schema_text), question)
    assert not reading.unread
    assert result_of(reading.sql()) == result_of(QUESTIONS[question]), reading.sql()


CUES = """how many which what top 3 most least average total of each by order orders customers rating from
with name or and 2024 may in 'x' total_x ? , . 'Berlin between maximum per before France 2023-13-45"""


@given(words=st.lists(st.sampled_from(CUES.split()), max_size=14))
def test_any_jumble_of_cues_gives_a_query_that_parses(schema_text: str, words: list[str]) -> None:
    reading = read(tables_of(schema_text), " ".join(words))
    if not reading.unread:
        parse_one_statement(reading.sql(), "sqlite")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "snowflake", "bigquery", "mysql"])
def test_odd_names_are_quoted_as_the_schema_text_has_them(dialect: str) -> None:
    orders = Table('order "x"', (Column("ID", "INT"), Column("größe cm", "DECIMAL(10, 2)")))
    schema = render(Catalog("odd", dialect, (orders,))).text
    tree = parse_one_statement(
        read(read_tables(schema), "What is the average größe cm of order x?").sql(), dialect
    )
    assert "größe cm" in {name.name for name in tree.find_all(type(tree.selects[0].this.this.this))}


def test_shards_are_one_table_and_other_tables_of_one_shape_are_not() -> None:
    columns = (Column("id", "INT"), Column("at", "DATE"))
    names = [*(f"day_202401{day:02}" for day in range(30, 32)), "day_20240201", *("p_1", "p_2", "q")]
    text = render(Catalog("logs", "sqlite", tuple(Table(name, columns) for name in names))).text
    members = [table.members for table in read_tables(text)]
    assert members == [["day_20240130", "day_20240131", "day_20240201"], ["p_1", "p_2"], ["q"]]
