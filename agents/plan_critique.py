"""PlanCritique: is the plan complete and coherent? (ReCAPAgent-SQL, section 3.3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

MAX_ROUNDS = 3  # ReCAPAgent-SQL, section 3.3: critiqued and refined at most three times


class PlanReview(Form):
    """The verdict over a plan."""

    feedback: str = Field(default="", description="What to change; empty if the plan passes.")
    update_plan: bool = Field(
        description="Whether the plan goes back: only for a fault that would make the answer wrong."
    )


ROLE = Role(
    "plan_critique",
    "PlanCritique",
    "reviews the plan: {feedback}",
    PlanReview,
    fallback=PlanReview(feedback="", update_plan=False),
)


async def critique_plan(
    model: Model,
    context: PromptContext,
    question: str,
    steps: list[str],
    expected_format: str,
    assumptions: Sequence[str] = (),
) -> PlanReview:
    """Judge a plan, with what it assumes, against the question and the schema."""
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        steps=steps,
        expected_format=expected_format,
        assumptions=list(assumptions),
    )
