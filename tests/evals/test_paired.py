"""McNemar's exact test and the paired bootstrap, against known values and against plain resampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.reports.statistics import bootstrap_interval, mcnemar


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (0, 6, 0.03125),
        (1, 9, 22 / 1024),
        (5, 5, 1.0),
        (7, 13, 0.263176),  # R: binom.test(7, 20)
        (121, 59, 4.434444e-06),  # R: binom.test(59, 180)
        (10, 2, 0.03857421875),  # R: binom.test(2, 12)
    ],
)
def test_mcnemar_gives_the_values_of_the_exact_binomial_test(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p, rel=1e-5)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_chance_of_a_split_at_least_as_uneven(gained: int, lost: int) -> None:
    n = gained + lost
    splits = [math.comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(gained - lost)]
    assert mcnemar(gained, lost) == pytest.approx(sum(splits) / 2**n)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


def test_mcnemar_takes_thousands_of_questions() -> None:
    assert mcnemar(5_000, 5_000) == 1.0
    assert 0 <= mcnemar(4_000, 1_000) < 1e-300


@settings(max_examples=15)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=5, max_size=40))
def test_the_interval_is_that_of_resampling_question_by_question(changes: list[float]) -> None:
    drawn = np.random.default_rng(1).integers(0, len(changes), (20_000, len(changes)))
    low, high = np.quantile(np.asarray(changes)[drawn].mean(axis=1), (0.025, 0.975))
    step = 1 / len(changes)  # means are multiples of it; near a border one step more or less is drawn
    assert bootstrap_interval(changes) == pytest.approx((low, high), abs=step + 1e-9)


def test_the_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(2)
    true = 0.1
    hits = 0
    for _ in range(200):
        changes = random.choice([-1.0, 0.0, 1.0], 120, p=[0.1, 0.7, 0.2]).tolist()
        low, high = bootstrap_interval(changes, resamples=1_000)
        hits += low <= true <= high
    assert 0.88 < hits / 200 < 0.99


def test_the_interval_is_the_same_each_time_and_takes_any_number() -> None:
    changes = [0.5, -0.25, 0.1, 0.0, 0.9]
    assert bootstrap_interval(changes) == bootstrap_interval(changes)
    low, high = bootstrap_interval(changes)
    assert min(changes) <= low < sum(changes) / 5 < high <= max(changes)
    with pytest.raises(ValueError):
        bootstrap_interval([])
