"""SQLCritique: reviews a query before it runs, or with its result (ReCAPAgent-SQL, 3.3.3 and 3.3.6)."""

from __future__ import annotations

from pydantic import Field, model_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model


class SqlReview(Form):
    """The verdict over a query, with the corrected one if it is wrong."""

    reasoning: str = Field(
        default="", description="The check, in a sentence or two: the fault, or why the query is right."
    )
    correct: bool = Field(description="Whether the query may stay as it is.")
    sql: str | None = Field(default=None, description="The whole corrected query; null if it is correct.")

    @model_validator(mode="after")
    def _corrects_what_it_faults(self) -> SqlReview:
        if not self.correct and not (self.sql or "").strip():
            raise ValueError("a query that is not correct needs the corrected query in sql")
        return self


ROLE = Role(
    "sql_critique",
    "SQLCritique",
    "reviews the query: {reasoning}",
    SqlReview,
    fallback=SqlReview(reasoning="", correct=True, sql=None),
)


async def critique_sql(
    model: Model,
    context: PromptContext,
    question: str,
    sql: str,
    *,
    steps: list[str],
    expected_format: str,
    syntax: str = "",
    result: str = "",
) -> SqlReview:
    """Review ``sql``; the review carries a corrected query if it finds a fault.

    Args:
        result: What it returned, if it has run: columns, row count and first rows.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        sql=sql,
        steps=steps,
        expected_format=expected_format,
        syntax=syntax,
        result=result,
    )
