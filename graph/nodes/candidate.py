"""One candidate's branch: act, review, run, judge, repair (ReCAPAgent-SQL, section 3.3, Table 1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quorum.agents.critics import SQL_CRITIQUE, VALIDATOR, Verdict
from quorum.agents.refiners import FAILURE_REFINER, SELF_REFINER
from quorum.agents.writers import ACTION
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.results import keep_result, observation, summary, tables_of
from quorum.graph.nodes.step import UNUSABLE, Update, record, same_query, tell, try_tell
from quorum.graph.nodes.writing import explored
from quorum.graph.state import (
    Attempt,
    Candidate,
    CandidateState,
    Failure,
    Known,
    Remarks,
    Result,
    Turn,
    repeats,
)
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError

NO_PLAN = ["Answer the question with one query."]
"""What Action and its critics are shown where nobody planned."""

REJECTED = "Its result was rejected:"
"""Before the Validator's objection, under the result in Action's history."""

MAX_OBJECTION = 1_000
"""Characters of an objection that later prompts show."""

REPEATED = "You have done exactly this before, so it was not done again. Do something else or terminate."


async def act(state: CandidateState, context: Context, *, max_actions: int) -> Update:
    """Action: predict the next action; one taken before is not taken again."""
    steps_left = max_actions - state.actions
    if steps_left <= 0:
        return {"next": "terminate"}
    predicted = await tell(
        state,
        context,
        ACTION,
        "action",
        steps=state.steps or NO_PLAN,
        syntax=await context.text(state.syntax_ref),
        history=state.history,
        steps_left=steps_left,
        **await explored(state.input.extras, context),
    )
    taken: Update = {"actions": state.actions + 1}
    turn = Turn(predicted.action, predicted.text, REPEATED)
    if repeats(predicted.action, predicted.text, state.history):
        _not_again(state, context, ACTION.name, predicted.action, predicted.text)
        stuck = bool(state.history) and state.history[-1].observation == REPEATED
        return taken | {"next": "terminate" if stuck else "act", "history": [*state.history, turn]}
    if predicted.action == "sql":
        taken |= {"next": "sql", "sql": predicted.text.strip(), "writer": ACTION.name, "error": None}
        return taken | {"ordered": predicted.ordered, "remarks": Remarks(predicted.summary)}
    if predicted.action == "look":
        turn = Turn("look", predicted.text, context.resources.files.run(predicted.text))
        return taken | {"next": "act", "history": [*state.history, turn]}
    missing = Failure(UNANSWERABLE, predicted.missing) if predicted.missing else state.error
    return {"next": "terminate", "error": missing}


async def review_sql(state: CandidateState, context: Context) -> Update:
    """SQLCritique: of Action's query before it runs, of a refined one with its result (3.3.3, 3.3.6).

    A corrected query replaces the faulty one, unless it was tried before; Action and SelfRefiner learn why.
    A query that was replaced before it ran may be brought back: the critique may be wrong.
    """
    result = observation(state.result) if state.ran and state.result else ""
    review = await try_tell(
        state,
        context,
        SQL_CRITIQUE,
        "sql_review",
        sql=state.sql,
        steps=state.steps or NO_PLAN,
        syntax=await context.text(state.syntax_ref),
        result=result,
    )
    if review is None or review.correct or not review.sql or same_query(review.sql, [state.sql]):
        return {}
    return _replaced(state, context, review.sql.strip(), review.reasoning)


def _replaced(state: CandidateState, context: Context, sql: str, reasoning: str) -> Update:
    """Put the critique's query in the place of the current one; of one tried before keep only the reason."""
    critique = SQL_CRITIQUE.name
    if repeats("sql", sql, state.history):
        _not_again(state, context, critique, "sql", sql)
        wanted = f"Not run again. Why it was wanted: {reasoning}"
        return {"history": [*state.history, Turn("sql", sql, wanted, by=critique)]}
    reason = f"A reviewer put another query in its place: {reasoning}"
    turn = Turn("sql", state.sql, f"Not run. {reason}", by=_colleague(state), done=False)
    history = [*state.history, turn]
    if state.ran:
        history = _remarked(state.history, state.sql, reason)
    earlier = [*state.earlier, Attempt(state.sql, reason)]
    return {"sql": sql, "writer": critique, "error": None, "earlier": earlier, "history": history}


