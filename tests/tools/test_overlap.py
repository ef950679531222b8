"""Column-wise overlap: bounds, symmetry, what counts and what does not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.results.overlap import overlap

Columns = dict[str, list[Any]]


def matched(a: Columns, b: Columns) -> float:
    return overlap(pa.table(a), pa.table(b)).matched


def support(a: Columns, b: Columns) -> float:
    return overlap(pa.table(a), pa.table(b)).support


def test_a_missing_column_costs_more_than_an_extra_one() -> None:
    narrow: Columns = {"a": [1, 2], "b": ["x", "y"]}
    wide: Columns = narrow | {"c": [0.5, 1.5]}
    assert support(wide, narrow) == pytest.approx(0.826, abs=1e-3)
    assert support(narrow, wide) == pytest.approx(0.510, abs=1e-3)
    found = overlap(pa.table(wide), pa.table(narrow))
    assert (found.relation, found.same, found.columns) == ("contains", True, (3, 2))
    assert found.reversed.relation == "within"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"k": ["x", "y"], "v": [1, 2]}, {"k": ["x", "y"], "v": [2, 1]}, 1.0),  # rows paired otherwise
        ({"k": ["x", "y"], "v": [1, 2]}, {"k": ["x", "y"], "v": [1, 9]}, 1.5),
        ({"k": ["x", "y", "z"], "v": [1, 2, 3]}, {"k": ["x", "y"], "v": [1, 2]}, 4 / 3),  # the longer counts
        ({"v": [1.0, 2.0]}, {"v": [1.004, 2.5]}, 0.5),  # within the tolerance
        ({"v": [1, 1, 1]}, {"v": [1, 2, 3]}, 1 / 3),  # as often as both have it
        ({"v": ["a"], "n": [None]}, {"v": ["b"], "n": [None]}, 0.0),  # NULL agrees with nobody
        ({"v": pa.array([], pa.int64())}, {"v": [1]}, 0.0),
        ({"x": [1, 2, 3], "y": [1, 2, 4]}, {"p": [1, 2, 3], "q": [1, 2, 5], "r": [7, 7, 7]}, 1 + 2 / 3),
    ],
)
def test_what_is_matched(a: Columns, b: Columns, expected: float) -> None:
    assert matched(a, b) == pytest.approx(expected)
    assert matched(b, a) == pytest.approx(expected)


CELL = st.sampled_from([None, 0, 1, 1.001, 2, 2.5, 2.503])


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 4))
    columns = draw(st.lists(st.lists(CELL, min_size=rows, max_size=rows), min_size=1, max_size=4))
    return pa.Table.from_arrays([pa.array(c, pa.float64()) for c in columns], names=["c"] * len(columns))


@given(tables(), tables(), st.randoms(use_true_random=False))
def test_support_is_bounded_and_does_not_depend_on_form(a: pa.Table, b: pa.Table, draw: Any) -> None:
    found = overlap(a, b)
    assert overlap(b, a) == found.reversed
    assert found.reversed.reversed == found
    assert 0 <= found.matched <= min(found.columns)
    assert 0 <= found.support <= 1
    assert (found.support == 1) == (found.relation == "equal")
    moved = a.take(pa.array(draw.sample(range(a.num_rows), a.num_rows), pa.int64()))
    moved = moved.select(draw.sample(range(a.num_columns), a.num_columns))
    assert overlap(moved, b) == found
