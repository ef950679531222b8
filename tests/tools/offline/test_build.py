"""From questions to SQL: results on the sample shop must equal those of SQL written by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from knowledge.catalog import Catalog, Column, ForeignKey, Table
from tools.offline.build import build_sql
from tools.offline.draft import alias
from tools.offline.link import Linker
from tools.offline.reader import Choice
from tools.offline.schema import Schema
from tools.sample import DEMO_QUESTIONS, SampleQuestion
from tools.sql import parse_one_statement

ALL_EVENTS = " UNION ALL ".join(f"SELECT * FROM events_2024_{month:02d}" for month in range(1, 7))
BY_ORDERS = "JOIN orders AS o USING (customer_id) GROUP BY c.customer_id ORDER BY COUNT(*) DESC"

QUESTIONS = {
    # counts and groups
    "How many customers are there?": "SELECT COUNT(*) FROM customers",
    "How many customers per country?": "SELECT country, COUNT(*) FROM customers GROUP BY country",
    "Show the number of orders for each channel.": "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "What are the different payment methods?": "SELECT DISTINCT method FROM payments",
    "How many customers have more than 10 orders?": """SELECT COUNT(*) FROM (
        SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 10)""",
    # sums, averages, extremes
    "What is the average salary of employees in each department?": (
        "SELECT department, AVG(salary) FROM employees GROUP BY department"
    ),
    "What are the minimum and maximum salary of employees?": "SELECT MIN(salary), MAX(salary) FROM employees",
    "What is the highest salary?": "SELECT MAX(salary) FROM employees",
    "What is the total amount of settled payments?": (
        "SELECT SUM(amount) FROM payments WHERE status = 'settled'"
    ),
    "What is the average list_price of products?": "SELECT AVG(list_price) FROM products",
    "List the names of the 3 most expensive products.": (
        "SELECT name FROM products ORDER BY list_price DESC LIMIT 3"
    ),
    "Which customer has placed the most orders?": (
        f"SELECT c.full_name FROM customers AS c {BY_ORDERS} LIMIT 1"
    ),
    "top 5 customers by number of orders": f"SELECT c.full_name FROM customers AS c {BY_ORDERS} LIMIT 5",
    "Which city has the most addresses?": (
        "SELECT city FROM addresses GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1"
    ),
    # joins
    "What is the average list price of products by category name?": """SELECT c.name, AVG(list_price)
        FROM products JOIN categories AS c USING (category_id) GROUP BY c.category_id""",
    "How many orders were placed by customers from Italy?": (
        "SELECT COUNT(*) FROM orders JOIN customers USING (customer_id) WHERE country = 'Italy'"
    ),
    # filters
    "How many customers are from France or Spain?": (
        "SELECT COUNT(*) FROM customers WHERE country IN ('France', 'Spain')"
    ),
    "List the email of customers born after 2000.": "SELECT email FROM customers WHERE birth_year > 2000",
    "How many support tickets have priority 'urgent' and status 'open'?": (
        "SELECT COUNT(*) FROM support_tickets WHERE priority = 'urgent' AND status = 'open'"
    ),
    "Find the products whose name contains 'Nordic'.": "SELECT name FROM products WHERE name LIKE '%Nordic%'",
    "Show the number of reviews with a rating of at least 4.": (
        "SELECT COUNT(*) FROM reviews WHERE rating >= 4"
    ),
    "Which products are heavier than average?": (
        "SELECT name FROM products WHERE weight_grams > (SELECT AVG(weight_grams) FROM products)"
    ),
    "How many customers have no orders?": (
        "SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)"
    ),
    # dates, in ISO and in day-first text
    "How many orders were created in March 2024?": (
        "SELECT COUNT(*) FROM orders WHERE created_at LIKE '2024-03%'"
    ),
    "How many orders per month in 2023?": """SELECT SUBSTR(created_at, 1, 7), COUNT(*) FROM orders
        WHERE created_at LIKE '2023%' GROUP BY 1""",
    "What is the total refund amount of returns before 2024?": (
        "SELECT SUM(refund_amount) FROM returns WHERE SUBSTR(returned_on, 7) < '2024'"
    ),
    # shards
    "How many events were there in June 2024?": "SELECT COUNT(*) FROM events_2024_06",
    "How many events are there per event type?": (
        f"SELECT event_type, COUNT(*) FROM ({ALL_EVENTS}) GROUP BY event_type"
    ),
    # terms that the documents define
    "How many large orders are there?": "SELECT COUNT(*) FROM orders WHERE total_amount >= 500",
    "What is the average total amount of phone orders?": (
        "SELECT AVG(total_amount) FROM orders WHERE channel = 'phone'"
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_query_gives_what_the_question_asks(
    question: str, linker: Linker, documents: str, result_of: Callable[[str], Counter[tuple[str, ...]]]
) -> None:
    sql = build_sql(linker, question, documents=documents)
    assert result_of(sql) == result_of(QUESTIONS[question]), sql


@pytest.mark.parametrize("sample", DEMO_QUESTIONS[:2], ids=lambda sample: sample.shows)
def test_the_first_demo_questions_are_answered_at_once(
    sample: SampleQuestion,
    linker: Linker,
    documents: str,
    result_of: Callable[[str], Counter[tuple[str, ...]]],
) -> None:
    sql = build_sql(linker, sample.question, documents=documents)
    assert result_of(sql) == result_of(sample.gold), sql


def test_only_the_shards_of_the_period_are_read(linker: Linker) -> None:
    sql = build_sql(linker, "How many events happened from February to May 2024?")
    assert [month for month in range(1, 7) if f"events_2024_{month:02d}" in sql] == [2, 3, 4, 5]


def test_a_snake_case_word_is_trusted_even_if_it_is_wrong(linker: Linker) -> None:
    assert "orders.total_amt" in build_sql(linker, "What is the average total_amt of orders?")


def test_at_temperature_zero_the_seed_does_not_matter(linker: Linker) -> None:
    question = "How many customers have orders with reviews per country?"
    assert len({build_sql(linker, question, Choice(0.0, seed)) for seed in range(30)}) == 1


def test_above_it_seeds_give_several_readings_and_each_its_own_again(linker: Linker) -> None:
    question = "Show the name and the number of orders of customers in each country"
    readings = [build_sql(linker, question, Choice(1.0, seed)) for seed in range(30)]
    assert len(set(readings)) >= 3
    assert readings == [build_sql(linker, question, Choice(1.0, seed)) for seed in range(30)]


@given(question=st.text(max_size=80), seed=st.integers(0, 5))
def test_any_text_gives_one_query_that_parses(linker: Linker, question: str, seed: int) -> None:
    parse_one_statement(build_sql(linker, question, Choice(1.0, seed)), "sqlite")


CUES = """how many which what top 3 most least average total of each by order orders customers rating from not
no with name or and 2024 may in 'x' total_x than more oldest count ? , . 'Berlin between maximum per before"""


