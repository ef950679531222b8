"""Make the answer of a run from its candidates and their vote."""

from __future__ import annotations

import asyncio
from typing import Any

from quorum.graph.answer import Answer, AnswerCandidate, AnswerCluster, AnswerVote
from quorum.graph.confidence import abstains
from quorum.graph.context import Context
from quorum.graph.live import close_own
from quorum.graph.nodes.clarifying import dispute
from quorum.graph.nodes.step import Update
from quorum.graph.state import CandidateRecord, RunState
from quorum.knowledge.errors import QuorumError
from quorum.tools.experts import Feedback
from quorum.tools.query import ErrorKind

MAX_READINGS = 3
MAX_READING = 240  # characters
NEVER_RAN = ("stopped", "gave_up")
"""``ErrorState.kind`` of a candidate without a result that no error of its SQL explains."""


async def answer(state: RunState, context: Context) -> Update:
    """Make the answer, keep it in the run folder, and close what the graph itself opened."""
    said = []
    if len(context.models) > 1 and context.live:
        said += await asyncio.to_thread(_learn, state, context)
    disagreement = await dispute(state, context)
    await context.trace.aflush()
    if context.trace.failure:
        said.append(f"The trace is incomplete: {context.trace.failure}")
    made = _answer(state, context, said).model_copy(update={"disagreement": disagreement})
    context.trace.record("answer", agent="answer", status=made.status, sql=made.sql)
    told = made.model_dump(mode="json")
    context.trace.finish(told)
    await close_own(context)
    return {"answer": told}


def _learn(state: RunState, context: Context) -> list[str]:
    """What the run says of its experts: the user's choice, where there is one, else what ran.

    Who chose another answer than the user was wrong; so was an expert none of whose SQL ran.

    Returns:
        What went wrong with learning, for people; the answer does not depend on it.
    """
    records, vote = state.get("candidates", []), state.get("vote", {})
    if vote.get("settled"):
        right = next(c["experts"] for c in vote["clusters"] if vote["winner"] in c["candidates"])
        voted = {expert: expert in right for c in vote["clusters"] for expert in c["experts"]}
        return _update(voted, context, feedback="user", vote=vote["upheld"])
    outcomes = {record["model"]: False for record in records if not record["stopped_by"]}
    outcomes |= {record["model"]: True for record in records if record["result"]}
    return _update(outcomes, context, feedback="execution")


def _update(
    outcomes: dict[str, bool], context: Context, *, feedback: Feedback, vote: bool | None = None
) -> list[str]:
    if len(outcomes) < 2:
        return []
    try:
        context.experts.update(outcomes, feedback=feedback, vote=vote)
    except (QuorumError, OSError) as error:
        return [f"The experts' weights were not updated: {error}"]
    return []


def _answer(state: RunState, context: Context, said: list[str]) -> Answer:
    records, held = _records(state), state.get("vote", {})
    winner = next((r for r in records if r["id"] == held.get("winner")), None)
    best_effort = winner or _best_effort(records)
    result = winner["result"] if winner else None
    limits = [state.get("stopped_by", ""), *(record["stopped_by"] for record in records)]
    stopped_by = next((limit for limit in limits if limit), "")
    weights, sure = held.get("weights", {}), held.get("confidence", 0.0)
    least = context.options.abstain_below
    if result and abstains(sure, least):
        said = [f"Withheld as an answer: its confidence {sure:.2f} is below {least:g}.", *said]
    answered = result and not abstains(sure, least)
    return Answer(
        question=state["question"],
        status="stopped" if stopped_by else "answered" if answered else "no_answer",
        database=context.resources.catalog.name,
        dialect=context.dialect,
        recipe=context.recipe.name,
        sql=best_effort["sql"] if best_effort else "",
        columns=result["columns"] if result else [],
        rows=result["preview"] if result else [],
        row_count=result["row_count"] if result else 0,
        truncated=bool(result and result["truncated"]),
        result_file=str(context.trace.folder / result["file"]) if result else "",
        confidence=sure if result else 0.0,
        vote=_vote(held, weights) if held else None,
        readings=_readings(records, winner, held),
        candidates=[_candidate(record, weights, context) for record in records],
        usage=context.ledger.as_dict(),
        run_id=context.trace.run_id,
        trace=str(context.trace.folder),
        warnings=[*_warnings(state, winner, best_effort), *said],
        stopped_by=stopped_by,
        demonstration=context.demonstration,
    )


