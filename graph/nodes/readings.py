"""Other readings of the question: the writer's colleague writes them, each is held against the answer.

Candidates of one capable model differ less in their SQL than in how they read the question. A reading that
shows the same is immaterial and dropped, as is one that leaves nothing; one that shows something else stands
beside the answer, unless the data decides for it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langgraph.types import Send

from quorum.agents.writers import READING_WRITER, Reading
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.context import Context
from quorum.graph.nodes.results import first_rows
from quorum.graph.nodes.step import UNUSABLE_OR_GONE, Update, lost, same_query, try_tell
from quorum.graph.nodes.voting import candidate_input, changed, ending, same_results
from quorum.graph.state import Candidate, OtherReading, RunState, branch_input, order_counts
from quorum.knowledge.errors import BudgetExceeded
from quorum.tools.execute import QueryCache
from quorum.tools.results.files import read_result

if TYPE_CHECKING:
    from quorum.tools.silent_errors import Suspicion

CHECKS = "checks"
SAMPLE_ROWS = 10
"""Rows of the answer that the ReadingWriter sees."""

ReadingOutcome: TypeAlias = Literal["differs", "same", "blank", "failed"]


def needs_readings(state: RunState, most: int) -> bool:
    """True if the answer's writers named other readings, which at most ``most`` may be written.

    False where the user or a verified query has settled what is meant, or a limit was reached.
    """
    winner, vote = state.winner, state.vote
    if winner is None or winner.result is None or vote is None or vote.decided in ("user", "verified"):
        return False
    return bool(most and _named(state, winner)) and not vote.cannot_answer and not state.limited


async def write_readings(state: RunState, context: Context, *, most: int) -> Update:
    """ReadingWriter: the queries of at most ``most`` other readings, where the answer's writers named any."""
    winner, vote = state.winner, state.vote
    if not needs_readings(state, most) or not context.live:
        return {"batch": []}
    assert winner is not None  # as needs_readings says
    assert winner.result is not None
    assert vote is not None
    from quorum.tools.silent_errors import ties  # loads the SQL parser

    noted, result = _named(state, winner), winner.result
    try:
        cut = await suspected(context, winner, only=(ties,))
        found = await try_tell(
            state,
            context,
            READING_WRITER,
            "other_readings",
            spare=UNUSABLE_OR_GONE,
            sql=winner.sql,
            noted=noted,
            ties=[each.says for each in cut],
            assumed=winner.remarks.assumptions if winner.remarks else [],
            **first_rows(result, SAMPLE_ROWS),
        )
    except BudgetExceeded as error:
        return {"batch": [], "warnings": [f"Other readings were not looked at: {error.limit} was reached."]}
    if found is None:
        return {"batch": [], "warnings": lost(READING_WRITER)}
    readings = [each for each in found.readings if not same_query(each.sql, [winner.sql])][:most]
    if not readings:
        return {"batch": [], "readings": [], "vote": changed(state, vote, doubt=0.0)}
    batch = []
    for number, reading in enumerate(readings):
        given = {"by": READING_WRITER.name, "sql": reading.sql, "summary": reading.meaning}
        start = candidate_input(state, context, number, prefix="r")
        extras = replace(start.extras, given=context.put(json.dumps(given)))
        batch.append(replace(start, model=winner.model, temperature=0.0, extras=extras))
    return {"batch": batch, "readings": readings, "reading": found.answered}


async def suspected(context: Context, candidate: Candidate, **given: Any) -> list[Suspicion]:
    """Return what checks find in a candidate's query; ``given`` are other arguments of ``suspicions``."""
    from quorum.tools.silent_errors import suspicions  # loads the SQL parser

    result = candidate.result
    if result is None or result.truncated:
        return []
    # a cache of its own: what is cut here must not be a candidate's result
    return await suspicions(
        replace(context.database, cache=QueryCache()),
        candidate.sql,
        partial(read_result, context.trace.folder / result.file),
        agent=CHECKS,
        candidate=candidate.id,
        **given,
    )


