"""SqlWriter: the whole query in one call, from schema and question.

Schema, sample rows and demonstrations make PreSQL and PostSQL of the SSEV pipeline (paper 004, section
3.1.1); an expected format and findings make the generation of ReFoRCE (paper 000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Role
from quorum.agents.turns import Draft, Finding
from quorum.knowledge.demonstrations import Demonstration
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models import Model

Style: TypeAlias = Literal["", "direct", "decomposed", "plan-led"]
"""How to approach the query: as the model likes, in one piece, in CTEs, along a plan."""

APPROACHES: dict[str, str] = {
    "": "",
    "direct": "Write it directly: no more subqueries and no more work than the question needs.",
    "decomposed": "Write it in steps: CTEs with one small task and a telling name each, then a SELECT that "
    "gives the answer.",
    "plan-led": "Follow the plan step by step; say in the reasoning where you had to depart from it.",
}


ROLE = Role("sql_writer", "SqlWriter", "{sql}{missing}", Draft)


async def write_sql(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    expected_format: str = "",
    plan: Sequence[str] = (),
    syntax: str = "",
    rows: str = "",
    demonstrations: Sequence[Demonstration] = (),
    findings: Sequence[Finding] = (),
    differences: Sequence[str] = (),
    style: Style = "",
) -> Draft:
    """Write the query for ``question``. What is empty does not appear in the prompt.

    Args:
        plan: Its steps, in order.
        rows: A few rows of each table as text (``quorum.knowledge.sample_rows``).
        demonstrations: The least similar first, so that the nearest stands next to the question.
        findings: What exploration found, in order.
        differences: Sentences on how earlier answers disagree, which exploration was aimed at.
        style: Makes candidates of one model differ; ``plan-led`` needs a plan.

    Raises:
        ConfigurationError: The style is unknown, or it is ``plan-led`` without a plan.
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    if style not in APPROACHES:
        raise ConfigurationError(
            f"There is no style {style!r}.", hint=f"Known: {', '.join(filter(None, APPROACHES))}."
        )
    if style == "plan-led" and not plan:
        raise ConfigurationError("The style plan-led needs a plan.", hint="Plan first, or write directly.")
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        expected_format=expected_format,
        plan=list(plan),
        syntax=syntax,
        rows=rows,
        demonstrations=list(demonstrations),
        findings=list(findings),
        differences=list(differences),
        approach=APPROACHES[style],
    )