def _best_effort(records: list[CandidateRecord]) -> CandidateRecord | None:
    """The first candidate with SQL; one that only wants a database goes before those whose SQL failed."""
    written = [record for record in records if record["sql"]]
    sound = (r for r in written if r["error"] is None or r["error"]["kind"] == ErrorKind.UNAVAILABLE)
    return next(sound, written[0] if written else None)


def _records(state: RunState) -> list[CandidateRecord]:
    """The candidates, with the verdicts that came after they were finished."""
    verdicts = state.get("approvals", {})
    return [
        {**record, "approved": verdicts.get(record["id"], record["approved"])}
        for record in state.get("candidates", [])
    ]


def _readings(
    records: list[CandidateRecord], winner: CandidateRecord | None, held: dict[str, Any]
) -> list[str]:
    """The other readings that the winner and those who agree with it name; of all without a winner.

    What the losers call another reading may well be the one that is answered. None after the user
    has said what is meant.
    """
    if held.get("settled"):
        return []
    agreeing = next(
        (c["candidates"] for c in held.get("clusters", []) if held["winner"] in c["candidates"]), ()
    )
    heard = [record for record in records if winner is None or record["id"] in agreeing]
    heard.sort(key=lambda record: record is not winner)
    said = (" ".join(record.get("reading", "").split()) for record in heard)
    distinct: dict[str, str] = {}
    for text in filter(None, said):
        distinct.setdefault(text.casefold().rstrip("."), text)
    kept = list(distinct.values())[:MAX_READINGS]
    return [text if len(text) <= MAX_READING else f"{text[: MAX_READING - 1]}…" for text in kept]


def _vote(held: dict[str, Any], weights: dict[str, float]) -> AnswerVote:
    total = sum(cluster["weight"] for cluster in held["clusters"])
    clusters = [
        AnswerCluster(
            candidates=list(cluster["candidates"]),
            share=cluster["weight"] / total,
            weight=cluster["weight"],
            key=cluster["key"],
        )
        for cluster in held["clusters"]
    ]
    return AnswerVote(
        strategy=held["strategy"],
        winner=held["winner"],
        clusters=clusters,
        tie=held["tie"],
        settled=held.get("settled", ""),
        weights=weights,
        seed=held["seed"],
        stopping=held["stopping"],
        saved=held["saved"],
        notes=list(held["notes"]),
    )


def _candidate(record: CandidateRecord, weights: dict[str, float], context: Context) -> AnswerCandidate:
    result, error = record["result"], record["error"]
    return AnswerCandidate(
        id=record["id"],
        model=record["model"],
        sql=record["sql"],
        error=error["message"] if error else "",
        error_kind=error["kind"] if error else "",
        row_count=result["row_count"] if result else None,
        truncated=bool(result and result["truncated"]),
        result_file=str(context.trace.folder / result["file"]) if result else "",
        fingerprint=result["fingerprint"] if result else "",
        approved=record["approved"],
        repairs=record["refinements"],
        weight=weights.get(record["model"], 1.0),
    )


def _warnings(
    state: RunState, winner: CandidateRecord | None, best_effort: CandidateRecord | None
) -> list[str]:
    """What the reader of the answer should know besides the vote."""
    said = list(dict.fromkeys(state.get("warnings", [])))
    result = winner["result"] if winner else None
    errors = [record["error"]["message"] for record in state.get("candidates", []) if record["error"]]
    error = best_effort["error"] if best_effort else None
    if error and error["kind"] == ErrorKind.UNAVAILABLE:
        said.append(f"No candidate has a result; the SQL shown could not be run: {error['message']}")
    elif error and error["kind"] not in NEVER_RAN:
        said.append(f"No candidate has a result; the SQL shown failed: {error['message']}")
    elif winner is None and errors:
        said.append(f"No candidate has a result: {errors[0]}")
    if result and result["truncated"]:
        said.append(f"The result was cut at {result['row_count']} rows (limit: {result['truncated']}).")
    if result and result["columns_left_out"]:
        said.append(f"{result['columns_left_out']} further columns are in the result's file only.")
    if result and result["row_count"] == 0:
        said.append("The result is empty.")
    if winner and winner["approved"] is False:
        said.append("The Validator did not accept this result.")
    return said
