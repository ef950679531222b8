"""Make the answer of a run from its candidates and their vote."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quorum.agents.role import MAX_ASSUMPTIONS, sentence
from quorum.agents.writers import MAX_READINGS
from quorum.graph.answer import (
    Answer,
    AnswerCandidate,
    AnswerReading,
    AnswerVote,
    Status,
)
from quorum.graph.ballots import NO_VERDICT, UNANSWERABLE, Vote
from quorum.graph.confidence import grounds
from quorum.graph.context import Context, experts_in, unkept
from quorum.graph.node_context import close_own
from quorum.graph.nodes.clarifying import dispute
from quorum.graph.nodes.readings import reading_of
from quorum.graph.nodes.step import Update
from quorum.graph.resources import catalog_cache
from quorum.graph.state import PREVIEW_ROWS, Candidate, Remarks, Result, RunState, order_counts
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import QuorumError
from quorum.tools.experts import Feedback
from quorum.tools.query import ErrorKind
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import table_marks, used
from quorum.tools.urls import locations

INCOMPLETE = "The trace is incomplete: {}"
READING_ROWS = 5
NEVER_RAN = ("stopped", "gave_up", UNANSWERABLE)
"""``Failure.kind`` of a candidate without a result that no error of its SQL explains."""
NOT_RUN = (ErrorKind.UNAVAILABLE.value, ErrorKind.NOT_APPROVED.value)
"""The same where its SQL may be right, and something else kept it from running."""


async def answer(state: RunState, context: Context) -> Update:
    """Make the answer, keep it in the run folder, and close what the graph itself opened."""
    warnings = []
    if len(context.models) > 1 and context.live:
        warnings += await asyncio.to_thread(_learn, state, context)
    disagreement = await dispute(state, context)
    made = _answer(state, context, warnings, disagreement)
    await context.trace.aflush()
    await asyncio.to_thread(_complete, made, context)
    made.grounds = grounds(made)
    context.trace.record("answer", agent="answer", status=made.status, sql=made.sql)
    values = made.model_dump(mode="json")
    context.trace.finish(values)
    await close_own(context)
    return {"answer": values}


def _complete(made: Answer, context: Context) -> None:
    """Add to an answer what is read from files or from its SQL."""
    where, resources = locations(context.options.database), context.resources
    cache, left_out = catalog_cache(context.options), resources.catalog.left_out
    made.warnings = [*cache.new_warnings(where, resources.connector, left_out), *made.warnings]
    made.warnings += [INCOMPLETE.format(context.trace.failure)] if context.trace.failure else []
    if made.columns:
        made.parts = _parts(made.sql, context) if resources.connector.several else []
        made.tables = table_marks(made.sql, resources.linter.catalog)


def _parts(sql: str, context: Context) -> list[str]:
    """Return the parts that were read in each of several databases, from the trace."""
    for event in context.trace.events():
        if event["kind"] == "query" and event.get("sql") == sql and event.get("parts"):
            return list(event["parts"])
    return []


def _learn(state: RunState, context: Context) -> list[str]:
    """Learn the experts' weights from the user's choice, else from whose SQL ran; a warning if that failed.

    An expert was wrong if the user chose another answer, or as ``executed`` says.
    """
    vote = state.vote
    if vote and vote.winning and vote.decided == "user":
        right = vote.winning.experts
        voted = {expert: expert in right for cluster in vote.clusters for expert in cluster.experts}
        return _update(voted, context, feedback="user", vote=vote.upheld)
    return _update(executed(state.candidates), context, feedback="execution")


def executed(candidates: Iterable[Candidate]) -> dict[str, bool]:
    """Return by expert if any of its SQL ran; experts with nothing but ``NO_VERDICT`` are left out."""
    outcomes: dict[str, bool] = {}
    for each in candidates:
        no_verdict = each.stopped_by or (each.error and each.error.kind in NO_VERDICT)
        if each.result or not no_verdict:
            outcomes[each.model] = bool(each.result) or outcomes.get(each.model, False)
    return outcomes


def _update(
    outcomes: dict[str, bool], context: Context, *, feedback: Feedback, vote: bool | None = None
) -> list[str]:
    if len(outcomes) < 2:
        return []
    try:
        experts_in(context.options.home).update(outcomes, feedback=feedback, vote=vote)
    except (QuorumError, OSError) as error:
        return [f"The experts' weights were not updated: {error}"]
    return []


def _answer(state: RunState, context: Context, warnings: list[str], disagreement: list[str]) -> Answer:
    vote = state.vote
    unanswerable = bool(vote and vote.cannot_answer)
    winner = None if unanswerable else state.winner
    shown = None if unanswerable else winner or _best_effort(state.candidates)
    result = winner.result if winner else None
    limits = [state.stopped_by, *(candidate.stopped_by for candidate in state.candidates)]
    stopped_by = next(filter(None, limits), "")
    confidence = vote.confidence if vote and (result or unanswerable) else 0.0
    doubts = state.open_doubts if result else []
    least = context.options.abstain_below
    verified = bool(vote and vote.decided == "verified")
    demonstration = context.demonstration and not verified
    withheld = bool(result) and not verified and confidence < least
    if withheld:
        warnings = [f"Withheld as an answer: its confidence {confidence:.2f} is below {least:g}.", *warnings]
    remarks = shown.remarks if shown and shown.remarks else Remarks()
    status: Status = "answered" if result and not withheld else "no_answer"
    status = "stopped" if stopped_by else "unanswerable" if unanswerable else status
    return Answer(
        question=state.question,
        status=status,
        missing=_missing(state.candidates) if unanswerable else "",
        summary=remarks.summary if result else "",
        database=context.resources.catalog.name,
        dialect=context.dialect,
        recipe=context.recipe.name,
        sql=shown.sql if shown else "",
        **rows_of(result, context.trace.folder),
        confidence=0.0 if demonstration else confidence,
        vote=_vote(vote) if vote else None,
        assumptions=_distinct([*state.assumptions, *remarks.assumptions], MAX_ASSUMPTIONS) if shown else [],
        reading=reading_of(state, winner) if winner else "",
        readings=_readings(state, context),
        readings_tried=None if state.readings is None else len(state.readings),
        meant=state.meant,
        doubts=doubts,
        disagreement=disagreement,
        candidates=[_candidate(each, state, context) for each in (*state.first_round, *state.candidates)],
        usage=context.ledger.as_dict(),
        run_id=context.trace.run_id,
        trace=str(context.trace.folder),
        warnings=[
            *dict.fromkeys(state.warnings),
            *_warnings(state, shown),
            *_hidden(state, context.resources.catalog),
            *unkept(context.database.connector, context.options),
            *warnings,
        ],
        verified=state.verified,
        sources=state.sources,
        stopped_by=stopped_by,
        demonstration=demonstration,
    )


def _missing(candidates: Sequence[Candidate]) -> str:
    """Return what the data lacks, in the words of the first candidate that found it lacking."""
    errors = (candidate.error for candidate in candidates)
    return next((error.message for error in errors if error and error.kind == UNANSWERABLE), "")


def _best_effort(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the first candidate with SQL; those that only lacked a database come before those whose SQL
    failed."""
    written = [candidate for candidate in candidates if candidate.sql]
    sound = (c for c in written if c.error is None or c.error.kind in NOT_RUN)
    return next(sound, written[0] if written else None)


