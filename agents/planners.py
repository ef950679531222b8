"""Roles that work before any SQL: the plan, its critique, syntax to look up, the answer's form.

Planner, PlanCritique and SyntaxRetriever are ReCAPAgent-SQL's (paper 004, 3.3.1 to 3.3.3), FormatWriter is of
ReFoRCE's first version (paper 003, 3.2.2).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from quorum.agents.role import Assumptions, Form, Role

MAX_PLAN_REVIEWS = 3  # ReCAPAgent-SQL, section 3.3: critiqued and refined at most three times

MAX_TOPICS = 3


def _some_steps(steps: list[str]) -> list[str]:
    kept = [step.strip() for step in steps if step.strip()]
    if not kept:
        raise ValueError("the plan has no steps")
    return kept


class Plan(Form):
    """The steps to an answer, before any SQL is written."""

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


PLANNER = Role("planner", "Planner", "{steps:step|steps}, to give {expected_format}", Plan)


class PlanReview(Form):
    """The verdict over a plan."""

    feedback: str = Field(default="", description="What to change; empty if the plan passes.")
    update_plan: bool = Field(
        description="Whether the plan goes back: it lacks or mistakes something, or can be misread."
    )


PLAN_CRITIQUE = Role(
    "plan_critique",
    "PlanCritique",
    "reviews the plan: {feedback}",
    PlanReview,
    fallback=PlanReview(feedback="", update_plan=False),
)


def _first_topics(features: list[str]) -> list[str]:
    return [feature for feature in features if feature.strip()][:MAX_TOPICS]


class SyntaxRequest(Form):
    """The syntax to look up, in the model's own words (ReCAPAgent-SQL, Figure 11)."""

    features: Annotated[list[str], AfterValidator(_first_topics)] = Field(
        default=[],
        description="At most three functions, clauses or literals, each in a few words that its "
        "documentation would use; empty if none is needed.",
    )


SYNTAX_RETRIEVER = Role(
    "syntax_retriever", "SyntaxRetriever", "asks for {features}", SyntaxRequest, schema=False
)
"""Its prompt shows no schema: the plan tells which syntax is needed."""


def _some_columns(header: str) -> str:
    if not header.strip(" ,"):
        raise ValueError("the header names no column")
    return header.strip()


class AnswerFormat(Form):
    """The columns and rows of the result, as a CSV file would have them.

    Saying it first keeps a long schema from leading the writer away from the question.
    """

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
        """One line for the other roles' prompts."""
        return f"{self.header}; {self.rows.strip()}" if self.rows.strip() else self.header


FORMAT_WRITER = Role("format_writer", "FormatWriter", "expects {header}; {rows}", AnswerFormat)
