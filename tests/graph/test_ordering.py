"""Which questions ask for their rows in an order, and what that does to a vote."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.graph.disagreement import Side, disagreement
from quorum.graph.ordering import asks_for_order
from quorum.tools.overlap import overlap
from tests.graph.reforce_script import replies, taking_turns, written
from tests.graph.shop import FINE, GOOD, QUESTION, Ran, Run

ORDERED = "How many orders did each city place, most first?"
DESC, ASC = f"{GOOD} ORDER BY orders DESC", f"{GOOD} ORDER BY orders ASC"

ASKS = [
    "How many orders did each city place, most first?",
    "How many orders did each city place? Latest first.",
    "Revenue per city, from highest to lowest",
    "List the cities from the oldest to the youngest customer.",
    "Show the cities sorted by revenue.",
    "Sort the cities by revenue.",
    "Which cities are there? Sort them by name.",
    "Rank the cities by revenue.",
    "Show all cities ranked by number of orders.",
    "What are the names in descending order of age?",
    "List the names in order of age.",
    "Names in reverse alphabetical order, please.",
    "What are the titles, alphabetically?",
    "Show every order chronologically.",
    "List the orders in chronological order.",
    "Show the ids and the number of lines. Order by id.",
    "List the customers and order them by age.",
    "Order the cities by revenue.",
    "Names of customers, ordered by the number of orders",
    "Names ordered by customer name",
    "Arrange the products by price.",
    "Products arranged from cheapest to most expensive",
    "Orders by city, starting with the largest",
    "Revenue per month with the best month first.",
    "Cities, A to Z",
    "List all customers, sorted.",
    "List cities ordered by Revenue descending",
    "Give cities (most orders first) with their revenue",
    "Show id ORDER BY total",
    "Find the top 3 customers, highest revenue first.",
    "Show sales per year in increasing order",
]
DOES_NOT = [
    "How many orders by city",
    "How many orders did each city place?",
    "What are the top 3 cities by revenue?",
    "What was the first order of each customer?",
    "What is the total of the order by customer 5?",
    "Which products were ordered by customer 5?",
    "Which products were ordered by Ada?",
    "Which products were ordered by 'mike from the lowest floor'?",
    "Which products were ordered by more than 3 customers?",
    "Items ordered by each client",
    "Order 5 was delivered by whom?",
    "Order totals by city",
    "Which cities must we visit in order to meet all customers?",
    "What sort of customers live in Lyon?",
    "What is the weekly rank of the show?",
    "What is the rank of each player by season?",
    "Who has the highest rank?",
    "Which customer has the latest first order?",
    "Which city has the most first places?",
    "Which city has the most orders?",
    "List the first name and last name of the oldest customers.",
    "What is the difference from highest to lowest price?",
    "How many days lie from the earliest to the latest order?",
    "Which name comes first alphabetically?",
    "Which products are in the largest order?",
    "How many lines are in each order?",
    "Orders from 2 to 5 euros",
    "Names of customers, in any order.",
    "List the cities; do not sort them by name.",
    "Which tours were arranged by agencies in Lyon?",
    "How many customers have increasing sales?",
    "What is 'Sorted by name' worth?",
    "Which artist sold most (tie broken by alphabetical order)?",
    "Give each city and its customers as a comma-separated list, sorted alphabetically.",
    "Which pairs have the same styles (or in reverse order)?",
    "What are the first and last trips by the chronological order of their start?",
    "",
]


@pytest.mark.parametrize("question", ASKS)
def test_it_asks_for_an_order(question: str) -> None:
    assert asks_for_order(question)


@pytest.mark.parametrize("question", DOES_NOT)
def test_it_does_not(question: str) -> None:
    assert not asks_for_order(question)


def test_it_agrees_with_the_order_of_gold_queries(shared: Path) -> None:
    """Where a gold query sorts and keeps all its rows, its question said so, and hardly elsewhere."""
    asked = json.loads((shared / "data" / "spider1" / "dev.json").read_text(encoding="utf-8"))
    sorts = re.compile(r"\border\s+by\b(?![^()]*\blimit\b)[^()]*$", re.IGNORECASE)
    pairs = [(asks_for_order(each["question"]), bool(sorts.search(each["query"]))) for each in asked]
    both = sum(said and meant for said, meant in pairs)
    assert both > 20
    assert both / sum(said for said, _ in pairs) >= 0.95
    assert both / sum(meant for _, meant in pairs) >= 0.95


async def vote_on(run: Run, question: str, *queries: str, **given: Any) -> Ran:
    said = replies(sql_writer=taking_turns(*queries), validator=FINE)
    return await run(said, question=question, votes=len(queries), recipe="quorum", **given)


@pytest.mark.parametrize("strategy", ["mbr", "wma", "majority"])
@pytest.mark.parametrize("queries", [(ASC, DESC, DESC), (DESC, ASC, ASC)])
async def test_the_order_that_most_have_is_shown_where_one_is_asked_for(
    run: Run, strategy: str, queries: tuple[str, ...]
) -> None:
    ran = await vote_on(run, ORDERED, *queries, strategy=strategy)
    vote = ran.answer.vote
    assert vote is not None
    assert [sorted(cluster.candidates) for cluster in vote.clusters] == [["c2", "c3"], ["c1"]]
    assert vote.clusters[0].weight > vote.clusters[1].weight
    assert ran.answer.sql == queries[1]
    assert ran.answer.rows[0] == (["Lyon", 3] if queries[1] == DESC else ["Ghent", 1])


async def test_what_differs_is_said_to_be_the_order(run: Run) -> None:
    ran = await vote_on(run, ORDERED, ASC, DESC)
    assert "Answer A and answer B have the same rows in another order." in ran.answer.disagreement


async def test_without_the_words_the_order_does_not_count(run: Run) -> None:
    ran = await vote_on(run, QUESTION, ASC, DESC, DESC)
    assert ran.answer.vote is not None
    assert [sorted(cluster.candidates) for cluster in ran.answer.vote.clusters] == [["c1", "c2", "c3"]]
    assert ran.answer.disagreement == []


async def test_inside_a_candidate_another_order_does_not_confirm_a_result(run: Run) -> None:
    said = replies(sql_writer=written(ASC), self_checker=taking_turns(DESC))
    switches = {"self_consistency": True}
    ordered = await run(said, recipe="reforce", question=ORDERED, switches=switches)
    plain = await run(said, recipe="reforce", switches=switches)
    assert ordered.calls()["self_checker"] > plain.calls()["self_checker"] == 1


def test_another_order_costs_support_and_only_where_it_counts() -> None:
    up, down = (
        pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}),
        pa.table({"a": [3, 2, 1], "b": ["z", "y", "x"]}),
    )
    assert overlap(up, down).support == 1
    turned = overlap(up, down, ordered=True)
    assert turned.support == pytest.approx((2 / 3) ** 2)
    assert not turned.same
    assert turned.reversed == overlap(down, up, ordered=True)
    wider = down.append_column("c", pa.array([7.0, 8, 9]))
    assert overlap(up, wider, ordered=True).support < overlap(up, wider).support
    assert overlap(up, up, ordered=True).support == 1


@pytest.mark.parametrize("ordered", [True, False])
def test_answers_with_the_same_rows_differ_in_their_order_where_it_counts(ordered: bool) -> None:
    up, down = pa.table({"n": [1, 2]}), pa.table({"n": [2, 1]})
    a = Side("A", "SELECT n FROM t ORDER BY n", up, ordered=ordered)
    b = Side("B", "SELECT n FROM t ORDER BY n DESC", down, ordered=ordered)
    said = [
        "Answer A and answer B have the same rows in another order.",
        "Answer A is sorted by `n`; answer B by `n DESC`.",
    ]
    assert disagreement(a, b, "sqlite") == (said if ordered else [])
    assert not disagreement(a, replace(a, label="B"), "sqlite")
