"""ToolUser: one step of a ReAct loop over a database: thought, action, observation.

The loop of Spider-Agent, the baseline of Spider 2.0 (paper 000, sections 3.1 and 4.1), with three tools:
run a query, read the schema files, end with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Assumptions, Form, Missing, Ordered, Role, Summary
from quorum.agents.turns import Turn
from quorum.tools.models import Model

MAX_STEPS = 20
"""Steps of one answer, Spider-Agent's own limit."""

Tool = Literal["sql", "look", "answer"]


class ToolStep(Form):
    """A thought and the one action that follows from it."""

    thought: str = Field(
        default="", description="What is known and what is missing, in two sentences at most."
    )
    action: Tool
    sql: str | None = Field(
        default=None, description="One whole query, for action sql and mostly for answer; else null."
    )
    command: str | None = Field(default=None, description="The command, for action look; else null.")
    assumptions: Assumptions = Field(default_factory=list)
    missing: Missing = None
    summary: Summary = ""
    ordered: Ordered = False

    @model_validator(mode="after")
    def _has_its_argument(self) -> ToolStep:
        if self.action == "sql" and not self.text:
            raise ValueError("action sql needs the query in sql")
        if self.action == "look" and not self.text:
            raise ValueError("action look needs a command")
        if self.action == "answer" and self.text and self.missing:
            raise ValueError(
                "answer with sql, missing null, or with missing, sql null: only one can be meant"
            )
        return self

    @property
    def text(self) -> str:
        """The action's argument; empty for an answer that names no query."""
        return ((self.command if self.action == "look" else self.sql) or "").strip()


ROLE = Role("tool_user", "ToolUser", "{action}: {sql}{command}{missing}", ToolStep)


async def next_step(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    history: Sequence[Turn] = (),
    steps_left: int = MAX_STEPS,
    documents: bool = False,
    seen: bool = False,
) -> ToolStep:
    """Take the next step from everything seen so far.

    From step to step the prompt only grows at its end, so that providers cache what was there before.

    Args:
        steps_left: This one included.
        documents: Whether there are any beside the schema files, under ``docs/``.
        seen: An answer's query is run and seen before it counts.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        history=list(history),
        steps_left=steps_left,
        documents=documents,
        seen=seen,
    )
