"""SelfChecker: answers again in the light of a result (ReFoRCE's first version, paper 003, 3.2.4).

An answer counts once the same plausible result has come twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role, SqlText
from quorum.agents.turns import Finding
from quorum.tools.models import Model


class SecondAnswer(Form):
    """The query that the model trusts now."""

    reasoning: str = Field(default="", description="What the result shows, in one sentence.")
    sql: SqlText = Field(
        description="The whole query that you trust now: improved where something is wrong; the same "
        "again, unchanged, if all is right."
    )


ROLE = Role("self_checker", "SelfChecker", "looks again: {reasoning}", SecondAnswer)


@dataclass(frozen=True)
class Try:
    """An earlier query and what came of it, as text."""

    sql: str
    result: str


async def answer_again(
    model: Model,
    context: PromptContext,
    question: str,
    sql: str,
    result: str,
    *,
    expected_format: str = "",
    earlier: Sequence[Try] = (),
    findings: Sequence[Finding] = (),
    differences: Sequence[str] = (),
) -> SecondAnswer:
    """Show a query's result and ask for the query that answers the question.

    Args:
        result: What ``sql`` returned, as the text of ``quorum.tools.results.excerpt``.
        earlier: Queries before this one, oldest first.
        findings, differences: As ``quorum.agents.sql_writer.write_sql``.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        sql=sql,
        result=result,
        expected_format=expected_format,
        earlier=list(earlier),
        findings=list(findings),
        differences=list(differences),
    )
