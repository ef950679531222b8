"""Strategies of the vote: how much each answer weighs, and whether one is drawn.

A strategy is an async function ``(ballots, rules) -> Tally``; a new one needs a line in ``STRATEGIES``.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from quorum.graph.ballots import Ballot, Cluster, Overlaps, Rules, Strategy, Tally, plainness, rank
from quorum.knowledge.errors import ConfigurationError

RIVALS = 3
"""Clusters that a judge compares at most."""

CLOSE = 0.5
"""A cluster with at least this part of the heaviest one's weight is its rival."""

SLACK = 1e-9
"""Relative rounding error of a weight."""


def clusters(
    ballots: Sequence[Ballot],
    weight: Callable[[Ballot], float] = lambda _: 1.0,
    choice: Callable[[Ballot], str] = lambda ballot: ballot.choice,
) -> list[Cluster]:
    """Ballots of one choice together, each cluster the sum of its ballots' weights."""
    groups: dict[str, list[Ballot]] = {}
    for ballot in sorted(ballots, key=plainness):
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


def _by_weight(groups: Sequence[Cluster]) -> Tally:
    """The heaviest wins; the margin is its lead over the next one.

    (A later result within the tolerance of two clusters would join them; the margin ignores that.)
    """
    first, second, *_ = *sorted((group.weight for group in groups), reverse=True), 0.0
    return Tally(groups, margin=first * (1 - SLACK) - second)


def _absolute(groups: Sequence[Cluster], part: float = 1.0) -> float:
    """How far this part of the heaviest cluster's weight exceeds the weight of all others together."""
    heaviest = max(group.weight for group in groups)
    return part * heaviest * (1 - SLACK) - (math.fsum(group.weight for group in groups) - heaviest)


async def majority(ballots: Sequence[Ballot], rules: Rules) -> Tally:  # noqa: ARG001 (the interface's)
    """One vote a candidate, over results."""
    return _by_weight(clusters(ballots))


