"""The winner of a vote is validated once; where the Validator rejects it, one revision stands against it."""

from __future__ import annotations

import json
from typing import Any, Literal

from agents import self_refiner, validator
from graph.ballots import Cluster
from graph.context import Context
from graph.nodes.candidate import candidate_model, note
from graph.nodes.judging import ModelJudge
from graph.nodes.models import first_available
from graph.nodes.results import summary
from graph.nodes.step import Update
from graph.nodes.voting import hold, seat
from graph.state import CandidateRecord, CandidateState, RunState
from knowledge.errors import MalformedReply, ModelUnavailable
from tools.query import ErrorKind


async def validate_winner(state: RunState, context: Context) -> Update:
    """Validator: on the answer that won; the vote then counts the verdict. A reply that fails is none."""
    record = winner(state)
    result = record["result"] if record else None
    if record is None or result is None:
        return {"rejected": ""}
    try:
        verdict = await first_available(
            context,
            lambda model: validator.validate(
                model.at(temperature=0.0),
                context.dialect,
                state["question"],
                record["sql"],
                summary(result),
                expected_format=state["plan"]["expected_format"],
            ),
        )
    except (MalformedReply, ModelUnavailable) as error:
        context.trace.record("validation", agent="validator", candidate=record["id"], error=str(error))
        return {"rejected": ""}
    context.trace.record("validation", agent="validator", candidate=record["id"], **verdict.model_dump())
    approvals = {**state.get("approvals", {}), record["id"]: verdict.accepted}
    superfluous = ", ".join(verdict.columns_not_needed)
    parts = [verdict.suggest_fix, f"Columns not needed: {superfluous}." if superfluous else ""]
    said = " ".join(part for part in parts if part) or verdict.reasoning
    vote = await hold({**state, "approvals": approvals}, context)
    return {"approvals": approvals, "vote": vote, "rejected": "" if verdict.accepted else said}


async def send_revision(state: RunState, context: Context) -> Update:
    """One more candidate: the winner's query, to be revised by what the Validator says."""
    record = winner(state)
    assert record is not None  # only a winner is rejected
    rejected = context.put(json.dumps({"sql": record["sql"], "error": state["rejected"]}))
    place = seat(state, context, state["dealt"])
    place["material"] = {**place["material"], "rejected": rejected}
    place["model"] = record["model"]
    return {"seats": [place], "dealt": state["dealt"] + 1}


async def revise(state: CandidateState, context: Context) -> Update:
    """SelfRefiner: rewrite the query that the Validator rejected."""
    rejected = json.loads(await context.text(state["material"]["rejected"]))
    revised = await self_refiner.refine(
        candidate_model(state, context),
        await context.prompt(state["schema_ref"], state["documents_ref"]),
        state["question"],
        rejected["sql"],
        kind=ErrorKind.OTHER,
        error=f"The query ran, but a reviewer rejects its result: {rejected['error']}",
        expected_format=state["plan"]["expected_format"],
        syntax=await context.text(state["syntax_ref"]),
    )
    note(context, state, "refinement", "self_refiner", error=rejected["error"], **revised.model_dump())
    return {"sql": revised.sql, "error": None, "earlier": [rejected]}


async def weigh_revision(state: RunState, context: Context) -> Update:
    """Judge: the winner or its revision, where their results differ; without a verdict the winner stays."""
    vote, revision = await hold(state, context), state["candidates"][-1]
    clusters = [Cluster(**cluster) for cluster in vote["clusters"]]
    old = next(cluster for cluster in clusters if vote["winner"] in cluster.candidates)
    new = next((cluster for cluster in clusters if revision["id"] in cluster.candidates), None)
    if new is None or new is old:
        return {"vote": vote}
    chosen = await ModelJudge(state, context, early=True).choose([old, new], ())
    if chosen != new.key:
        return {"vote": vote}
    said = f"The Validator rejected the answer of {', '.join(old.candidates)}; a model chose its revision."
    return {"vote": {**vote, **_led_by(new), "notes": [*vote["notes"], said]}}


def _led_by(cluster: Cluster) -> dict[str, Any]:
    """What the vote says where this cluster wins by judgement."""
    return {
        "winner": cluster.candidates[0],
        "share": cluster.share,
        "approved": None,
        "tie": False,
        "judged": True,
    }


def after_validation(state: RunState) -> Literal["revise", "go_on"]:
    """A rejected winner is revised, unless a limit was reached."""
    limits = [state.get("stopped_by"), *(record["stopped_by"] for record in state.get("candidates", []))]
    return "revise" if state.get("rejected") and not any(limits) else "go_on"


def winner(state: RunState) -> CandidateRecord | None:
    """The candidate that stands for the answer, if there is one."""
    named = state.get("vote", {}).get("winner")
    return next((record for record in state.get("candidates", []) if record["id"] == named), None)
