"""A vote replayed in expectation: over draws, over ties, over the order in which candidates arrive."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import TypeAlias

from quorum.evals.recorded.candidates import RecordedBallots
from quorum.graph.ballots import Ballot, Rules, Vote
from quorum.graph.confidence import confidence
from quorum.graph.stopping import Stopping, next_batch
from quorum.graph.strategies import WEIGHTED, hold_vote


@dataclass(frozen=True)
class Metrics:
    """The outcome of a question; each number is an expectation or a probability.

    Attributes:
        right: The answer meets the gold.
        tie: The vote ended in a tie.
        samples: Candidates that were asked, failed ones included.
        answered: There was an answer.
        brier: The squared distance of the vote's confidence from ``right``; 0 without an answer.
    """

    right: float = 0.0
    tie: float = 0.0
    samples: float = 0.0
    answered: float = 0.0
    brier: float = 0.0


def expected(parts: Iterable[tuple[float, Metrics]]) -> Metrics:
    """The mean of outcomes, each with its probability."""
    weighed = list(parts)
    return Metrics(
        **{field.name: sum(p * getattr(one, field.name) for p, one in weighed) for field in fields(Metrics)}
    )


Ending: TypeAlias = tuple[float, Vote, Metrics]
"""One possible end of a vote: a cluster that wins with some probability."""


class ReplayedVote:
    """One strategy's votes over a question's candidates; a vote over the same candidates is counted once.

    ``mbr`` votes by the rules of the recipe ``quorum``, the others as in the papers' recipes.
    Where the strategy draws, or a tie leaves it to the tie rule, all that could have come out counts with
    its probability: a tied cluster is as likely as the others, and its first candidate stands for it.
    """

    def __init__(self, recorded: RecordedBallots, strategy: str, rules: Rules) -> None:
        ours = strategy == "mbr"
        self._recorded, self._strategy = recorded, strategy
        self._rules = replace(rules, blanks_give_way=ours, count_heads=ours)
        self._endings: dict[frozenset[str], list[Ending]] = {}
        self._ended: dict[tuple[str, frozenset[str]], tuple[float, Metrics]] = {}

    async def outcome(self, stopping: Stopping, orders: Sequence[Sequence[Ballot]]) -> Metrics:
        """The expectation over the orders of arrival, which do not matter where all are asked at once."""
        used = orders if stopping.in_batches else orders[:1]
        parts = [part for order in used for part in await self._replay(stopping, order)]
        return expected((chance / len(used), outcome) for chance, outcome in parts)

    async def _replay(self, stopping: Stopping, order: Sequence[Ballot]) -> list[tuple[float, Metrics]]:
        """Ask batch after batch; each possible outcome of a vote may end it or not."""
        experts = len({ballot.expert for ballot in order})
        parts: list[tuple[float, Metrics]] = []
        left, asked = 1.0, 0
        while left > 1e-12:
            asked += next_batch(asked, len(order), stopping, experts)
            chance, outcome = await self._stop(stopping, order[:asked], order[asked:])
            if chance:
                parts.append((left * chance, replace(outcome, samples=asked)))
                left *= 1 - chance
        return parts

    async def _stop(
        self, stopping: Stopping, cast: Sequence[Ballot], rest: Sequence[Ballot]
    ) -> tuple[float, Metrics]:
        """The probability that the vote ends with these candidates, and the expected outcome if so."""
        names = frozenset(ballot.candidate for ballot in cast)
        if (stopping.name, names) not in self._ended:
            if names not in self._endings:
                self._endings[names] = await self._hold(cast)
            weighted = self._strategy in WEIGHTED
            to_come = [self._rules.weight(ballot.expert) if weighted else 1.0 for ballot in rest]
            over = [(p, end) for p, vote, end in self._endings[names] if stopping.enough(vote, to_come)]
            chance = sum(p for p, _ in over)
            outcome = expected((p / chance, end) for p, end in over)
            self._ended[stopping.name, names] = chance, outcome
        return self._ended[stopping.name, names]

    async def _hold(self, cast: Sequence[Ballot]) -> list[Ending]:
        vote = await hold_vote(cast, self._strategy, self._rules)
        if vote.winner is None:
            return [(1.0, vote, Metrics())]
        chances = _chances(vote, cast, self._rules)
        return [
            self._ending(replace(vote, winner=own[0], share=cluster.share), {it: chances[it] for it in own})
            for cluster in vote.clusters
            if (own := [name for name in cluster.candidates if name in chances])
        ]

    def _ending(self, vote: Vote, chances: Mapping[str, float]) -> Ending:
        """A cluster wins, by one of its candidates."""
        total, sure = sum(chances.values()), confidence(vote)
        if vote.cannot_answer:
            return total, vote, Metrics(tie=float(vote.tie))
        right = sum(chances[name] for name in chances if name in self._recorded.right) / total
        brier = right * (sure - 1) ** 2 + (1 - right) * sure**2
        return total, vote, Metrics(right, float(vote.tie), 0.0, 1.0, brier)


def _chances(vote: Vote, ballots: Sequence[Ballot], rules: Rules) -> dict[str, float]:
    """Each candidate that could have won, with its probability."""
    if vote.seed is not None:
        voters = {name for cluster in vote.clusters for name in cluster.candidates}
        return DRAWS[vote.strategy]([ballot for ballot in ballots if ballot.candidate in voters], rules)
    standing = [cluster.candidates[0] for cluster in vote.clusters if cluster.key in vote.tied]
    return dict.fromkeys(standing or [str(vote.winner)], 1 / max(1, len(standing)))


def _by_expert(ballots: Sequence[Ballot], rules: Rules) -> dict[str, float]:
    """SSEV's Algorithm 2, step (b); an expert's candidates share its probability."""
    often = Counter(ballot.expert for ballot in ballots)
    total = sum(rules.weight(expert) for expert in often)
    return {b.candidate: rules.weight(b.expert) / total / often[b.expert] for b in ballots}


DRAWS: dict[str, Callable[[Sequence[Ballot], Rules], dict[str, float]]] = {
    "random": lambda ballots, _: {ballot.candidate: 1 / len(ballots) for ballot in ballots},
    "rwma": _by_expert,
}
"""Strategies that draw: the probability of each candidate."""


def arrivals(ballots: Sequence[Ballot], seed: str, count: int) -> list[list[Ballot]]:
    """Random orders of arrival of the candidates; the first batch asks each expert in turn.

    Each expert's candidates are shuffled, then the experts take turns as they do in a run, in an order
    drawn as well.
    """
    return [_arrival(ballots, random.Random(f"{seed} {number}")) for number in range(count)]


def _arrival(ballots: Sequence[Ballot], draw: random.Random) -> list[Ballot]:
    experts = sorted({ballot.expert for ballot in ballots})
    draw.shuffle(experts)
    queues = [[ballot for ballot in ballots if ballot.expert == expert] for expert in experts]
    for queue in queues:
        draw.shuffle(queue)
    turns = zip_longest(*queues)
    return [ballot for turn in turns for ballot in turn if ballot is not None]
