"""Roles that judge a query or a result, each at temperature 0.

SQLCritique reviews a query before it runs, or with its result (ReCAPAgent-SQL, 3.3.3 and 3.3.6). Validator
reviews its result (3.3.7). Judge compares the answers of a close vote (ReFoRCE's first version, paper 003,
3.2.5).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, computed_field, model_validator

from quorum.agents.role import Form, Ours, Role


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


SQL_CRITIQUE = Role(
    "sql_critique",
    "SQLCritique",
    "reviews the query: {reasoning}",
    SqlReview,
    fallback=SqlReview(reasoning="", correct=True, sql=None),
    temperature=0.0,
)


class Verdict(Form):
    """The Validator's judgement of a result."""

    reasoning: Annotated[str, Ours()] = Field(default="", description="The check, in one sentence.")
    valid_result: bool = Field(description="Whether the result can be the answer.")
    columns_not_needed: list[str] = Field(
        default=[], description="Those that the question does not ask for; empty if there are none."
    )
    result_empty: bool = Field(default=False, description="Whether there are no rows, or nothing but NULLs.")
    suggest_fix: str = Field(
        default="", description="What to change, in one sentence; empty if the result can be the answer."
    )

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def accepted(self) -> bool:
        """True if the loop may end here: valid, not empty, nothing superfluous."""
        return self.valid_result and not self.result_empty and not self.columns_not_needed

    @computed_field  # type: ignore[prop-decorator]
    @property
    def objection(self) -> str:
        """The reason why the result is not accepted; empty if it is."""
        needless = ", ".join(self.columns_not_needed)
        parts = [self.suggest_fix, f"Columns not needed: {needless}." if needless else ""]
        empty = "The result is empty." if self.result_empty else "The result cannot be the answer."
        return "" if self.accepted else " ".join(filter(None, parts)) or self.reasoning or empty


VALIDATOR = Role(
    "validator", "Validator", "checks the result: {reasoning}", Verdict, schema=False, temperature=0.0
)

Label: TypeAlias = Literal["A", "B", "C", "D", "E", "F", "G", "H"]

LABELS: tuple[Label, ...] = get_args(Label)
"""Names of the answers that are compared; a prompt can hold no more than these."""

SAMPLE_ROWS = 5
"""Rows of each answer that are compared."""


class Judgement(Form):
    """The Judge's decision."""

    reason: str = Field(default="", description="The difference that decides, in three sentences at most.")
    choice: Literal[Label, "cannot tell"] = Field(
        description="The label of the right answer; `cannot tell` if the question fits several equally "
        "well, or none of them."
    )


JUDGE = Role(
    "judge",
    "Judge",
    "chooses {choice}: {reason}",
    Judgement,
    fallback=Judgement(reason="", choice="cannot tell"),
    temperature=0.0,
)
"""The last resort of a close vote. It sees the answers, never how many candidates gave each: the vote has
counted already, and a count invites to follow it. A model prefers the first, so their order says nothing."""
