"""Say how strong answers disagree, and ask the user which one is meant.

The node stands by itself because LangGraph runs an interrupted node again from its start: here
nothing is billed, and nothing is recorded before the reply is there.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from langgraph.types import interrupt

from quorum.agents.judge import SAMPLE_ROWS
from quorum.graph.ballots import Cluster
from quorum.graph.clarification import MAX_ASKED, Choice, Clarification, Reply, extended, read_reply
from quorum.graph.contest import LABELS, contest, sides
from quorum.graph.context import Context
from quorum.graph.disagreement import describe, disagreement, disagreements
from quorum.graph.nodes.planning import NO_PLAN
from quorum.graph.nodes.routes import limited
from quorum.graph.nodes.step import Update
from quorum.graph.state import RunState

SETTLED = 0.9
"""Confidence of an answer that the user chose: the reading is theirs, the SQL may still be wrong."""


async def clarify(state: RunState, context: Context) -> Update:
    """Ask the user, if the run may and the vote is close; the reply settles it or adds to the question.

    Nobody is asked in a run that a limit ended.

    A label makes that answer the winner. The user's own words are added to the question and the
    candidates are dealt anew, once in a run. Nothing, or ``MAX_ASKED`` replies of no use, keeps the vote.
    """
    vote = state["vote"]
    if not context.options.clarify or not vote or limited(state):
        return {}
    asked = await asyncio.to_thread(_clarification, state, context)
    if asked is None:
        return {}
    payload, clusters = asked
    reply = _reply(payload)
    context.trace.record(
        "clarification", agent="user", differences=payload.differences, reply=reply.kind, text=reply.text
    )
    if reply.kind == "words":
        question = extended(state["question"], reply.text)
        return {"question": question, "clarified": state["run_id"], **_anew(state)}
    if reply.kind == "label":
        return {"vote": vote | _settled(vote, reply.text, clusters[reply.text])}
    return {}


def _anew(state: RunState) -> Update:
    """Forget what was found, planned and judged for the question as it was."""
    of_the_old = ("findings", "differences", "revision")
    material = {kind: ref for kind, ref in state.get("material", {}).items() if kind not in of_the_old}
    return {
        "candidates": None,
        "dealt": 0,
        "vote": {},
        "approvals": {},
        "rejected": "",
        "revision": "",
        "explored": False,
        "plan": NO_PLAN,
        "plan_rounds": 0,
        "critique": "",
        "material": material,
    }


def after_clarification(state: RunState) -> Literal["deal", "answer"]:
    """Without a vote the candidates are dealt anew."""
    return "answer" if state["vote"] else "deal"


async def dispute(state: RunState, context: Context) -> list[str]:
    """How the strong answers of a close vote disagree, in words; empty if it is clear or settled."""
    vote = state.get("vote", {})
    clusters = contest(vote)
    if not clusters or vote.get("settled"):
        return []
    records, folder = state.get("candidates", []), context.trace.folder
    found = await asyncio.to_thread(sides, clusters, records, folder)
    said = await asyncio.to_thread(disagreements, [side for side, _ in found], context.dialect)
    return [_who(clusters), *said] if said else []


def _who(clusters: list[Cluster]) -> str:
    """Which label stands for which candidates."""
    first, *others = (", ".join(cluster.candidates) for cluster in clusters)
    rest = "; ".join(
        f"answer {label} that of {names}" for label, names in zip(LABELS[1:], others, strict=False)
    )
    return f"Answer A is the one shown, of {first}; {rest}."


def _clarification(state: RunState, context: Context) -> tuple[Clarification, dict[str, Cluster]] | None:
    """What to ask, and the cluster behind each label; None where all strong answers are the same."""
    clusters = contest(state["vote"])
    found = sides(clusters, state["candidates"], context.trace.folder)
    different = [
        (side, record, cluster)
        for place, ((side, record), cluster) in enumerate(zip(found, clusters, strict=True))
        if place == 0 or disagreement(found[0][0], side, context.dialect)
    ]
    if len(different) < 2:
        return None
    choices = []
    for side, record, cluster in different:
        result = record["result"]
        assert result is not None  # only candidates with a result vote
        choices.append(
            Choice(
                label=side.label,
                says=describe(side, context.dialect),
                sql=side.sql,
                columns=result["columns"],
                rows=result["preview"][:SAMPLE_ROWS],
                row_count=result["row_count"],
                candidates=len(cluster.candidates),
            )
        )
    payload = Clarification(
        question=state["question"],
        choices=choices,
        differences=disagreements([side for side, _, _ in different], context.dialect),
        dialect=context.dialect,
        own_words=state.get("clarified") != state["run_id"],
    )
    return payload, {side.label: cluster for side, _, cluster in different}


def _reply(payload: Clarification) -> Reply:
    labels = [choice.label for choice in payload.choices]
    for _ in range(MAX_ASKED):
        reply = read_reply(interrupt(payload.model_dump()), labels, own_words=payload.own_words)
        if reply.kind != "refused":
            return reply
        payload = payload.model_copy(update={"refused": reply.text})
    return Reply(kind="keep")


def _settled(vote: dict[str, Any], label: str, cluster: Cluster) -> dict[str, Any]:
    """What the user's choice changes in the vote."""
    winner = cluster.candidates[0]
    upheld = vote["winner"] in cluster.candidates
    return {
        "winner": vote["winner"] if upheld else winner,
        "share": cluster.share,
        "settled": "user",
        "upheld": upheld,
        "confidence": SETTLED,
        "notes": [*vote["notes"], f"Then the user chose answer {label}, of {', '.join(cluster.candidates)}."],
    }
