"""defog's rules: what is accepted, when results are the same or hold one another, and verdicts by them."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.scorers.base import Prediction, Verdict
from quorum.evals.scorers.defog import DefogScorer, Grid, accepted_queries, asks_for_order, exact, subset
from quorum.evals.suites import load_suite
from tests.evals.shop import Runner, question

SCORER = DefogScorer()


def seen(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.metrics["ex"], verdict.metrics["exact"]


async def test_the_sql_of_a_prediction_is_executed(run: Runner, subtests: pytest.Subtests) -> None:
    for sql, metrics in (
        ("SELECT name FROM users WHERE age > 20", (1.0, 1.0)),
        ("SELECT id FROM users WHERE age > 20", (1.0, 1.0)),
        ("SELECT id, name, country FROM users WHERE age > 20", (1.0, 0.0)),
        ("SELECT name FROM users WHERE age > 21", (0.0, 0.0)),
        ("SELECT country FROM users WHERE age > 20", (0.0, 0.0)),
        ("SELECT gone FROM users", (0.0, 0.0)),
    ):
        with subtests.test(sql=sql):
            asked = question(
                *accepted_queries("SELECT {id,name} FROM users WHERE age > 20"),
                category="ratio",
                query="unused",
            )
            assert seen(await SCORER.score(asked, Prediction(sql), run)) == metrics


async def test_the_rows_of_the_nearest_gold_are_said(run: Runner) -> None:
    asked = question("SELECT id FROM users", "SELECT id, name FROM users WHERE id < 3")
    assert (await SCORER.score(asked, Prediction("SELECT id FROM users"), run)).gold_rows == 4
    short = await SCORER.score(asked, Prediction("SELECT name FROM users WHERE id = 1"), run)
    assert (short.reason, short.gold_rows) == ("1 row, the gold has 2", 2)


async def test_mixed_storage_classes_keep_their_values(run: Runner) -> None:
    mixed = "SELECT CASE WHEN id = 1 THEN 'x' ELSE id END AS v FROM users"
    texts = "SELECT CASE WHEN id = 1 THEN 'x' ELSE CAST(id AS TEXT) END AS v FROM users"
    assert seen(await SCORER.score(question(mixed), Prediction(mixed), run)) == (1.0, 1.0)
    assert seen(await SCORER.score(question(mixed), Prediction(texts), run)) == (0.0, 0.0)


async def test_order_of_a_question_that_asks_for_one(run: Runner) -> None:
    asked = question("SELECT name FROM users ORDER BY name ASC", text="Users in order?", query="SELECT 1")
    unsorted = await SCORER.score(asked, Prediction("SELECT name FROM users ORDER BY id DESC"), run)
    assert (seen(unsorted), unsorted.reason) == ((0.0, 0.0), "other values, or another order of rows")


Rows = list[tuple[Any, ...]]


def grid(names: str, *rows: tuple[Any, ...]) -> Grid:
    return Grid.of_rows(names.split(), list(rows))


def test_queries_that_a_text_stands_for(subtests: pytest.Subtests) -> None:
    for text, queries in (
        ("SELECT 1", ["SELECT 1"]),
        (" SELECT 1 ; ;SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT {a} FROM t", ["SELECT a FROM t"]),
        ("SELECT {a,b} FROM t", ["SELECT a FROM t", "SELECT b FROM t", "SELECT a, b FROM t"]),
        (
            "SELECT {a,b}, n FROM t GROUP BY {}",
            [
                "SELECT a, n FROM t GROUP BY a",
                "SELECT b, n FROM t GROUP BY b",
                "SELECT a, b, n FROM t GROUP BY a, b",
            ],
        ),
        (
            "SELECT {a,b,c}",
            [f"SELECT {each}" for each in ("a", "b", "c", "a, b", "a, c", "b, c", "a, b, c")],
        ),
        ("SELECT {a FROM t", ["SELECT {a FROM t"]),
        ("SELECT a} FROM t", ["SELECT a} FROM t"]),
        ("SELECT {a} FROM t WHERE x = '{b}'", ["SELECT a FROM t WHERE x = '{b}'"]),  # the first pair only
    ):
        with subtests.test(text=text):
            assert accepted_queries(text) == queries


def test_when_order_counts() -> None:
    for category, text, asks in (
        ("order_by", "Which users?", True),
        ("ratio", "List the users in alphabetical order.", True),
        ("ratio", "Sort them.", True),
        ("ratio", "Users, sorted by age", False),
        ("ratio", "Who ordered?", False),
    ):
        assert asks_for_order(category, text) is asks


GOLD = grid("name n", ("Ada", 2), ("Bob", 1), ("Cy", 1))


ONE, NULLS = grid("x", (0.5,), (1e6,)), grid("x", (None,), (1,))
MIXED = (("a",), (1,), (None,), (b"\x00",), (2.5,))


def test_exact_and_subset(subtests: pytest.Subtests) -> None:
    for gold, found, same, holds in (
        (GOLD, grid("name n", ("Cy", 1), ("Ada", 2), ("Bob", 1)), True, True),
        (GOLD, grid("n name", (2, "Ada"), (1, "Bob"), (1, "Cy")), True, True),
        (GOLD, grid("b a", ("Cy", 1), ("Ada", 2), ("Bob", 1)), True, True),
        (GOLD, grid("a b", ("Cy", 1), ("Ada", 2), ("Bob", 1)), False, True),  # the names sort otherwise
        (GOLD, grid("name n", ("Ada", 2), ("Bob", 1), ("Cy", 1), ("Cy", 1)), True, False),
        (GOLD, grid("name n x", ("Ada", 2, 7), ("Bob", 1, 7), ("Cy", 1, 8)), False, True),
        (GOLD, grid("name n", ("Ada", 2.0), ("Bob", 1.0), ("Cy", 1.0)), True, True),
        (GOLD, grid("name n", ("Ada", 2.000001), ("Bob", 1.0), ("Cy", 1.0)), False, False),  # whole numbers
        (GOLD, grid("name n", ("Ada", "2"), ("Bob", "1"), ("Cy", "1")), False, False),
        (GOLD, grid("name n", ("Ada", 1), ("Bob", 2), ("Cy", 1)), False, False),
        (GOLD, grid("name n", ("Ada", 2), ("Bob", 1)), False, False),
        (GOLD, grid("name n", ("Ada", 2), ("Bob", 1), ("Cy", None)), False, False),
        (GOLD, grid("name", ("Ada",), ("Bob",), ("Cy",)), False, False),
        (GOLD, grid("name n"), False, False),
        # fractions may be a little off in a subset only
        (ONE, grid("y", (0.500001,), (1e6 + 1,)), False, True),
        (ONE, grid("y", (0.5001,), (1e6,)), False, False),
        # NULL equals NULL and is not 0
        (NULLS, grid("x", (1,), (None,)), True, True),
        (NULLS, grid("x", (0,), (1,)), False, False),
        # NULL in numbers equals nothing at first look; columns of other names are sorted otherwise at the
        # second, so only the subset is found
        (grid("a b", (1, 2.5), (2, None)), grid("b a", (1, 2.5), (2, None)), False, True),
        (grid("a b", (1, "x"), (2, None)), grid("b a", (1, "x"), (2, None)), True, True),
        (grid("x", *MIXED), grid("y", *reversed(MIXED)), True, True),  # values of several kinds are sorted
        # an empty result equals an empty one of as many columns, and holds nothing
        (grid("a b"), grid("c d"), True, False),
        (grid("a b"), grid("c"), False, False),
        # results of other shapes are not stretched
        (grid("a", (1,)), grid("a"), False, False),
        (grid("a", (5,)), grid("a b", (5, 5)), False, True),
        (grid("a b", (5, 5)), grid("a", (5,)), False, False),
    ):
        with subtests.test(gold=gold):
            assert exact(gold, found, ordered=False) is same
            assert subset(gold, found, ordered=False) is holds


def test_in_order_columns_are_paired_greedily_and_then_row_by_row() -> None:
    """The first gold column takes the first that fits; no other pairing is tried, as in the program."""
    gold, turned = grid("a b", (1, 2), (2, 1)), grid("a b", (2, 1), (1, 2))
    assert subset(gold, grid("x y", (1, 2), (2, 1)), ordered=True)
    assert not subset(gold, grid("y x", (2, 1), (1, 2)), ordered=True)
    assert exact(gold, turned, ordered=False)
    assert not exact(gold, turned, ordered=True)
    assert grid("n n", (1, 2)).names == ("n_0", "n_1"), "columns of one name are told apart"


def test_an_order_by_sorts_before_the_exact_comparison(subtests: pytest.Subtests) -> None:
    for gold_sql, found_sql, same in (
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY t.a asc", True),
        ("SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a", True),  # neither: descending
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a DESC", False),
        ("SELECT a FROM t ORDER BY b ASC, a DESC", "SELECT a FROM t ORDER BY a ASC", True),  # up to the comma
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t", False),  # those rows are left as they are
        ("SELECT a FROM t", "SELECT a FROM t", False),
    ):
        with subtests.test(gold_sql=gold_sql):
            gold, found = grid("a", (1,), (3,), (2,)), grid("a", (3,), (2,), (1,))
            assert exact(gold, found, ordered=True, gold_sql=gold_sql, found_sql=found_sql) is same


VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, 1.5, -2.25]), st.sampled_from("abc"))


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[str], Rows]:
    width = draw(st.integers(1, 3))
    names = draw(st.permutations(["a", "b", "C", "d"]))[:width]
    return names, draw(st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=6))


@given(grids(), st.randoms(use_true_random=False))
def test_rows_in_another_order_are_the_same_unless_it_counts(
    found: tuple[list[str], Rows], rng: random.Random
) -> None:
    names, rows = found
    shuffled = rng.sample(rows, len(rows))
    assert exact(Grid.of_rows(names, rows), Grid.of_rows(names, shuffled), ordered=False)
    distinct = list(dict.fromkeys(rows)) != list(dict.fromkeys(shuffled))
    assert exact(Grid.of_rows(names, rows), Grid.of_rows(names, shuffled), ordered=True) is not distinct


@given(grids(), VALUES)
def test_what_is_the_same_and_what_is_not(found: tuple[list[str], Rows], value: Any) -> None:
    """Columns may turn, a further one leaves the subset; one that is dropped or a new row is wrong."""
    names, rows = found
    gold = Grid.of_rows(names, rows)
    assert exact(gold, Grid.of_rows(names[::-1], [row[::-1] for row in rows]), ordered=False)
    more = Grid.of_rows([*names, "z"], [(*row, value) for row in rows])
    added = Grid.of_rows(names, [*rows, tuple(99 for _ in names)])
    less = Grid.of_rows(names[1:], [row[1:] for row in rows])
    for other, holds in ((more, True), (added, False), (less, False)):
        assert not exact(gold, other, ordered=False)
        assert subset(gold, other, ordered=False) is holds


def test_every_accepted_query_of_defog_is_the_same_as_itself_and_its_mutations_are_not(shared: Path) -> None:
    """Row left out, column left out, value changed: right of none of the 188 results."""
    folder = shared / "data" / "defog"
    questions = load_suite("defog", folder).questions
    databases = {asked.database for asked in questions}
    connections = {name: sqlite3.connect(folder / "databases" / f"{name}.sqlite") for name in databases}
    count = 0
    for asked in questions:
        query, ordered = asked.extra["query"], asks_for_order(asked.extra["category"], asked.question)
        for sql in asked.gold_sql:
            cursor = connections[asked.database].execute(sql)
            names, rows = [column[0] for column in cursor.description], cursor.fetchall()
            gold = Grid.of_rows(names, rows)
            assert exact(gold, gold, ordered=ordered, gold_sql=query, found_sql=sql)
            count += 1
            if not rows:  # of the last seven days, say
                continue
            changed = [tuple(f"{rows[0][0]}x" if i == 0 else v for i, v in enumerate(rows[0])), *rows[1:]]
            wrongs = [(names, rows[1:]), (names, changed), (names[1:], [row[1:] for row in rows])]
            for found in (Grid.of_rows(*wrong) for wrong in wrongs if wrong[0]):
                assert not exact(gold, found, ordered=ordered, gold_sql=query, found_sql=sql), sql
                assert not subset(gold, found, ordered=ordered), sql
    for connection in connections.values():
        connection.close()
    assert count == 188
