"""Action: predicts the next action of a candidate (ReCAPAgent-SQL, section 3.3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Missing, Ordered, Role, Summary
from quorum.agents.turns import Finding, Turn
from quorum.tools.models import Model

ActionKind = Literal["sql", "look", "terminate"]


class Action(Form):
    """One step towards the answer."""

    thought: str = Field(default="", description="Why this step, in one sentence.")
    action: ActionKind
    sql: str | None = Field(default=None, description="The complete query, for action sql; else null.")
    command: str | None = Field(default=None, description="The command, for action look; else null.")
    missing: Missing = None
    summary: Summary = ""
    ordered: Ordered = False

    @model_validator(mode="after")
    def _has_its_argument(self) -> Action:
        if self.action == "sql" and not (self.sql or "").strip():
            raise ValueError("action sql needs the query in sql")
        if self.action == "look" and not (self.command or "").strip():
            raise ValueError("action look needs a command")
        return self

    @property
    def text(self) -> str:
        """What is to be done, as one string."""
        return {"sql": self.sql or "", "look": self.command or "", "terminate": ""}[self.action]


ROLE = Role("action", "Action", "{action}: {sql}{command}{missing}", Action)


async def predict(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    steps: list[str],
    expected_format: str,
    syntax: str = "",
    history: Sequence[Turn] = (),
    steps_left: int = 1,
    findings: Sequence[Finding] = (),
    differences: Sequence[str] = (),
) -> Action:
    """Predict the next action from the plan and everything seen so far.

    Args:
        findings: What exploration found, in order.
        differences: Sentences on how earlier answers disagree, which exploration was aimed at.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        steps=steps,
        expected_format=expected_format,
        syntax=syntax,
        history=list(history),
        steps_left=steps_left,
        findings=list(findings),
        differences=list(differences),
    )
