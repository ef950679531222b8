"""BIRD's rules: set match and soft F1."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.scorers.base import EX, Prediction
from quorum.evals.scorers.bird import SOFT_F1, BirdScorer, set_difference, soft_f1
from tests.evals.shop import Runner, question

PETS = """
CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, age INTEGER);
INSERT INTO pet VALUES
    (1, 'Rex', 'dog', 3), (2, 'Tom', 'cat', 3), (3, 'Ada', 'dog', 7), (4, 'Kit', 'cat', NULL);
"""
GOLD = "SELECT name, age FROM pet ORDER BY id"

CELLS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([1.0, 2.5]), st.sampled_from("ab"))
Rows = list[tuple[Any, ...]]


def rows(width: int) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(*[CELLS] * width), max_size=5)


async def test_official_verdicts(subtests: pytest.Subtests) -> None:
    for predicted, ex, f1 in (
        (GOLD, 1, 1.0),
        ("SELECT name, age FROM pet ORDER BY id DESC", 1, 0.0),  # soft F1 pairs rows by their place
        ("SELECT name, age FROM pet UNION ALL SELECT name, age FROM pet", 1, 1.0),  # repetition
        ("SELECT age, name FROM pet ORDER BY id", 0, 1.0),  # order of columns counts for EX only
        ("SELECT name, age * 1.0 FROM pet ORDER BY id", 1, 1.0),
        ("SELECT name, CAST(age AS TEXT) FROM pet ORDER BY id", 0, 0.625),
        ("SELECT name, coalesce(age, 0) FROM pet ORDER BY id", 0, 0.875),  # NULL is not 0
        ("SELECT name FROM pet ORDER BY id", 0, 2 / 3),
        ("SELECT name, age, kind FROM pet ORDER BY id", 0, 0.8),
        ("SELECT name, age FROM pet WHERE id < 4 ORDER BY id", 0, 6 / 7),
        ("SELECT name, age FROM pet WHERE 0", 0, 0.0),
        ("SELECT nope FROM pet", 0, 0.0),
    ):
        with subtests.test(predicted=predicted):
            verdict = await BirdScorer().score(question(GOLD), Prediction(predicted), Runner(PETS))
            assert list(verdict.metrics) == [metric.name for metric in BirdScorer.metrics]
            assert verdict.metrics[EX] == ex
            assert verdict.metrics[SOFT_F1] == pytest.approx(f1)
            assert bool(verdict.reason) == (not ex)
            assert (verdict.gold, verdict.gold_rows) == ("ok", 4)


def test_soft_f1_of_the_example_that_bird_gives() -> None:
    gold: Rows = [("Apple", 325), ("Orange", None), ("Banana", 119)]
    found: Rows = [(325, "Apple"), (191, "Orange"), (None, "Banana")]
    # its own 0.8 takes NULL for no value; its program not
    assert soft_f1(gold, found) == pytest.approx(4 / 6)
    assert soft_f1(gold, found[:2]) == pytest.approx(2 * (1.5 / 2) * (1.5 / 3) / (1.5 / 2 + 1.5 / 3))


@given(st.integers(1, 3).flatmap(lambda width: st.tuples(rows(width), rows(width))))
def test_set_match_and_soft_f1_agree_where_they_must(pair: tuple[Rows, Rows]) -> None:
    gold, found = pair
    same = set_difference(gold, found) == ""
    assert same == (set(gold) == set(found)) == (set_difference(found, gold) == "")
    assert 0.0 <= soft_f1(gold, found) <= 1.0
    assert set_difference(gold, found + found[::-1]) == set_difference(gold, found)
    if same:
        assert soft_f1(list(dict.fromkeys(gold)), list(dict.fromkeys(gold))) == 1.0
    if gold:
        assert soft_f1(gold, []) == soft_f1([], gold) == 0.0


@given(rows(3), st.permutations(range(3)))
def test_soft_f1_does_not_see_the_order_of_columns(found: Rows, places: list[int]) -> None:
    assert soft_f1(found, [tuple(row[place] for place in places) for row in found]) == 1.0
