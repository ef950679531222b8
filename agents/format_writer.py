"""FormatWriter: the answer's expected form, said before any SQL (ReFoRCE's first version, paper 003, 3.2.2).

It keeps a long schema from leading the writer away from what was asked, and is repeated when a query
is refined.
"""

from __future__ import annotations

from pydantic import BaseModel, Field, field_validator

from quorum.agents.base import PromptContext, ask
from quorum.tools.models import Model


class AnswerFormat(BaseModel):
    """What the result looks like as a CSV file."""

    header: str = Field(description="The result's CSV header: column names, separated by commas.")
    rows: str = Field(description="What one row stands for, how many there are, and the order where fixed.")

    @field_validator("header")
    @classmethod
    def _some_columns(cls, header: str) -> str:
        if not header.strip(" ,"):
            raise ValueError("the header names no column")
        return header.strip()

    @property
    def text(self) -> str:
        """As the other agents' prompts show it."""
        return f"{self.header}; {self.rows.strip()}" if self.rows.strip() else self.header


async def write_format(model: Model, context: PromptContext, question: str) -> AnswerFormat:
    """Say which columns and rows the answer has.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(model, "format_writer", AnswerFormat, context=context, question=question)
