"""What ReFoRCE's first version does inside a candidate (paper 003, section 3.2.4).

Self-consistency: a result counts once it was returned twice. One that is empty, or has a column of nothing
but NULL, empty text or zero, is not plausible; numbers agree as in the vote. CTE-based refinement: where a
candidate has no result, its query is built and judged stage by stage.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Literal

from quorum.agents.refiners import CTE_REFINER, SELF_CHECKER
from quorum.graph.context import Context
from quorum.graph.nodes import candidate, routes, writing
from quorum.graph.nodes.routes import halted, unrepairable
from quorum.graph.nodes.step import Update, record, same_query, tell
from quorum.graph.state import PREVIEW_ROWS, Attempt, CandidateState, Failure, Result
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError, QueryResult
from quorum.tools.results.canonical import canonical
from quorum.tools.results.compare import equal
from quorum.tools.results.excerpt import excerpt, row_limit
from quorum.tools.results.files import read_result
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.stages import replace_stage, split_stages

EARLIER_ROWS = 3
"""Rows shown of a result that a later query has replaced."""

ERRORS_IN_A_ROW = 3  # paper 003, Appendix B

STAGE_ROWS = 20
"""Rows of a stage that are shown."""


async def run_and_compare(state: CandidateState, context: Context, *, agent: str) -> Update:
    """Execute, and note whether the same result was returned before (ReFoRCE first version, 3.2.4)."""
    update = await candidate.run_sql(state, context, agent=agent)
    if update["error"] is not None:
        return {**update, "errors_in_a_row": state.errors_in_a_row + 1}
    result: Result = update["result"]
    update |= {"errors_in_a_row": 0, "confirmed": False}
    if result.blank or result.blank_column:
        return update
    again = await asyncio.to_thread(_came, result, state, context.trace.folder)
    return update | {"confirmed": again, "seen": [*state.seen, result.file]}


def _came(result: Result, state: CandidateState, folder: Path) -> bool:
    """True if the result was returned before, by the vote's tolerance; reads the results' files."""
    if result.file in state.seen:
        return True
    now = canonical(read_result(folder / result.file))
    return any(equal(now, read_result(folder / file), ordered=bool(state.ordered)) for file in state.seen)


async def answer_again(state: CandidateState, context: Context) -> Update:
    """SelfChecker: the model sees its result and writes the query it trusts now, perhaps the same."""
    result = state.result
    assert result is not None  # the router comes here with a result only
    shown, kept = await asyncio.to_thread(_excerpts, result, state.sql, context.dialect, context.trace.folder)
    again = await tell(
        state,
        context,
        SELF_CHECKER,
        "second_answer",
        sql=state.sql,
        result=shown,
        earlier=[{"sql": tried.sql, "result": tried.error} for tried in state.earlier],
        **await writing.findings_of(state.input.extras, context),
    )
    if same_query(again.sql, [state.sql]):
        return {"checks": state.checks + 1}
    earlier = [*state.earlier, Attempt(state.sql, kept)]
    return {"sql": again.sql, "refinements": state.refinements + 1, "earlier": earlier}


def _excerpts(result: Result, sql: str, dialect: str, folder: Path) -> tuple[str, str]:
    """Return a result's excerpt, and a shorter one for later prompts; reads its file."""
    whole = QueryResult(read_result(folder / result.file), 0.0, result.truncated)
    limit = row_limit(sql, dialect)
    now, later = (excerpt(whole, rows=rows, limit=limit) for rows in (PREVIEW_ROWS, EARLIER_ROWS))
    return now, later


async def conclude(state: CandidateState, context: Context) -> Update:
    """Treat a result that was never confirmed as an empty one."""
    if state.result is None or state.confirmed is not False:
        return {}
    record(context, state, "unconfirmed", "self_checker", fingerprint=state.result.fingerprint)
    return {"result": replace(state.result, blank=True, no_values=True)}


