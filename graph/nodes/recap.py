"""ReCAPAgent-SQL (paper 004, section 3.3): its steps and routers, in the order of Table 1.

    Planner ⇄ PlanCritique → SyntaxRetriever → Action → SQLCritique → run_sql → Validator

An error or an empty result calls the SelfRefiner, and a schema error the SchemaLinker and the Planner before
it. What is then still wrong, and what the Validator rejects, goes back to Action until its steps are used up.
SelfRefiner and Validator (``quorum.graph.nodes.candidate``) and SchemaLinker (``schema_linking``) serve other
recipes, too.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from quorum.agents.critics import SQL_CRITIQUE
from quorum.agents.planners import PLAN_CRITIQUE, PLANNER, SYNTAX_RETRIEVER
from quorum.agents.refiners import SELF_REFINER
from quorum.agents.writers import ACTION
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import colleague, not_again, remarked
from quorum.graph.nodes.results import observation
from quorum.graph.nodes.routes import halted, unrepairable
from quorum.graph.nodes.step import Update, lost, same_query, tell, try_tell
from quorum.graph.nodes.writing import findings_of
from quorum.graph.state import Attempt, CandidateState, Failure, Remarks, RunState, Turn, repeats
from quorum.knowledge import syntax
from quorum.tools.query import ErrorKind

NO_PLAN = ["Answer the question with one query."]
"""The plan that Action and its critics see where no Planner was asked."""

REPEATED = "You have done exactly this before, so it was not done again. Do something else or terminate."


async def write_plan(state: RunState | CandidateState, context: Context) -> Update:
    """Planner: write the plan (ReCAPAgent-SQL, 3.3.1).

    It is written anew after a critique, and from what was linked after a schema error.
    """
    failed = state.error.message if isinstance(state, CandidateState) and state.error else ""
    critique = state.critique or (f"A query written from it failed: {failed}" if failed else "")
    made = await try_tell(
        state,
        context,
        PLANNER,
        "plan",
        previous_steps=state.steps,
        critique=critique if state.steps else "",
    )
    update: Update = {"critique": "", "plans": state.plans + 1}
    if made is None:
        return update | {"warnings": lost(PLANNER)}
    plan = {"steps": made.steps, "expected_format": made.expected_format, "assumptions": made.assumptions}
    return update | plan


async def review_plan(state: RunState | CandidateState, context: Context) -> Update:
    """PlanCritique: immediately after a plan (ReCAPAgent-SQL, 3.3.3)."""
    review = await try_tell(
        state, context, PLAN_CRITIQUE, "plan_review", steps=state.steps, assumptions=state.assumptions
    )
    return {"critique": review.feedback if review and review.update_plan else ""}


async def retrieve_syntax(state: RunState | CandidateState, context: Context) -> Update:
    """SyntaxRetriever: after planning, as far as it asks for any (ReCAPAgent-SQL, 3.3.2)."""
    if not await asyncio.to_thread(syntax.sections, context.dialect):
        return {}
    found = await try_tell(state, context, SYNTAX_RETRIEVER, "syntax", steps=state.steps or NO_PLAN)
    if found is None:
        return {"warnings": lost(SYNTAX_RETRIEVER)}
    sections = await asyncio.to_thread(syntax.lookup, context.dialect, found.features)
    text = "\n\n".join(section.text for section in sections)
    return {"syntax_ref": context.put(text) if text else ""}


async def act(state: CandidateState, context: Context, *, max_actions: int) -> Update:
    """Action: predict the next action; one taken before is not taken again (ReCAPAgent-SQL, 3.3.5)."""
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
        **await findings_of(state.input.extras, context),
    )
    taken: Update = {"actions": state.actions + 1, "next": predicted.action}
    if repeats(predicted.action, predicted.text, state.history):
        not_again(state, context, ACTION.name, predicted.action, predicted.text)
        turn = Turn(predicted.action, predicted.text, REPEATED)
        return taken | {"next": "act", "history": [*state.history, turn]}
    if predicted.action == "sql":
        taken |= {"sql": predicted.text.strip(), "writer": ACTION.name, "error": None, "stands": False}
        taken |= {"ordered": predicted.ordered, "remarks": Remarks(predicted.summary, state.assumptions)}
        return taken | {"refined_before": state.refinements}
    if predicted.action == "look":
        turn = Turn("look", predicted.text, context.resources.files.run(predicted.text))
        return taken | {"next": "act", "history": [*state.history, turn]}
    missing = Failure(UNANSWERABLE, predicted.missing) if predicted.missing else state.error
    return taken | {"error": missing}


async def review_sql(state: CandidateState, context: Context) -> Update:
    """SQLCritique: of Action's query before it runs, of a refined one with its result.

    (ReCAPAgent-SQL, 3.3.3)

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
        not_again(state, context, critique, "sql", sql)
        wanted = f"Not run again. Why it was wanted: {reasoning}"
        return {"history": [*state.history, Turn("sql", sql, wanted, by=critique)]}
    reason = f"A reviewer put another query in its place: {reasoning}"
    turn = Turn("sql", state.sql, f"Not run. {reason}", by=colleague(state), done=False)
    history = [*state.history, turn]
    if state.ran:
        history = remarked(state.history, state.sql, reason)
    earlier = [*state.earlier, Attempt(state.sql, reason)]
    return {"sql": sql, "writer": critique, "error": None, "earlier": earlier, "history": history}