def _readings(state: RunState, context: Context) -> list[AnswerReading]:
    """Return other readings of the question: where they were written those that show something else, or whose
    query failed; else what the winner's cluster named, without a winner all candidates.

    The losers' other reading may be the one that was answered, so it is left out. Empty after the user has
    chosen.
    """
    vote, winner = state.vote, state.winner
    if vote and vote.decided == "user":
        return []
    if state.readings is not None:
        failed = {each.id for each in state.read if each.result is None}
        unknown = [reading.meaning for n, reading in enumerate(state.readings, 1) if f"r{n}" in failed]
        folder = context.trace.folder
        shown = [
            AnswerReading(
                says=each.says, sql=each.answer.sql, **rows_of(each.answer.result, folder, READING_ROWS)
            )
            for each in state.others
        ]
        return [*shown, *(AnswerReading(says=text) for text in unknown)]
    agreeing = vote.winning.candidates if vote and vote.winning else ()
    asked = [candidate for candidate in state.candidates if winner is None or candidate.id in agreeing]
    asked.sort(key=lambda candidate: candidate is not winner)
    said = (candidate.remarks.readings or () for candidate in asked if candidate.remarks)
    distinct = _distinct((reading for readings in said for reading in readings), MAX_READINGS)
    return [AnswerReading(says=text) for text in distinct]


