"""The role that tells what a turn of a conversation asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from quorum.agents.role import Form, NeededText, Role, all_said, said


class View(Form):
    """Another look at rows that are there: fewer, sorted, fewer columns, or drawn."""

    first: int | None = Field(default=None, gt=0, description="How many rows; null for all.")
    sort_by: Annotated[str, BeforeValidator(lambda text: said(text) or "")] = Field(
        default="", description="The result's column to sort by first; empty to keep the order."
    )
    descending: bool = Field(default=False, description="Whether the largest come first.")
    columns: list[str] = Field(
        default_factory=list, description="The result's columns to show; empty for all."
    )
    chart: Literal["", "bar", "line", "point"] = Field(default="", description="How to draw it, if asked.")


class Rewritten(Form):
    """A turn of a conversation, as somebody can answer it who has not heard the conversation."""

    reasoning: str = Field(default="", description="What the turn refers to; two sentences at most.")
    ask: Literal["question", "view", "words"]
    question: NeededText = Field(
        description="The question that stands alone; for a view or words the one whose query would show it."
    )
    view: View = Field(default_factory=View, description="For ask view; else null, false and empty values.")
    words: Annotated[str, BeforeValidator(lambda text: said(text) or "")] = Field(
        default="", description="For ask words: the reply, in four sentences at most; else empty."
    )
    settled: Annotated[list[str], BeforeValidator(all_said)] = Field(
        default_factory=list,
        description="What the person has settled for the rest of the conversation, such as which reading is "
        "meant: what is listed as settled and still holds, and what this turn settles; one sentence each.",
    )


QUESTION_REWRITER = Role(
    "question_rewriter",
    "QuestionRewriter",
    "takes the turn for a {ask}: {question}",
    Rewritten,
    sql=False,
    schema=False,
    temperature=0.0,
)
"""It sees the conversation and nothing of the database, so that it can add nothing to a question."""
