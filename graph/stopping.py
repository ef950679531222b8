"""When enough candidates have voted: candidates come in batches, and a rule looks at the vote after each.

``never`` asks all candidates at once. ``decided`` stops when those still to come cannot change the winner
(``quorum.graph.ballots.Vote.margin``); where the strategy draws, they always can. ``beta:P`` stops when the
leading answer is the more probable one with posterior probability P (Adaptive-Consistency, Aggarwal et al.
2023, section 3.2: a Beta posterior over the two largest clusters).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quorum.graph.ballots import Vote
from quorum.knowledge.errors import ConfigurationError

BATCHES = (3, 2, 2, 1)
"""Candidates in each of the first batches; later ones have two."""

BLANKS = 5
"""Candidates that must agree on a blank result before a posterior ends the sampling."""

RULES = "never, decided or beta:P with P between 0.5 and 1"


@dataclass(frozen=True)
class Stopping:
    """A stopping rule.

    Attributes:
        name: As it is written, e.g. ``beta:0.9``.
        posterior: For ``beta``; None for the other rules.
    """

    name: str
    posterior: float | None = None

    @property
    def in_batches(self) -> bool:
        """True if candidates come in batches."""
        return self.name != "never"

    def enough(self, vote: Vote, to_come: Sequence[float]) -> bool:
        """True if the vote may end now.

        Args:
            vote: Of the candidates so far.
            to_come: The weights of the candidates that could still vote, in the unit of ``vote``.
        """
        if not to_come:
            return True
        winning, lacking = vote.winning, vote.heads
        if self.in_batches and lacking and vote.cannot_answer:
            return self._decided(lacking, [len(cluster.candidates) for cluster in vote.clusters], to_come)
        if not self.in_batches or winning is None or vote.tie:
            return False
        if vote.blank and (self.posterior is None or len(winning.candidates) < BLANKS):
            return False  # one result with values would outvote them all
        if self.posterior is None:
            leads = vote.margin is not None and vote.margin > math.fsum(to_come)
            return leads and len(winning.candidates) >= lacking + len(to_come)
        others = [len(cluster.candidates) for cluster in vote.clusters if cluster is not winning]
        return self._decided(len(winning.candidates), [*others, lacking], to_come)

    def _decided(self, first: int, others: Sequence[int], to_come: Sequence[float]) -> bool:
        """True if ``first`` candidates of one answer are enough against those of each other answer."""
        second = max(others, default=0)
        if self.posterior is None:
            return first > second + len(to_come)
        return lead(first, second) >= self.posterior


def lead(first: int, second: int) -> float:
    """P(p > 1/2) under Beta(first + 1, second + 1): that the first answer is the more probable of the two.

    With whole numbers its tail is a binomial one: P(Bin(first + second + 1, 1/2) <= first).
    """
    trials = first + second + 1
    return float(sum(math.comb(trials, k) for k in range(first + 1)) / 2**trials)


def find_stopping(name: str) -> Stopping:
    """The rule of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if name in ("never", "decided"):
        return Stopping(name)
    kind, _, value = name.partition(":")
    try:
        posterior = float(value)
    except ValueError:
        posterior = math.nan
    if kind != "beta" or not 0.5 < posterior < 1:
        raise ConfigurationError(f"No stopping rule is called {name!r}.", hint=f"It is {RULES}.")
    return Stopping(name, posterior)


def next_batch(dispatched: int, votes: int, stopping: Stopping, experts: int = 1) -> int:
    """Return how many candidates to ask now.

    Args:
        dispatched: Candidates asked so far.
        votes: Candidates at most.
        experts: The first batch asks each of them once at least.
    """
    if not stopping.in_batches:
        return votes - dispatched
    edge = 0
    for size in BATCHES:
        edge += max(size, experts) if edge == 0 else size
        if dispatched < edge:
            return min(edge, votes) - dispatched
    return min(2, votes - dispatched)
