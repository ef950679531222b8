"""Dispatch the candidates and let them vote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from quorum.graph.ballots import FIRST, UNAVAILABLE, Ballot, Rules, Vote
from quorum.graph.confidence import confidence, tokens
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.graph.state import Candidate, CandidateInput, Result, RunState, order_counts
from quorum.graph.stopping import next_batch
from quorum.graph.strategies import WEIGHTED, hold_vote
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.sql import size

ASKED_ANEW = "asked_anew"
"""Event of a resumed run in which no model had answered: all its candidates are asked again."""


async def dispatch(state: RunState, context: Context) -> Update:
    """Give every candidate of the next batch its model, temperature and seed (ReFoRCE, equation 2).

    The models take turns. A model's first candidate is drawn at temperature 0 unless the recipe has one
    temperature; all others at the run's. The first batch is one candidate where the recipe begins so.
    """
    size = next_batch(state.dispatched, context.votes, context.stopping, len(context.models))
    return _dispatched(state, context, 1 if state.alone and not state.dispatched else size)


async def dispatch_all(state: RunState, context: Context) -> Update:
    """Dispatch as many candidates as the run has votes, at once."""
    return _dispatched(state, context, context.votes)


def begins_alone(context: Context) -> bool:
    """True if one candidate is written first: one model votes, and no number of votes was given."""
    return context.recipe.begins_alone and len(context.models) == 1 and context.options.votes is None


def _dispatched(state: RunState, context: Context, size: int) -> Update:
    """Dispatch ``size`` more candidates."""
    numbers = range(state.dispatched, state.dispatched + size)
    batch = [candidate_input(state, context, number) for number in numbers]
    return {"batch": batch, "dispatched": state.dispatched + size}


def candidate_input(state: RunState, context: Context, number: int, *, prefix: str = "c") -> CandidateInput:
    """Return the input of the candidate ``number`` (from 0)."""
    specs = list(context.models)
    greedy = number < len(specs) and not context.recipe.one_temperature
    return CandidateInput(
        id=f"{prefix}{number + 1}",
        number=number,
        model=expert(specs, number),
        temperature=0.0 if greedy else context.temperature,
        seed=context.options.seed + number // len(specs),
        extras=state.extras,
    )


def expert(specs: Sequence[str], number: int) -> str:
    """Return the model of the candidate ``number``."""
    return specs[number % len(specs)]


def _all_named(result: Result | None, plan: str) -> bool:
    """True if a text names all columns of a result as planned."""
    columns = result.columns if result else []
    return bool(columns) and all(
        re.search(rf"(?<!\w){re.escape(column)}(?!\w)", plan, re.IGNORECASE) for column in columns
    )


async def consensus(state: RunState, context: Context) -> Update:
    """Hold a vote over the candidates that there are, say whether enough have voted, and record it.

    If no model answered any candidate, a resumed run asks them all again, once; any other run fails.

    Raises:
        ModelUnavailable: No model answered.
    """
    if anew := _asked_anew(state, context):
        return anew
    ordered = order_counts(state.candidates)
    overlaps = _overlaps(state.candidates, context.trace.folder, ordered=ordered)
    clusters = await overlaps.aclusters()
    rules = Rules(
        context.weights,
        draw_seed(state, context),
        context.dialect,
        overlaps=overlaps,
        blanks_give_way=context.recipe.doubts_blanks,
        count_heads=context.recipe.count_heads,
    )
    plan = "\n".join([*state.steps, state.expected_format])
    marks = {each.id: each.result.mark(ordered=ordered) for each in state.candidates if each.result}
    ballots = [
        Ballot(
            candidate=each.id,
            expert=each.model,
            sql=each.sql,
            fingerprint=(mark := marks.get(each.id, "")),
            blank=bool(each.result and each.result.blank),
            error=each.error.kind if each.error else "",
            approved=each.approved,
            repairs=each.refinements,
            named=_all_named(each.result, plan),
            size=size(each.sql, context.dialect),
            cluster=clusters.get(mark, mark),
        )
        for each in state.candidates
    ]
    vote = replace(await hold_vote(ballots, context.strategy, rules), doubt=_doubt(state.candidates))
    vote = changed(state, vote, weights=dict(context.weights), **_stopping(vote, rules, state, context))
    context.trace.record("vote", agent="consensus", **vars(vote))
    return {"vote": vote}


def _asked_anew(state: RunState, context: Context) -> Update:
    """Return the update that asks all candidates again; empty if a model answered one.

    Raises:
        ModelUnavailable: No model answered, and the run is not a resumed one that may ask again.
    """
    errors = [candidate.error for candidate in state.candidates]
    unanswered = [error for error in errors if error and error.kind == UNAVAILABLE]
    if not unanswered or len(unanswered) < len(errors):
        return {}
    if context.resumed and state.reopened != context.session:
        context.trace.record(ASKED_ANEW, agent="consensus", message=unanswered[0].message)
        return {"candidates": None, "dispatched": 0, "vote": None, "reopened": context.session}
    raise ModelUnavailable(unanswered[0].message)


def changed(state: RunState, vote: Vote, **changes: Any) -> Vote:
    """Change a vote and compute its confidence again."""
    vote = replace(vote, **changes)
    winner = next((each for each in (*state.candidates, *state.read) if each.id == vote.winner), None)
    vote = replace(vote, **_said(state.candidates, vote), size=tokens(winner.sql) if winner else 0)
    again = bool(state.first_round) and state.explored
    blank = bool(winner and winner.result and winner.result.blank)
    doubted = blank or any(each.candidate == vote.winner for each in state.doubted)
    confirmed = _confirmed(state, vote)
    return replace(vote, confidence=confidence(vote, confirmed=confirmed, again=again, doubted=doubted))


def _doubt(candidates: Sequence[Candidate]) -> float | None:
    """Return the share of those asked for another reading that named one; None if none was asked."""
    said = [candidate.remarks.readings for candidate in candidates if candidate.remarks]
    asked = [bool(readings) for readings in said if readings is not None]
    return sum(asked) / len(asked) if asked else None


def _said(candidates: Sequence[Candidate], vote: Vote) -> dict[str, Any]:
    """Return how much those who gave the answer assume and how certain they are; None if none said.

    Who was asked for assumptions was asked for other readings, too.
    """
    agreeing = vote.winning.candidates if vote.winning else ()
    said = [each.remarks for each in candidates if each.id in agreeing and each.remarks]
    assumed = [len(each.assumptions) for each in said if each.readings is not None]
    certain = [each.certainty for each in said if each.certainty is not None]
    return {"assumed": fmean(assumed) if assumed else None, "certainty": fmean(certain) if certain else None}


def draw_seed(state: RunState, context: Context) -> int:
    """Return the run's seed for draws, different for each question."""
    text = f"{context.options.seed}\n{state.question}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _confirmed(state: RunState, vote: Vote) -> bool | None:
    """True if most candidates that saw the findings voted for the winner; None if no voter saw any."""
    informed = {candidate.id for candidate in state.candidates if candidate.informed}
    voters = informed & {name for cluster in vote.clusters for name in cluster.candidates}
    if not voters or vote.winning is None:
        return None
    return 2 * len(voters & set(vote.winning.candidates)) > len(voters)


