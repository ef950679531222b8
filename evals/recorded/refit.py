"""Refit the confidence of votes (``quorum.graph.confidence``) to votes whose outcome is known.

They come from recorded candidates with gold, where every number of candidates votes as in a run, and from
evaluations, whose records hold their votes. Every other question is fitted on, the others check the fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from quorum.evals.recorded.candidates import Source
from quorum.evals.recorded.expected import arrivals
from quorum.evals.records import Record
from quorum.evals.reports.calibration import auroc
from quorum.graph.ballots import Rules
from quorum.graph.confidence import FEATURES, Calibration, features, load
from quorum.graph.strategies import hold_vote
from quorum.knowledge.errors import ConfigurationError

STRATEGY = "mbr"
"""How recorded candidates vote: by the strategy and the rules of the default recipe."""

RIDGE = 0.5
STEPS = 2_000


@dataclass(frozen=True)
class KnownVote:
    """A vote with a winner, and whether its answer was right.

    Attributes:
        features: ``quorum.graph.confidence.features``.
    """

    question: str
    features: tuple[float, ...]
    right: bool


@dataclass(frozen=True)
class Checked:
    """The quality of a calibration on the votes that it is checked on.

    Attributes:
        brier: Mean squared distance of confidence and rightness, 0 is perfect.
        auroc: How probably a right answer has more confidence than a wrong one; 0.5 is chance, None where
            all are right or all wrong.
    """

    brier: float
    auroc: float | None


@dataclass(frozen=True)
class Refit:
    """A new calibration beside the one that ships."""

    calibration: Calibration
    before: Checked
    after: Checked


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
                    values = features(len(winning.candidates), vote.share, len(winning.experts))
                    known.append(KnownVote(question, values, vote.winner in ballots.right))
    return known


def votes_of_records(records: Iterable[Record]) -> Iterator[KnownVote]:
    """The votes of an evaluation whose answers, or best efforts, are known to be right or wrong."""
    for record in records:
        vote = record.vote or {}
        if vote.get("settled") == "verified":
            continue  # nobody voted
        models = {row.id: row.model for row in record.candidates}
        for cluster in vote.get("clusters") or ():
            if record.match is not None and vote.get("winner") in cluster["candidates"]:
                experts = {models.get(name) for name in cluster["candidates"]}
                values = features(
                    len(cluster["candidates"]), cluster["share"], len(experts), vote.get("doubt")
                )
                yield KnownVote(record.id, values, record.match)


def refit(votes: Sequence[KnownVote]) -> Refit:
    """Fit a calibration to the votes of every other question, and check it on the other votes.

    Raises:
        ConfigurationError: There are no votes of two questions.
    """
    places = {question: place for place, question in enumerate(sorted({vote.question for vote in votes}))}
    if len(places) < 2:
        raise ConfigurationError(
            "No votes of two questions with known outcomes are there: nothing can be fitted and checked.",
            hint="Give recorded candidates with --gold, or evaluations whose recipe votes.",
        )
    fitted, checked = ([vote for vote in votes if places[vote.question] % 2 == half] for half in (0, 1))
    made, rate = fit(fitted), fmean(vote.right for vote in fitted)
    base = fmean((rate - vote.right) ** 2 for vote in checked)
    after = _checked(made, checked)
    made = replace(made, checked=len(checked), brier=round(after.brier, 4), base=round(base, 4))
    return Refit(made, _checked(load(), checked), after)


def _checked(calibration: Calibration, votes: Sequence[KnownVote]) -> Checked:
    answers = [(calibration.probability(vote.features), vote.right) for vote in votes]
    return Checked(fmean((sure - right) ** 2 for sure, right in answers), auroc(answers))


def fit(votes: Sequence[KnownVote]) -> Calibration:
    """Logistic regression by projected gradient descent, with a ridge of ``RIDGE`` on the weights.

    They may not be negative, and the doubt's not positive: more agreement never speaks against an answer,
    other readings never for it. The doubt, of which recorded candidates say nothing, is drawn to the weight
    that ships.
    """
    data = np.array([[1.0, *vote.features] for vote in votes])
    right = np.array([vote.right for vote in votes], dtype=np.float64)
    ridge = np.array([1e-3, *[RIDGE] * len(FEATURES)])
    low = np.array([-np.inf, 0.0, 0.0, 0.0, -np.inf])
    high = np.array([np.inf, np.inf, np.inf, np.inf, 0.0])
    prior = np.array([0.0, 0.0, 0.0, 0.0, load().doubt])
    step = 1 / (np.linalg.norm(data, 2) ** 2 / 4 + ridge.max())
    weights = prior.copy()
    for _ in range(STEPS):
        missed = 1 / (1 + np.exp(-data @ weights)) - right
        weights = np.clip(weights - step * (data.T @ missed + ridge * (weights - prior)), low, high)
    intercept, agreeing, share, experts, doubt = (round(float(weight), 4) for weight in weights)
    return Calibration(intercept, agreeing, share, experts, doubt, votes=len(votes))
