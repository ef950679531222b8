"""Means with standard errors, shares with Wilson's interval, quantiles, and tests of paired results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, stdev

Z95 = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""

RESAMPLES = 20_000
_AT_ONCE = 1_000  # resamples drawn together, which bounds the memory


@dataclass(frozen=True)
class Mean:
    """A mean over ``n`` values.

    Attributes:
        mean: None of no values.
        se: Its standard error: sample standard deviation (n - 1) over √n; None of fewer than two values.
    """

    n: int
    mean: float | None = None
    se: float | None = None


@dataclass(frozen=True)
class Share:
    """``count`` of ``n``.

    Attributes:
        share: 0 to 1; None if ``n`` is 0.
        se: Standard error of the share, as of any mean (``Mean``).
        low, high: 95 % interval (``wilson``).
    """

    count: int
    n: int
    share: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Spread:
    """The distribution of the ``n`` known values; all None without any.

    Attributes:
        unknown: Values that are not known.
        mean, p50, p95, high: Over the known values; quantiles are interpolated linearly (Hyndman and Fan's
            type 7, numpy's default), ``high`` is the highest.
        total: Of all values; None if one is unknown. ``known_total`` is the sum of the known ones.
    """

    n: int
    unknown: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    high: float | None = None
    total: float | None = None
    known_total: float | None = None


def mean_of(values: Iterable[float | None]) -> Mean:
    """Return the mean of the values that are defined: neither None nor infinite nor NaN."""
    known = _finite(values)
    if len(known) < 2:
        return Mean(len(known), known[0] if known else None)
    return Mean(len(known), fmean(known), stdev(known) / math.sqrt(len(known)))


def share_of(flags: Iterable[bool]) -> Share:
    """Return the share of ``flags`` that are true."""
    given = list(flags)
    count, n = sum(given), len(given)
    if n == 0:
        return Share(0, 0)
    share = count / n
    error = math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else None
    return Share(count, n, share, error, *wilson(count, n))


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the interval of a share that ``count`` of ``n`` were drawn from, both within 0 to 1.

    The score interval without continuity correction (Wilson, 1927), which holds its level for small
    ``n`` and for shares near 0 and 1 as well.

    Raises:
        ValueError: ``n`` is below 1, or ``count`` is not within 0 to ``n``.
    """
    if not 0 <= count <= n or n < 1:
        raise ValueError(f"{count} of {n} is no share")
    share, square = count / n, Z95 * Z95
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = Z95 / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return low, high


def spread_of(values: Iterable[float | None]) -> Spread:
    """Return the distribution of values; None, infinite and NaN are not known."""
    given = list(values)
    known = _finite(given)
    unknown = len(given) - len(known)
    if not known:
        return Spread(0, unknown)
    total = math.fsum(known)
    return Spread(
        n=len(known),
        unknown=unknown,
        mean=total / len(known),
        p50=median(known),
        p95=quantiles(known, n=20, method="inclusive")[-1] if len(known) > 1 else known[0],
        high=max(known),
        total=None if unknown else total,
        known_total=total,
    )


def _finite(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None and math.isfinite(value)]


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