def _remarked(history: list[Turn], sql: str, remark: str) -> list[Turn]:
    """Return the history with a remark under the result of a query."""
    return [
        replace(turn, observation=f"{turn.observation}\n{remark}") if turn.text == sql and turn.done else turn
        for turn in history
    ]


def _not_again(state: CandidateState, context: Context, agent: str, kind: str, text: str) -> None:
    """Record that something is not done a second time, with what came of it the first time."""
    before = next(turn for turn in state.history if repeats(kind, text, [turn]))
    outcome = before.observation.strip().rpartition("\n")[2] if kind == "sql" else ""
    message = f"It was tried before and is not run again: {outcome}" if outcome else "It was done before."
    record(context, state, "not_run", agent, message=message)


def _colleague(state: CandidateState) -> str:
    """Return the role that wrote the current query; empty if it was Action."""
    return "" if state.writer == ACTION.name else state.writer


async def run_sql(state: CandidateState, context: Context, *, agent: str = "action") -> Update:
    """Execute; a result with values is saved at once, so that a later failure cannot lose it.

    ``agent`` wrote the query and is charged for it.
    """
    outcome = await execute(context.database, state.sql, agent=agent, candidate=state.input.id)
    if isinstance(outcome, QueryError):
        error = Failure(outcome.kind.value, outcome.describe())
        turn = Turn("sql", state.sql, f"Error: {error.message}", by=_colleague(state))
        return {"error": error, "history": [*state.history, turn]}
    result = await keep_result(outcome, context.trace.folder)
    record(context, state, "result", agent, sql=state.sql, **vars(result))
    turn = Turn("sql", state.sql, observation(result), by=_colleague(state))
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
        confirm: An empty result may be confirmed, and what each condition leaves is shown.
    """
    error = state.error
    assert error is not None  # the router comes here with an error only
    empty = confirm and error.kind == ErrorKind.EMPTY_RESULT
    missed: list[str] = []
    if empty:
        from quorum.tools.near_misses import near_misses

        missed = await near_misses(context.database, state.sql, state.input.id)
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
        near_misses=missed,
        confirm=confirm,
        earlier=state.earlier,
        **await explored(state.input.extras, context),
    )
    failed = error.kind != ErrorKind.EMPTY_RESULT
    update: Update = {"refinements": state.refinements + 1, "failures": state.failures + failed}
    update["stands"] = empty and not refined.sql
    if not refined.sql:
        return update
    confirms = state.seen and same_query(refined.sql, [state.answer_sql])  # where a result must come twice
    if repeats("sql", refined.sql, state.history) and not (confirms or persist):
        _not_again(state, context, SELF_REFINER.name, "sql", refined.sql)
        return update  # nothing new will come: the error stands
    earlier = [*state.earlier, Attempt(state.sql, error.message)]
    update |= {"sql": refined.sql, "writer": SELF_REFINER.name, "error": None, "earlier": earlier}
    if refined.assumption:
        said = state.remarks or Remarks()
        update["remarks"] = replace(said, assumptions=[*said.assumptions, refined.assumption])
    return update


async def validate(state: CandidateState, context: Context, *, max_validations: int) -> Update:
    """Validator: after a successful execution; a rejected result goes back to Action, whose history says why.

    The SelfRefiner learns of it, too.
    """
    assert state.result is not None  # the router comes here with a result only
    verdict = await verdict_on(state, context, state.sql, state.result)
    if verdict is None:
        return {"validations": max_validations}
    update: Update = {"approved": verdict.accepted, "validations": state.validations + 1}
    if not verdict.accepted:
        rejected = f"{REJECTED} {verdict.objection[:MAX_OBJECTION]}"
        update["earlier"] = [*state.earlier, Attempt(state.sql, rejected)]
        update["history"] = _remarked(state.history, state.sql, rejected)
    return update


async def verdict_on(
    state: Known,
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
