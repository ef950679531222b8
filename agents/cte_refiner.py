"""CteRefiner: judges a query stage by stage (ReFoRCE's first version, paper 003, 3.2.4).

The query is split into its CTEs (``quorum.tools.sql.stages``), each is run, and the model accepts its
result or rewrites the stage: an error is found where it begins.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

MAX_REWRITES = 5  # of one query, over all its stages; the paper leaves it open


class StageReview(Form):
    """A stage accepted, or rewritten."""

    reasoning: str = Field(default="", description="What the result or the error shows, in one sentence.")
    accept: bool = Field(description="Whether the stage stands; one that failed does not.")
    sql: str | None = Field(
        default=None, description="If it does not stand: the SELECT that takes its place; else null."
    )

    @model_validator(mode="after")
    def _rewrites_what_it_refuses(self) -> StageReview:
        if not self.accept and not (self.sql or "").strip():
            raise ValueError("a stage that is not accepted needs its new sql")
        return self


ROLE = Role("cte_refiner", "CteRefiner", "reviews a stage: {reasoning}", StageReview)


async def review_stage(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    stage: str,
    body: str,
    before: str = "",
    after: str = "",
    result: str = "",
    error: str = "",
    expected_format: str = "",
    last: bool = False,
) -> StageReview:
    """Judge one stage of a query from its result, or from the error that it raised.

    Args:
        stage: The CTE's name; for the last stage, the query's final SELECT, any short name.
        body: The stage's own SELECT.
        before, after: The query's text around it.
        expected_format: Of the query's result, whichever stage it is.
        result: The first rows as text.
        last: Whether the stage gives the answer itself.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        stage=stage,
        body=body,
        before=before,
        after=after,
        result=result,
        error=error,
        expected_format=expected_format,
        last=last,
    )
