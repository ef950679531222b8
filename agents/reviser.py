"""Reviser: answers a reviewer's objection to a result, with another query or with why the query stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.prompting import show_row
from quorum.agents.role import Form, Role, Summary
from quorum.tools.models import Model

SAMPLE_ROWS = 10  # rows of the result that the prompt shows


class Revision(Form):
    """What becomes of the query."""

    explanation: str = Field(default="", description="Whether the objection holds, and why, in one sentence.")
    sql: str | None = Field(description="The whole revised query; null if the query stands.")
    summary: Summary = ""

    @field_validator("sql")
    @classmethod
    def _stripped(cls, sql: str | None) -> str | None:
        return (sql or "").strip() or None


ROLE = Role(
    "reviser",
    "Reviser",
    "weighs the objection: {explanation}",
    Revision,
    fallback=Revision(explanation="", sql=None),
)


async def revise(
    model: Model,
    context: PromptContext,
    question: str,
    sql: str,
    objection: str,
    *,
    columns: Sequence[str],
    row_count: int,
    rows: Sequence[Sequence[Any]],
    expected_format: str = "",
    checked: bool = False,
) -> Revision:
    """Weigh ``objection`` and revise ``sql`` if it holds.

    Args:
        rows: The first of the result; ``SAMPLE_ROWS`` are shown at most.
        checked: ``objection`` is what queries found in the data, no reviewer's opinion.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        sql=sql,
        objection=objection,
        columns=", ".join(columns),
        row_count=row_count,
        rows=[show_row(row) for row in rows[:SAMPLE_ROWS]],
        expected_format=expected_format,
        checked=checked,
    )
