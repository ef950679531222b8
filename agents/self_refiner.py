"""SelfRefiner: repairs a failed query with hints for its kind of error (ReCAPAgent-SQL, 3.3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Role, SqlText
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind

MAX_ROUNDS = 5  # the paper leaves it open; ReFoRCE (000, section 4) allows five

HINTS: dict[ErrorKind, tuple[str, ...]] = {
    ErrorKind.REFUSED: (
        "Only one statement that reads is allowed; take out whatever the message names.",
        "Replace a refused function with a plain one of the dialect.",
    ),
    ErrorKind.SYNTAX: (
        "Look at the place named, and at what stands right before it.",
        "Check that brackets, quotes and commas match and that clauses stand in order.",
        "Use this dialect's own spelling of functions and literals.",
    ),
    ErrorKind.TABLE_NOT_FOUND: (
        "Take the table's name from the schema, with its schema or database if shown there.",
        "A CTE must be defined before it is used; check its name for typing errors.",
    ),
    ErrorKind.COLUMN_NOT_FOUND: (
        "Take the column's name from the schema; if it lives in another table, join that table.",
        "A string literal stands in single quotes; double quotes make it a column.",
        "A column of a subquery or CTE is visible outside only if that selects it.",
    ),
    ErrorKind.AMBIGUOUS_COLUMN: ("Qualify the column with the alias of the table that is meant.",),
    ErrorKind.TYPE_MISMATCH: (
        "Compare values of one type: cast one side, as the column's samples suggest.",
        "Text dates need parsing before they are compared or subtracted.",
    ),
    ErrorKind.FUNCTION: (
        "The function does not exist here, or takes other arguments; use this dialect's own.",
    ),
    ErrorKind.PERMISSION: ("Answer from other tables; this object may not be read.",),
    ErrorKind.TIMEOUT: (
        "Filter early, join on keys, and avoid joins that multiply rows.",
        "Aggregate before joining; a recursive query needs a bound.",
    ),
    ErrorKind.RESOURCES: ("Produce less: filter early, aggregate before joining, select fewer columns.",),
    ErrorKind.EMPTY_RESULT: (
        "Compare each filter's value with the samples: case, spelling, format of dates, blanks.",
        "Check that the join keys match and that no two conditions exclude each other.",
        "If you are sure that nothing fits, write the query another way to confirm it.",
    ),
    ErrorKind.UNAVAILABLE: ("The database did not answer; a cheaper query may get through.",),
    ErrorKind.OTHER: (
        "Simplify: rebuild the query from its smallest working part.",
        "Check every table and column against the schema.",
    ),
}


class Refinement(BaseModel):
    """A repaired query."""

    explanation: str = Field(description="What was wrong, if anything, in one sentence.")
    sql: SqlText = Field(description="The whole query, different from every one shown.")


ROLE = Role("self_refiner", "SelfRefiner", "repairs it: {explanation}", Refinement)


@dataclass(frozen=True)
class Attempt:
    """An earlier query and its error, so that it is not written again."""

    sql: str
    error: str


async def refine(
    model: Model,
    context: PromptContext,
    question: str,
    sql: str,
    *,
    kind: ErrorKind,
    error: str,
    expected_format: str = "",
    syntax: str = "",
    linked_schema: str = "",
    earlier: Sequence[Attempt] = (),
) -> Refinement:
    """Repair ``sql``, which failed with ``error`` of the given kind.

    Args:
        linked_schema: What the SchemaLinker found after a schema error, compact form.
        earlier: Attempts before this one, oldest first.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        sql=sql,
        kind=kind.value,
        error=error,
        hints=list(HINTS[kind]),
        expected_format=expected_format,
        syntax=syntax,
        linked_schema=linked_schema,
        earlier=list(earlier),
    )
