"""Simulator: the query of a tree search's new state (SQLAgent, paper 001, section 3.2, SQL Simulation)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role, SqlText
from quorum.tools.models import Model


class Simulation(Form):
    """A query that does what the steps say."""

    sql: SqlText = Field(description="The whole query.")


ROLE = Role("simulator", "Simulator", "{sql}", Simulation)


async def write_query(
    model: Model, dialect: str, schema: str, steps: Sequence[str], *, before: str = ""
) -> Simulation:
    """Write the query of the steps.

    Args:
        schema: Text of the tables in the steps.
        before: The query of all steps but the last, which worked; empty for a first step.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(model, ROLE, dialect=dialect, schema=schema, steps=list(steps), before=before)
