"""Deal out the candidates and let them vote."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

from graph.consensus import Ballot, confidence, hold_vote
from graph.context import Context
from graph.nodes.step import UNAVAILABLE, Update
from graph.state import CandidateInput, CandidateRecord, RunState
from knowledge.errors import ModelUnavailable
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

    Where no candidate has a result because no model answered, the candidates are dealt anew in
    a run that goes on after that failure; in any other the failure is raised.

    Raises:
        ModelUnavailable: No model answered.
    """
    records = state.get("candidates", [])
    errors = [record["error"] for record in records if record["error"]]
    if records and len(errors) == len(records) and all(e["kind"] == UNAVAILABLE for e in errors):
        if context.resumed and state.get("redealt") != context.session:
            context.trace.record("redealt", agent="consensus", message=errors[0]["message"])
            return {"candidates": None, "vote": {}, "redealt": context.session}
        raise ModelUnavailable(errors[0]["message"])
    strategy = context.options.strategy
    if strategy == "auto":
        strategy = "wma" if len(context.models) > 1 else "majority"
    clusters = await asyncio.to_thread(_clusters, records, context.trace.folder)
    held = hold_vote(
        [ballot(record, clusters) for record in records],
        strategy,
        weights=context.weights,
        seed=context.options.seed,
        dialect=context.dialect,
    )
    outcome = held.as_dict() | {"weights": dict(context.weights), "confidence": confidence(held)}
    context.trace.record("vote", agent="consensus", **outcome)
    return {"vote": outcome}


def after_vote(state: RunState) -> Literal["deal", "answer"]:
    """Without a vote the candidates are dealt anew."""
    return "answer" if state["vote"] else "deal"


def _clusters(records: list[CandidateRecord], folder: Path) -> dict[str, str]:
    """Fingerprint -> cluster; results that differ by less than the tolerance share one."""
    files = {r["result"]["fingerprint"]: r["result"]["file"] for r in records if r["result"]}
    if len(files) < 2:
        return {}
    marks = sorted(files)
    return dict(zip(marks, cluster_keys([read_result(folder / files[mark]) for mark in marks]), strict=True))
