"""Planner: a step-by-step plan and the expected result format (ReCAPAgent-SQL, section 3.3.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Assumptions, Form, Role
from quorum.tools.models import Model


def _some_steps(steps: list[str]) -> list[str]:
    kept = [step.strip() for step in steps if step.strip()]
    if not kept:
        raise ValueError("the plan has no steps")
    return kept


class Plan(Form):
    """How to answer a question, before any SQL is written."""

    steps: Annotated[list[str], AfterValidator(_some_steps)] = Field(
        description="As few as the question needs, at most eight, one sentence each. Name the tables, the "
        "join keys, the filters with their literal values, what one result row stands for, and the order "
        "or limit if the question asks for one."
    )
    expected_format: str = Field(
        default="",
        description="The result's columns as `name (type), name (type)`, only what the question asks for, "
        "each type one of integer, real, text, date, datetime, boolean; then `one row`, or `one row per …`, "
        "and the order if the question asks for one.",
    )
    assumptions: Assumptions = Field(default_factory=list)


ROLE = Role("planner", "Planner", "{steps:step|steps}, to give {expected_format}", Plan)


async def plan(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    previous: Plan | None = None,
    critique: str = "",
) -> Plan:
    """Plan the query; with ``critique``, write ``previous`` again in its light."""
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        previous_steps=previous.steps if previous else [],
        critique=critique,
    )