def after_plan(
    state: RunState | CandidateState, *, max_plans: int
) -> Literal["review", "write", "refine", "finish"]:
    """Route to the PlanCritique: immediately after a plan, if it may be written again."""
    reviewed = state.steps and state.plans < max_plans and not state.stopped_by
    way = _planned(state)
    return "review" if reviewed and way != "finish" else way


def after_plan_review(state: RunState | CandidateState) -> Literal["plan", "write", "refine", "finish"]:
    """Route back to the Planner with a critique."""
    return "plan" if state.critique and not state.stopped_by else _planned(state)


def _planned(state: RunState | CandidateState) -> Literal["write", "refine", "finish"]:
    """Return what a plan is for: a first query, or the repair of one that failed."""
    if isinstance(state, RunState):
        return "write"
    return "finish" if halted(state) else "refine" if state.error else "write"


def after_action(state: CandidateState) -> Literal["sql", "act", "finish"]:
    """Route to the SQLCritique: after each SQL generation step."""
    if halted(state) or state.next == "terminate":
        return "finish"
    return "sql" if state.next == "sql" else "act"


def after_sql_review(state: CandidateState) -> Literal["run", "validate", "finish"]:
    """Run a query that has not run; validate one that was reviewed with its result."""
    if halted(state):
        return "finish"
    return "validate" if state.ran else "run"


def after_run(
    state: CandidateState, *, max_refinements: int
) -> Literal["review", "validate", "link", "refine", "act", "finish"]:
    """Route by the triggers of Table 1; a query of Action's is repaired ``max_refinements`` times at most.

    SchemaLinker: a table or column is not found, unless the query before had the same error. SelfRefiner: an
    error or an empty result. SQLCritique: a refined query ran (3.3.6). Validator: a query ran.
    """
    error = state.error
    if halted(state) or unrepairable(state):
        return "finish"
    if error is None:
        return "review" if state.writer == SELF_REFINER.name else "validate"
    if state.refinements - state.refined_before >= max_refinements:
        return "act"
    same = bool(state.earlier) and state.earlier[-1].error == error.message
    return "link" if ErrorKind(error.kind).about_schema and not same else "refine"


def after_linking(state: CandidateState) -> Literal["plan", "refine", "finish"]:
    """Plan again from what was linked; only repair the query if nothing was."""
    if halted(state):
        return "finish"
    return "plan" if state.linked_ref else "refine"


def after_repair(state: CandidateState) -> Literal["run", "act", "finish"]:
    """Run a repaired query; without one Action goes on, and may accept an empty result."""
    return "finish" if halted(state) else "act" if state.error else "run"


def after_validation(state: CandidateState) -> Literal["act", "finish"]:
    """End with an accepted result, or one that could not be judged; go back to Action with others.

    (ReCAPAgent-SQL, 3.3.7)
    """
    return "act" if state.approved is False and not halted(state) else "finish"
