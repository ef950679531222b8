"""CTE-based refinement: where a candidate has no result, its query is built and judged stage by stage.

An option of ReFoRCE's first version (paper 003, section 3.2.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from quorum.agents.refiners import CTE_REFINER, MAX_REWRITES
from quorum.graph.context import Context
from quorum.graph.nodes import writing
from quorum.graph.nodes.routes import halted, unrepairable
from quorum.graph.nodes.step import Update, record, tell
from quorum.graph.state import CandidateState, Failure
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.results.excerpt import excerpt, row_limit
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.stages import replace_stage, split_stages

STAGE_ROWS = 20
"""Rows of a stage that are shown."""


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


def after_review(
    max_rewrites: int = MAX_REWRITES,
) -> Callable[[CandidateState], Literal["stage", "whole", "finish"]]:
    """Route after a review: the next stage, or the whole query once all are judged."""

    def route(state: CandidateState) -> Literal["stage", "whole", "finish"]:
        if halted(state):
            return "finish"
        return "whole" if state.stage < 0 or state.rewrites >= max_rewrites else "stage"

    return route


def fruitless(state: CandidateState) -> bool:
    """True if a candidate ended without a result that has values.

    False if it was stopped or the database was unavailable: stages would not help.
    """
    nothing = state.result is None or state.result.blank
    return nothing and not (halted(state) or unrepairable(state))
