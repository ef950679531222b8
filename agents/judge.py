"""Judge: which of the answers that disagree is the right one?

The last resort of a vote that is close. The Judge sees what the answers say, never how many
candidates gave them: the vote has counted already, and a count invites to follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.prompting import show_row
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

Label: TypeAlias = Literal["A", "B", "C", "D", "E", "F", "G", "H"]

LABELS: tuple[Label, ...] = get_args(Label)
"""What the answers are called; no more than these are compared, which a prompt can hold."""

CANNOT_TELL: Literal["cannot tell"] = "cannot tell"

SAMPLE_ROWS = 5


class Judgement(Form):
    """The Judge's decision."""

    reason: str = Field(default="", description="The difference that decides, in three sentences at most.")
    choice: Literal[Label, "cannot tell"] = Field(
        description="The label of the right answer; `cannot tell` if the question fits several equally "
        "well, or none of them."
    )


ROLE = Role(
    "judge",
    "Judge",
    "chooses {choice}: {reason}",
    Judgement,
    fallback=Judgement(reason="", choice=CANNOT_TELL),
)


@dataclass(frozen=True)
class Rival:
    """One of the answers: a query and the beginning of its result.

    ``sample_rows`` beyond ``SAMPLE_ROWS`` are not shown.
    """

    sql: str
    columns: Sequence[str]
    row_count: int
    sample_rows: Sequence[Sequence[Any]]


async def judge(
    model: Model,
    context: PromptContext,
    question: str,
    rivals: Sequence[Rival],
    differences: Sequence[str],
    *,
    expected_format: str = "",
) -> Judgement:
    """Decide between two answers or more.

    A model prefers what stands first: give the rivals in an order that says nothing about them.

    Args:
        rivals: Called ``LABELS`` in this order.
        differences: Sentences on how they differ, which use these labels.
    """
    shown = [
        {
            "label": label,
            "sql": rival.sql,
            "row_count": rival.row_count,
            "columns": ", ".join(rival.columns),
            "rows": [show_row(row) for row in rival.sample_rows[:SAMPLE_ROWS]],
        }
        for label, rival in zip(LABELS, rivals, strict=False)
    ]
    judged = await ask(
        model,
        ROLE,
        context=context,
        question=question,
        expected_format=expected_format,
        rivals=shown,
        differences=list(differences),
    )
    known = {*LABELS[: len(rivals)], CANNOT_TELL}
    return judged if judged.choice in known else judged.model_copy(update={"choice": CANNOT_TELL})
