"""Refit the confidence of votes (``quorum.graph.confidence``) to votes whose outcome is known.

They come from recorded candidates with gold, where every number of candidates votes as in a run, and from
evaluations, whose records hold their votes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from quorum.evals.recorded.candidates import Source
from quorum.evals.recorded.expected import arrivals
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.statistics import CalibrationStats, calibrate
from quorum.graph.ballots import Rules
from quorum.graph.confidence import FEATURES, SIGNS, Calibration, features, load, tokens
from quorum.graph.runs import RunFolder
from quorum.graph.strategies import hold_vote
from quorum.knowledge.errors import ConfigurationError

STRATEGY = "mbr"
"""How recorded candidates vote: by the strategy and the rules of the default recipe."""

CANDIDATES = "candidates"
"""``KnownVote.source`` of recorded candidates."""

RIDGE = 0.5
STEPS = 2_000


@dataclass(frozen=True)
class KnownVote:
    """A vote with a winner, and whether its answer was right.

    Attributes:
        features: ``quorum.graph.confidence.features``.
        source: The suite, or folder of candidates, that has the question.
    """

    question: str
    features: tuple[float, ...]
    right: bool
    source: str = ""


@dataclass(frozen=True)
class Refit:
    """A new calibration, compared with the one that ships.

    Attributes:
        checks: By source, and "" for all, the quality of the one that ships and of fits that have not seen
            the question.
    """

    calibration: Calibration
    checks: dict[str, tuple[CalibrationStats, CalibrationStats]]


async def votes_of_candidates(source: Source) -> list[KnownVote]:
    """Return the votes of each model and of all pooled over their first candidates, as replays draw them."""
    known = []
    for question in source.learnable:
        for ballots in source.ballots(question).values():
            rules = Rules(overlaps=ballots.overlaps, blanks_give_way=True, count_heads=True)
            (order,) = arrivals(ballots.ballots, question, 1)
            for count in range(1, len(order) + 1):
                vote = await hold_vote(order[:count], STRATEGY, rules)
                if winning := vote.winning:
                    size = next(tokens(each.sql) for each in order if each.candidate == vote.winner)
                    values = features(len(winning.candidates), vote.share, size=size)
                    known.append(KnownVote(question, values, vote.winner in ballots.right, CANDIDATES))
    return known


def votes_of_records(found: Opened) -> Iterator[KnownVote]:
    """The votes of an evaluation whose answers, or best efforts, are known to be right or wrong.

    What their writers assumed and other readings show is read from the answers, where these are there.
    """
    for record in found.records.values():
        vote = record.vote or {}
        if vote.get("settled") == "verified":
            continue  # nobody voted
        for cluster in vote.get("clusters") or ():
            if record.match is not None and vote.get("winner") in cluster["candidates"]:
                assumed, readings = None, vote.get("doubt")
                answer = RunFolder(found.places[record.id] / record.run).answer()
                if answer and readings is not None:  # their writers could name both
                    agreeing = [each for each in answer.candidates if each.id in cluster["candidates"]]
                    assumed = fmean(len(each.assumptions) for each in agreeing)
                    readings = len(answer.readings) if answer.readings_tried else readings
                values = features(
                    len(cluster["candidates"]),
                    cluster["share"],
                    assumed,
                    readings,
                    tokens(record.sql),
                    vote.get("certainty"),
                )
                yield KnownVote(record.id, values, record.match, found.name)


def refit(votes: Sequence[KnownVote]) -> Refit:
    """Fit a calibration to all votes; check it by two fits, each to every other question, on the other half.

    Raises:
        ConfigurationError: There are no votes of two questions.
    """
    asked = sorted({(vote.source, vote.question) for vote in votes})
    if len(asked) < 2:
        raise ConfigurationError(
            "No votes of two questions with known outcomes are there: nothing can be fitted and checked.",
            hint="Give recorded candidates with --gold, or evaluations whose recipe votes.",
        )
    first = set(asked[::2])
    halves = [
        [vote for vote in votes if ((vote.source, vote.question) in first) is half] for half in (True, False)
    ]
    checked = [
        (vote, load().probability(vote.features), other.probability(vote.features))
        for half, other in zip(halves, (fit(halves[1]), fit(halves[0])), strict=True)
        for vote in half
    ]
    checks = {}
    for source in ("", *sorted({source for source, _ in asked})):
        own = [each for each in checked if source in ("", each[0].source)]
        before = calibrate((ships, vote.right) for vote, ships, _ in own)
        after = calibrate((made, vote.right) for vote, _, made in own)
        assert before
        assert after
        checks[source] = (before, after)
    _, after = checks[""]
    brier, base = round(after.brier, 4), round(after.brier_base, 4)
    return Refit(replace(fit(votes), brier=brier, base=base), checks)


def fit(votes: Sequence[KnownVote]) -> Calibration:
    """Logistic regression by projected gradient descent, with a ridge of ``RIDGE`` on the weights.

    Each question counts the same, however often it was voted on. No weight may have another sign than
    ``SIGNS``: more agreement never speaks against an answer, assumptions and other readings never for it. A
    weight of which the votes say nothing is the one that ships.
    """
    data = np.array([[1.0, *vote.features] for vote in votes])
    right = np.array([vote.right for vote in votes], dtype=np.float64)
    often = Counter((vote.source, vote.question) for vote in votes)
    counts = np.array([1 / often[vote.source, vote.question] for vote in votes])
    ridge = np.array([1e-3, *[RIDGE] * len(FEATURES)])
    known = [bool(np.ptp(data[:, place])) for place in range(1, len(FEATURES) + 1)]
    shipped = [getattr(load(), name) for name in FEATURES]
    prior = np.array([0.0, *(0.0 if varies else value for varies, value in zip(known, shipped, strict=True))])
    low = np.array([-np.inf, *(0.0 if sign > 0 else -np.inf for sign in SIGNS)])
    high = np.array([np.inf, *(np.inf if sign > 0 else 0.0 for sign in SIGNS)])
    step = 1 / (np.linalg.norm(data * np.sqrt(counts)[:, None], 2) ** 2 / 4 + ridge.max())
    weights = prior.copy()
    for _ in range(STEPS):
        missed = counts * (1 / (1 + np.exp(-data @ weights)) - right)
        weights = np.clip(weights - step * (data.T @ missed + ridge * (weights - prior)), low, high)
    found: dict[str, Any] = dict(
        zip(("intercept", *FEATURES), (round(float(w), 4) for w in weights), strict=True)
    )
    return Calibration(**found, votes=len(votes))