async def sql_majority(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """One vote a candidate, over normalised SQL text (the naive vote of SSEV, section 3.2).

    Raises:
        ConfigurationError: The rules name no known dialect.
    """
    from quorum.tools.sql.writing import normalise

    return _by_weight(clusters(ballots, choice=lambda ballot: normalise(ballot.sql, rules.dialect)))


async def wma(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """Weighted majority (SSEV, Algorithm 1) over results.

    Each candidate counts with its expert's weight; with one candidate an expert this is the
    paper's W(s).
    """
    return _by_weight(clusters(ballots, weight=lambda ballot: rules.weight(ballot.expert)))


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
    """Draw any candidate with equal chances: the baseline, and ReFoRCE's last resort."""
    seed = rules.seed if rules.seed is not None else derived_seed(ballots)
    ranked = sorted(ballots, key=rank)
    return Tally(
        (await majority(ballots, rules)).clusters, random.Random(seed).choice(ranked).candidate, seed
    )


async def mbr(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """Minimum Bayes risk: the answer with the highest expected agreement with the candidates.

    If every candidate is as likely to be right as its expert's weight says, an answer's expected agreement
    with the truth is the weighted sum of its support by all of them
    (``quorum.tools.results.overlap.Overlap.support``): full where results are equal, a little less where it
    has an additional column, less where it lacks one, little where they agree in part. The unit is one vote.
    Clusters then join results that are the same except for such columns. The result that most of them have
    exactly stands for the cluster, so no column of a single candidate is shown; among equals the one with the
    most support.

    A result that more than half of the weight has exactly always wins: otherwise a result that differs in a
    few cells could win by the support that it gets from this one.

    Raises:
        ConfigurationError: The rules give no overlaps of results.
    """
    if rules.overlaps is None:
        raise ConfigurationError("The strategy 'mbr' compares results, and was given none.")
    groups = clusters(ballots, lambda ballot: rules.weight(ballot.expert))
    heads = {ballot.candidate: ballot for ballot in ballots}
    leads = [heads[group.candidates[0]] for group in groups]
    scored = []
    for group, lead in zip(groups, leads, strict=True):
        support = [
            other.weight * (1.0 if other is group else (await rules.overlaps.overlap(lead, rival)).support)
            for other, rival in zip(groups, leads, strict=True)
        ]
        scored.append((_rounded(math.fsum(support)), group, lead))
    scored.sort(key=lambda item: (-item[0], rank(item[2])))
    margin = _absolute(groups)
    chosen = max(groups, key=lambda group: group.weight).key if margin > 0 else None
    return Tally(await _families(scored, rules.overlaps), chosen=chosen, margin=margin)


def _rounded(weight: float) -> float:
    """To ten digits, so that equal sums of different fractions tie."""
    return float(f"{weight:.10g}")


async def _families(scored: Sequence[tuple[float, Cluster, Ballot]], overlaps: Overlaps) -> list[Cluster]:
    """Join to each cluster those of less support that are the same except for additional columns."""
    left, families = list(scored), []
    while left:
        (weight, head, lead), *others = left
        same = [(await overlaps.overlap(lead, rival)).same for _, _, rival in others]
        members = [head, *(group for (_, group, _), joins in zip(others, same, strict=True) if joins)]
        members.sort(key=lambda group: -_rounded(group.weight))  # stable: of equals the most supported first
        families.append(
            replace(
                members[0],
                candidates=tuple(name for group in members for name in group.candidates),
                experts=tuple(sorted({name for group in members for name in group.experts})),
                weight=weight,
                approved=any(group.approved for group in members),
            )
        )
        left = [item for item, joins in zip(others, same, strict=True) if not joins]
    return families


async def judge(ballots: Sequence[Ballot], rules: Rules) -> Tally:
    """A model chooses between the heaviest clusters, three at most, where the vote is close.

    Clusters are ``mbr``'s where the rules give overlaps, else ``wma``'s. The judge sees them in the order of
    their keys, which says nothing about their weights. The vote is not close if all other results together
    weigh too little to rival the heaviest.

    Raises:
        ConfigurationError: The rules have no judge.
        ValueError: The judge chose none of the clusters it was given.
    """
    if rules.judge is None:
        raise ConfigurationError("The strategy 'judge' asks a model, and was given none.")
    tally = await (mbr if rules.overlaps else wma)(ballots, rules)
    margin = _absolute(clusters(ballots, lambda ballot: rules.weight(ballot.expert)), CLOSE)
    tally = replace(tally, margin=margin)
    heaviest = max(cluster.weight for cluster in tally.clusters)
    rivals = [cluster for cluster in tally.clusters if cluster.weight >= CLOSE * heaviest]
    if margin > 0 or len(rivals) < 2:
        return tally
    rivals.sort(key=lambda cluster: (-cluster.weight, cluster.key))
    shown = sorted(rivals[:RIVALS], key=lambda cluster: cluster.key)
    chosen = await rules.judge.choose(shown, ballots)
    if chosen is not None and chosen not in {cluster.key for cluster in shown}:
        raise ValueError(f"The judge chose {chosen!r}, which is none of the answers it was given.")
    return replace(tally, chosen=chosen or tally.chosen, judged=chosen is not None)


def derived_seed(ballots: Sequence[Ballot]) -> int:
    """A seed derived from the ballots, so that a draw without a given seed is repeatable."""
    votes = sorted((ballot.candidate, ballot.expert, ballot.choice) for ballot in ballots)
    return int.from_bytes(hashlib.sha256(repr(votes).encode()).digest()[:4], "big")


STRATEGIES: dict[str, Strategy] = {
    "majority": majority,
    "sql_majority": sql_majority,
    "wma": wma,
    "rwma": rwma,
    "mbr": mbr,
    "judge": judge,
    "random": drawn,
}


WEIGHTED = ("wma", "rwma", "mbr", "judge")
"""Strategies in which a candidate has its expert's weight."""

ASKING = ("judge",)
"""Strategies that ask a model."""


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


def strategy_words(name: str) -> str:
    """What a strategy does, in one sentence; empty for one of another version."""
    words = inspect.getdoc(STRATEGIES[name]) if name in STRATEGIES else None
    return (words or "").partition("\n\n")[0].replace("\n", " ")
