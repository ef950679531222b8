"""Consensus: candidates vote with their results, and the vote says how sure it is.

Pure functions over typed values (``quorum.graph.ballots``). ``hold_vote`` excludes what must not vote, has a
strategy (``quorum.graph.strategies``) weigh the rest, and breaks ties. Nothing here depends on the order in
which candidates arrive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from quorum.graph.ballots import (
    UNANSWERABLE,
    Ballot,
    Cluster,
    Decided,
    Rules,
    Tally,
    Vote,
    plainness,
    rank,
)
from quorum.graph.confidence import confidence
from quorum.graph.strategies import STRATEGIES, find_strategy

__all__ = ["STRATEGIES", "Ballot", "Cluster", "Rules", "Vote", "confidence", "find_strategy", "hold_vote"]


async def hold_vote(
    ballots: Iterable[Ballot], strategy: str = "majority", rules: Rules | None = None
) -> Vote:
    """Hold a vote.

    Failed and blank results do not vote unless all results are blank. A tie goes to the cluster
    with an approved candidate, then to the one with the fewest repairs, then to the smallest
    hash of SQL (``quorum.graph.ballots.rank``); ``tie`` stays set. Within a cluster
    ``quorum.graph.ballots.plainness`` chooses the candidate that stands for it.

    Args:
        strategy: A name in ``STRATEGIES``.
        rules: What the strategy needs: weights for ``wma``, ``rwma`` and ``mbr``, a dialect for
            ``sql_majority``, overlaps for ``mbr``, a judge for ``judge``. The seed of a draw is
            recorded, given or derived.

    Raises:
        ConfigurationError: There is no such strategy, or ``rules`` lack what it needs.
    """
    weigh = find_strategy(strategy)
    cast = sorted(ballots, key=plainness)
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
        unanswerable=tuple(ballot.candidate for ballot in cast if ballot.error == UNANSWERABLE),
    )
    if not voters:
        return replace(box, notes=_notes(box, 0))
    return _count(box, voters, await weigh(voters, rules or Rules()))


def _count(box: Vote, voters: Sequence[Ballot], tally: Tally) -> Vote:
    best = {ballot.candidate: rank(ballot) for ballot in voters}
    heaviest = max(cluster.weight for cluster in tally.clusters)
    top = [cluster for cluster in tally.clusters if _leads(cluster, heaviest, tally.chosen)]
    rest = [cluster for cluster in tally.clusters if cluster not in top]
    top.sort(key=lambda cluster: min(best[name] for name in cluster.candidates))
    rest.sort(key=lambda cluster: (-cluster.weight, min(best[name] for name in cluster.candidates)))
    total = math.fsum(cluster.weight for cluster in tally.clusters)
    clusters = tuple(replace(cluster, share=cluster.weight / total) for cluster in (*top, *rest))
    winner = tally.drawn or clusters[0].candidates[0]
    tied = tuple(cluster.key for cluster in top) if len(top) > 1 and not tally.drawn else ()
    decided, decision = _decision(len(tied), tally)
    return replace(
        box,
        winner=winner,
        clusters=clusters,
        share=next(cluster.share for cluster in clusters if winner in cluster.candidates),
        approved=next(ballot.approved for ballot in voters if ballot.candidate == winner),
        tie=bool(tied),
        tied=tied,
        judged=tally.judged,
        margin=tally.margin,
        seed=tally.seed,
        notes=_notes(box, len(voters)),
        decided=decided,
        decision=decision,
    )


def _leads(cluster: Cluster, heaviest: float, chosen: str | None) -> bool:
    """Whether a cluster is the chosen one; where none is, one of the heaviest."""
    return cluster.key == chosen if chosen else math.isclose(cluster.weight, heaviest, rel_tol=1e-9)


def _decision(tied: int, tally: Tally) -> tuple[Decided, str]:
    """What chose the winner, and a sentence on it where the weights alone did not."""
    if tally.drawn:
        return "draw", f"{tally.drawn} was drawn with seed {tally.seed}."
    if tied:
        return (
            "tie_rule",
            f"{tied} answers tie; settled by approval, then fewest repairs, then the SQL's hash.",
        )
    if tally.judged:
        return "judge", "The vote was close; a model compared the answers and chose this one."
    return "vote", ""


def _notes(box: Vote, voters: int) -> tuple[str, ...]:
    notes = []
    if lacking := len(box.unanswerable):
        notes.append(f"{lacking} of {box.cast} candidates say that the data cannot answer.")
    if voters == 0 and not lacking:
        notes.append("No candidate has a result.")
    if box.blank:
        notes.append("Every result is empty, or all NULL, empty text or zero; so these voted.")
    reasons = ", ".join(f"{name} ({why})" for name, why in box.excluded if why != UNANSWERABLE)
    if voters and reasons:
        notes.append(f"Did not vote: {reasons}.")
    if voters == 1:
        notes.append("Only one candidate has a result that can vote.")
    return tuple(notes)
