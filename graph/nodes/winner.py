"""The winner of a vote is validated once; where the Validator objects and the Reviser agrees, a revision
stands against it."""

from __future__ import annotations

import asyncio
from typing import Literal

from quorum.agents import reviser, validator
from quorum.graph.ballots import Cluster
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import note
from quorum.graph.nodes.judging import ModelJudge
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.planning import format_of
from quorum.graph.nodes.results import summary
from quorum.graph.nodes.routes import limited
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import changed, hold, seat
from quorum.graph.state import CandidateRecord, CandidateState, RunState
from quorum.knowledge.compress import render
from quorum.knowledge.errors import MalformedReply, ModelUnavailable
from quorum.tools.linking import Linked, prune, used
from quorum.tools.sql import SyntaxProblem

SCHEMA_TOKENS = 2_000
"""Budget for descriptions and samples of the tables that the Validator sees."""


async def validate_winner(state: RunState, context: Context) -> Update:
    """Validator: on the answer that won; the vote then counts the verdict. A reply that fails is none."""
    record = winner(state)
    result = record["result"] if record else None
    if record is None or result is None:
        return {"rejected": ""}
    schema = await asyncio.to_thread(_tables_of, record["sql"], context)
    try:
        verdict = await first_available(
            context,
            lambda model: validator.validate(
                model.at(temperature=0.0),
                context.dialect,
                state["question"],
                record["sql"],
                summary(result),
                expected_format=format_of(state["plan"]),
                schema=schema,
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
    vote = changed(state, state["vote"], approved=verdict.accepted)
    context.trace.record("vote_weighed", agent="validator", confidence=vote["confidence"])
    return {"approvals": approvals, "vote": vote, "rejected": "" if verdict.accepted else said}


def _tables_of(sql: str, context: Context) -> str:
    """The schema text of the tables that a query uses, each whole; empty where it cannot be read."""
    catalog = context.resources.catalog
    try:
        tables = used(sql, catalog).tables
    except SyntaxProblem:
        return ""
    return render(prune(catalog, Linked(tables=tables)), budget=SCHEMA_TOKENS).text if tables else ""


async def revise_winner(state: RunState, context: Context) -> Update:
    """Reviser: does the objection hold? Without another query the winner stays, objected to."""
    record = winner(state)
    result = record["result"] if record else None
    assert record is not None  # only a winner with a result is rejected
    assert result is not None
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    try:
        revision = await first_available(
            context,
            lambda model: reviser.revise(
                model.at(temperature=0.0),
                prompt,
                state["question"],
                record["sql"],
                state["rejected"],
                columns=result["columns"],
                row_count=result["row_count"],
                rows=result["preview"],
                expected_format=format_of(state["plan"]),
            ),
        )
    except (MalformedReply, ModelUnavailable) as error:
        context.trace.record("revision", agent="reviser", candidate=record["id"], error=str(error))
        return {"revision": ""}
    context.trace.record("revision", agent="reviser", candidate=record["id"], **revision.model_dump())
    same = " ".join((revision.sql or "").split()) == " ".join(record["sql"].split())
    return {"revision": "" if same else revision.sql or ""}


async def send_revision(state: RunState, context: Context) -> Update:
    """One more candidate: the revised query, of the winner's model."""
    record = winner(state)
    assert record is not None  # only a winner is revised
    place = seat(state, context, state["dealt"])
    place["material"] = {**place["material"], "revision": context.put(state["revision"])}
    place["model"] = record["model"]
    return {"seats": [place], "dealt": state["dealt"] + 1}


async def take_revision(state: CandidateState, context: Context) -> Update:
    """The branch of the revised query begins with it."""
    sql = await context.text(state["material"]["revision"])
    note(context, state, "writing", "reviser", sql=sql)
    return {"sql": sql, "error": None}


async def weigh_revision(state: RunState, context: Context) -> Update:
    """Judge: the winner or its revision, where their results differ; without a verdict the winner stays."""
    before, revision = state["vote"], state["candidates"][-1]
    fresh = await hold(state, context, ask=False)
    clusters = [Cluster(**cluster) for cluster in fresh["clusters"]]
    old = next(cluster for cluster in clusters if before["winner"] in cluster.candidates)
    new = next((cluster for cluster in clusters if revision["id"] in cluster.candidates), None)
    kept = {name: before[name] for name in ("winner", "tie", "tied", "judged", "approved", "notes")}
    if new is None or new is old or await _chosen(state, context, old, new) != new.key:
        return {"vote": changed(state, fresh, **kept, share=old.share)}
    said = f"The Validator rejected the answer of {', '.join(old.candidates)}; a model chose its revision."
    chosen = {"winner": revision["id"], "tie": False, "tied": (), "judged": True, "approved": None}
    notes = (*before["notes"], said)
    return {"vote": changed(state, fresh, **chosen, notes=notes, share=new.share)}


async def _chosen(state: RunState, context: Context, old: Cluster, new: Cluster) -> str | None:
    return await ModelJudge(state, context, early=True).choose([old, new], ())


def after_validation(state: RunState) -> Literal["revise", "go_on"]:
    """A rejected winner is revised, unless a limit was reached."""
    return "revise" if state.get("rejected") and not limited(state) else "go_on"


def after_revision(state: RunState) -> Literal["send", "go_on"]:
    """A revised query becomes a candidate, unless a limit was reached."""
    return "send" if state.get("revision") and not limited(state) else "go_on"


def winner(state: RunState) -> CandidateRecord | None:
    """The candidate that stands for the answer, if there is one."""
    named = state.get("vote", {}).get("winner")
    return next((record for record in state.get("candidates", []) if record["id"] == named), None)
