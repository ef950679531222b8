"""Roles that rewrite a query in the light of its error, its result, or an objection.

SelfRefiner repairs a failed query (ReCAPAgent-SQL, 3.3.6). SelfChecker answers again, and CteRefiner repairs
stage by stage (ReFoRCE's first version, paper 003, 3.2.4). Reviser answers a reviewer's objection (ours).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from quorum.agents.role import Form, Ours, Role, Said, SqlText, Summary

MAX_REFINEMENTS = 5
"""Repairs of a candidate. The paper leaves it open; ReFoRCE (000, App. B, Table 6) allows five iterations."""

MAX_REWRITES = 5
"""Rewrites of one query, over all its stages; the paper leaves it open."""


class Refinement(Form):
    """A repaired query, or that nothing is the answer."""

    explanation: Annotated[str, Ours()] = Field(
        default="", description="What was wrong, if anything, in one sentence."
    )
    sql: SqlText | None = Field(
        description="The whole query, different from every one shown; null only if a query ran and its "
        "empty result is the answer."
    )
    assumption: Annotated[Said, Ours()] = Field(
        default=None,
        description="If the query now takes the question in another way: which, in one sentence; else null.",
    )


class Repair(Refinement):
    """A repaired query: of one that failed nothing can be confirmed."""

    sql: SqlText = Field(description="The whole query, different from every one shown.")


SELF_REFINER = Role("self_refiner", "SelfRefiner", "repairs it: {explanation}", Refinement)
FAILURE_REFINER: Role[Refinement] = replace(SELF_REFINER, reply=Repair)
"""The SelfRefiner for a query that failed."""


class SecondAnswer(Form):
    """The query that the model trusts now; an answer counts once the same plausible result came twice."""

    reasoning: str = Field(default="", description="What the result shows, in one sentence.")
    sql: SqlText = Field(
        description="The whole query that you trust now: improved where something is wrong; the same "
        "again, unchanged, if all is right."
    )


SELF_CHECKER = Role("self_checker", "SelfChecker", "looks again: {reasoning}", SecondAnswer)


class StageReview(Form):
    """A stage accepted, or rewritten: an error is found where it begins."""

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


CTE_REFINER = Role("cte_refiner", "CteRefiner", "reviews a stage: {reasoning}", StageReview, temperature=0.0)


class Revision(Form):
    """The revised query, or why the query stays."""

    explanation: str = Field(default="", description="Whether the objection holds, and why, in one sentence.")
    sql: str | None = Field(description="The whole revised query; null if the query stands.")
    summary: Summary = ""

    @field_validator("sql")
    @classmethod
    def _stripped(cls, sql: str | None) -> str | None:
        return (sql or "").strip() or None


REVISER = Role(
    "reviser",
    "Reviser",
    "weighs the objection: {explanation}",
    Revision,
    fallback=Revision(explanation="", sql=None),
    temperature=0.0,
)
