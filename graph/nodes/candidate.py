"""One candidate's branch: act, review, run, judge, repair (ReCAPAgent-SQL, section 3.3, Table 1)."""

from __future__ import annotations

from quorum.agents import action, schema_linker, self_refiner, sql_critique, validator
from quorum.agents.self_refiner import Attempt
from quorum.agents.turns import Turn, repeats
from quorum.graph.context import Context
from quorum.graph.nodes.planning import format_of
from quorum.graph.nodes.results import keep_result, observation, summary
from quorum.graph.nodes.step import Update
from quorum.graph.state import CandidateRecord, CandidateState, ErrorState
from quorum.knowledge.errors import MalformedReply
from quorum.tools.execute import execute
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind, QueryError

REPEATED = "You have done exactly this before, so it was not done again. Do something else or terminate."


def candidate_model(state: CandidateState, context: Context) -> Model:
    """The candidate's model, sampled as the candidate was dealt."""
    return context.models[state["model"]].at(
        temperature=state["temperature"], seed=state["seed"], candidate=state["candidate"]
    )


def judging_model(state: CandidateState, context: Context) -> Model:
    """The candidate's model at temperature 0: candidates are sampled, judgements are not."""
    return candidate_model(state, context).at(temperature=0.0)


def note(context: Context, state: CandidateState, kind: str, agent: str, **fields: object) -> None:
    """Record an event of the candidate."""
    context.trace.record(kind, agent=agent, candidate=state["candidate"], **fields)


async def act(state: CandidateState, context: Context, *, max_actions: int) -> Update:
    """Action: predict the next action; one taken before is not taken again."""
    history = [Turn(**turn) for turn in state.get("history", [])]
    taken = state.get("actions", 0)
    steps_left = max_actions - taken
    if steps_left <= 0:
        return {"next": "terminate"}
    predicted = await action.predict(
        candidate_model(state, context),
        await context.prompt(state["schema_ref"], state["documents_ref"]),
        state["question"],
        steps=state["plan"]["steps"],
        expected_format=state["plan"]["expected_format"],
        syntax=await context.text(state["syntax_ref"]),
        history=history,
        feedback=state.get("feedback", ""),
        steps_left=steps_left,
    )
    note(context, state, "action", "action", **predicted.model_dump())
    if repeats(predicted.action, predicted.text, history):
        stuck = bool(history) and history[-1].observation == REPEATED
        turn = {"action": predicted.action, "text": predicted.text, "observation": REPEATED}
        update = {"history": [*state.get("history", []), turn], "actions": taken + 1}
        return {"next": "terminate" if stuck else "act", **update}
    if predicted.action == "sql":
        return {"next": "sql", "sql": predicted.text.strip(), "error": None, "actions": taken + 1}
    if predicted.action == "look":
        output = context.resources.files.run(predicted.text)
        turn = {"action": "look", "text": predicted.text, "observation": output}
        return {"next": "act", "history": [*state.get("history", []), turn], "actions": taken + 1}
    return {"next": "terminate"}


async def review_sql(state: CandidateState, context: Context) -> Update:
    """SQLCritique: after each SQL generation; a corrected query takes the place of the faulty one."""
    try:
        review = await sql_critique.critique_sql(
            judging_model(state, context),
            await context.prompt(state["schema_ref"], state["documents_ref"]),
            state["question"],
            state["sql"],
            steps=state["plan"]["steps"],
            expected_format=state["plan"]["expected_format"],
            syntax=await context.text(state["syntax_ref"]),
        )
    except MalformedReply as error:
        note(context, state, "sql_review", "sql_critique", error=str(error))
        return {}
    note(context, state, "sql_review", "sql_critique", **review.model_dump())
    failed = {attempt["sql"] for attempt in state.get("earlier", [])}
    if review.correct or not review.sql or review.sql in failed:
        return {}
    return {"sql": review.sql.strip()}


