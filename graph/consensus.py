"""Consensus: candidates vote with their results, and the vote says how sure it is.

Pure functions over typed values (``graph.ballots``). ``hold_vote`` keeps out what must not vote, has
a strategy (``graph.strategies``) weigh the rest, and settles ties. Nothing here depends on the
order in which candidates arrive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph.ballots import Ballot, Cluster, Rules, Tally, Vote, rank
from graph.strategies import STRATEGIES, find_strategy

__all__ = ["STRATEGIES", "Ballot", "Cluster", "Rules", "Vote", "confidence", "find_strategy", "hold_vote"]


async def hold_vote(
    ballots: Iterable[Ballot], strategy: str = "majority", rules: Rules | None = None
) -> Vote:
    """Hold a vote.

    Failed and blank results do not vote unless all results are blank. A tie goes to the cluster
    with an approved candidate, then to the one with the fewest repairs, then to the smallest
    hash of SQL (``graph.ballots.rank``); ``tie`` stays set. Within a cluster the same rule
    chooses the candidate that stands for it.

    Args:
        strategy: A name in ``STRATEGIES``.
        rules: What the strategy needs: weights for ``wma`` and ``rwma``, a dialect for ``sql_majority``.
            The seed of a draw is recorded, given or derived.

    Raises:
        ConfigurationError: No strategy has that name, or the one that has lacks what it needs.
    """
    weigh = find_strategy(strategy)
    cast = sorted(ballots, key=rank)
    voters = [ballot for ballot in cast if ballot.eligible]
    blank = not voters
    voters = voters or [ballot for ballot in cast if ballot.fingerprint and not ballot.error]
    box = Vote(
        winner=None,
        clusters=(),
        share=0.0,
        tie=False,
        strategy=strategy,
        blank=blank and bool(voters),
        cast=len(cast),
        experts=len({ballot.expert for ballot in cast}),
        excluded=tuple((ballot.candidate, ballot.reason) for ballot in cast if ballot not in voters),
    )
    if not voters:
        return replace(box, notes=("No candidate has a result.",))
    return _count(box, voters, await weigh(voters, rules or Rules()))


def _count(box: Vote, voters: Sequence[Ballot], tally: Tally) -> Vote:
    best = {ballot.candidate: rank(ballot) for ballot in voters}
    heaviest = max(cluster.weight for cluster in tally.clusters)
    top = [cluster for cluster in tally.clusters if math.isclose(cluster.weight, heaviest, rel_tol=1e-9)]
    rest = [cluster for cluster in tally.clusters if cluster not in top]
    top.sort(key=lambda cluster: min(best[name] for name in cluster.candidates))
    rest.sort(key=lambda cluster: (-cluster.weight, min(best[name] for name in cluster.candidates)))
    total = math.fsum(cluster.weight for cluster in tally.clusters)
    clusters = tuple(replace(cluster, share=cluster.weight / total) for cluster in (*top, *rest))
    winner = tally.drawn or clusters[0].candidates[0]
    return replace(
        box,
        winner=winner,
        clusters=clusters,
        share=next(cluster.share for cluster in clusters if winner in cluster.candidates),
        approved=next(ballot.approved for ballot in voters if ballot.candidate == winner),
        tie=tally.drawn is None and len(top) > 1,
        seed=tally.seed,
        notes=_notes(box, len(voters), len(top), tally),
    )


def _notes(box: Vote, voters: int, top: int, tally: Tally) -> tuple[str, ...]:
    notes = []
    if box.blank:
        notes.append("Every result is empty, all NULL or all zero; these voted because there is no other.")
    if box.excluded:
        said = ", ".join(f"{name} ({reason})" for name, reason in box.excluded)
        notes.append(f"Did not vote: {said}.")
    if voters == 1:
        notes.append("Only one candidate has a result that can vote.")
    if tally.drawn:
        notes.append(f"{tally.drawn} was drawn with seed {tally.seed}.")
    elif top > 1:
        notes.append(f"{top} answers tie; settled by approval, then fewest repairs, then the SQL's hash.")
    return tuple(notes)


LOW = 0.4
"""No vote that is low by rule (``Vote.low``) has more confidence than this."""

BLANK = 0.2
"""Nor has one in which only blank results voted more than this."""


def confidence(vote: Vote) -> float:
    """How far to trust a vote's answer, 0 to 1. NOT CALIBRATED: a rule, not a probability.

    Starts from ``share * voters / (cast + 1)``: candidates that failed count against the answer,
    and a single vote is worth a half. Up to a quarter is lost where experts disagree. The
    validator's approval of the winner closes 30 % of the gap to 1, its refusal halves. Grows
    with the share, with agreeing experts and with the verdict; capped at ``LOW`` and ``BLANK``.
    """
    winning = vote.winning
    if winning is None:
        return 0.0
    voters = sum(len(cluster.candidates) for cluster in vote.clusters)
    agreement = len(winning.experts) / vote.experts
    value = vote.share * voters / (vote.cast + 1) * (0.75 + 0.25 * agreement)
    if vote.approved is not None:
        value = value + 0.3 * (1 - value) if vote.approved else value / 2
    cap = BLANK if vote.blank else LOW if vote.low else 1.0
    return min(value, cap)
