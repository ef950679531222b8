"""Means with their uncertainty, the calibration of a confidence, and tests of paired results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

Z95 = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""

RESAMPLES = 20_000
_AT_ONCE = 1_000  # resamples drawn together, which bounds the memory

BINS = 10


@dataclass(frozen=True)
class Mean:
    """A mean over ``n`` values; a share where each of them is 0 or 1.

    Attributes:
        mean, median: None of no values.
        se: Standard error of the mean: sample standard deviation (n - 1) over √n; None of fewer than two
            values.
        low, high: 95 % interval of a share (``wilson``); None of other values.
    """

    n: int
    mean: float | None = None
    se: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None


def mean_of(values: Iterable[float | None]) -> Mean:
    """Return the mean of the values that are defined: neither None nor infinite nor NaN."""
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return Mean(0)
    error = stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
    share = wilson(round(sum(known)), len(known)) if set(known) <= {0.0, 1.0} else (None, None)
    return Mean(len(known), fmean(known), error, median(known), *share)


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the interval of a share that ``count`` of ``n`` were drawn from, both within 0 to 1.

    The score interval without continuity correction (Wilson, 1927), which holds its level for small
    ``n`` and for shares near 0 and 1 as well.
    """
    share, square = count / n, Z95 * Z95
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = Z95 / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return low, high


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of McNemar's test (McNemar, 1947; exact: binomial with p = 1/2).

    Args:
        gained: Questions that only the second system has right.
        lost: Questions that only the first has right.

    Returns:
        How probable a split at least as uneven is if both are equally good; 1 where none differs.
    """
    differing = gained + lost
    tail = splits = 1  # of the differing questions, how many splits give one side at most so many
    for count in range(min(gained, lost)):
        splits = splits * (differing - count) // (count + 1)
        tail += splits
    return min(1.0, 2 * tail / (1 << differing))


def bootstrap_interval(values: Sequence[float], *, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean, as of paired differences (Efron, 1979), seeded.

    Equal values are drawn together: how often each occurs in a resample is multinomial.

    Raises:
        ValueError: There is no value.
    """
    import numpy as np

    if not values:
        raise ValueError("an interval needs at least one value")
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    random = np.random.default_rng(0)
    means = []
    for start in range(0, resamples, _AT_ONCE):
        drawn = random.multinomial(len(values), counts / len(values), min(_AT_ONCE, resamples - start))
        means.append(drawn @ distinct / len(values))
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)


# Calibration

Judged = tuple[float, bool]
"""An answer's confidence, 0 to 1, and whether it is right."""


@dataclass(frozen=True)
class Bin:
    """Answers of one tenth of the confidences: ``low`` < confidence ≤ ``high`` (the first holds 0 too).

    Attributes:
        confidence, accuracy: Means over its ``n`` answers.
    """

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class CalibrationStats:
    """Confidence against rightness, over ``n`` answers known to be right or wrong.

    Attributes:
        brier: Mean squared distance of confidence and rightness (Brier, 1950), 0 to 1, 0 is perfect.
        brier_base: Of one who always says the share right: a confidence that tells answers apart is below.
        auroc: How probably a right answer has more confidence than a wrong one; 0.5 is chance, None where all
            are right or all wrong.
        bins: Those of ``BINS`` of equal width that have answers, for a reliability diagram.
    """

    n: int
    brier: float
    brier_base: float
    auroc: float | None
    bins: tuple[Bin, ...]


def calibrate(answers: Iterable[Judged]) -> CalibrationStats | None:
    """Return the calibration of the confidences; None if no answer has one within 0 to 1."""
    given = [(sure, right) for sure, right in answers if 0 <= sure <= 1]  # NaN is not
    if not given:
        return None
    accuracy = fmean(right for _, right in given)
    brier = fmean((sure - right) ** 2 for sure, right in given)
    return CalibrationStats(len(given), brier, accuracy * (1 - accuracy), _auroc(given), tuple(_bins(given)))


def _auroc(answers: Sequence[Judged]) -> float | None:
    """Return the area under the receiver operating characteristic."""
    rights, wrongs = ([sure for sure, right in answers if right is kind] for kind in (True, False))
    pairs = [(sure > other) + (sure == other) / 2 for sure in rights for other in wrongs]
    return fmean(pairs) if pairs else None


def _bins(answers: Sequence[Judged]) -> Iterator[Bin]:
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        own = [(sure, right) for sure, right in answers if sure <= high and (sure > low or number == 0)]
        if own:
            yield Bin(low, high, len(own), fmean(sure for sure, _ in own), fmean(right for _, right in own))
