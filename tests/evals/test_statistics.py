"""Means, shares and quantiles against values computed by hand, and against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.reports.statistics import mean_of, share_of, spread_of, wilson

NUMBERS = st.floats(-1e6, 1e6)


def test_a_mean_has_the_standard_error_of_the_sample() -> None:
    found = mean_of([1.0, 2.0, 3.0, 4.0])
    assert (found.n, found.mean) == (4, 2.5)
    assert found.se == pytest.approx(math.sqrt(5 / 3 / 4))  # variance 5/3


def test_a_mean_leaves_out_what_is_not_defined() -> None:
    assert mean_of([None, 3.0, math.nan, math.inf]) == mean_of([3.0])
    assert (mean_of([3.0]).mean, mean_of([3.0]).se) == (3.0, None)
    assert (mean_of([]).n, mean_of([]).mean, mean_of([]).se) == (0, None, None)


@given(st.lists(st.booleans(), min_size=2, max_size=20))
def test_a_share_is_a_mean_of_flags(flags: list[bool]) -> None:
    share, mean = share_of(flags), mean_of(float(flag) for flag in flags)
    assert share.share == pytest.approx(mean.mean)
    assert share.se == pytest.approx(mean.se)


def test_a_share_of_nothing_is_none_and_of_one_has_no_standard_error() -> None:
    assert share_of([]).share is None
    assert share_of([]).low is None
    assert (share_of([True]).share, share_of([True]).se) == (1.0, None)


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson(count: int, n: int, low: float, high: float) -> None:
    assert wilson(count, n) == pytest.approx((low, high), abs=5e-5)  # Newcombe (1998), table I, method 3


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_share_within_0_to_1_and_is_symmetric(pair: tuple[int, int]) -> None:
    count, n = pair
    low, high = wilson(count, n)
    assert 0 <= low <= count / n <= high <= 1
    assert low < high
    assert wilson(n - count, n) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("count", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_share(count: int, n: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(count, n)


@given(st.lists(NUMBERS, min_size=1, max_size=15))
def test_quantiles_are_numpys_and_lie_among_the_values(values: list[float]) -> None:
    found = spread_of(values)
    assert found.p50 == pytest.approx(float(np.quantile(values, 0.5)), rel=1e-9, abs=1e-6)
    assert found.p95 == pytest.approx(float(np.quantile(values, 0.95)), rel=1e-9, abs=1e-6)
    assert found.high == max(values)


def test_a_spread() -> None:
    found = spread_of([4.0, 1.0, 3.0, 2.0])
    assert (found.n, found.unknown, found.mean, found.p50, found.high) == (4, 0, 2.5, 2.5, 4.0)
    assert found.p95 == pytest.approx(3.85)  # between 3 and 4, at place 0.95 * 3
    assert (found.total, found.known_total) == (10.0, 10.0)


def test_an_unknown_value_makes_the_total_unknown_never_zero() -> None:
    partly, wholly = spread_of([1.0, None, math.nan]), spread_of([None])
    assert (partly.n, partly.unknown, partly.total, partly.known_total) == (1, 2, None, 1.0)
    assert (wholly.n, wholly.unknown, wholly.mean, wholly.total, wholly.known_total) == (
        0,
        1,
        None,
        None,
        None,
    )
