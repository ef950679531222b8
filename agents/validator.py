"""Validator: can this result be the answer? (ReCAPAgent-SQL, section 3.3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, computed_field

from quorum.agents.base import ask
from quorum.agents.prompting import show_row
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

SAMPLE_ROWS = 3  # ReCAPAgent-SQL, section 3.3.7: the first three rows
SMALL = 10  # a result of so few rows is shown whole
MAX_CELL = 200  # characters of a cell that the prompt shows


class Verdict(Form):
    """The Validator's judgement of a result."""

    reasoning: str = Field(default="", description="The check, in one sentence.")
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
        """Why the result is not accepted; empty where it is."""
        needless = ", ".join(self.columns_not_needed)
        parts = [self.suggest_fix, f"Columns not needed: {needless}." if needless else ""]
        empty = "The result is empty." if self.result_empty else "The result cannot be the answer."
        return "" if self.accepted else " ".join(filter(None, parts)) or self.reasoning or empty


ROLE = Role("validator", "Validator", "checks the result: {reasoning}", Verdict)


@dataclass(frozen=True)
class ColumnSummary:
    """A result column: name, type, and how many of the kept rows are NULL and distinct.

    ``distinct`` is None where values of the type cannot be compared.
    """

    name: str
    type: str
    nulls: int
    distinct: int | None


@dataclass(frozen=True)
class ResultSummary:
    """What the Validator sees of a result: all rows of a small one, else ``SAMPLE_ROWS``."""

    row_count: int
    truncated: bool
    columns: Sequence[ColumnSummary]
    sample_rows: Sequence[Sequence[Any]]


def shown(rows: int) -> int:
    """How many rows of a result with so many the Validator sees."""
    return rows if rows <= SMALL else SAMPLE_ROWS


async def validate(
    model: Model,
    dialect: str,
    question: str,
    sql: str,
    summary: ResultSummary,
    *,
    expected_format: str = "",
    schema: str = "",
    documents: str = "",
) -> Verdict:
    """Judge a result from its summary.

    Args:
        schema: Of the tables that the query uses; empty for none, as in the paper.
        documents: Those that the writer had.
    """
    return await ask(
        model,
        ROLE,
        dialect=dialect,
        question=question,
        sql=sql,
        expected_format=expected_format,
        schema=schema,
        documents=documents,
        row_count=summary.row_count,
        truncated=summary.truncated,
        columns=list(summary.columns),
        sample_rows=[show_row(row, MAX_CELL) for row in summary.sample_rows[: shown(summary.row_count)]],
    )
