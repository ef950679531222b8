"""Deal out the candidates, let them vote, and make the answer of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from graph.answer import Answer, AnswerCandidate, AnswerCluster, AnswerVote
from graph.consensus import Ballot, confidence, hold_vote
from graph.context import Context
from graph.live import close_own
from graph.nodes.step import MODEL_ERROR, Update
from graph.state import CandidateInput, CandidateRecord, RunState
from knowledge.errors import ModelUnavailable
from tools.experts import ExpertLedger
from tools.results import cluster_keys, read_result


async def deal(state: RunState, context: Context) -> Update:
    """Give every candidate its model, temperature and seed.

    The models take turns. A model's first candidate is drawn at temperature 0, its others at
    the run's temperature.
    """
    options, specs = context.options, list(context.models)
    seats: list[CandidateInput] = [
        {
            "question": state["question"],
            "run_id": state["run_id"],
            "schema_ref": state["schema_ref"],
            "documents_ref": state["documents_ref"],
            "syntax_ref": state["syntax_ref"],
            "plan": state["plan"],
            "candidate": f"c{number + 1}",
            "model": specs[number % len(specs)],
            "temperature": 0.0 if number < len(specs) else options.temperature,
            "seed": options.seed + number // len(specs),
        }
        for number in range(options.votes)
    ]
    return {"seats": seats}


def ballot(record: CandidateRecord, clusters: dict[str, str]) -> Ballot:
    """A candidate's ballot; ``clusters`` joins fingerprints of results that agree."""
    result, error = record["result"], record["error"]
    mark = result["fingerprint"] if result else ""
    return Ballot(
        candidate=record["id"],
        expert=record["model"],
        sql=record["sql"],
        fingerprint=mark,
        blank=bool(result and result["blank"]),
        error=error["kind"] if error else "",
        approved=record["approved"],
        repairs=record["refinements"],
        cluster=clusters.get(mark, mark),
    )


async def consensus(state: RunState, context: Context) -> Update:
    """Vote over the candidates' results.

    Raises:
        ModelUnavailable: No candidate has a result because no model answered.
    """
    records = state.get("candidates", [])
    errors = [record["error"] for record in records if record["error"]]
    if records and len(errors) == len(records) and all(e["kind"] == MODEL_ERROR for e in errors):
        raise ModelUnavailable(errors[0]["message"])
    several = len(context.models) > 1
    strategy = context.options.strategy
    if strategy == "auto":
        strategy = "wma" if several else "majority"
    weights = await asyncio.to_thread(_experts(context).weights, list(context.models)) if several else {}
    clusters = await asyncio.to_thread(_clusters, records, context.trace.folder)
    held = hold_vote(
        [ballot(record, clusters) for record in records],
        strategy,
        weights=weights,
        seed=context.options.seed,
        dialect=context.dialect,
    )
    trust = confidence(held)
    context.trace.record("vote", agent="consensus", weights=weights, confidence=trust, **held.as_dict())
    return {"vote": held.as_dict() | {"weights": weights, "confidence": trust}}


def _experts(context: Context) -> ExpertLedger:
    return ExpertLedger(context.home / "experts.json")


def _clusters(records: list[CandidateRecord], folder: Path) -> dict[str, str]:
    """Fingerprint -> cluster; results that differ by less than the tolerance share one."""
    files = {r["result"]["fingerprint"]: r["result"]["file"] for r in records if r["result"]}
    if len(files) < 2:
        return {}
    marks = sorted(files)
    return dict(zip(marks, cluster_keys([read_result(folder / files[mark]) for mark in marks]), strict=True))


async def answer(state: RunState, context: Context) -> Update:
    """Make the answer, keep it in the run folder, and close what the graph itself opened."""
    if len(context.models) > 1:
        await asyncio.to_thread(_learn, state.get("candidates", []), context)
    made = _answer(state, context)
    context.trace.record("answer", agent="answer", status=made.status, sql=made.sql)
    context.trace.finish(made)
    await close_own(context)
    return {"answer": made.model_dump(mode="json")}


def _learn(records: list[CandidateRecord], context: Context) -> None:
    """Execution success is the feedback that every run has: an expert none of whose SQL ran was wrong."""
    outcomes = {record["model"]: False for record in records if not record["stopped_by"]}
    outcomes |= {record["model"]: True for record in records if record["result"]}
    if len(outcomes) > 1:
        _experts(context).update(outcomes, feedback="execution")


def _answer(state: RunState, context: Context) -> Answer:
    records, held = state.get("candidates", []), state.get("vote", {})
    winner = next((r for r in records if r["id"] == held.get("winner")), None)
    best_effort = winner or next((r for r in records if r["sql"]), None)
    result = winner["result"] if winner else None
    limits = [state.get("stopped_by", ""), *(record["stopped_by"] for record in records)]
    stopped_by = next((limit for limit in limits if limit), "")
    weights = held.get("weights", {})
    return Answer(
        question=state["question"],
        status="stopped" if stopped_by else "answered" if result else "no_answer",
        database=context.database.catalog.name,
        dialect=context.dialect,
        recipe=context.recipe.name,
        sql=best_effort["sql"] if best_effort else "",
        columns=result["columns"] if result else [],
        rows=result["preview"] if result else [],
        row_count=result["row_count"] if result else 0,
        truncated=bool(result and result["truncated"]),
        result_file=str(context.trace.folder / result["file"]) if result else "",
        confidence=held.get("confidence", 0.0) if result else 0.0,
        vote=_vote(held, weights) if held else None,
        candidates=[_candidate(record, weights) for record in records],
        usage=context.ledger.as_dict(),
        run_id=context.trace.run_id,
        trace=str(context.trace.folder),
        warnings=_warnings(state, winner, best_effort),
        stopped_by=stopped_by,
        demonstration=context.demonstration,
    )


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
        weights=weights,
        seed=held["seed"],
        notes=list(held["notes"]),
    )


def _candidate(record: CandidateRecord, weights: dict[str, float]) -> AnswerCandidate:
    result, error = record["result"], record["error"]
    return AnswerCandidate(
        id=record["id"],
        model=record["model"],
        sql=record["sql"],
        error=error["message"] if error else "",
        row_count=result["row_count"] if result else None,
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
    if winner is None and best_effort and best_effort["error"]:
        said.append(f"No candidate has a result; the SQL shown failed: {best_effort['error']['message']}")
    if result and result["truncated"]:
        said.append(f"The result was cut at {result['row_count']} rows (limit: {result['truncated']}).")
    if result and result["row_count"] == 0:
        said.append("The result is empty.")
    if winner and winner["approved"] is False:
        said.append("The Validator did not accept this result.")
    return said
