"""Plan and critique of the plan, at most three rounds (ReCAPAgent-SQL, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from quorum.agents import plan_critique
from quorum.agents.planner import Plan, plan
from quorum.graph.context import Context
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.step import Update
from quorum.graph.state import PlanState, RunState
from quorum.knowledge.errors import MalformedReply

NO_PLAN: PlanState = {
    "steps": ["Answer the question with one query."],
    "expected_format": "as the question asks",
}


def format_of(plan: PlanState) -> str:
    """The expected format; empty where nobody wrote one."""
    return "" if plan["expected_format"] == NO_PLAN["expected_format"] else plan["expected_format"]


Planning: TypeAlias = Literal["auto", "always", "never"]
"""When a plan is written: for questions that need one, for all, for none."""

LONG_QUESTION = 25
"""Words from which a question needs a plan: single-query questions of benchmarks have 10 to 15, those
that ask for several steps 30 and more."""


async def plan_if_needed(state: RunState, context: Context, *, when: Planning) -> Update:
    """Write a plan, uncriticised, if the question needs one: it is long, or documents define its terms."""
    long = len(state["question"].split()) >= LONG_QUESTION
    if when == "always" or (when == "auto" and (long or state["documents_ref"])):
        return await write_plan(state, context)
    return {}


async def write_plan(state: RunState, context: Context) -> Update:
    """Write the plan, or write it anew after a critique."""
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    previous = Plan(**state["plan"]) if state.get("plan_rounds") else None
    try:
        made = await first_available(
            context,
            lambda model: plan(
                model, prompt, state["question"], previous=previous, critique=state.get("critique", "")
            ),
        )
    except MalformedReply as error:
        context.trace.record("plan", agent="planner", error=str(error))
        return {"critique": "", "warnings": ["The Planner's reply could not be used."]}
    context.trace.record("plan", agent="planner", **made.model_dump())
    return {"plan": made.model_dump(), "plan_rounds": state.get("plan_rounds", 0) + 1}


async def review_plan(state: RunState, context: Context) -> Update:
    """PlanCritique: immediately after the plan (ReCAPAgent-SQL, Table 1)."""
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    made = state["plan"]
    try:
        review = await first_available(
            context,
            lambda model: plan_critique.critique_plan(
                model, prompt, state["question"], made["steps"], made["expected_format"]
            ),
        )
    except MalformedReply as error:
        context.trace.record("plan_review", agent="plan_critique", error=str(error))
        return {"critique": ""}
    context.trace.record("plan_review", agent="plan_critique", **review.model_dump())
    return {"critique": review.feedback if review.update_plan else ""}


def after_review(max_plans: int) -> Callable[[RunState], Literal["write_plan", "go_on"]]:
    """The router after a review: back to the Planner while there is a critique and a plan left."""

    def route(state: RunState) -> Literal["write_plan", "go_on"]:
        more = state.get("critique") and state.get("plan_rounds", 0) < max_plans
        return "write_plan" if more and not state.get("stopped_by") else "go_on"

    return route
