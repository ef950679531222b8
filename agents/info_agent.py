"""InfoAgent: the words by which a question's columns are looked for (SQLAgent, paper 001, section 3.3).

The first half of its work; what it finds the ContextExpander completes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.agents.turns import Attempt
from quorum.tools.models import Model


class Keywords(Form):
    """What to look for."""

    keywords: list[str] = Field(
        min_length=1,
        max_length=12,
        description="Names and descriptions that the columns needed may have: what is asked for, what it is "
        "filtered, grouped or sorted by, and synonyms that a database would use. One to three words each.",
    )


ROLE = Role("info_agent", "InfoAgent", "looks for {keywords}", Keywords, sql=False)


async def find_keywords(
    model: Model,
    dialect: str,
    question: str,
    *,
    tables: Sequence[str] = (),
    documents: str = "",
    earlier: Sequence[str] = (),
    failed: Attempt | None = None,
) -> Keywords:
    """The question's keywords; after a failed round the secondary ones, that were overlooked.

    Args:
        tables: Names of the database's tables, the first ones.
        earlier: Keywords of the rounds before.
        failed: The last round's query, and what was wrong with it.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        ROLE,
        dialect=dialect,
        question=question,
        tables=list(tables),
        documents=documents,
        earlier=list(earlier),
        failed=failed,
    )
