"""How far to trust a vote's answer: a probability fitted on recorded outcomes, and rules on top.

What a vote alone says is fitted by logistic regression on votes whose outcome is known. ``confidence.json``
is the fit that ships, with its Brier score on votes that it had not seen; ``quorum votes calibrate`` makes
another. What no recorded vote shows, the validator's verdict and what an exploration found, shifts the
log-odds by fixed amounts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from quorum.graph.ballots import Vote
from quorum.graph.stopping import BATCHES
from quorum.knowledge.errors import ConfigurationError

SHIPPED = Path(__file__).with_name("confidence.json")

FEATURES = ("agreeing", "share", "experts", "doubt")

USUAL_DOUBT = 0.85
"""Share of writers that name another reading, where nothing is known of it: the mean over 21 questions of
Spider 2.0's SQLite part, with replies of one capable model entered by hand."""

LOW = 0.4
"""Upper bound for votes that are low by rule (``Vote.low``)."""

BLANK = 0.3
"""Upper bound where only blank results voted."""

APPROVED, REFUSED = 0.25, -1.0
"""Log-odds for the validator's verdict: an objection says more than an approval."""

CONFIRMED, CONTRADICTED = 0.25, -1.0
"""Log-odds for an exploration's finding on the answer: agreement adds little to the votes counted already."""

ASSUMED, USUAL_ASSUMED = -0.5, 2.0
"""Log-odds for each assumption of the writers beyond the usual two, as far as one less or two more. Of 87
answers, replies entered by hand, 53 of 59 with one or none were right, 14 of 18 with two, 5 of 10 with more;
of 86 later ones, by other readers, 44 of 51, 16 of 24 and 5 of 11."""

DISPUTED = -0.6
"""Log-odds of a dispute, at most, beside those of as many of one mind: neither verdict nor finding makes up
for it."""


@dataclass(frozen=True)
class Calibration:
    """The log-odds of a vote's answer: an intercept and a weight per feature, of which none but ``doubt`` may
    be negative, and that may not be positive.

    Attributes:
        agreeing: Of the natural logarithm of the number of candidates in the winner's cluster.
        share: Of the winner's share of the vote.
        experts: Of the logarithm of the number of experts in the winner's cluster.
        doubt: Of the share of writers that saw another reading, less ``USUAL_DOUBT``.
        votes: Number of votes it was fitted to.
        checked: Number of held-out votes it was checked on.
        brier: Its Brier score on those.
        base: The Brier score there of a constant prediction: the base rate of the fitted votes.
    """

    intercept: float
    agreeing: float
    share: float
    experts: float
    doubt: float = 0.0
    votes: int = 0
    checked: int = 0
    brier: float | None = None
    base: float | None = None

    def log_odds(self, found: Sequence[float]) -> float:
        """Return the log-odds of an answer being right, by the ``features`` of its vote alone."""
        weights = (self.agreeing, self.share, self.experts, self.doubt)
        return self.intercept + math.fsum(w * x for w, x in zip(weights, found, strict=True))

    def probability(self, found: Sequence[float]) -> float:
        """The same, 0 to 1."""
        return 1 / (1 + math.exp(-self.log_odds(found)))


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
            f"The calibration {path} cannot be read ({error}).", hint="Restore the file, or fit it again."
        ) from error


def features(agreeing: int, share: float, experts: int, doubt: float | None = None) -> tuple[float, ...]:
    """Return the features of a vote's winner, in the order of ``FEATURES``.

    Args:
        agreeing: Candidates in the winner's cluster.
        share: That cluster's share of the vote, 0 to 1.
        experts: Experts in it.
        doubt: Share of the writers that named another reading; None where that is not known.
    """
    return (math.log(agreeing), share, math.log(experts), 0.0 if doubt is None else doubt - USUAL_DOUBT)


def confidence(
    vote: Vote,
    *,
    explored: bool | None = None,
    again: bool = False,
    calibration: Calibration | None = None,
) -> float:
    """Return how far to trust what a vote says, 0 to 1; 0 if it says nothing.

    With s(x) = 1 / (1 + e^-x), n agreeing candidates and m experts among them, the confidence is

        s(a + b ln n + c share + d ln m + e (doubt - USUAL_DOUBT) + assumed + verdict + finding)

    where ``Calibration`` has a to e, ``assumed`` is ``ASSUMED`` for each assumption beyond the usual two,
    ``verdict`` is ``APPROVED`` or ``REFUSED`` and ``finding`` ``CONFIRMED`` or ``CONTRADICTED``. It is at
    most ``LOW`` where the vote is low by rule and ``BLANK`` where only blank results voted: an objection
    still lowers such an answer, an approval does not lift it.

    A dispute is trusted less than the unanimous first batch that would have ended the sampling: what
    was asked later was asked because of the dispute.

    Args:
        explored: Whether an exploration confirmed the answer; None without one.
        again: A first round disputed it, and is not part of this vote.
        calibration: In place of the one that ships.

    Raises:
        ConfigurationError: The calibration that ships cannot be read.
    """
    fit = calibration or load()
    winning, lacking = vote.winning, vote.heads
    if headed := lacking and vote.cannot_answer:
        agreeing, experts, share = lacking, 1, lacking / vote.cast
    elif winning is None:
        return 0.0
    else:
        agreeing, experts, share = len(winning.candidates), len(winning.experts), vote.share
    disputed = again or agreeing < vote.voters + lacking  # who failed disputes nothing
    if disputed and vote.stopping not in ("", "never"):
        agreeing = min(agreeing, BATCHES[0])
    doubt = vote.doubt
    if disputed and doubt is not None:  # their answers are other readings, whatever the writers say
        doubt = max(doubt, USUAL_DOUBT)
    odds = fit.log_odds(features(agreeing, share, experts, doubt))
    if disputed:
        odds = min(odds, DISPUTED + fit.log_odds(features(agreeing, 1.0, experts, doubt)))
    if headed:  # nothing is left to be validated or explored
        return min(LOW if lacking == 1 else 1.0, _probability(odds))
    cap = BLANK if vote.blank else LOW if vote.low else 1.0
    if cap < 1.0:  # an objection tells a low answer from another, an approval lifts none
        odds = min(odds, math.log(cap / (1 - cap)))
    if vote.assumed is not None:
        odds += ASSUMED * min(2.0, max(-1.0, vote.assumed - USUAL_ASSUMED))
    odds += 0.0 if vote.approved is None else APPROVED if vote.approved else REFUSED
    odds += 0.0 if explored is None else CONFIRMED if explored else CONTRADICTED
    return min(cap, _probability(odds))


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
