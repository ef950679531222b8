"""ColumnExplorer: small queries that show what columns really hold (ReFoRCE, paper 000, 3.2.3, Algorithm 1).

The model writes up to ten queries in one call; the ExplorationCorrector mends those that fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Annotated

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role, usable
from quorum.agents.turns import ExplorationQuery
from quorum.knowledge import syntax
from quorum.tools.models import Model

MAX_QUERIES = 10  # ReFoRCE, Appendix C
ROW_LIMIT = 20  # rows a query asks for; ReFoRCE, Figure 4

PLAIN_TOPICS = ("Identifiers and quoting", "Strings", "Dates and time")
NESTED_TOPICS = ("JSON", "Arrays")
"""Topics of the dialect's reference that stand for the hints of ReFoRCE's Listing 1 and Figure 4."""


class Exploration(Form):
    """Queries from simple to nested."""

    queries: Annotated[list[ExplorationQuery], usable(ExplorationQuery)] = Field(
        default=[], description="From simple to nested."
    )


ROLE = Role("column_explorer", "ColumnExplorer", "wants to run {queries:query|queries}", Exploration)


def hints(dialect: str, *, nested: bool, plain: Sequence[str] = PLAIN_TOPICS) -> str:
    """The sections of the dialect's reference that exploration needs; reads files when first called.

    Args:
        nested: Whether the catalog has columns with paths inside.
        plain: Topics beside those of nested columns.
    """
    topics = (*plain, *(NESTED_TOPICS if nested else ()))
    return "\n\n".join(section.text for section in syntax.lookup(dialect, topics, k=len(topics)))


async def write_queries(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    syntax: str = "",
    rivals: Sequence[str] = (),
    differences: Sequence[str] = (),
    max_queries: int = MAX_QUERIES,
) -> list[ExplorationQuery]:
    """Queries to learn what the question's columns hold; at most ``max_queries``, no two the same.

    Args:
        syntax: Of the dialect, from ``hints``.
        rivals: Queries that answer the question differently, called A, B, … in this order;
            exploration may tell which is right.
        differences: Sentences on how their answers differ, which use these labels.
    """
    written = await ask(
        model,
        ROLE,
        context=context,
        question=question,
        syntax=syntax,
        rivals=dict(zip(ascii_uppercase, rivals, strict=False)),
        differences=list(differences),
        max_queries=max_queries,
        row_limit=ROW_LIMIT,
    )
    distinct = {" ".join(query.sql.split()): query for query in reversed(written.queries)}
    return list(reversed(distinct.values()))[:max_queries]
