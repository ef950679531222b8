"""A candidate as one ReAct loop: step, run or look, observe, until the model answers or its steps run out.

An action's outcome is only an observation: no other role repairs an error, questions an empty result or
judges an answer. The last query that ran without an error is the candidate's answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

from quorum.agents.writers import TOOL_USER
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes import candidate
from quorum.graph.nodes.results import keep_result
from quorum.graph.nodes.routes import halted, unavailable
from quorum.graph.nodes.step import Update, record, tell
from quorum.graph.state import CandidateState, Failure, Remarks, Turn, repeats
from quorum.tools.execute import execute
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.results.excerpt import excerpt, row_limit

AGENT = TOOL_USER.name
SHOWN_ROWS = 50
"""Of a result, where they are narrow: ``excerpt`` cuts at 5 kB."""
NOTHING_RAN = (
    "No query has run without an error, so there is nothing to accept. Answer with a query in `sql`, "
    "unless the database cannot answer."
)
REPEATED = "You have done exactly this before, so it was not done again. Do something else, or answer."


async def take_step(state: CandidateState, context: Context, *, max_steps: int, seen: bool) -> Update:
    """ToolUser: the next step; a look is answered at once, a query by ``run_query``.

    With ``seen`` an answer's query that has not run yet is run and seen first, unless this is the last step.
    An action that was taken before is not taken again; two of them in a row end the loop. So do two answers
    in a row that name no query while none has run without an error.
    """
    step = await tell(
        state,
        context,
        TOOL_USER,
        "action",
        history=state.history,
        steps_left=max_steps - state.actions,
        documents=context.resources.documents is not None,
        seen=seen,
    )
    update: Update = {"actions": state.actions + 1, "next": "again"}
    if step.action == "answer" and step.missing:
        return update | {"next": "finish", "error": Failure(UNANSWERABLE, step.missing)}
    if step.action == "answer":
        update["remarks"] = Remarks(step.summary, step.assumptions)
    last = state.history[-1].observation if state.history else ""
    accepts = step.action == "answer" and step.text in ("", state.answer_sql)
    if accepts and (state.answer_sql or last == NOTHING_RAN):
        return update | {"next": "finish"}
    observation = ""
    if accepts:
        observation = NOTHING_RAN
    elif repeats(step.action, step.text, state.history):
        observation = REPEATED
        update["next"] = "finish" if last == REPEATED else "again"
    elif step.action == "look":
        observation = context.resources.files.run(step.text)
    else:
        shown = seen and context.live and state.actions + 1 < max_steps
        ends = step.action == "answer" and not shown
        update |= {"next": "answer" if ends else "sql", "sql": step.text, "ordered": step.ordered}
    return update | {"history": [*state.history, Turn(step.action, step.text, observation, step.thought)]}


async def run_query(state: CandidateState, context: Context) -> Update:
    """Execute the query of the last turn and complete the turn with its first rows, or its error.

    Where only the schema is available, the observation of a query that is not the answer says so.
    """
    *before, turn = state.history
    outcome = await execute(context.database, state.sql, agent=AGENT, candidate=state.input.id)
    if isinstance(outcome, QueryError):
        error = Failure(outcome.kind.value, outcome.describe())
        seen = replace(turn, observation=f"Error: {error.message}")
        only_asked = outcome.kind is ErrorKind.UNAVAILABLE and not context.live and state.next != "answer"
        return {"error": None if only_asked else error, "history": [*before, seen]}
    result = await keep_result(outcome, context.trace.folder)
    record(context, state, "result", AGENT, sql=state.sql, **vars(result))
    limit = await asyncio.to_thread(row_limit, state.sql, context.dialect)
    shown = await asyncio.to_thread(excerpt, outcome, rows=SHOWN_ROWS, limit=limit)
    history = [*before, replace(turn, observation=shown)]
    return {"error": None, "result": result, "answer_sql": state.sql, "history": history}


async def finish(state: CandidateState, context: Context, *, max_steps: int) -> Update:
    """Hand the candidate to the consensus, with an error if its steps ran out before any query ran."""
    ran_out = state.actions >= max_steps and state.next != "finish"
    if ran_out and not state.result and not state.error:
        state = replace(state, error=Failure("gave_up", f"No query ran in {max_steps} steps."))
    return await candidate.finish(state, context)


def after_step(state: CandidateState, *, max_steps: int) -> Literal["run_query", "take_step", "finish"]:
    """Route after a step: to its query, to another step if one is left, or to the end."""
    if halted(state) or state.next == "finish":
        return "finish"
    if state.next != "again":
        return "run_query"
    return "take_step" if state.actions < max_steps else "finish"


def after_query(state: CandidateState, *, max_steps: int) -> Literal["take_step", "finish"]:
    """Route after a query: an answer that ran ends the loop, and so does a database that is gone."""
    answered = state.next == "answer" and state.error is None
    if halted(state) or answered or unavailable(state):
        return "finish"
    return "take_step" if state.actions < max_steps else "finish"
