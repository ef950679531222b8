"""A question that a person has verified is answered by its query, run anew, before any model is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quorum.graph.ballots import Cluster, Vote
from quorum.graph.context import Context
from quorum.graph.nodes.results import keep_result
from quorum.graph.nodes.step import Update
from quorum.graph.state import Candidate, RunState
from quorum.tools.execute import execute
from quorum.tools.query import QueryError
from quorum.tools.sql import fixed_dates
from quorum.tools.sql.linking import changed_tables

CONFIDENCE = 0.98
"""Of an answer that a person has verified: by rule, for no recorded vote shows it."""

CANDIDATE = "verified"
CHANGED = "The query {} ({}) was not run: the columns of {} have changed since. Keep it again, or correct it."
FIXED = "The verified query holds fixed dates ({}): it answers for them, whenever it is asked."


async def recall(state: RunState, context: Context) -> Update:
    """Run the query of a verified question of the same words; where it fails now, that is said."""
    pair = context.resources.knowledge.exact(state.question) if context.live else None
    if pair is None:
        return {}
    if changed := await asyncio.to_thread(changed_tables, pair, context.resources.linter.catalog):
        return {"warnings": [CHANGED.format(pair.credit, pair.file, ", ".join(changed))]}
    left = context.ledger.remaining_seconds()
    limits = context.database.limits.within(None if left is None else left / 2)
    database = replace(context.database, limits=limits)
    outcome = await execute(database, pair.sql, agent="recall", candidate=CANDIDATE)
    if isinstance(outcome, QueryError):
        return {"warnings": [f"The query {pair.credit} fails now ({pair.file}): {outcome.message}"]}
    context.trace.record("recall", agent="recall", file=pair.file, credit=pair.credit)
    result = await keep_result(outcome, context.trace.folder)
    candidate = Candidate(
        id=CANDIDATE,
        model=CANDIDATE,
        temperature=0.0,
        seed=context.options.seed,
        sql=pair.sql,
        result=result,
        error=None,
    )
    cluster = Cluster(result.fingerprint, result.fingerprint, (CANDIDATE,), (CANDIDATE,), 1.0, 1.0)
    vote = Vote(
        winner=CANDIDATE,
        clusters=(cluster,),
        share=1.0,
        tie=False,
        strategy="",
        cast=1,
        experts=1,
        decided="verified",
        decision=f"This very question was {pair.credit}; its query was run anew ({pair.file}).",
        confidence=CONFIDENCE,
    )
    dates = await asyncio.to_thread(fixed_dates, pair.sql, context.dialect)
    return {
        "candidates": [candidate],
        "vote": vote,
        "warnings": [FIXED.format(", ".join(dates))] if dates else [],
    }
