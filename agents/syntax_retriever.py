"""Syntax Retriever: which topics of the dialect's reference are needed? (ReCAPAgent-SQL, 3.3.2)."""

from __future__ import annotations

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

MAX_TOPICS = 3


class SyntaxRequest(Form):
    """Topics to look up in the dialect's reference."""

    features: list[str] = Field(
        default=[], description="At most three topics, written as in the list; empty if none is needed."
    )


ROLE = Role(
    "syntax_retriever",
    "SyntaxRetriever",
    "asks for {features}",
    SyntaxRequest,
)


async def request_syntax(
    model: Model, dialect: str, question: str, steps: list[str], topics: list[str]
) -> list[str]:
    """Ask the model which of ``topics`` it wants to read; at most ``MAX_TOPICS`` are returned.

    The prompt carries no schema: what syntax a plan needs shows in the plan.
    """
    request = await ask(model, ROLE, question=question, steps=steps, topics=topics, dialect=dialect)
    return [feature for feature in request.features if feature.strip()][:MAX_TOPICS]
