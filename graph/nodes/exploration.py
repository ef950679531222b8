"""Column exploration: small queries run one by one, corrected where they fail (ReFoRCE, Algorithm 1).

``begin`` → ``run_query`` ⇄ ``correct_query`` → ``keep_findings``; each names its step of the algorithm, of
which the third is ``quorum.graph.nodes.tie_breaking``.

It works for a run, whose later candidates share its findings, or in the branch of one candidate, for itself.
Every query and every correction is a step of the graph, so a killed run repeats none. A failing model or
database ends the exploration with what it found, never the run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, Literal, TypeAlias

from quorum.agents.explorers import (
    ABOUT_SYNTAX,
    COLUMN_EXPLORER,
    EXPLORATION_CORRECTOR,
    FAILURE_CORRECTOR,
    ExplorationQuery,
    write_queries,
)
from quorum.graph.context import Context
from quorum.graph.disagreement import Side, close_rivals, disagreements, sides
from quorum.graph.nodes.prepare import hints
from quorum.graph.nodes.step import Update, one_line, record, same_query, tell
from quorum.graph.recipes.recipe import PaperRecipe
from quorum.graph.state import Attempt, CandidateState, Exploration, Failure, Finding, RunState
from quorum.graph.strategies import RIVALS
from quorum.knowledge.errors import MalformedReply, ModelUnavailable
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.results.excerpt import excerpt, row_limit

Exploring: TypeAlias = RunState | CandidateState
"""The state of a run or of a candidate that explores."""

EXPLORER = COLUMN_EXPLORER.name
EMPTY = "The query ran and returned no row."
ONLY_SCHEMA = "only the schema of the database is here."
NO_ROW = "(0 rows)"


async def begin(state: Exploring, context: Context, **form: Any) -> Update:
    """ColumnExplorer: write the queries (ReFoRCE, Algorithm 1, step 1).

    A run's queries are aimed at what strong answers disagree on, which later candidates see as well; a
    candidate's, as in the paper, at the question alone. The first version explores before anything else
    (ReFoRCE first version, equation 3). Where only the schema is available no query could run, so none is
    written.

    Args:
        form: Arguments of ``write_queries``.
    """
    begun: Update = {"explored": True} if isinstance(state, RunState) else {}
    if not context.live:
        return {**_ended(state, context, ONLY_SCHEMA), **begun}
    rivals, differences = list[str](), list[str]()
    if isinstance(state, RunState):
        found = await asyncio.to_thread(_rivals, state, context)
        rivals = [side.sql for side in found]
        differences = await asyncio.to_thread(disagreements, found, context.dialect) if found else []
        begun["extras"] = replace(state.extras, differences=_put(context, differences))
    try:
        written = await tell(
            state,
            context,
            COLUMN_EXPLORER,
            "exploration",
            by=write_queries,
            about={"rivals": rivals, "differences": differences},
            syntax=await hints(context) if isinstance(context.recipe, PaperRecipe) else "",
            rivals=dict(zip(ascii_uppercase, rivals, strict=False)),
            differences=differences,
            **form,
        )
    except (MalformedReply, ModelUnavailable) as error:
        return {**_ended(state, context, str(error)), **begun}
    return {"exploration": Exploration(waiting=written.queries), **begun}


async def run_query(state: Exploring, context: Context, *, max_corrections: int, persist: bool) -> Update:
    """Run the first of the queries that wait: keep, correct or drop it (ReFoRCE, Algorithm 1, step 2).

    Its rows are a part of the next prompt (ReFoRCE first version, equation 4).

    Args:
        persist: An empty result is corrected like an error, as in the paper; else it is corrected once and
            then a finding.
    """
    now = state.exploration
    query, *rest = now.waiting
    asker = state.input.id if isinstance(state, CandidateState) else ""
    outcome = await execute(context.bounded, query.sql, agent=EXPLORER, candidate=asker)
    if isinstance(outcome, QueryError):
        if outcome.kind is ErrorKind.UNAVAILABLE:
            return _ended(state, context, outcome.describe())
        error = Failure(outcome.kind.value, outcome.describe())
    elif outcome.row_count == 0 and (persist or not now.tried):
        error = Failure(ErrorKind.EMPTY_RESULT.value, EMPTY)
    else:
        limit = await asyncio.to_thread(row_limit, query.sql, context.dialect)
        text = await asyncio.to_thread(excerpt, outcome, limit=limit)
        mended = bool(now.tried) and (outcome.row_count > 0 or now.tried[-1].error != EMPTY)
        return _found(state, context, text, now.mended if mended else rest)
    if error.kind == ErrorKind.NOT_APPROVED or len(now.tried) >= max_corrections:
        return _given_up(state, context, error.message)
    return {"exploration": replace(now, error=error)}


async def correct_query(state: Exploring, context: Context, *, persist: bool) -> Update:
    """Correct the failed query and, in the same call, waiting ones (ReFoRCE, Algorithm 1, step 2).

    These are ``self_correct`` and ``similar_error_refine``; the latter's queries apply once the corrected one
    works. A malformed reply gives the query up.

    Args:
        persist: A query that failed before runs again, as in the paper; else it gives the query up, and a
            reply that finds nothing wrong makes an empty result a finding.
    """
    now, error = state.exploration, state.exploration.error
    failed, rest = now.waiting[0], now.waiting[1:]
    assert error is not None  # the router comes here with an error only
    try:
        correction = await tell(
            state,
            context,
            FAILURE_CORRECTOR if persist else EXPLORATION_CORRECTOR,
            "correction",
            about={"repaired": error.message},
            purpose=failed.purpose,
            sql=failed.sql,
            error=error.message,
            tried=now.tried,
            empty=error.kind == ErrorKind.EMPTY_RESULT and not persist,
            waiting=rest,
            syntax=await hints(context) if error.kind in ABOUT_SYNTAX else "",
        )
    except ModelUnavailable as problem:
        return _ended(state, context, str(problem))
    except MalformedReply as problem:
        return _given_up(state, context, str(problem))
    if correction.sql is None:
        if error.kind == ErrorKind.EMPTY_RESULT:
            return _found(state, context, NO_ROW, rest)
        return _given_up(state, context, "The correction has no query.")
    tried = [*now.tried, Attempt(failed.sql, error.message)]
    if not persist and same_query(correction.sql, [attempt.sql for attempt in tried]):
        return _given_up(state, context, "The correction is a query that failed before.")
    corrected = failed.model_copy(update={"sql": correction.sql})
    return {
        "exploration": replace(
            now, waiting=[corrected, *rest], mended=correction.mended(rest), tried=tried, error=None
        )
    }


async def keep_findings(state: Exploring, context: Context) -> Update:
    """Show the findings to the candidates that write from now on (ReFoRCE, Algorithm 1, step 4).

    Several queries may have become the same one by correction: that is shown once.
    """
    distinct = {one_line(finding.sql): finding for finding in state.exploration.findings}
    findings = [
        {"purpose": finding.purpose, "sql": finding.sql, "result": await context.text(finding.ref)}
        for finding in distinct.values()
    ]
    if not findings:  # what a limit ended may never have looked
        return {} if state.stopped_by else {"warnings": ["Column exploration found nothing."]}
    ref = _put(context, findings)
    if isinstance(state, RunState):
        return {"extras": replace(state.extras, findings=ref)}
    start = state.input
    return {"input": replace(start, extras=replace(start.extras, findings=ref))}


def after_query(state: Exploring) -> Literal["run", "correct", "done"]:
    """Route in the loop: the next query, a correction, or the end."""
    now = state.exploration
    if state.stopped_by or not now.waiting:
        return "done"
    return "correct" if now.error else "run"


def _found(state: Exploring, context: Context, text: str, waiting: list[ExplorationQuery]) -> Update:
    """Keep the current query's finding; ``waiting`` are the remaining queries."""
    now = state.exploration
    query, corrected = now.waiting[0], bool(now.tried)
    record(context, state, "finding", EXPLORER, **query.model_dump(), text=text, corrected=corrected)
    findings = [*now.findings, Finding(query.purpose, query.sql, context.put(text))]
    return {"exploration": Exploration(waiting=waiting, findings=findings)}


def _given_up(state: Exploring, context: Context, message: str) -> Update:
    now = state.exploration
    about = now.waiting[0].model_dump()
    record(context, state, "exploration_given_up", EXPLORER, message=message, **about)
    return {"exploration": Exploration(waiting=now.waiting[1:], findings=now.findings)}


def _ended(state: Exploring, context: Context, message: str) -> Update:
    record(context, state, "exploration_ended", EXPLORER, message=message)
    return {
        "exploration": Exploration(findings=state.exploration.findings),
        "warnings": [f"Column exploration ended early: {message}"],
    }


def _put(context: Context, found: Sequence[object]) -> str:
    """Return the reference to a list; empty for an empty one."""
    return context.put(json.dumps(found, ensure_ascii=False)) if found else ""


def _rivals(state: RunState, context: Context) -> list[Side]:
    """Return the strong answers of a close vote, else the heaviest, in a neutral order."""
    heaviest = state.vote.answers[:RIVALS] if state.vote else ()
    clusters = sorted(close_rivals(state.vote) or heaviest, key=lambda cluster: cluster.key)
    return [side for side, _ in sides(clusters, state.candidates, context.trace.folder)]
