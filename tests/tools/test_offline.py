"""The offline model: its SQL gives what SQL written by hand gives; it fills in forms and says what it is."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from quorum.agents.role import roles
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema.render import render
from quorum.tools.databases.sqlite.connector import SqliteConnector
from quorum.tools.models.structured import form_of
from quorum.tools.offline.grammar import read
from quorum.tools.offline.model import RULES, OfflineChatModel, tables_of
from quorum.tools.offline.schema import read_tables
from quorum.tools.sample import DEMO_QUESTIONS, sample_database
from quorum.tools.sql import parse_one_statement

Rows = Counter[tuple[str, ...]]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_database(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def schema_text(shop: Path) -> str:
    async def introspect() -> str:
        async with SqliteConnector.from_url(f"sqlite:///{shop}") as connector:
            return render(await connector.catalog()).text

    return asyncio.run(introspect())


@pytest.fixture(scope="module")
def result_of(shop: Path) -> Callable[[str], Rows]:
    """Runs SQL on the shop, read-only; rows as a multiset, columns in any order, numbers to six places."""
    connection = sqlite3.connect(f"{shop.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    return lambda sql: Counter(
        tuple(sorted(str(round(v, 6) if isinstance(v, float) else v) for v in row))
        for row in connection.execute(sql).fetchall()
    )


QUESTIONS = {
    "How many customers are there?": "SELECT COUNT(*) FROM customers",
    "What is the average salary of employees in each department?": (
        "SELECT department, AVG(salary) FROM employees GROUP BY department"
    ),
    "What is the total amount of settled payments?": (
        "SELECT SUM(amount) FROM payments WHERE status = 'settled'"
    ),
    "revenue by channel": "SELECT channel, SUM(total_amount) FROM orders GROUP BY channel",
    "Which customer has placed the most orders?": """SELECT c.full_name FROM customers AS c
        JOIN orders USING (customer_id) GROUP BY c.customer_id ORDER BY COUNT(*) DESC LIMIT 1""",
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
    DEMO_QUESTIONS[0].question: """SELECT c.name, AVG(rating) FROM reviews
        JOIN products USING (product_id) JOIN categories AS c USING (category_id) GROUP BY c.category_id""",
    DEMO_QUESTIONS[1].question: "SELECT COUNT(*) FROM ("
    + " UNION ALL ".join(f"SELECT event_type FROM events_2024_0{month}" for month in range(2, 6))
    + ") WHERE event_type = 'purchase'",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_query_gives_what_the_question_asks(
    question: str, schema_text: str, result_of: Callable[[str], Rows]
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


def ask(role: str, schema: str, question: str = "How many customers live in Germany?") -> dict[str, Any]:
    parts = {"task": role, "schema": schema, "question": question}
    fenced = [f"<{tag}>\n{text}\n</{tag}>" for tag, text in parts.items()]
    prompt = "\n".join([*fenced, form_of(roles()[role].reply)])
    answer: dict[str, Any] = json.loads(str(OfflineChatModel().invoke(prompt).content))
    return answer


def test_it_says_that_it_is_a_demonstration(schema_text: str) -> None:
    assert RULES.keys() <= roles().keys()
    fields = {"action": "thought", "sql_critique": "reasoning", "self_refiner": "explanation"}
    for role, field in fields.items():
        assert "demonstration" in ask(role, schema_text)[field]
    plain = OfflineChatModel().invoke("How many customers are there?")
    assert "demonstration" in str(plain.content)
    assert plain.response_metadata["demonstration"] is True


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many orders were placed?", "placed"),
        ("How many orders were returned in May 2024?", "returned"),
        ("What is the total of customers per country?", "total"),
        ("How many orders of 4 are there?", "4"),
        ("How many customers are there?", ""),
    ],
)
def test_it_says_which_words_the_query_goes_without(schema_text: str, question: str, words: str) -> None:
    said = [f"The rules do not know the word {word!r} and ignore it." for word in words.split()]
    assert ask("sql_writer", schema_text, question)["assumptions"] == said


def test_a_role_without_a_rule_and_a_schema_without_tables_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"poet.*reply_form"):
        OfflineChatModel().invoke([HumanMessage("<task>poet</task>")])
    with pytest.raises(ConfigurationError, match="no table"):
        ask("action", "# database empty (sqlite): 0 tables, 0 columns")


ABROAD = "What is the market share of our orders against competitors abroad?"


@pytest.mark.parametrize("question", ["Wie warm wird das Wetter?", "???", ABROAD])
def test_a_question_about_something_else_gets_no_query(question: str, schema_text: str) -> None:
    step = ask("action", schema_text, question)
    assert step["action"] == "terminate"
    assert "resembles" in step["missing"]