def _named(state: RunState, winner: Candidate) -> list[str]:
    """Return the readings named by those who gave the answer. A loser's may be the one that was answered."""
    agreeing = state.vote.winning.candidates if state.vote and state.vote.winning else ()
    writers = [each for each in state.candidates if each.id in agreeing and each is not winner]
    noted = (text for each in (winner, *writers) if each.remarks for text in each.remarks.readings or ())
    return list({text.casefold(): text for text in noted}.values())


def fan_out_readings(state: RunState) -> list[Send] | str:
    """Start a branch for each reading that is to be written; route to the end where there is none."""
    return [Send("reading", branch_input(state, start)) for start in state.batch] or ending(state)


async def weigh_readings(state: RunState, context: Context) -> Update:
    """Keep the readings whose results differ; an answer without values gives way to the first of them."""
    winner, vote = state.winner, state.vote
    if not state.read or winner is None or vote is None:
        return {}
    outcomes = await _outcomes(state, context, winner)
    context.trace.record(
        "readings",
        agent="consensus",
        readings=[
            {"id": each.id, "says": reading.meaning, "outcome": outcome}
            for reading, each, outcome in outcomes
        ],
    )
    others = [OtherReading(reading.meaning, each) for reading, each, found in outcomes if found == "differs"]
    doubt = sum(found in ("differs", "failed") for *_, found in outcomes)
    state = replace(state, others=others, vote=changed(state, vote, doubt=float(doubt)))
    stopped = next((each.stopped_by for each in state.read if each.stopped_by), "")
    warnings = [f"Other readings were not all looked at: {stopped} was reached."] if stopped else []
    update: Update = {"others": others, "vote": state.vote, "warnings": warnings}
    if others and winner.result is not None and winner.result.no_values:
        decision = "As first read the question leaves nothing; in another reading it has an answer."
        return update | taken(state, others[0], decided="evidence", decision=decision)
    return update


async def _outcomes(
    state: RunState, context: Context, winner: Candidate
) -> list[tuple[Reading, Candidate, ReadingOutcome]]:
    """Return each reading with its outcome; ``same`` also if an earlier one shows the same."""
    written = {candidate.id: candidate for candidate in state.read}
    pairs = [
        (reading, written[f"r{n}"]) for n, reading in enumerate(state.readings or (), 1) if f"r{n}" in written
    ]
    ordered = order_counts(state.candidates)
    keys = await same_results([winner, *(each for _, each in pairs)], context.trace.folder, ordered=ordered)
    seen, found = {keys[winner.id]}, list[tuple[Reading, Candidate, ReadingOutcome]]()
    for reading, each in pairs:
        outcome: ReadingOutcome = "failed"
        if each.result is not None:
            key = keys[each.id]
            outcome = "same" if key in seen else "blank" if each.result.no_values else "differs"
            seen.add(key)
        found.append((reading, each, outcome))
    return found


def reading_of(state: RunState, candidate: Candidate) -> str:
    """Return how a candidate reads the question: of the winner as the ReadingWriter says, else its writer."""
    said = candidate.remarks.summary if candidate.remarks else ""
    return (candidate is state.winner and state.reading) or said


def taken(state: RunState, other: OtherReading, **decision: Any) -> Update:
    """Make another reading the answer; the former answer becomes one of the others."""
    winner, vote, result = state.winner, state.vote, other.answer.result
    assert winner is not None
    assert vote is not None
    assert result is not None
    first = OtherReading(reading_of(state, winner) or "As it was first read.", winner)
    mark = result.mark(ordered=order_counts(state.candidates))
    weight = vote.winning.weight if vote.winning else 1.0
    own = Cluster(mark, mark, (other.answer.id,), (other.answer.model,), weight, vote.share)
    rest = [each for each in vote.clusters if each.fingerprint != mark]
    chosen = {"winner": other.answer.id, "clusters": (own, *rest), "notes": vote.remarks, "tie": False}
    vote = Vote(**{**vars(vote), **chosen, "tied": (), "approved": None})
    return {
        "candidates": [other.answer],
        "reading": other.says,
        "others": [first, *(each for each in state.others if each is not other)],
        "vote": changed(state, vote, **decision),
    }
