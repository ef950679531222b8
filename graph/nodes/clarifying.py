"""Say how strong answers disagree, and ask the user which one is meant.

LangGraph runs an interrupted node again from its start, so this is a node of its own: nothing is billed or
recorded in it before the reply arrives.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

from langgraph.types import interrupt

from quorum.agents.critics import LABELS, SAMPLE_ROWS
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.clarification import (
    ASK_BELOW,
    MAX_ASKED,
    Choice,
    Clarification,
    UserReply,
    extended,
    how_to_reply,
    read_reply,
)
from quorum.graph.context import Context
from quorum.graph.disagreement import (
    Side,
    close_rivals,
    disagreement,
    disagreements,
    sides,
    sides_of,
)
from quorum.graph.nodes.readings import reading_of, taken
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import changed
from quorum.graph.state import Candidate, OtherReading, RunState, fresh, order_counts


async def clarify(state: RunState, context: Context) -> Update:
    """Ask the user if the vote is close or other readings show something else; the reply decides it or adds
    to the question.

    With the option at ``on`` the answer must be doubtful. Nobody is asked in a run that a limit ended.

    A label makes that answer the winner. The user's own words are added to the question and the candidates
    are asked again, once in a run. No reply, or ``MAX_ASKED`` unusable ones, keeps the vote.
    """
    vote = state.vote
    when = context.options.clarify
    if when == "off" or vote is None or state.limited:
        return {}
    if when == "on" and vote.confidence >= ASK_BELOW:
        return {}
    asked = await asyncio.to_thread(_clarification, state, vote, context)
    if asked is None:
        return {}
    payload, meant = asked
    reply = _reply(payload)
    context.trace.record(
        "clarification",
        agent="user",
        differences=payload.differences,
        choices=[{"label": each.label, "says": each.says, "sql": each.sql} for each in payload.choices],
        reply=reply.kind,
        text=reply.text,
    )
    if reply.kind == "words":
        return _asked_anew(state, reply.text)
    chosen = meant.get(reply.text) if reply.kind == "label" else None
    if isinstance(chosen, OtherReading):
        decision = f"Then the user chose this reading: {chosen.says}"
        update = taken(state, chosen, decided="user", upheld=False, decision=decision)
        return update | {"meant": chosen.says}
    return {"vote": _chosen(state, vote, reply.text, chosen)} if chosen else {}


def _asked_anew(state: RunState, words: str) -> Update:
    """Return the question with the user's addition; earlier findings, plans and judgements are dropped."""
    extras = replace(state.extras, findings="", differences="", given="")
    kept = ("schema_ref", "documents_ref", "syntax_ref", "verified", "sources", "alone", "asks", "long")
    known = {name: getattr(state, name) for name in kept}
    question = extended(state.question, words)
    again = fresh(question, state.run_id, type(state), extras=extras, clarified=True, **known)
    del again["warnings"]  # they are about the database and the documents
    return again


def after_clarification(state: RunState) -> Literal["dispatch", "answer"]:
    """Ask the candidates again where there is no vote."""
    return "answer" if state.vote else "dispatch"


async def dispute(state: RunState, context: Context) -> list[str]:
    """Say how the strong answers of a close vote disagree; empty if the vote is clear or the user chose."""
    clusters = close_rivals(state.vote)
    if not clusters or (state.vote and state.vote.decided == "user"):
        return []
    found = await asyncio.to_thread(sides, clusters, state.candidates, context.trace.folder)
    differences = await asyncio.to_thread(disagreements, [side for side, _ in found], context.dialect)
    return [_who(clusters), *differences] if differences else []


def _who(clusters: list[Cluster]) -> str:
    """Say which label is which candidates' answer."""
    first, *others = (", ".join(cluster.candidates) for cluster in clusters)
    rest = "; ".join(
        f"answer {label} that of {names}" for label, names in zip(LABELS[1:], others, strict=False)
    )
    return f"Answer A is the one shown, of {first}; {rest}."


def _clarification(
    state: RunState, vote: Vote, context: Context
) -> tuple[Clarification, dict[str, Cluster | OtherReading]] | None:
    """Return the question to the user and each label's answer; None if there is nothing to choose from."""
    shown, meant = list[tuple[Side, Candidate]](), list[Cluster | OtherReading]()
    clusters = close_rivals(vote) or ([vote.winning] if vote.winning and state.others else [])
    for (side, candidate), cluster in zip(
        sides(clusters, state.candidates, context.trace.folder), clusters, strict=True
    ):
        if not shown or disagreement(shown[0][0], side, context.dialect):
            shown.append((side, candidate))
            meant.append(cluster)
    others = [each for each in state.others if each.answer.result is not None]
    speakers = [candidate for _, candidate in shown] + [each.answer for each in others]
    meant = [*meant, *others][: len(LABELS)]
    if len(meant) < 2:
        return None
    found = sides_of(speakers, context.trace.folder, ordered=order_counts(state.candidates))
    payload = Clarification(
        question=state.question,
        choices=[_choice(state, *each) for each in zip(found, speakers, meant, strict=False)],
        differences=disagreements(found, context.dialect),
        dialect=context.dialect,
        own_words=not state.clarified,
        how=how_to_reply(LABELS[: len(meant)], own_words=not state.clarified),
    )
    return payload, {side.label: each for side, each in zip(found, meant, strict=False)}


def _choice(state: RunState, side: Side, candidate: Candidate, meant: Cluster | OtherReading) -> Choice:
    result = candidate.result
    assert result is not None  # only candidates with a result vote
    said = meant.says if isinstance(meant, OtherReading) else reading_of(state, candidate)
    return Choice(
        label=side.label,
        says=said or f"Shows {', '.join(result.columns)}.",
        sql=side.sql,
        columns=result.columns,
        types=result.types,
        rows=result.preview[:SAMPLE_ROWS],
        row_count=result.row_count,
        candidates=1 if isinstance(meant, OtherReading) else len(meant.candidates),
    )


def _reply(payload: Clarification) -> UserReply:
    labels = [choice.label for choice in payload.choices]
    for _ in range(MAX_ASKED):
        reply = read_reply(interrupt(payload.value()), labels, own_words=payload.own_words)
        if reply.kind != "refused":
            return reply
        payload = payload.model_copy(update={"refused": reply.text})
    return UserReply(kind="keep")


def _chosen(state: RunState, vote: Vote, label: str, cluster: Cluster) -> Vote:
    """Return the vote after the user's choice."""
    upheld = vote.winner in cluster.candidates
    return changed(
        state,
        vote,
        winner=vote.winner if upheld else cluster.candidates[0],
        share=cluster.share,
        decided="user",
        upheld=upheld,
        notes=vote.remarks,
        decision=f"Then the user chose answer {label}, of {', '.join(cluster.candidates)}.",
    )
