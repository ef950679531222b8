"""A vote replayed in expectation: over draws, over ties, over the order in which candidates arrive."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from quorum.evals.recorded.rounds import Round
from quorum.graph.ballots import Ballot, Rules, Vote
from quorum.graph.confidence import confidence
from quorum.graph.consensus import hold_vote
from quorum.graph.stopping import Stopping, next_batch
from quorum.graph.strategies import WEIGHTED


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


@dataclass(frozen=True)
class _Ending:
    """One way in which a vote could have come out: a cluster wins with some probability."""

    chance: float
    vote: Vote
    outcome: Outcome


class Poll:
    """One strategy's votes over a round; a vote over the same candidates is held once.

    Where the strategy draws, or a tie leaves it to the tie rule, all that could have come out counts with
    its probability: a tied cluster is as likely as the others, and its first candidate stands for it.
    """

    def __init__(self, round_: Round, strategy: str, rules: Rules) -> None:
        self._round, self._strategy, self._rules = round_, strategy, rules
        self._held: dict[frozenset[str], list[_Ending]] = {}
        self._ended: dict[tuple[str, frozenset[str]], tuple[float, Outcome]] = {}

    async def outcome(self, stopping: Stopping, orders: Sequence[Sequence[Ballot]]) -> Outcome:
        """Expected over the orders of arrival; without waves the order does not count."""
        used = orders if stopping.in_batches else orders[:1]
        parts = [part for order in used for part in await self._walk(stopping, order)]
        return expected((chance / len(used), outcome) for chance, outcome in parts)

    async def _walk(self, stopping: Stopping, order: Sequence[Ballot]) -> list[tuple[float, Outcome]]:
        """Ask wave after wave; some of what may come out of a vote may end it, and some not."""
        experts = len({ballot.expert for ballot in order})
        parts: list[tuple[float, Outcome]] = []
        left, dealt = 1.0, 0
        while left > 1e-12:
            dealt += next_batch(dealt, len(order), stopping, experts)
            chance, outcome = await self._stop(stopping, order[:dealt], order[dealt:])
            if chance:
                parts.append((left * chance, replace(outcome, samples=dealt)))
                left *= 1 - chance
        return parts

    async def _stop(
        self, stopping: Stopping, cast: Sequence[Ballot], rest: Sequence[Ballot]
    ) -> tuple[float, Outcome]:
        """How probable it is that the vote ends with these candidates, and what is expected if so."""
        names = frozenset(ballot.candidate for ballot in cast)
        if (stopping.name, names) not in self._ended:
            if names not in self._held:
                self._held[names] = await self._hold(cast)
            weighted = self._strategy in WEIGHTED
            to_come = [self._rules.weight(ballot.expert) if weighted else 1.0 for ballot in rest]
            over = [ending for ending in self._held[names] if stopping.enough(ending.vote, to_come)]
            chance = sum(ending.chance for ending in over)
            outcome = expected((ending.chance / chance, ending.outcome) for ending in over)
            self._ended[stopping.name, names] = chance, outcome
        return self._ended[stopping.name, names]

    async def _hold(self, cast: Sequence[Ballot]) -> list[_Ending]:
        vote = await hold_vote(cast, self._strategy, self._rules)
        if vote.winner is None:
            return [_Ending(1.0, vote, Outcome())]
        chances = _chances(vote, cast, self._rules)
        return [
            self._ending(
                replace(vote, winner=own[0], share=cluster.share), {name: chances[name] for name in own}
            )
            for cluster in vote.clusters
            if (own := [name for name in cluster.candidates if name in chances])
        ]

    def _ending(self, vote: Vote, chances: Mapping[str, float]) -> _Ending:
        """A cluster wins, by one of its candidates."""
        total, final, sure = sum(chances.values()), self._round.final, confidence(vote)
        right = _part(chances, self._round.right) / total
        agrees = _part(chances, final.same) / total if final else 0.0
        brier = right * (sure - 1) ** 2 + (1 - right) * sure**2
        return _Ending(total, vote, Outcome(right, float(vote.tie), 0.0, 1.0, agrees, brier))


def _part(chances: Mapping[str, float], names: Container[str]) -> float:
    return sum(chance for name, chance in chances.items() if name in names)


def _chances(vote: Vote, ballots: Sequence[Ballot], rules: Rules) -> dict[str, float]:
    """Each candidate that could have won, with its probability."""
    if vote.seed is not None:
        voters = {name for cluster in vote.clusters for name in cluster.candidates}
        return DRAWS[vote.strategy]([ballot for ballot in ballots if ballot.candidate in voters], rules)
    standing = [cluster.candidates[0] for cluster in vote.clusters if cluster.key in vote.tied]
    return dict.fromkeys(standing or [str(vote.winner)], 1 / max(1, len(standing)))


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