def rows_of(result: Result | None, folder: Path, most: int = PREVIEW_ROWS) -> dict[str, Any]:
    """Return the fields of an answer that show a result; none without one."""
    if result is None:
        return {}
    return {
        **{name: getattr(result, name) for name in ("columns", "types", "row_count")},
        "rows": result.preview[:most],
        "truncated": bool(result.truncated),
        "result_file": str(folder / result.file),
    }


def _distinct(texts: Iterable[str], most: int) -> list[str]:
    """Return the first sentences, each once."""
    distinct: dict[str, str] = {}
    for text in filter(None, map(sentence, texts)):
        distinct.setdefault(text.casefold().rstrip("."), text)
    return list(distinct.values())[:most]


def _vote(vote: Vote) -> AnswerVote:
    """Return a vote as the answer shows it: fields of the same name are the same."""
    own = {
        "winner": None if vote.cannot_answer else vote.winner,
        "settled": vote.decided if vote.decided in ("user", "verified") else "",
        "notes": list(vote.remarks),
    }
    return AnswerVote.model_validate(vote, from_attributes=True).model_copy(update=own)


def _candidate(candidate: Candidate, state: RunState, context: Context) -> AnswerCandidate:
    result, error, vote = candidate.result, candidate.error, state.vote
    return AnswerCandidate(
        id=candidate.id,
        model=candidate.model,
        sql=candidate.sql,
        error=error.message if error else "",
        error_kind=error.kind if error else "",
        row_count=result.row_count if result else None,
        truncated=bool(result and result.truncated),
        result_file=str(context.trace.folder / result.file) if result else "",
        fingerprint=result.mark(ordered=order_counts(state.candidates)) if result else "",
        approved=candidate.approved,
        confirmed=candidate.confirmed,
        superseded=candidate in state.first_round,
        repairs=candidate.refinements,
        weight=vote.weights.get(candidate.model, 1.0) if vote else 1.0,
        assumptions=candidate.remarks.assumptions if candidate.remarks else [],
        readings=list(candidate.remarks.readings or ()) if candidate.remarks else [],
    )


def _hidden(state: RunState, catalog: Catalog) -> Iterator[str]:
    """Warn of an answer that is blank where row policies may hide the rows asked for."""
    winner = state.winner
    if winner is None or winner.result is None or not winner.result.blank or not catalog.filtered:
        return
    try:
        tables = used(winner.sql, catalog).tables
    except SyntaxProblem:
        return
    if hidden := [name for name in catalog.filtered if name in tables]:
        yield (
            f"Row policies of the database may hide rows of {', '.join(hidden)} from this user: "
            "what is missing may only not be shown."
        )


def _warnings(state: RunState, shown: Candidate | None) -> Iterator[str]:
    """Yield the answer's own warnings; the vote and the nodes have theirs."""
    winner, lacking = state.winner, state.vote.unanswerable if state.vote else ()
    told = [(text, candidate.id) for candidate in state.candidates for text in candidate.warnings]
    for text in dict.fromkeys(text for text, _ in told):
        yield f"{text} ({', '.join(name for said, name in told if said == text)})"
    if shown is None and lacking:
        return
    if lacking:
        share = f"{len(lacking)} of {len(state.candidates)} candidates"
        yield f"{share} say that the data cannot answer: {_missing(state.candidates)}"
    result, error = winner.result if winner else None, shown.error if shown else None
    errors = [candidate.error.message for candidate in state.candidates if candidate.error]
    if error and error.kind in NOT_RUN:
        yield f"No candidate has a result; the SQL shown could not be run: {error.message}"
    elif error and error.kind not in NEVER_RAN:
        yield f"No candidate has a result; the SQL shown failed: {error.message}"
    elif winner is None and errors:
        yield f"No candidate has a result: {errors[0]}"
    if result and result.truncated:
        yield f"The result was cut at {result.row_count} rows (limit: {result.truncated})."
    if result and result.columns_left_out:
        yield f"{result.columns_left_out} further columns are in the result's file only."
    if result and result.row_count == 0:
        yield "The result is empty."
    if winner and winner.approved is False:
        yield "The Validator did not accept this result."
