"""How sure it is that two systems differ that were asked the same questions."""

from __future__ import annotations

from collections.abc import Sequence

RESAMPLES = 20_000
_AT_ONCE = 1_000  # resamples drawn together, which bounds the memory


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p-value of McNemar's test (McNemar, 1947; exact: binomial with p = 1/2).

    Args:
        gained: Questions that only the second system has right.
        lost: Questions that only the first has right.

    Returns:
        How probable a split at least as uneven is if both are equally good; 1 where none differs.
    """
    differing = gained + lost
    ways = tail = 1  # n over 0, n over 1, …: whole numbers, so nothing is rounded
    for count in range(min(gained, lost)):
        ways = ways * (differing - count) // (count + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << differing))


def bootstrap_interval(
    values: Sequence[float], *, resamples: int = RESAMPLES, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean, as of paired differences (Efron, 1979), seeded.

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
    low, high = np.quantile(np.concatenate(means), ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)
