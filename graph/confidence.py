"""How far to trust a vote's answer: a probability fitted on recorded outcomes, and rules on top.

What a vote alone says is fitted by logistic regression on votes whose outcome is known (``fit``;
``confidence.json`` holds the fit that ships, on what it was fitted, and its Brier score on votes it
had not seen). What no recorded vote shows, the validator's verdict and what an exploration found,
shifts the log-odds by fixed amounts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from quorum.graph.ballots import Vote
from quorum.knowledge.errors import ConfigurationError

SHIPPED = Path(__file__).with_name("confidence.json")

FEATURES = ("agreeing", "share", "experts")

LOW = 0.4
"""No vote that is low by rule (``Vote.low``) has more confidence than this."""

BLANK = 0.3
"""Nor has one in which only blank results voted more than this."""

ABSTAIN = 0.25
"""An answer of less confidence is better withheld: three of four such are wrong."""

APPROVED, REFUSED = 0.25, -1.0
"""Log-odds for the validator's verdict: an objection is found, an approval is only not found wanting."""

CONFIRMED, CONTRADICTED = 0.25, -1.0
"""Log-odds for what an exploration says of the answer: those who agree with it have voted already."""

RIDGE = 0.5
STEPS = 2_000


@dataclass(frozen=True)
class Calibration:
    """The log-odds of a vote's answer: an intercept and a weight, not negative, per feature.

    Attributes:
        agreeing: Of the natural logarithm of the number of candidates in the winner's cluster.
        share: Of the winner's share of the vote.
        experts: Of the logarithm of the number of experts in the winner's cluster.
        votes: On how many votes it was fitted.
        checked: On how many others it was checked.
        brier: Its Brier score on those.
        base: The Brier score there of always saying how many of the fitted votes were right.
    """

    intercept: float
    agreeing: float
    share: float
    experts: float
    votes: int = 0
    checked: int = 0
    brier: float | None = None
    base: float | None = None

    def log_odds(self, vote: Vote) -> float:
        """Of the answer being right, by the vote alone; minus infinity without an answer."""
        if vote.winning is None:
            return -math.inf
        weights = (self.agreeing, self.share, self.experts)
        return self.intercept + math.fsum(w * x for w, x in zip(weights, features(vote), strict=True))

    def save(self, path: Path) -> None:
        """Write it as JSON, for ``load``."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


@lru_cache
def load(path: Path = SHIPPED) -> Calibration:
    """A calibration from its file.

    Raises:
        ConfigurationError: There is none, or it is damaged.
    """
    try:
        return Calibration(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"The calibration {path} cannot be read ({error}).", hint="Restore the file, or fit it anew."
        ) from error


def features(vote: Vote) -> tuple[float, ...]:
    """What a vote that has a winner says of it, in the order of ``FEATURES``."""
    winning = vote.winning
    if winning is None:
        raise ValueError("A vote without a winner has no features.")
    return (math.log(len(winning.candidates)), vote.share, math.log(len(winning.experts)))


def fit(outcomes: Iterable[tuple[Vote, float]]) -> Calibration:
    """Fit a calibration to votes with a winner and how right each was, 0 to 1 (a tie may be half right).

    Logistic regression by projected gradient descent, with a ridge of ``RIDGE`` on the weights, which
    may not be negative: more agreement never speaks against an answer.

    Raises:
        ValueError: There is no vote with a winner.
    """
    import numpy as np

    known = [(vote, right) for vote, right in outcomes if vote.winning is not None]
    if not known:
        raise ValueError("A calibration needs recorded votes.")
    data = np.array([[1.0, *features(vote)] for vote, _ in known])
    right = np.array([value for _, value in known], dtype=np.float64)
    ridge = np.array([1e-3, *[RIDGE] * len(FEATURES)])
    floor = np.array([-np.inf, *[0.0] * len(FEATURES)])
    step = 1 / (np.linalg.norm(data, 2) ** 2 / 4 + ridge.max())
    weights = np.zeros(data.shape[1])
    for _ in range(STEPS):
        missed = 1 / (1 + np.exp(-data @ weights)) - right
        weights = np.maximum(floor, weights - step * (data.T @ missed + ridge * weights))
    intercept, agreeing, share, experts = (round(float(weight), 4) for weight in weights)
    return Calibration(intercept, agreeing, share, experts, votes=len(known))


def brier(said: Sequence[float], right: Sequence[float]) -> float:
    """The mean squared distance of what was said from what was right: 0 is perfect, 0.25 a coin's.

    Raises:
        ValueError: There is nothing to score, or not one outcome a forecast.
    """
    if not said:
        raise ValueError("A Brier score needs outcomes.")
    return math.fsum((p - y) ** 2 for p, y in zip(said, right, strict=True)) / len(said)


def confidence(vote: Vote, *, explored: bool | None = None, calibration: Calibration | None = None) -> float:
    """How far to trust a vote's answer, 0 to 1; 0 without one.

    Grows with the share of the vote, with the candidates and experts that agree, and with the
    validator's verdict; never above ``LOW`` where the vote is low by rule, nor above ``BLANK``
    where only blank results voted.

    Args:
        explored: Whether an exploration confirmed the answer; None without one.
        calibration: In place of the one that ships.

    Raises:
        ConfigurationError: The calibration that ships cannot be read.
    """
    if vote.winning is None:
        return 0.0
    odds = (calibration or load()).log_odds(vote)
    odds += 0.0 if vote.approved is None else APPROVED if vote.approved else REFUSED
    odds += 0.0 if explored is None else CONFIRMED if explored else CONTRADICTED
    cap = BLANK if vote.blank else LOW if vote.low else 1.0
    return min(cap, 1 / (1 + math.exp(-odds)))


def abstains(confidence: float, threshold: float = ABSTAIN) -> bool:
    """Whether an answer of this confidence is better withheld."""
    return confidence < threshold
