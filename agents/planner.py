"""Planner: a step-by-step plan and the expected result format (ReCAPAgent-SQL, section 3.3.1)."""

from __future__ import annotations

from pydantic import BaseModel, Field, field_validator

from quorum.agents.base import PromptContext, ask
from quorum.tools.models import Model


class Plan(BaseModel):
    """How to answer a question, before any SQL is written."""

    steps: list[str] = Field(description="At most eight steps, one sentence each, no SQL.")
    expected_format: str = Field(description="The result's columns: name (type), name (type).")

    @field_validator("steps")
    @classmethod
    def _some_steps(cls, steps: list[str]) -> list[str]:
        kept = [step.strip() for step in steps if step.strip()]
        if not kept:
            raise ValueError("the plan has no steps")
        return kept


async def plan(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    previous: Plan | None = None,
    critique: str = "",
) -> Plan:
    """Plan the query; with ``critique``, write ``previous`` anew in its light.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        "planner",
        Plan,
        context=context,
        question=question,
        previous_steps=previous.steps if previous else [],
        critique=critique,
    )