def after_run(
    state: CandidateState, *, max_refinements: int, max_empty: int
) -> Literal["again", "refine", "end"]:
    """Route after a query in the loop of self-consistency (ReFoRCE first version, Algorithm 2).

    Confirmed or out of rounds it ends, an error leads to its repair, all else to another answer. Rounds are
    repairs and further answers together.
    """
    if state.refinements + state.checks >= max_refinements:
        return "end"
    if state.error:
        plain = routes.after_run(state, max_refinements=max_refinements, max_empty=max_empty)
        return "end" if state.errors_in_a_row >= ERRORS_IN_A_ROW or plain == "finish" else "refine"
    return "end" if state.confirmed or halted(state) else "again"


async def decompose(state: CandidateState, context: Context) -> Update:
    """SqlWriter: write the query as a chain of CTEs, each with one small task."""
    written = await writing.write_sql(state, context, styles=("decomposed",))
    return {**written, "stage": 0, "stage_error": "", "stage_ref": "", "rewrites": 0}


async def run_stage(state: CandidateState, context: Context) -> Update:
    """Run the current stage; the last one is the whole query."""
    try:
        stage = split_stages(state.sql, context.dialect)[state.stage]
    except SyntaxProblem as problem:
        return {"stage_error": str(problem), "stage_ref": ""}
    except IndexError:  # a rewrite left fewer stages
        return {"stage_error": "The rewritten query has lost this stage.", "stage_ref": ""}
    database = context.database if stage.last else context.bounded
    outcome = await execute(database, stage.sql, agent="cte_refiner", candidate=state.input.id)
    if isinstance(outcome, QueryError):
        if outcome.kind is ErrorKind.NOT_APPROVED:
            return {"error": Failure(outcome.kind.value, outcome.describe())}
        return {"stage_error": outcome.describe(), "stage_ref": ""}
    limit = await asyncio.to_thread(row_limit, stage.body, context.dialect)
    text = await asyncio.to_thread(excerpt, outcome, rows=STAGE_ROWS, limit=limit)
    record(context, state, "stage", "cte_refiner", name=stage.name, sql=stage.sql, text=text)
    return {"stage_error": "", "stage_ref": context.put(text)}


async def review_stage(state: CandidateState, context: Context) -> Update:
    """CteRefiner: accept the stage, or replace it and run the replacement."""
    try:
        stages = split_stages(state.sql, context.dialect)
        stage = stages[state.stage]
        (start, end), whole = stage.span, stages[-1].sql
    except (SyntaxProblem, IndexError):
        return {"stage": -1}  # no stages to be judged: the whole query runs as it is
    review = await tell(
        state,
        context,
        CTE_REFINER,
        "stage_review",
        about={"name": stage.name},
        stage=stage.name,
        body=stage.body,
        before=whole[:start],
        after=whole[end:],
        result=await context.text(state.stage_ref),
        error=state.stage_error,
        last=stage.last,
    )
    if review.accept or not review.sql:
        return {"stage": -1 if stage.last else state.stage + 1}
    sql = replace_stage(state.sql, context.dialect, state.stage, review.sql)
    return {"sql": sql, "rewrites": state.rewrites + 1}


def after_stage(state: CandidateState) -> Literal["go_on", "finish"]:
    """Review a stage that ran or failed; end the branch if the user did not approve it."""
    return "finish" if halted(state) or unrepairable(state) else "go_on"


def after_review(state: CandidateState, *, max_rewrites: int) -> Literal["stage", "whole", "finish"]:
    """Route after a review: the next stage, or the whole query once all are judged."""
    if halted(state):
        return "finish"
    return "whole" if state.stage < 0 or state.rewrites >= max_rewrites else "stage"


def fruitless(state: CandidateState) -> bool:
    """True if a candidate ended without a result that has values.

    False if it was stopped or the database was unavailable: stages would not help.
    """
    nothing = state.result is None or state.result.blank
    return nothing and not (halted(state) or unrepairable(state))
