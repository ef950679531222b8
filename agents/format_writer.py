"""FormatWriter: the answer's expected form, written before SQL (ReFoRCE's first version, paper 003, 3.2.2).

It keeps a long schema from leading the writer away from what was asked, and is repeated when a query
is refined.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model


def _some_columns(header: str) -> str:
    if not header.strip(" ,"):
        raise ValueError("the header names no column")
    return header.strip()


class AnswerFormat(Form):
    """What the result looks like as a CSV file."""

    header: Annotated[str, AfterValidator(_some_columns)] = Field(
        description="The columns, only those that the question asks for, as `name:type`, separated by "
        "commas, each type one of integer, real, text, date, datetime, boolean. A place given by coordinates "
        "has a column for each. Where a word of the question can mean two columns, name both."
    )
    rows: str = Field(
        default="",
        description="What one row stands for, and how many there are: one for a superlative or a single "
        "figure, a stated number, or one for each of something; then the order where the question fixes it.",
    )

    @property
    def text(self) -> str:
        """As the other agents' prompts show it."""
        return f"{self.header}; {self.rows.strip()}" if self.rows.strip() else self.header


ROLE = Role("format_writer", "FormatWriter", "expects {header}; {rows}", AnswerFormat)


async def write_format(model: Model, context: PromptContext, question: str) -> AnswerFormat:
    """Say which columns and rows the answer has."""
    return await ask(model, ROLE, context=context, question=question)