@given(words=st.lists(st.sampled_from(CUES.split()), max_size=14), seed=st.integers(0, 3))
def test_any_jumble_of_cues_gives_a_query_that_parses(linker: Linker, words: list[str], seed: int) -> None:
    parse_one_statement(build_sql(linker, " ".join(words), Choice(1.0, seed)), "sqlite")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("COUNT(*)", "count"),
        ("AVG(products.list_price)", "avg_list_price"),
        ('MAX("order x".price)', "max_price"),
        ("strftime('%Y-%m', orders.created_at)", "month"),
    ],
)
def test_computed_columns_have_speaking_names(expression: str, name: str) -> None:
    assert alias(expression) == name


def odd_linker(dialect: str) -> Linker:
    key = Column("ID", "INT")
    orders = Table('order "x"', (key, Column("größe cm", "INT")), primary_key=("ID",))
    link = ForeignKey(("ORDER_ID",), 'order "x"', ("ID",))
    groups = Table("GROUP", (key, Column("ORDER_ID", "INT")), foreign_keys=(link,))
    return Linker(Schema(Catalog("odd", dialect, (orders, groups))))


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "snowflake", "bigquery", "mysql"])
def test_odd_names_are_quoted_as_the_dialect_wants(dialect: str) -> None:
    sql = build_sql(odd_linker(dialect), "What is the average größe cm of order x per group?")
    tree = parse_one_statement(sql, dialect)
    assert {table.name for table in tree.find_all(exp.Table)} == {'order "x"', "GROUP"}
    assert "größe cm" in {column.name for column in tree.find_all(exp.Column)}
