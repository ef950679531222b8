"""SelfRefiner: repairs a failed query with hints for its kind of error (ReCAPAgent-SQL, 3.3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role, Said, SqlText
from quorum.agents.turns import Attempt, Finding
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind

MAX_ROUNDS = 5  # the paper leaves it open; ReFoRCE (000, Appendix B, Table 6) allows five iterations in all


class Refinement(Form):
    """A repaired query, or that nothing is the answer."""

    explanation: str = Field(default="", description="What was wrong, if anything, in one sentence.")
    sql: SqlText | None = Field(
        description="The whole query, different from every one shown; null only if a query ran and its "
        "empty result is the answer."
    )
    assumption: Said = Field(
        default=None,
        description="If the query now takes the question in another way: which, in one sentence; else null.",
    )


class Repair(Refinement):
    """A repaired query: of one that failed nothing can be confirmed."""

    sql: SqlText = Field(description="The whole query, different from every one shown.")


ROLE = Role("self_refiner", "SelfRefiner", "repairs it: {explanation}", Refinement)
REPAIRS = replace(ROLE, reply=Repair)


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
    plan: Sequence[str] = (),
    near_misses: Sequence[str] = (),
    earlier: Sequence[Attempt] = (),
    findings: Sequence[Finding] = (),
    differences: Sequence[str] = (),
) -> Refinement:
    """Repair ``sql``, which failed with ``error`` of the given kind.

    Args:
        plan: Steps, where the query is to follow one.
        near_misses: Of an empty result: how many rows each condition leaves.
        earlier: Attempts before this one that failed, were rejected or replaced, oldest first.
        findings, differences: As ``quorum.agents.sql_writer.write_sql``.
    """
    return await ask(
        model,
        ROLE if kind is ErrorKind.EMPTY_RESULT else REPAIRS,
        context=context,
        question=question,
        sql=sql,
        kind=kind.value,
        error=error,
        expected_format=expected_format,
        syntax=syntax,
        plan=list(plan),
        near_misses=list(near_misses),
        earlier=list(earlier),
        findings=list(findings),
        differences=list(differences),
    )
