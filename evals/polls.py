"""A vote replayed in expectation: over draws, over ties, over the order in which candidates arrive."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from evals.rounds import Round
from graph.ballots import Ballot, Rules, Vote
from graph.confidence import confidence
from graph.consensus import hold_vote
from graph.stopping import Stopping, next_wave
from graph.strategies import WEIGHTED


@dataclass(frozen=True)
class Outcome:
    """What became of a question; each number is an expectation, or a probability.

    Attributes:
        right: The answer meets the gold.
        tie: The vote ended in a tie.
        samples: Candidates that were asked, failed ones included.
        answered: There was an answer.
        agrees: It has the same result as the recorded pipeline's choice.
        brier: The squared distance of the vote's confidence from ``right``; 0 without an answer.
    """

    right: float = 0.0
    tie: float = 0.0
    samples: float = 0.0
    answered: float = 0.0
    agrees: float = 0.0
    brier: float = 0.0


def expected(parts: Iterable[tuple[float, Outcome]]) -> Outcome:
    """The mean of outcomes, each with its probability."""
    weighed = list(parts)
    return Outcome(
        **{field.name: sum(p * getattr(one, field.name) for p, one in weighed) for field in fields(Outcome)}
    )


class Poll:
    """One strategy's votes over a round; a vote over the same candidates is held once.

    Where the strategy draws, or a tie leaves it to the tie rule, all that could have come out counts with
    its probability: a tied cluster is as likely as the others, and its first candidate stands for it.
    """

    def __init__(self, round_: Round, strategy: str, rules: Rules) -> None:
        self._round, self._strategy, self._rules = round_, strategy, rules
        self._held: dict[frozenset[str], list[tuple[float, Vote]]] = {}

    async def outcome(self, stopping: Stopping, orders: Sequence[Sequence[Ballot]]) -> Outcome:
        """Expected over the orders of arrival; without waves the order does not count."""
        used = orders if stopping.in_waves else orders[:1]
        return expected([(1 / len(used), await self._walk(stopping, order)) for order in used])

    async def _walk(self, stopping: Stopping, order: Sequence[Ballot]) -> Outcome:
        """Ask wave after wave; some of what may come out of a vote may end it, and some not."""
        experts = len({ballot.expert for ballot in order})
        ended: list[tuple[float, Outcome]] = []
        open_, dealt = 1.0, 0
        while open_ > 1e-12:
            dealt += next_wave(dealt, len(order), stopping, experts)
            weighted = self._strategy in WEIGHTED
            to_come = [self._rules.weight(b.expert) if weighted else 1.0 for b in order[dealt:]]
            possible = await self._votes(order[:dealt])
            over = [(chance, vote) for chance, vote in possible if stopping.enough(vote, to_come)]
            ended += [(open_ * chance, self._ended(vote, dealt)) for chance, vote in over]
            open_ *= 1 - sum(chance for chance, _ in over)
        return expected(ended)

    async def _votes(self, ballots: Sequence[Ballot]) -> list[tuple[float, Vote]]:
        cast = frozenset(ballot.candidate for ballot in ballots)
        if cast not in self._held:
            vote = await hold_vote(ballots, self._strategy, self._rules)
            self._held[cast] = list(_possible(vote, ballots, self._rules))
        return self._held[cast]

    def _ended(self, vote: Vote, dealt: int) -> Outcome:
        right = float(vote.winner in self._round.right)
        final = self._round.final
        return Outcome(
            right=right,
            tie=float(vote.tie),
            samples=dealt,
            answered=float(vote.winner is not None),
            agrees=float(final is not None and vote.winner in final.same),
            brier=0.0 if vote.winner is None else (confidence(vote) - right) ** 2,
        )


def _possible(vote: Vote, ballots: Sequence[Ballot], rules: Rules) -> Iterator[tuple[float, Vote]]:
    """Each way the vote could have come out, with its probability."""
    if vote.winner is None or not (vote.tied or vote.seed is not None):
        yield 1.0, vote
        return
    voters = {name for cluster in vote.clusters for name in cluster.candidates}
    if vote.tied:
        standing = [cluster.candidates[0] for cluster in vote.clusters if cluster.key in vote.tied]
        chances = dict.fromkeys(standing, 1 / len(standing))
    else:
        chances = DRAWS[vote.strategy]([b for b in ballots if b.candidate in voters], rules)
    for name, chance in chances.items():
        cluster = next(cluster for cluster in vote.clusters if name in cluster.candidates)
        yield chance, replace(vote, winner=name, share=cluster.share)


def _even(ballots: Sequence[Ballot], rules: Rules) -> dict[str, float]:  # noqa: ARG001 (the others' form)
    return {ballot.candidate: 1 / len(ballots) for ballot in ballots}


def _by_expert(ballots: Sequence[Ballot], rules: Rules) -> dict[str, float]:
    """SSEV's Algorithm 2, step (b); an expert's candidates share its probability."""
    often = Counter(ballot.expert for ballot in ballots)
    total = sum(rules.weight(expert) for expert in often)
    return {b.candidate: rules.weight(b.expert) / total / often[b.expert] for b in ballots}


DRAWS: dict[str, Callable[[Sequence[Ballot], Rules], dict[str, float]]] = {
    "random": _even,
    "rwma": _by_expert,
}
"""Strategies that draw: the probability of each candidate."""


def arrivals(ballots: Sequence[Ballot], seed: str, count: int) -> list[list[Ballot]]:
    """So many random orders in which candidates may arrive; the first wave asks each expert in turn.

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
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
