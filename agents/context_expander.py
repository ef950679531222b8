"""ContextExpander: what a retrieved schema lacks to be joined (SQLAgent, paper 001, 3.3 and appendix B.2).

The second half of the InfoAgent's work.
"""

from __future__ import annotations

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model


class Additions(Form):
    """Columns that the context lacks."""

    reasoning: str = Field(default="", description="How the tables needed are joined; two sentences at most.")
    add: list[str] = Field(
        default=[],
        description="`table.column` of what is missing, spelt as the tables show it: keys to "
        "join by, and columns that the question needs; empty if nothing is.",
    )


ROLE = Role("context_expander", "ContextExpander", "adds {add}: {reasoning}", Additions, sql=False)


async def expand(
    model: Model,
    dialect: str,
    question: str,
    *,
    schema: str,
    found: str,
    more_tables: str,
    documents: str = "",
) -> Additions:
    """Name what is missing.

    Args:
        schema: Text of the tables found, with all their columns.
        found: Names of the columns that were found in them.
        more_tables: Text of further tables that may be needed.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        ROLE,
        dialect=dialect,
        question=question,
        schema=schema,
        found=found,
        more_tables=more_tables,
        documents=documents,
    )
