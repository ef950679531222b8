"""One candidate's branch: act, review, run, judge, repair (ReCAPAgent-SQL, section 3.3, Table 1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quorum.agents import action, schema_linker, self_refiner, sql_critique, validator
from quorum.agents.turns import Attempt, Turn, repeats
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.results import keep_result, observation, summary, tables_of
from quorum.graph.nodes.step import Update, ask_role, known, record, try_role
from quorum.graph.nodes.writing import explored
from quorum.graph.state import Candidate, CandidateState, Failure, Remarks, RunState
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.schema.render import SchemaText, render
from quorum.tools.execute import execute
from quorum.tools.models import Model
from quorum.tools.near_misses import near_misses
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql.linking import named, prune

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
    prompt, syntax = await context.prompt(state), await context.text(state.syntax_ref)
    findings, differences = await explored(state.input.extras, context)
    predicted = await ask_role(
        state,
        context,
        action.ROLE,
        lambda model: action.predict(
            model,
            prompt,
            state.question,
            steps=state.steps or NO_PLAN,
            expected_format=state.expected_format,
            syntax=syntax,
            history=state.history,
            steps_left=steps_left,
            findings=findings,
            differences=differences,
        ),
        event="action",
    )
    taken: Update = {"actions": state.actions + 1}
    turn = Turn(predicted.action, predicted.text, REPEATED)
    if repeats(predicted.action, predicted.text, state.history):
        _not_again(state, context, action.ROLE.name, predicted.action, predicted.text)
        stuck = bool(state.history) and state.history[-1].observation == REPEATED
        return taken | {"next": "terminate" if stuck else "act", "history": [*state.history, turn]}
    if predicted.action == "sql":
        taken |= {"next": "sql", "sql": predicted.text.strip(), "writer": action.ROLE.name, "error": None}
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
    prompt, syntax = await context.prompt(state), await context.text(state.syntax_ref)
    review = await try_role(
        state,
        context,
        sql_critique.ROLE,
        lambda model: sql_critique.critique_sql(
            model.at(temperature=0.0),
            prompt,
            state.question,
            state.sql,
            steps=state.steps or NO_PLAN,
            expected_format=state.expected_format,
            syntax=syntax,
            result=result,
        ),
        event="sql_review",
    )
    if review is None or review.correct or not review.sql or known(review.sql, [state.sql]):
        return {}
    return _replaced(state, context, review.sql.strip(), review.reasoning)


def _replaced(state: CandidateState, context: Context, sql: str, reasoning: str) -> Update:
    """The critique's query in the place of the current one; of one that was tried only the reason is kept."""
    critique = sql_critique.ROLE.name
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
    """The history with a remark under what a query returned."""
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
    """Who wrote the current query, where it was not Action."""
    return "" if state.writer == action.ROLE.name else state.writer


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


async def link(state: CandidateState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker: when a table or column was not found (ReCAPAgent-SQL, Table 1).

    From then on the candidate's prompts show only what was linked (3.3.4); the whole schema if nothing was.
    """
    error = state.error.message if state.error else ""
    found = await link_schema(state, context, sql=state.sql, error=error, max_steps=max_steps)
    linked = await asyncio.to_thread(linked_part, found, context)
    return {"linked_ref": context.put(linked[1].text) if linked else ""}


def linked_part(found: str, context: Context) -> tuple[Catalog, SchemaText] | None:
    """What the SchemaLinker names, with its schema text; None where the catalog has none of it."""
    catalog = context.resources.catalog
    linked = named(found, catalog)
    part = prune(catalog, linked)
    return (part, render(part, budget=context.options.schema_tokens)) if linked.tables else None


async def link_schema(
    state: RunState | CandidateState, context: Context, *, max_steps: int, sql: str = "", error: str = ""
) -> str:
    """The SchemaLinker's compact form of what it found; empty if it found nothing, or its reply is lost."""

    async def call(model: Model) -> dict[str, str]:
        linked = await schema_linker.link_schema(
            model,
            context.dialect,
            state.question,
            context.resources.files,
            sql=sql,
            error=error,
            max_steps=max_steps,
        )
        return {"linked_schema": linked}

    found = await try_role(state, context, schema_linker.ROLE, call, event="linking")
    return found["linked_schema"] if found else ""


async def refine(state: CandidateState, context: Context) -> Update:
    """SelfRefiner: upon an execution error or an empty result, which it may confirm."""
    error = state.error
    assert error is not None  # the router comes here with an error only
    prompt, syntax = await context.prompt(state), await context.text(state.syntax_ref)
    empty = error.kind == ErrorKind.EMPTY_RESULT
    misses = await near_misses(context.database, state.sql, state.input.id) if empty else []
    findings, differences = await explored(state.input.extras, context)
    refined = await ask_role(
        state,
        context,
        self_refiner.ROLE,
        lambda model: self_refiner.refine(
            model,
            prompt,
            state.question,
            state.sql,
            kind=ErrorKind(error.kind),
            error=error.message,
            expected_format=state.expected_format,
            syntax=syntax,
            plan=state.steps if state.linked_ref else [],
            near_misses=misses,
            earlier=state.earlier,
            findings=findings,
            differences=differences,
        ),
        event="refinement",
        repaired=error,
    )
    update: Update = {"refinements": state.refinements + 1, "failures": state.failures + (not empty)}
    update["stands"] = empty and not refined.sql
    if not refined.sql:
        return update
    confirms = state.seen and known(refined.sql, [state.answer_sql])  # where a result must come twice
    if repeats("sql", refined.sql, state.history) and not confirms:
        _not_again(state, context, self_refiner.ROLE.name, "sql", refined.sql)
        return update  # nothing new will come: the error stands
    earlier = [*state.earlier, Attempt(state.sql, error.message)]
    update |= {"sql": refined.sql, "writer": self_refiner.ROLE.name, "error": None, "earlier": earlier}
    if refined.assumption:
        said = state.remarks or Remarks()
        update["remarks"] = replace(said, assumptions=[*said.assumptions, refined.assumption])
    return update


async def validate(state: CandidateState, context: Context, *, max_validations: int) -> Update:
    """Validator: after a successful execution; a rejected result goes back to Action, whose history says why.

    The SelfRefiner learns of it, too.
    """
    result = state.result
    assert result is not None  # the router comes here with a result only
    documents = await context.text(state.documents_ref)
    schema = await asyncio.to_thread(tables_of, state.sql, context)
    verdict = await try_role(
        state,
        context,
        validator.ROLE,
        lambda model: validator.validate(
            model.at(temperature=0.0),
            context.dialect,
            state.question,
            state.sql,
            summary(result),
            expected_format=state.expected_format,
            schema=schema,
            documents=documents,
        ),
        event="validation",
    )
    if verdict is None:
        return {"validations": max_validations}
    update: Update = {"approved": verdict.accepted, "validations": state.validations + 1}
    if not verdict.accepted:
        rejected = f"{REJECTED} {verdict.objection[:MAX_OBJECTION]}"
        update["earlier"] = [*state.earlier, Attempt(state.sql, rejected)]
        update["history"] = _remarked(state.history, state.sql, rejected)
    return update


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
