"""Describer: the description U of a query that ran, and whether anybody would ask it (paper 001, 3.2).

It is the evaluator of the tree search: a query that is sound and pointless becomes no triplet.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model


class Description(Form):
    """What a query answers."""

    description: str = Field(
        min_length=1,
        description="The question that the query answers, as somebody who knows the subject and no SQL would "
        "ask it: what it shows, every condition, and the order if there is one, in plain words.",
    )
    useful: bool = Field(
        description="True if somebody who works with this data may well ask it. False for a mere dump of "
        "columns, for ids that nobody knows by heart, for a join that changes nothing, or if the rows show "
        "that the query does not mean what it seems to (unrelated things joined, a sum of ids)."
    )
    objection: str = Field(default="", description="If not useful: why, in one sentence; else empty.")


ROLE = Role("describer", "Describer", "{description}{objection}", Description, sql=False)


async def describe(
    model: Model,
    dialect: str,
    schema: str,
    sql: str,
    rows: Sequence[str],
    row_count: int,
    *,
    cut: bool = False,
) -> Description:
    """Describe a query.

    Args:
        schema: Text of the tables that it reads.
        rows: The first rows of its result, with personal data masked; the first line names the columns.
        row_count: Of the whole result, as far as it was read: ``cut`` says that there is more.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model, ROLE, dialect=dialect, schema=schema, sql=sql, rows=list(rows), row_count=row_count, cut=cut
    )
