"""Means, shares, quantiles, paired tests, calibration: by hand, by published values, and by numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.reports.statistics import (
    bootstrap_interval,
    calibrate,
    mcnemar,
    mean_of,
    wilson,
)


def test_a_mean_has_the_standard_error_of_the_sample_and_leaves_out_what_is_not_defined() -> None:
    with pytest.raises(ValueError):
        bootstrap_interval([])
    found = mean_of([1.0, 2.0, 3.0, 5.0])
    assert (found.n, found.mean, found.median, found.low) == (4, 2.75, 2.5, None)
    assert found.se == pytest.approx(math.sqrt(35 / 12 / 4))  # variance 35/12
    one, none = mean_of([None, 3.0, math.nan, math.inf]), mean_of([])
    assert (one.n, one.mean, one.se) == (1, 3.0, None)
    assert (none.n, none.mean, none.se) == (0, None, None)
    share = mean_of([True, False, False])
    assert (share.mean, share.low, share.high) == (pytest.approx(1 / 3), *wilson(1, 3))


def test_wilson() -> None:
    for count, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ):
        assert wilson(count, n) == pytest.approx((low, high), abs=5e-5)  # Newcombe (1998), table I, method 3


# Paired results


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_chance_of_a_split_at_least_as_uneven(gained: int, lost: int) -> None:
    n = gained + lost
    splits = [math.comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(gained - lost)]
    assert mcnemar(gained, lost) == pytest.approx(sum(splits) / 2**n)
    assert mcnemar(121, 59) == mcnemar(59, 121) == pytest.approx(4.43444e-06, rel=1e-5)  # R: binom.test
    assert mcnemar(5_000, 5_000) == 1.0


@settings(max_examples=15)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=5, max_size=40))
def test_the_interval_is_that_of_resampling_question_by_question(changes: list[float]) -> None:
    drawn = np.random.default_rng(1).integers(0, len(changes), (20_000, len(changes)))
    low, high = np.quantile(np.asarray(changes)[drawn].mean(axis=1), (0.025, 0.975))
    step = 1 / len(changes)  # means are multiples of it; near a border one step more or less is drawn
    assert bootstrap_interval(changes) == pytest.approx((low, high), abs=step + 1e-9)
    assert bootstrap_interval(changes) == bootstrap_interval(changes)


# Calibration


def test_calibration_by_hand() -> None:
    found = calibrate([(0.9, True), (0.8, False), (0.6, True), (0.2, False)])
    assert (found.n, found.brier_base, found.auroc) == (4, 0.25, 3 / 4)
    assert found.brier == pytest.approx((0.01 + 0.64 + 0.16 + 0.04) / 4)
    assert calibrate([(1.0, True), (0.0, False)]).brier == 0
    assert calibrate([(0.5, True), (0.5, False)]).auroc == 0.5
    assert calibrate([(0.5, True)]).auroc is None
    assert calibrate([(math.nan, False), (0.5, True)]).n == 1, "a confidence that is none is left out"
    assert calibrate([(math.nan, True), (1.5, True), (-0.1, False)]) is None
    found = calibrate([(0.0, False), (0.1, False), (0.3, True), (0.30001, True), (1.0, True)])
    assert [(each.high, each.n) for each in found.bins] == [(0.1, 2), (0.3, 1), (0.4, 1), (1.0, 1)], (
        "bins hold their upper edge"
    )
    first = found.bins[0]
    assert (first.low, first.confidence, first.accuracy) == (0.0, 0.05, 0.0)
