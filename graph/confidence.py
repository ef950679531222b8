"""How far to trust an answer: a probability fitted on recorded outcomes, rules on top, and why in a sentence.

What a vote and its answer say is fitted by logistic regression on votes whose outcome is known, the same for
all recipes. ``confidence.json`` is the fit that ships, to 964 recorded candidates and 349 answers of four
suites. On answers that a fit has not seen AUROC is 0.76 on AMBROSIA and 0.90 on spider2-local, Brier 0.104
and 0.136 where the base rates have 0.115 and 0.227 (docs/evaluation.md; ``quorum votes calibrate`` refits).
What no recorded vote shows, the validator's verdict and what an exploration found, shifts the log-odds by
fixed amounts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from quorum.graph.answer import Answer, AnswerVote
from quorum.graph.ballots import Vote
from quorum.graph.stopping import BATCHES
from quorum.knowledge.errors import read_errors

SHIPPED = Path(__file__).with_name("confidence.json")

FEATURES = ("agreeing", "share", "assumed", "readings", "size", "certainty")
SIGNS = (1, 1, -1, -1, -1, 1)
"""Which way each feature may move the confidence."""

USUAL_ASSUMED, USUAL_SIZE, USUAL_CERTAINTY = 1.5, 250, 0.8
"""Assumptions (the mean of 68 answers), tokens of a query (the median of recorded candidates) and a writer's
certainty, where not known. A disputed answer has as many assumptions and tokens at least: a question on which
candidates differ is not easy."""

TOLD_SIZE = 50
"""Tokens that stand for a query whose writer says how certain it is: it has taken the length into account."""

LONG, UNSURE = 100, 0.6
"""Tokens of a query that is spoken of as long, and a writer's certainty that is spoken of as low."""

LOW = 0.4
"""Upper bound of an answer that is low by rule (``Vote.low``), or that a check of the data doubts."""

CHOSEN = 0.9
"""Confidence of an answer that the user chose: the reading is theirs, the SQL may still be wrong."""

BLANK = 0.3
"""Upper bound where only blank results voted."""

APPROVED, REFUSED = 0.25, -1.0
"""Log-odds for the validator's verdict: an objection says more than an approval."""

CONFIRMED, CONTRADICTED = 0.25, -1.0
"""Log-odds for an exploration's finding on the answer: agreement adds little to the votes counted already."""

DISPUTED = -0.6
"""Log-odds of a dispute, at most, beside those of as many of one mind: neither verdict nor finding makes up
for it."""


@dataclass(frozen=True)
class Calibration:
    """The log-odds of a vote's answer: an intercept and a weight per feature, with the sign in ``SIGNS``.

    Attributes:
        agreeing: Of the natural logarithm of the number of candidates in the winner's cluster.
        share: Of the winner's share of the vote.
        assumed: Of each assumption of the writers, up to four: what the question does not say may be meant
            otherwise.
        readings: Of each other reading that shows something else, beyond the first: one is found for most
            questions.
        size: Of the logarithm of the query's number of tokens, where no writer says how certain it is: more
            can be wrong in a longer one.
        certainty: Of the log-odds of the writers' own certainty.
        votes: Number of votes it was fitted to.
        brier: The Brier score of such a fit on votes that it has not seen.
        base: The Brier score of always saying the share of right answers.
    """

    intercept: float
    agreeing: float
    share: float
    assumed: float
    readings: float
    size: float
    certainty: float
    votes: int = 0
    brier: float | None = None
    base: float | None = None

    def log_odds(self, found: Sequence[float]) -> float:
        """Return the log-odds of an answer being right, by the ``features`` of its vote alone."""
        weights = (getattr(self, name) for name in FEATURES)
        return self.intercept + math.fsum(w * x for w, x in zip(weights, found, strict=True))

    def probability(self, found: Sequence[float]) -> float:
        """The same, 0 to 1."""
        return _probability(self.log_odds(found))


@lru_cache
def load(path: Path = SHIPPED) -> Calibration:
    """A calibration from its file.

    Raises:
        ConfigurationError: There is none, or it is damaged.
    """
    with read_errors(f"The calibration {path}", hint="Restore the file, or fit it again."):
        return Calibration(**json.loads(path.read_text(encoding="utf-8")))


def features(
    agreeing: int,
    share: float,
    assumed: float | None = None,
    readings: float | None = None,
    size: int = 0,
    certainty: float | None = None,
) -> tuple[float, ...]:
    """Return the features of a vote's winner, in the order of ``FEATURES``.

    Args:
        agreeing: Candidates in the winner's cluster.
        share: That cluster's share of the vote, 0 to 1.
        assumed: Assumptions of those candidates, in the mean; None where that is not known.
        readings: Other readings of the question that show something else; None where that is not known.
        size: Tokens of the query (``tokens``); 0 where that is not known.
        certainty: Of those candidates' writers, 0 to 1, in the mean; None where that is not known.
    """
    certain = USUAL_CERTAINTY if certainty is None else min(0.99, max(0.01, certainty))
    assumptions = 0.0 if assumed is None else min(4.0, assumed) - USUAL_ASSUMED
    return (
        math.log(agreeing),
        share,
        assumptions,
        max(0.0, (readings or 0.0) - 1),
        math.log((size or USUAL_SIZE if certainty is None else TOLD_SIZE) / USUAL_SIZE),
        _log_odds(certain) - _log_odds(USUAL_CERTAINTY),
    )


