"""Validator: can this result be the answer? (ReCAPAgent-SQL, section 3.3.7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from quorum.agents.base import ask
from quorum.tools.models import Model

SAMPLE_ROWS = 3  # ReCAPAgent-SQL, section 3.3.7: the first three rows
SMALL = 10  # a result of so few rows is shown whole
MAX_CELL = 200  # characters of a cell that the prompt shows


class Verdict(BaseModel):
    """The Validator's judgement of a result."""

    reasoning: str = Field(default="", description="What was checked, in one sentence.")
    valid_result: bool
    columns_not_needed: list[str] = Field(description="Columns that the question does not ask for.")
    result_empty: bool = Field(description="No rows, or nothing but NULLs.")
    suggest_fix: str = Field(description="What to change, in one sentence; empty if valid.")

    @property
    def accepted(self) -> bool:
        """True if the loop may end here: valid, not empty, nothing superfluous."""
        return self.valid_result and not self.result_empty and not self.columns_not_needed


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


def _show(row: Sequence[Any]) -> str:
    def cell(value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False, default=str)
        return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"

    return "[" + ", ".join(cell(value) for value in row) + "]"


async def validate(
    model: Model,
    dialect: str,
    question: str,
    sql: str,
    summary: ResultSummary,
    *,
    expected_format: str = "",
    schema: str = "",
) -> Verdict:
    """Judge a result from its summary.

    Args:
        schema: Of the tables that the query uses; empty for none, as in the paper.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        "validator",
        Verdict,
        dialect=dialect,
        question=question,
        sql=sql,
        expected_format=expected_format,
        schema=schema,
        row_count=summary.row_count,
        truncated=summary.truncated,
        columns=list(summary.columns),
        sample_rows=[_show(row) for row in summary.sample_rows[: shown(summary.row_count)]],
    )
