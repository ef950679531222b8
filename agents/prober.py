"""Prober: before a query is written, or revised, small queries at once, each for one doubt.

After PExA (2604.22934), which covers a question by atomic queries that run in parallel. Quorum asks for them
only where there is a doubt to settle: to look always gave no more right answers than one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role, usable
from quorum.agents.turns import ExplorationQuery
from quorum.tools.models import Model

MAX_QUERIES = 6
ROW_LIMIT = 10


class Probes(Form):
    """Queries that run side by side."""

    queries: Annotated[list[ExplorationQuery], usable(ExplorationQuery)] = Field(
        default_factory=list,
        description=f"One for each doubt, {MAX_QUERIES} at most; empty if nothing here decides anything.",
    )


ROLE = Role("prober", "Prober", "asks {queries:small query|small queries}", Probes, fallback=Probes())


async def write_probes(
    model: Model, context: PromptContext, question: str, doubts: Sequence[str], *, sql: str = ""
) -> Probes:
    """At most ``MAX_QUERIES`` queries that settle those of the ``doubts`` which bear on the question.

    Args:
        doubts: What the profile of the schema, or a check of ``sql``, says of the data.
        sql: The query that was checked; empty where none is written yet.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    written = await ask(
        model,
        ROLE,
        context=context,
        question=question,
        doubts=list(doubts),
        sql=sql,
        max_queries=MAX_QUERIES,
        row_limit=ROW_LIMIT,
    )
    return Probes(queries=written.queries[:MAX_QUERIES])
