"""The winner of a vote is checked by the data, and validated once.

If the Validator or a check objects and the Reviser agrees, a revision competes with it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from quorum.agents.refiners import REVISER
from quorum.graph.ballots import Vote
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import verdict_on
from quorum.graph.nodes.judging import better_cluster
from quorum.graph.nodes.readings import CHECKS, needs_readings, suspected
from quorum.graph.nodes.results import first_rows
from quorum.graph.nodes.step import UNUSABLE_OR_GONE, Update, same_query, try_tell
from quorum.graph.nodes.voting import candidate_input, changed, consensus
from quorum.graph.state import Candidate, Doubted, Result, RunState

SAMPLE_ROWS = 10
"""Rows of the result that the Reviser sees."""


async def validate_winner(state: RunState, context: Context) -> Update:
    """Validator: judge the winning answer; the vote's confidence counts the verdict. A failed reply is
    none."""
    if state.winner is None or state.winner.result is None:
        return {"objection": ""}
    winner, result, vote = _winner(state)
    verdict = await verdict_on(
        state, context, winner.sql, result, spare=UNUSABLE_OR_GONE, candidate=winner.id
    )
    if verdict is None:
        return {"objection": ""}
    vote = changed(state, vote, approved=verdict.accepted)
    context.trace.record("vote_weighed", agent="validator", confidence=vote.confidence)
    return {
        "candidates": [replace(winner, approved=verdict.accepted)],
        "vote": vote,
        "objection": verdict.objection,
    }


def _winner(state: RunState) -> tuple[Candidate, Result, Vote]:
    """Return the winner with its result and its vote; the routers ensure that there is one."""
    winner, vote = state.winner, state.vote
    assert winner is not None
    assert winner.result is not None
    assert vote is not None
    return winner, winner.result, vote


async def revise_winner(state: RunState, context: Context) -> Update:
    """Reviser: check the objection; without another query the winner stays, with the objection."""
    winner, result, _ = _winner(state)
    revision = await try_tell(
        state,
        context,
        REVISER,
        "revision",
        spare=UNUSABLE_OR_GONE,
        about={"candidate": winner.id},
        sql=winner.sql,
        objection=state.objection,
        checked=bool(state.doubted),
        **first_rows(result, SAMPLE_ROWS),
    )
    if revision is None or not revision.sql or same_query(revision.sql, [winner.sql]):
        return {"revision": ""}
    given = {"by": REVISER.name, "sql": revision.sql, "summary": revision.summary}
    return {"revision": context.put(json.dumps(given))}


async def send_revision(state: RunState, context: Context) -> Update:
    """One more candidate: the revised query, of the winner's model."""
    winner, _, _ = _winner(state)
    start = candidate_input(state, context, state.dispatched)
    batch = [replace(start, model=winner.model, extras=replace(start.extras, given=state.revision))]
    return {"batch": batch, "dispatched": state.dispatched + 1}


async def weigh_revision(state: RunState, context: Context) -> Update:
    """Judge: the winner or its revision, where their results differ; without a verdict the winner stays.

    Nobody is asked about a revision that follows from checks of the data.
    Where only blank results had voted and the revision has values, it stands by itself: they vote no more.
    """
    _, _, before = _winner(state)
    revision = state.candidates[-1]
    fresh: Vote = (await consensus(state, context))["vote"]
    old = next((cluster for cluster in fresh.clusters if before.winner in cluster.candidates), None)
    new = next((cluster for cluster in fresh.clusters if revision.id in cluster.candidates), None)
    as_before = ("winner", "tie", "tied", "judged", "approved", "notes", "decided", "decision")
    kept = {name: getattr(before, name) for name in as_before}
    if old is None:
        objected = "Checks of the data objected to" if state.doubted else "The Validator rejected"
        decision = f"{objected} an answer without values; its revision has some."
        return {"vote": changed(state, fresh, decided="revision", decision=decision)}
    if new is None or new is old:
        better = False
    else:  # after a check of the data it always is
        better = bool(state.doubted) or await better_cluster(state, context, [old, new]) == new.key
    if new is None or not better:
        return {"vote": changed(state, fresh, **kept, share=old.share)}
    rejected = ", ".join(old.candidates)
    decision = f"The Validator rejected the answer of {rejected}; a model chose its revision."
    doubted: list[Doubted] = []
    if state.doubted:
        decision = f"Checks of the data objected to the answer of {rejected}; it was revised."
        doubted, _ = await _doubts(state, context, revision)
    chosen = {
        **kept,
        "notes": before.remarks,
        "winner": revision.id,
        "tie": False,
        "tied": (),
        "judged": not state.doubted,
        "approved": None,
        "decided": "revision",
        "decision": decision,
    }
    state = replace(state, doubted=[*state.doubted, *doubted])
    return {"vote": changed(state, fresh, **chosen, share=new.share), "doubted": state.doubted}


def after_validation(state: RunState) -> Literal["revise", "go_on"]:
    """Revise a rejected winner, unless a limit was reached."""
    return "revise" if state.objection and not state.limited else "go_on"


def after_revision(state: RunState) -> Literal["send", "go_on"]:
    """Send a revised query as a candidate, unless a limit was reached."""
    return "send" if state.revision and not state.limited else "go_on"


async def check_winner(state: RunState, context: Context) -> Update:
    """Ask the data about errors that no engine reports.

    Nothing is asked about a verified answer, or one that the user chose, nor once a limit was reached.
    """
    winner, vote = state.winner, state.vote
    if vote is None or vote.decided in ("user", "verified") or winner is None or state.limited:
        return {}
    doubted, objection = await _doubts(state, context, winner)
    return {
        "doubted": doubted,
        "objection": objection,
        "vote": changed(replace(state, doubted=doubted), vote),
    }


async def _doubts(state: RunState, context: Context, candidate: Candidate) -> tuple[list[Doubted], str]:
    """Return what is doubtful about a candidate, and the facts in it for the Reviser.

    What they would change stays out of these: it draws a model to a result.
    """
    found = await suspected(context, candidate, question=state.question)
    for each in found:
        about = {"suspicion" if name == "kind" else name: text for name, text in vars(each).items()}
        context.trace.record("suspicion", agent=CHECKS, candidate=candidate.id, **about)
    doubted = [Doubted(candidate.id, str(each.kind), f"{each.says} {each.matters}".strip()) for each in found]
    return doubted, "\n".join(each.says for each in found)


def after_check(state: RunState, *, most_readings: int) -> Literal["revise", "read", "answer"]:
    """Route after the checks.

    The Reviser weighs what was found, unless a limit was reached. Where there is nothing to weigh, no
    other reading to write and nothing to ask, the answer follows at once.
    """
    if state.objection and state.doubted and not state.limited:
        return "revise"
    return "read" if state.asks or needs_readings(state, most_readings) else "answer"