def _stopping(vote: Vote, rules: Rules, state: RunState, context: Context) -> dict[str, Any]:
    """Decide if enough have voted, by which rule, and how many candidates that saved.

    Where only the schema is available no candidate can have a result, so one batch is enough.
    """
    if state.dispatched == 1 and state.alone:
        why = _not_alone(state, vote)
        context.trace.record("first_answer", agent="consensus", enough=not why, why=why)
        if not why:
            return {"stopping": FIRST, "enough": True, "saved": context.votes - 1, "notes": ()}
    specs, stopping = list(context.models), context.stopping
    to_come = [rules.weight(expert(specs, number)) for number in range(state.dispatched, context.votes)]
    chances = to_come if context.strategy in WEIGHTED else [1.0] * len(to_come)
    enough = not context.live or stopping.enough(vote, chances)
    return {"stopping": stopping.name, "enough": enough, "saved": len(to_come) if enough else 0}


def _not_alone(state: RunState, vote: Vote) -> str:
    """Return why the only candidate's answer is not enough; empty if it is."""
    (candidate,) = state.candidates
    if candidate.result is None or vote.cannot_answer:
        return "it has no answer"
    blank = candidate.result.no_values or vote.blank
    if blank and not candidate.stands:
        return "its result is blank"
    return "its query failed, and was repaired" if candidate.failures else ""


def route_vote(state: RunState) -> Literal["dispatch", "clarify", "answer"]:
    """Route to another batch while the vote is open and no limit is reached, else to the end."""
    enough = state.limited or (state.vote and state.vote.enough)
    return ending(state) if enough else "dispatch"


def ending(state: RunState) -> Literal["clarify", "answer"]:
    """Route to the question to the user, where the run may ask one, else to the answer."""
    return "clarify" if state.asks and state.vote else "answer"


async def same_results(candidates: Sequence[Candidate], folder: Path, *, ordered: bool) -> dict[str, str]:
    """Return a key by candidate; candidates share it if their results agree.

    Raises:
        QuorumError: A result's file is missing or damaged.
    """
    clusters = await _overlaps(candidates, folder, ordered=ordered).aclusters()
    return {each.id: clusters[each.result.mark(ordered=ordered)] for each in candidates if each.result}


def _overlaps(candidates: Sequence[Candidate], folder: Path, *, ordered: bool) -> ResultOverlaps:
    results = [candidate.result for candidate in candidates if candidate.result]
    files = {result.mark(ordered=ordered): folder / result.file for result in results}
    return ResultOverlaps(files, ordered=ordered)