def tokens(sql: str) -> int:
    """Return the number of words and signs in a query, in any dialect: ``COUNT(*)`` has four."""
    return len(re.findall(r"\w+|[^\w\s]", sql))


def confidence(
    vote: Vote,
    *,
    confirmed: bool | None = None,
    again: bool = False,
    doubted: bool = False,
    calibration: Calibration | None = None,
) -> float:
    """Return how far to trust what a vote says, 0 to 1; 0 if it says nothing.

    With s(x) = 1 / (1 + e^-x) the confidence is s(log-odds of the ``features`` + verdict + finding), where
    ``verdict`` is ``APPROVED`` or ``REFUSED`` and ``finding`` ``CONFIRMED`` or ``CONTRADICTED``. It is at
    most ``LOW`` where the vote is low by rule, the validator objects or the data gives cause for doubt, and
    ``BLANK`` where only blank results voted; an objection lowers it, an approval does not lift it.

    A dispute is trusted less than the unanimous first batch that would have ended the sampling: what
    was asked later was asked because of the dispute.

    Args:
        confirmed: Whether an exploration confirmed the answer; None without one.
        again: A first round disputed it, and is not part of this vote.
        doubted: A check of the data found something that stands, or the result is blank.
        calibration: In place of the one that ships.

    Raises:
        ConfigurationError: The calibration that ships cannot be read.
    """
    if vote.decided == "user":
        return LOW if doubted else CHOSEN
    fit = calibration or load()
    winning, lacking = vote.winning, vote.heads
    if headed := lacking and vote.cannot_answer:
        agreeing, share = lacking, lacking / vote.cast
    elif winning is None:
        return 0.0
    else:
        agreeing, share = len(winning.candidates), vote.share
    disputed = again or agreeing < vote.voters + lacking  # who failed disputes nothing
    if disputed and vote.stopping not in ("", "never"):
        agreeing = min(agreeing, BATCHES[0])
    assumed, size = vote.assumed, vote.size
    if disputed:
        assumed, size = max(assumed or 0.0, USUAL_ASSUMED), max(size, USUAL_SIZE)
    said = (None, None, 0, None) if headed else (assumed, vote.doubt, size, vote.certainty)
    odds = fit.log_odds(features(agreeing, share, *said))
    if disputed:
        for told in (said, said[:3]):  # none of those who differ is trusted more for being certain
            unanimous = DISPUTED + fit.log_odds(features(agreeing, 1.0, *told))
            odds = min(odds, unanimous, fit.log_odds(features(agreeing, share, *told)))
    if headed:  # nothing is left to be validated or explored
        return min(LOW if lacking == 1 else 1.0, _probability(odds))
    cap = BLANK if vote.blank else LOW if vote.low or doubted else 1.0
    if cap < 1.0:  # an objection tells a low answer from another, an approval lifts none
        odds = min(odds, _log_odds(cap))
    odds += 0.0 if vote.approved is None else APPROVED if vote.approved else REFUSED
    odds += 0.0 if confirmed is None else CONFIRMED if confirmed else CONTRADICTED
    return min(LOW if vote.approved is False else 1.0, cap, _probability(odds))


def _log_odds(probability: float) -> float:
    return math.log(probability / (1 - probability))


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def grounds(answer: Answer) -> str:
    """Return why an answer with a result has its confidence, in a short sentence; "" without a result.

    ``ran; nothing suspicious; 2 other readings show something else``
    """
    vote = answer.vote
    if vote is None or not answer.columns:
        return ""
    if vote.settled == "verified":
        return "a person verified the query"
    if answer.demonstration:
        return "rules wrote the query, no language model"
    against = list(_against(answer, vote))
    assumed, readings = len(answer.assumptions), sum(bool(each.sql) for each in answer.readings)
    said = [
        *(against or ["nothing suspicious"]),
        _counted(readings, "other reading shows something else", "other readings show something else"),
        _counted(assumed, "assumption", "assumptions") if assumed > 1 else "",
        "a long query" if vote.certainty is None and tokens(answer.sql) > LONG else "",
        "its writer is not sure of it" if vote.certainty is not None and vote.certainty < UNSURE else "",
        "you chose it" if vote.settled == "user" else "",
    ]
    return "; ".join(["ran", *filter(None, said)])


def _against(answer: Answer, vote: AnswerVote) -> Iterator[str]:
    """Yield what speaks against an answer, the plainest first."""
    if doubts := [" ".join(text.split()).split(". ")[0].rstrip(".") for text in answer.doubts]:
        more = len(doubts) - 1
        others = f" (and {_counted(more, 'more check', 'more checks')})" if more else ""
        yield f"a check warns: {doubts[0]}{others}"
    if any(each.approved is False for each in answer.candidates if each.id == vote.winner):
        yield "the Validator did not accept it"
    if not answer.row_count:
        yield "the result is empty"
    elif answer.warnings and not doubts:
        yield _counted(len(answer.warnings), "warning", "warnings")
    differ = sum(len(each.candidates) for each in vote.clusters if vote.winner not in each.candidates)
    if differ:
        yield _counted(differ, "candidate gives another answer", "candidates give another answer")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}" if number else ""
