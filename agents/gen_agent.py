"""GenAgent: the query, from a grounded schema and examples of this database (SQLAgent, paper 001, 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Role
from quorum.agents.turns import Attempt, Draft
from quorum.knowledge.triplets import Example
from quorum.tools.models import Model

ROLE = Role("gen_agent", "GenAgent", "{sql}{missing}", Draft)


async def write_sql(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    examples: Sequence[Example] = (),
    earlier: Sequence[Attempt] = (),
) -> Draft:
    """Write the query for ``question``.

    Args:
        context: Its schema is what the InfoAgent grounded.
        examples: The nearest last.
        earlier: Queries of earlier rounds, and what was wrong with each.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        ROLE,
        context=context,
        question=question,
        examples=list(examples),
        earlier=list(earlier),
    )
