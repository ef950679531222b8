"""What candidates of several recipes do: run a query, repair it, judge its result, hand it over."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quorum.agents.critics import VALIDATOR, Verdict
from quorum.agents.refiners import FAILURE_REFINER, SELF_REFINER
from quorum.agents.writers import ACTION
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.results import keep_result, observation, summary, tables_of
from quorum.graph.nodes.step import UNUSABLE, Update, record, same_query, tell, try_tell
from quorum.graph.nodes.writing import findings_of
from quorum.graph.state import (
    Attempt,
    Candidate,
    CandidateState,
    Failure,
    Remarks,
    Result,
    SharedState,
    Turn,
    repeats,
)
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError

REJECTED = "Its result was rejected:"
"""Before the Validator's objection, under the result in Action's history."""

MAX_OBJECTION = 1_000
"""Characters of an objection that later prompts show."""


def remarked(history: list[Turn], sql: str, remark: str) -> list[Turn]:
    """Return the history with a remark under the result of a query."""
    return [
        replace(turn, observation=f"{turn.observation}\n{remark}") if turn.text == sql and turn.done else turn
        for turn in history
    ]


def not_again(state: CandidateState, context: Context, agent: str, kind: str, text: str) -> None:
    """Record that something is not done a second time, with what came of it the first time."""
    before = next(turn for turn in state.history if repeats(kind, text, [turn]))
    outcome = before.observation.strip().rpartition("\n")[2] if kind == "sql" else ""
    message = f"It was tried before and is not run again: {outcome}" if outcome else "It was done before."
    record(context, state, "not_run", agent, message=message)


def colleague(state: CandidateState) -> str:
    """Return the role that wrote the current query; empty if it was Action."""
    return "" if state.writer == ACTION.name else state.writer


async def run_sql(state: CandidateState, context: Context, *, agent: str = "action") -> Update:
    """Execute; the first result, and any with values, is saved at once: a later failure cannot lose it.

    ``agent`` wrote the query and is charged for it.
    """
    outcome = await execute(context.database, state.sql, agent=agent, candidate=state.input.id)
    if isinstance(outcome, QueryError):
        error = Failure(outcome.kind.value, outcome.describe())
        turn = Turn("sql", state.sql, f"Error: {error.message}", by=colleague(state))
        return {"error": error, "history": [*state.history, turn]}
    result = await keep_result(outcome, context.trace.folder)
    record(context, state, "result", agent, sql=state.sql, **vars(result))
    turn = Turn("sql", state.sql, observation(result), by=colleague(state))
    update: Update = {"error": None, "history": [*state.history, turn]}
    if result.no_values:
        message = "The query ran and returned no row." if result.row_count == 0 else "All values are NULL."
        update["error"] = Failure(ErrorKind.EMPTY_RESULT.value, message)
    if update["error"] is None or state.result is None:
        update |= {
            "result": result,
            "answer_sql": state.sql,
            "answer_remarks": state.remarks,
            "approved": None,
        }
    return update


async def refine(
    state: CandidateState, context: Context, *, persist: bool = False, confirm: bool = True
) -> Update:
    """SelfRefiner: upon an execution error or an empty result.

    Args:
        persist: A query that was tried before runs again; else it ends the candidate.
        confirm: An empty result may be confirmed.
    """
    error = state.error
    assert error is not None  # the router comes here with an error only
    empty = confirm and error.kind == ErrorKind.EMPTY_RESULT
    refined = await tell(
        state,
        context,
        SELF_REFINER if empty else FAILURE_REFINER,
        "refinement",
        about={"repaired": error},
        sql=state.sql,
        kind=error.kind,
        error=error.message,
        syntax=await context.text(state.syntax_ref),
        plan=state.steps if state.linked_ref else [],
        confirm=confirm,
        earlier=state.earlier,
        **await findings_of(state.input.extras, context),
    )
    failed = error.kind != ErrorKind.EMPTY_RESULT
    update: Update = {"refinements": state.refinements + 1, "failures": state.failures + failed}
    update["stands"] = empty and not refined.sql
    if not refined.sql:
        return update
    confirms = state.seen and same_query(refined.sql, [state.answer_sql])  # where a result must come twice
    if repeats("sql", refined.sql, state.history) and not (confirms or persist):
        not_again(state, context, SELF_REFINER.name, "sql", refined.sql)
        return update  # nothing new will come: the error stands
    earlier = [*state.earlier, Attempt(state.sql, error.message)]
    update |= {"sql": refined.sql, "writer": SELF_REFINER.name, "error": None, "earlier": earlier}
    said = state.remarks or Remarks()
    assumptions = [*said.assumptions, *filter(None, [refined.assumption])]
    update["remarks"] = replace(said, assumptions=assumptions, certainty=None)  # of the query before
    return update


async def validate(state: CandidateState, context: Context) -> Update:
    """Validator: after a successful execution; the history and later prompts say why a result is rejected."""
    assert state.result is not None  # the router comes here with a result only
    verdict = await verdict_on(state, context, state.sql, state.result)
    if verdict is None:
        return {}
    update: Update = {"approved": verdict.accepted}
    if not verdict.accepted:
        rejected = f"{REJECTED} {verdict.objection[:MAX_OBJECTION]}"
        update["earlier"] = [*state.earlier, Attempt(state.sql, rejected)]
        update["history"] = remarked(state.history, state.sql, rejected)
    return update


async def verdict_on(
    state: SharedState,
    context: Context,
    sql: str,
    result: Result,
    *,
    spare: tuple[type[Exception], ...] = UNUSABLE,
    **about: object,
) -> Verdict | None:
    """Validator: judge a result by its summary; None where the reply fails with an error in ``spare``."""
    schema = await asyncio.to_thread(tables_of, sql, context)
    shown = summary(result)
    return await try_tell(
        state, context, VALIDATOR, "validation", spare=spare, about=about, sql=sql, schema=schema, **shown
    )


async def finish(state: CandidateState, context: Context) -> Update:
    """Hand the candidate to the consensus: its last good result, or its last error."""
    start, error = state.input, state.error
    lacking = error is not None and error.kind == UNANSWERABLE
    result = None if lacking else state.result
    if result is None and error is None:
        limit = state.stopped_by
        reason = f"stopped by {limit} before it had a result" if limit else "the model gave up"
        error = Failure("stopped" if limit else "gave_up", f"No result: {reason}.")
    done = Candidate(
        id=start.id,
        model=start.model,
        temperature=start.temperature,
        seed=start.seed,
        sql="" if lacking else state.answer_sql or state.sql,
        result=result,
        error=None if result else error,
        approved=state.approved,
        confirmed=state.confirmed,
        refinements=state.refinements,
        failures=state.failures,
        stands=state.stands,
        stopped_by=state.stopped_by,
        remarks=state.answer_remarks or state.remarks,
        informed=bool(start.extras.findings),
        ordered=state.ordered,
        warnings=state.warnings,
    )
    about = {name: value for name, value in vars(done).items() if name != "id"}
    record(context, state, "candidate", "candidate", **about)
    return {"candidates": [done]}
