"""What ReFoRCE does with a vote: look into a tie, draw where it stays, or leave it open (section 3.2.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import isclose
from typing import Any, Literal, TypeAlias

from quorum.graph.ballots import Cluster
from quorum.graph.context import Context
from quorum.graph.nodes.judging import ModelJudge
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import changed, draw_seed, seat
from quorum.graph.state import RunState

Told: TypeAlias = dict[str, Any]
"""A vote, or a cluster of it, as the state holds it (``quorum.graph.ballots``)."""

Among: TypeAlias = Literal["tied", "all"]
"""Whether an answer is drawn from the tied clusters or from all candidates that have a say."""


def unresolved(state: RunState) -> bool:
    """Whether the vote has no answer of its own: a tie, nothing but blanks, or no result at all."""
    vote = state.get("vote") or {}
    return bool(vote) and (vote["tie"] or vote["blank"] or vote["winner"] is None)


async def deal_again(state: RunState, context: Context) -> Update:
    """As many candidates as the run began with, now with the findings; the old ones keep their votes."""
    dealt = state["dealt"]
    seats = [seat(state, context, n, greedy=False) for n in range(dealt, dealt + context.votes)]
    return {"seats": seats, "dealt": dealt + len(seats)}


async def draw(state: RunState, context: Context, *, among: Among = "tied") -> Update:
    """Draw the answer with the run's seed, which is recorded (ReFoRCE, equation 7)."""
    vote, seed = state["vote"], draw_seed(state, context)
    winner, chosen = drawn(vote["clusters"], seed, among)
    outcome = _settled(state, winner, chosen, f"{winner} was drawn with seed {seed}.", seed=seed)
    context.trace.record("draw", agent="consensus", among=among, winner=winner, seed=seed)
    return {"vote": outcome}


def drawn(clusters: Sequence[Told], seed: int, among: Among = "tied") -> tuple[str, Told]:
    """A candidate and its cluster: of the tied clusters each with the same chance, or of all candidates.

    The order in which clusters and candidates came in plays no part.
    """
    lot = random.Random(seed)
    if among == "tied":
        chosen = lot.choice(tied(clusters))
        return chosen["candidates"][0], chosen
    lots = [(str(cluster["key"]), cluster) for cluster in clusters for _ in cluster["candidates"]]
    _, chosen = lot.choice(sorted(lots, key=lambda item: item[0]))
    return lot.choice(sorted(chosen["candidates"])), chosen


def tied(clusters: Sequence[Told]) -> list[Told]:
    """The heaviest clusters, in an order that depends on what they say alone."""
    heaviest = max(cluster["weight"] for cluster in clusters)
    top = [cluster for cluster in clusters if isclose(cluster["weight"], heaviest, rel_tol=1e-9)]
    return sorted(top, key=lambda cluster: str(cluster["key"]))


def _settled(state: RunState, winner: str, chosen: Told, note: str, **more: Any) -> Told:
    """The vote with its answer; what it said of another way to settle the tie goes."""
    vote = state["vote"]
    notes = [said for said in vote["notes"] if "settled by" not in said]
    of_chosen = {"share": chosen["share"], "approved": chosen["approved"] or None}
    return changed(state, vote, winner=winner, **of_chosen, notes=(*notes, note), **more)


async def ask_judge(state: RunState, context: Context) -> Update:
    """A model decides between the answers that tie; where it cannot tell the tie stays (003, 3.2.5)."""
    vote = state["vote"]
    clusters = [Cluster(**told) for told in tied(vote["clusters"])]
    key = await ModelJudge(state, context).choose(clusters, ())
    chosen = next((cluster for cluster in vote["clusters"] if cluster["key"] == key), None)
    if chosen is None:
        return {}
    note = f"{len(clusters)} answers tied; a model compared them and chose this one."
    judged = {"tie": False, "tied": (), "judged": True}
    return {"vote": _settled(state, chosen["candidates"][0], chosen, note, **judged)}


async def leave_open(state: RunState, context: Context) -> Update:
    """Without random selection a tie has no answer (an ablation of ReFoRCE's Table 3)."""
    context.trace.record("tie_left_open", agent="consensus", winner=None)
    notes = [said for said in state["vote"]["notes"] if "settled by" not in said]
    said = "The candidates tie and random selection is switched off: no answer was chosen."
    return {
        "vote": {**state["vote"], "winner": None, "share": 0.0, "confidence": 0.0, "notes": notes},
        "warnings": [said],
    }