async def run_sql(state: CandidateState, context: Context, *, agent: str = "action") -> Update:
    """Execute; a result with values is kept at once, so that a later failure cannot lose it.

    ``agent`` wrote the query and is charged for it.
    """
    outcome = await execute(context.database, state["sql"], agent=agent, candidate=state["candidate"])
    if isinstance(outcome, QueryError):
        error: ErrorState = {"kind": outcome.kind.value, "message": outcome.describe()}
        turn = {"action": "sql", "text": state["sql"], "observation": f"Error: {error['message']}"}
        return {"error": error, "history": [*state.get("history", []), turn]}
    result = await keep_result(outcome, context.trace.folder, state["question"])
    note(context, state, "result", agent, sql=state["sql"], **result)
    turn = {"action": "sql", "text": state["sql"], "observation": observation(result)}
    update: Update = {"error": None, "history": [*state.get("history", []), turn]}
    if result["no_values"]:
        message = "The query ran and returned no row." if result["row_count"] == 0 else "All values are NULL."
        update["error"] = {"kind": ErrorKind.EMPTY_RESULT.value, "message": message}
    if update["error"] is None or state.get("result") is None:
        update |= {"result": result, "answer_sql": state["sql"], "approved": None}
    return update


async def link(state: CandidateState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker: when a table or column was not found (ReCAPAgent-SQL, Table 1)."""
    error = state["error"]
    try:
        linked = await schema_linker.link_schema(
            candidate_model(state, context),
            context.dialect,
            state["question"],
            context.resources.files,
            sql=state["sql"],
            error=error["message"] if error else "",
            max_steps=max_steps,
        )
    except MalformedReply as problem:
        note(context, state, "linking", "schema_linker", error=str(problem))
        linked = ""
    note(context, state, "linking", "schema_linker", linked_schema=linked)
    return {"linkings": state.get("linkings", 0) + 1, "linked_ref": context.put(linked) if linked else ""}


async def refine(state: CandidateState, context: Context) -> Update:
    """SelfRefiner: upon an execution error or an empty result."""
    error = state["error"]
    assert error is not None  # the router comes here with an error only
    earlier = state.get("earlier", [])
    refined = await self_refiner.refine(
        candidate_model(state, context),
        await context.prompt(state["schema_ref"], state["documents_ref"]),
        state["question"],
        state["sql"],
        kind=ErrorKind(error["kind"]),
        error=error["message"],
        expected_format=state["plan"]["expected_format"],
        syntax=await context.text(state["syntax_ref"]),
        linked_schema=await context.text(state.get("linked_ref", "")),
        earlier=[Attempt(**attempt) for attempt in earlier],
    )
    note(context, state, "refinement", "self_refiner", error=error, **refined.model_dump())
    if " ".join(refined.sql.split()) in {" ".join(a["sql"].split()) for a in [*earlier, state]}:
        return {"refinements": state.get("refinements", 0) + 1}  # nothing new will come: the error stands
    return {
        "sql": refined.sql,
        "error": None,
        "refinements": state.get("refinements", 0) + 1,
        "earlier": [*earlier, {"sql": state["sql"], "error": error["message"]}],
    }


async def validate(state: CandidateState, context: Context, *, max_validations: int) -> Update:
    """Validator: after a successful execution; a rejected result goes back to Action as feedback."""
    result = state["result"]
    assert result is not None  # the router comes here with a result only
    try:
        verdict = await validator.validate(
            judging_model(state, context),
            context.dialect,
            state["question"],
            state["sql"],
            summary(result),
            expected_format=format_of(state["plan"]),
        )
    except MalformedReply as error:
        note(context, state, "validation", "validator", error=str(error))
        return {"validations": max_validations}
    note(context, state, "validation", "validator", **verdict.model_dump())
    superfluous = ", ".join(verdict.columns_not_needed)
    parts = [verdict.suggest_fix, f"Columns not needed: {superfluous}." if superfluous else ""]
    return {
        "approved": verdict.accepted,
        "validations": state.get("validations", 0) + 1,
        "feedback": "" if verdict.accepted else " ".join(part for part in parts if part),
    }


async def finish(state: CandidateState, context: Context) -> Update:
    """Hand the candidate to the consensus: its last good result, or its last error."""
    result, error = state.get("result"), state.get("error")
    limit = state.get("stopped_by", "")
    if result is None and error is None:
        reason = f"stopped by {limit} before it had a result" if limit else "the model gave up"
        error = {"kind": "stopped" if limit else "gave_up", "message": f"No result: {reason}."}
    record: CandidateRecord = {
        "id": state["candidate"],
        "model": state["model"],
        "temperature": state["temperature"],
        "seed": state["seed"],
        "sql": state.get("answer_sql") or state.get("sql", ""),
        "result": result,
        "error": None if result else error,
        "approved": state.get("approved"),
        "refinements": state.get("refinements", 0),
        "stopped_by": limit,
        "reading": state.get("reading", ""),
    }
    note(context, state, "candidate", "candidate", **{k: v for k, v in record.items() if k != "id"})
    return {"candidates": [record]}
