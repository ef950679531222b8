"""Deal out the candidates and let them vote."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from quorum.graph.consensus import Ballot, Cluster, Rules, Vote, confidence, hold_vote
from quorum.graph.context import Context
from quorum.graph.evidence import ResultEvidence
from quorum.graph.nodes.judging import ModelJudge, NoJudge
from quorum.graph.nodes.routes import limited
from quorum.graph.nodes.step import UNAVAILABLE, Update
from quorum.graph.state import CandidateInput, CandidateRecord, RunState
from quorum.graph.stopping import next_wave
from quorum.graph.strategies import WEIGHTED
from quorum.knowledge.errors import ModelUnavailable


async def deal(state: RunState, context: Context, *, greedy: bool = True) -> Update:
    """Give every candidate of the next wave its model, temperature and seed.

    The models take turns. If ``greedy``, a model's first candidate is drawn at temperature 0; all
    others at the run's temperature.
    """
    specs, dealt = list(context.models), state.get("dealt", 0)
    wave = next_wave(dealt, context.votes, context.stopping, len(specs))
    seats = [seat(state, context, number, greedy=greedy) for number in range(dealt, dealt + wave)]
    return {"seats": seats, "dealt": dealt + wave}


def seat(state: RunState, context: Context, number: int, *, greedy: bool = True) -> CandidateInput:
    """What the branch of the candidate ``number`` (from 0) starts from."""
    specs = list(context.models)
    return {
        "question": state["question"],
        "run_id": state["run_id"],
        "schema_ref": state["schema_ref"],
        "documents_ref": state["documents_ref"],
        "syntax_ref": state["syntax_ref"],
        "plan": state["plan"],
        "material": state.get("material", {}),
        "candidate": f"c{number + 1}",
        "model": expert(specs, number),
        "temperature": 0.0 if greedy and number < len(specs) else context.temperature,
        "seed": context.options.seed + number // len(specs),
    }


def expert(specs: Sequence[str], number: int) -> str:
    """The model of the candidate ``number``."""
    return specs[number % len(specs)]


def ballot(record: CandidateRecord, clusters: dict[str, str], approved: bool | None = None) -> Ballot:
    """A candidate's ballot; ``clusters`` joins fingerprints of results that agree.

    ``approved`` is a verdict that came after the candidate was finished.
    """
    result, error = record["result"], record["error"]
    mark = result["fingerprint"] if result else ""
    return Ballot(
        candidate=record["id"],
        expert=record["model"],
        sql=record["sql"],
        fingerprint=mark,
        blank=bool(result and result["blank"]),
        error=error["kind"] if error else "",
        approved=record["approved"] if approved is None else approved,
        repairs=record["refinements"],
        cluster=clusters.get(mark, mark),
    )


async def consensus(state: RunState, context: Context) -> Update:
    """Vote over the candidates' results, and say whether enough have voted.

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
            return {"candidates": None, "dealt": 0, "vote": {}, "redealt": context.session}
        raise ModelUnavailable(errors[0]["message"])
    return {"vote": await hold(state, context)}


async def hold(state: RunState, context: Context, *, ask: bool = True) -> dict[str, Any]:
    """Hold a vote over the candidates that there are, and record it: ``Vote.as_dict()`` and more.

    Args:
        ask: Whether a strategy that asks a model may do so; it has its verdict once.
    """
    records, approvals = state.get("candidates", []), state.get("approvals", {})
    evidence = _evidence(records, context.trace.folder)
    clusters = await evidence.aclusters()
    rules = Rules(
        context.weights,
        draw_seed(state, context),
        context.dialect,
        evidence=evidence,
        judge=ModelJudge(state, context) if ask else NoJudge(),
    )
    ballots = [ballot(record, clusters, approvals.get(record["id"])) for record in records]
    held = await hold_vote(ballots, context.strategy, rules)
    outcome = {"weights": dict(context.weights), **_told(held, state)}
    outcome |= _stopping(held, rules, state["dealt"], context)
    context.trace.record("vote", agent="consensus", **outcome)
    return outcome


def changed(state: RunState, vote: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A vote with something decided after it was held; the confidence is that of what it says now."""
    names = {item.name for item in fields(Vote)}
    kept = {name: value for name, value in vote.items() if name in names}
    clusters = tuple(Cluster(**cluster) for cluster in vote["clusters"])
    return {**vote, **_told(replace(Vote(**{**kept, "clusters": clusters}), **changes), state)}


def _told(held: Vote, state: RunState) -> dict[str, Any]:
    return held.as_dict() | {"confidence": confidence(held, explored=_confirmed(state, held))}


def draw_seed(state: RunState, context: Context) -> int:
    """The seed of what is drawn: the run's own, for each question another."""
    said = f"{context.options.seed}\n{state['question']}"
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4], "big")


def _confirmed(state: RunState, held: Vote) -> bool | None:
    """Whether most candidates that knew what exploration found voted for the winner; None without any."""
    if "findings" not in state.get("material", {}) or held.winning is None:
        return None
    voters = [name for cluster in held.clusters for name in cluster.candidates]
    informed = [name for name in voters if int(name[1:]) > state.get("explored_at", 0)]
    agree = [name for name in informed if name in held.winning.candidates]
    return 2 * len(agree) > len(informed) if informed else None


def _stopping(held: Vote, rules: Rules, dealt: int, context: Context) -> dict[str, Any]:
    """Whether to stop, by which rule, and how many candidates that saved.

    Where only the schema is here no candidate can have a result, so those of the first wave are enough.
    """
    specs, stopping = list(context.models), context.stopping
    to_come = [rules.weight(expert(specs, number)) for number in range(dealt, context.votes)]
    chances = to_come if context.strategy in WEIGHTED else [1.0] * len(to_come)
    enough = not context.live or stopping.enough(held, chances)
    return {"stopping": stopping.name, "enough": enough, "saved": len(to_come) if enough else 0}


def after_vote(state: RunState) -> Literal["deal", "answer"]:
    """On to another wave where the vote is open, or was not held at all; not beyond a limit."""
    if limited(state):
        return "answer"
    return "answer" if state["vote"] and state["vote"]["enough"] else "deal"


def _evidence(records: list[CandidateRecord], folder: Path) -> ResultEvidence:
    files = {r["result"]["fingerprint"]: folder / r["result"]["file"] for r in records if r["result"]}
    ordered = any(r["result"].get("ordered", False) for r in records if r["result"])
    return ResultEvidence.from_files(files, ordered=ordered)
