"""ReFoRCE's tie breaking: explore a tie, draw if it stays, or leave it open (section 3.2.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import isclose
from typing import Any, Literal, TypeAlias

from langgraph.types import Overwrite

from quorum.agents.critics import LABELS
from quorum.graph.ballots import UNANSWERABLE, Cluster, Vote
from quorum.graph.context import Context
from quorum.graph.nodes import exploration
from quorum.graph.nodes.judging import better_cluster
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import changed, dispatch_all, draw_seed
from quorum.graph.state import Candidate, RunState

Among: TypeAlias = Literal["tied", "all"]
"""Draw an answer from the tied clusters, or from all candidates that can vote."""


def heaviest(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Return the answers with the most votes, ordered by their keys (ReFoRCE, equation 4)."""
    most = max((cluster.weight for cluster in clusters), default=0.0)
    top = [cluster for cluster in clusters if isclose(cluster.weight, most, rel_tol=1e-9)]
    return sorted(top, key=lambda cluster: cluster.key)


def resolved(state: RunState) -> bool:
    """True if exactly one answer has the most votes (ReFoRCE, equation 5).

    That the data cannot answer is an answer. A result without values is none: the paper repairs it to the
    limit (Table 6) and then explores (Listing 2).
    """
    vote = state.vote
    if vote is None or vote.cannot_answer:
        return vote is not None
    return len(heaviest(vote.clusters)) == 1 and has_values(state.winner)


def unresolved(state: RunState) -> bool:
    """True if several answers have the most votes, or there is none (ReFoRCE, equation 6)."""
    return state.vote is not None and not resolved(state)


def has_values(candidate: Candidate | None) -> bool:
    """True if a candidate's result has values, or the SelfRefiner confirmed that there are none."""
    result = candidate.result if candidate else None
    return candidate is not None and result is not None and (candidate.stands or not result.no_values)


async def begin_second_round(state: RunState, context: Context) -> Update:
    """Dispatch as many candidates as at first, which explore by themselves; the first round is set aside.

    Where only the schema is available, exploration would find nothing: none is dispatched.
    """
    if not context.live:
        warning = f"Column exploration was left out: {exploration.ONLY_SCHEMA}"
        return {"explored": True, "batch": [], "warnings": [warning]}
    aside: Update = {"explored": True, "candidates": None, "first_round": state.candidates}
    return aside | await dispatch_all(state, context)


async def recall_first_round(state: RunState, _: Context) -> Update:
    """Let the first round vote again where the second has no result with values, and does not say why.

    What tied then is drawn among.
    """
    errors = [each.error.kind for each in state.candidates if each.error]
    if any(map(has_values, state.candidates)) or UNANSWERABLE in errors or not state.first_round:
        return {}
    failed = [each for each in state.candidates if each.result is None]
    blank = [each for each in state.candidates if each.result]
    recalled: Update = {"candidates": Overwrite([*state.first_round, *failed]), "first_round": blank}
    if any(candidate.result for candidate in state.first_round):
        lacking = "No candidate of the second round has a result with values"
        recalled["warnings"] = [f"{lacking}; the first round voted again."]
    return recalled


async def draw(state: RunState, context: Context, *, among: Among = "tied") -> Update:
    """Draw the answer with the run's seed, which is recorded: equation 7's random selection."""
    vote, seed = _vote(state), draw_seed(state, context)
    winner, chosen = drawn(vote.clusters, seed, among)
    decided = {"decided": "draw", "decision": f"{winner} was drawn with seed {seed}.", "seed": seed}
    context.trace.record("draw", agent="consensus", among=among, winner=winner, seed=seed)
    return {"vote": _decided(state, winner, chosen, **decided)}


def drawn(clusters: Sequence[Cluster], seed: int, among: Among = "tied") -> tuple[str, Cluster]:
    """Return a candidate and its cluster: of the tied clusters each with the same chance, or of all
    candidates.

    The order in which clusters and candidates came in plays no part.
    """
    lot = random.Random(seed)
    if among == "tied":
        chosen = lot.choice(heaviest(clusters))
        return chosen.candidates[0], chosen
    lots = [(cluster.key, cluster) for cluster in clusters for _ in cluster.candidates]
    _, chosen = lot.choice(sorted(lots, key=lambda item: item[0]))
    return lot.choice(sorted(chosen.candidates)), chosen


async def ask_judge(state: RunState, context: Context) -> Update:
    """Judge: decide between the answers that tie (ReFoRCE first version, equation 7).

    If it cannot tell, the tie stays.
    """
    clusters = heaviest(_vote(state).clusters)
    key = await better_cluster(state, context, clusters)
    chosen = next((cluster for cluster in clusters if cluster.key == key), None)
    if chosen is None:
        return {}
    compared = "them" if len(clusters) <= len(LABELS) else f"{len(LABELS)} of them"
    decision = f"{len(clusters)} answers tied; a model compared {compared} and chose this one."
    decided = {"decided": "judge", "decision": decision, "tie": False, "tied": (), "judged": True}
    return {"vote": _decided(state, chosen.candidates[0], chosen, **decided)}


async def leave_open(state: RunState, context: Context) -> Update:
    """Leave a tie without an answer (an ablation of ReFoRCE's Table 3)."""
    context.trace.record("tie_left_open", agent="consensus", winner=None)
    warning = "The candidates tie and random selection is switched off: no answer was chosen."
    vote = changed(state, _vote(state), winner=None, share=0.0, decided="", decision="")
    return {"vote": vote, "warnings": [warning]}


def _vote(state: RunState) -> Vote:
    assert state.vote is not None  # the routers come here after a vote
    return state.vote


def _decided(state: RunState, winner: str, chosen: Cluster, **changes: Any) -> Vote:
    """Return the vote with this answer and decision."""
    of_chosen = {"share": chosen.share, "approved": chosen.approved or None}
    return changed(state, _vote(state), winner=winner, **of_chosen, **changes)
