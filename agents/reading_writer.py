"""ReadingWriter: what else the question could mean, and the query of each such reading, in one call.

Who wrote the answer knows best what it rests on and can least tell whether that is what was meant: so a
colleague, who sees the answer and the writer's notes, decides what is open. The kinds of open questions in
its prompt are those of AMBROSIA (Saparina and Lapata, 2024: scope, attachment, vagueness), and measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.prompting import show_row
from quorum.agents.role import Form, NeededText, Role, SqlText, Summary, sentence, usable
from quorum.agents.turns import MAX_READINGS
from quorum.tools.models import Model

SAMPLE_ROWS = 10
Likely: TypeAlias = Literal["more", "as", "less"]
LIKELY = get_args(Likely)


class Reading(Form):
    """One definite other meaning of the question, and its query."""

    meaning: Annotated[NeededText, AfterValidator(sentence)] = Field(
        description='The question, said anew so that it can only mean this; never "X or Y".'
    )
    sql: SqlText = Field(description="The whole query of this reading.")
    summary: Summary = ""
    likely: Annotated[Likely, BeforeValidator(lambda said: said if said in LIKELY else "less")] = Field(
        default="less",
        description="Whether those who ask in these words mean this more often than what the colleague "
        "answers, as often, or less often.",
    )


class Readings(Form):
    """What else is open."""

    reasoning: str = Field(
        default="", description="Which words leave what open, or why nothing is; three sentences at most."
    )
    readings: Annotated[list[Reading], usable(Reading)] = Field(
        default_factory=list,
        description=f"The likeliest first, {MAX_READINGS} at most; empty if nothing is open.",
    )


ROLE = Role(
    "reading_writer",
    "ReadingWriter",
    "writes {readings:other reading|other readings}: {reasoning}",
    Readings,
)


async def write_readings(
    model: Model,
    context: PromptContext,
    question: str,
    sql: str,
    *,
    noted: Sequence[str],
    assumed: Sequence[str] = (),
    columns: Sequence[str],
    row_count: int,
    rows: Sequence[Sequence[Any]],
    expected_format: str = "",
) -> Readings:
    """Decide what ``question`` could mean beside what ``sql`` answers; at most ``MAX_READINGS`` readings.

    Args:
        noted: Other meanings that the query's writers named.
        assumed: What they decided without the question having said it.
        rows: The first of the query's result; ``SAMPLE_ROWS`` are shown at most.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    written = await ask(
        model,
        ROLE,
        context=context,
        question=question,
        sql=sql,
        noted=list(noted),
        assumed=list(assumed),
        columns=", ".join(columns),
        row_count=row_count,
        rows=[show_row(row) for row in rows[:SAMPLE_ROWS]],
        expected_format=expected_format,
    )
    return written.model_copy(update={"readings": written.readings[:MAX_READINGS]})
