"""Strategies of the vote: how much each answer weighs, and whether one is drawn.

A strategy is an async function ``(ballots, rules) -> Tally``; a new one needs a line in ``STRATEGIES``.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence

from graph.ballots import Ballot, Cluster, Rules, Strategy, Tally, rank
from knowledge.errors import ConfigurationError


def clusters(
    ballots: Sequence[Ballot],
    weight: Callable[[Ballot], float] = lambda _: 1.0,
    choice: Callable[[Ballot], str] = lambda ballot: ballot.choice,
) -> list[Cluster]:
    """Ballots of one choice together, each cluster the sum of its ballots' weights."""
    groups: dict[str, list[Ballot]] = {}
    for ballot in sorted(ballots, key=rank):
        groups.setdefault(choice(ballot), []).append(ballot)
    return [
        Cluster(
            key=key,
            fingerprint=members[0].fingerprint,
            candidates=tuple(ballot.candidate for ballot in members),
            experts=tuple(sorted({ballot.expert for ballot in members})),
            weight=math.fsum(weight(ballot) for ballot in members),
            approved=any(ballot.approved is True for ballot in members),
        )
        for key, members in groups.items()
    ]


async def majority(ballots: Sequence[Ballot], rules: Rules) -> Tally:  # noqa: ARG001 (the interface's)
    """One vote a candidate, over results."""
    return Tally(clusters(ballots))


async def sql_majority(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """One vote a candidate, over normalised SQL text (the naive vote of SSEV, section 3.2).

    Raises:
        ConfigurationError: The rules name no known dialect.
    """
    from tools.sql import normalise

    return Tally(clusters(ballots, choice=lambda ballot: normalise(ballot.sql, rules.dialect)))


async def wma(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """Weighted majority (SSEV, Algorithm 1) over results.

    Each candidate counts with its expert's weight; with one candidate an expert this is the
    paper's W(s).
    """
    return Tally(clusters(ballots, weight=lambda ballot: rules.weight(ballot.expert)))


async def rwma(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """Randomised weighted majority (SSEV, Algorithm 2): an expert is drawn with p = w / W.

    Of an expert's several candidates one is drawn evenly.
    """
    seed = rules.seed if rules.seed is not None else derived_seed(ballots)
    draw = random.Random(seed)
    experts = sorted({ballot.expert for ballot in ballots})
    expert = draw.choices(experts, [rules.weight(name) for name in experts])[0]
    own = sorted((b for b in ballots if b.expert == expert), key=rank)
    return Tally((await wma(ballots, rules)).clusters, draw.choice(own).candidate, seed)


async def drawn(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """Any candidate, drawn evenly: the baseline, and ReFoRCE's last resort."""
    seed = rules.seed if rules.seed is not None else derived_seed(ballots)
    ranked = sorted(ballots, key=rank)
    return Tally(
        (await majority(ballots, rules)).clusters, random.Random(seed).choice(ranked).candidate, seed
    )


def derived_seed(ballots: Sequence[Ballot]) -> int:
    """A seed from what the ballots say, so that a draw can be repeated without having been given one."""
    said = sorted((ballot.candidate, ballot.expert, ballot.choice) for ballot in ballots)
    return int.from_bytes(hashlib.sha256(repr(said).encode()).digest()[:4], "big")


STRATEGIES: dict[str, Strategy] = {
    "majority": majority,
    "sql_majority": sql_majority,
    "wma": wma,
    "rwma": rwma,
    "random": drawn,
}


def find_strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ConfigurationError: There is none; the hint lists the names.
    """
    if name not in STRATEGIES:
        raise ConfigurationError(
            f"No consensus strategy is called {name!r}.", hint=f"Known: {', '.join(STRATEGIES)}."
        )
    return STRATEGIES[name]
