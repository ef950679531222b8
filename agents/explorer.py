"""Explorer: policy and evaluator of the tree search over a database (SQLAgent, paper 001, section 3.2).

It chooses which query states grow, and by which of the seven actions (appendix E).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

ActionName: TypeAlias = Literal[
    "select_column", "add_predicate", "join", "aggregate", "group_by", "order_by", "having"
]
"""Appendix E: Select Unused Column, Add Predicate Constraint, Introduce Join, Apply Aggregation Function, Add
Group By Clause, Add Ordering Clause, Add Having Clause."""

WIDTH = 6
"""Columns of one action at most (the paper's takes one: a wide table would use up the attempts)."""


class Action(Form):
    """One action on one query state."""

    state: int = Field(description="The number of the state that it is added to; 0 for a new query.")
    action: ActionName
    columns: list[str] = Field(
        min_length=1,
        max_length=WIDTH,
        description="`table.column` as the schema spells them. For join exactly two, that are equal: one of "
        "a table in the state, then one of the new table.",
    )
    detail: str = Field(
        default="",
        description="For add_predicate and having the comparison, for aggregate and having the function, for "
        "order_by the direction, in a few words; else empty.",
    )


class Choice(Form):
    """The actions to try next."""

    reasoning: str = Field(
        default="", description="What they will teach about the database; two sentences at most."
    )
    actions: list[Action] = Field(min_length=1)


ROLE = Role("explorer", "Explorer", "{actions:action|actions}: {reasoning}", Choice, sql=False)


@dataclass(frozen=True)
class StateText:
    """A query state as the Explorer sees it.

    Attributes:
        steps: Its actions in words.
        question: That its query answers.
        note: What came of actions that were added to it.
    """

    number: int
    steps: Sequence[str]
    question: str = ""
    note: str = ""


async def choose_actions(
    model: Model,
    dialect: str,
    schema: str,
    states: Sequence[StateText],
    *,
    unused: Sequence[str],
    feedback: Sequence[str],
    wanted: int,
    described: bool = False,
) -> Choice:
    """Choose up to ``wanted`` actions.

    Args:
        schema: Text of the tables within reach.
        unused: A line for each table with the columns that no triplet uses yet, described ones first:
            ``table: column, column``.
        feedback: What worked and what failed on these tables, latest last.
        described: Some columns have a description.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        ROLE,
        dialect=dialect,
        schema=schema,
        states=list(states),
        unused=list(unused),
        feedback=list(feedback),
        wanted=wanted,
        described=described,
    )
