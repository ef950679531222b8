"""A recipe is data: which agents run, in which order, under which limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Recipe:
    """A named way of wiring the agents.

    Attributes:
        summary: One line for ``quorum recipes``.
        paper: The paper and section it implements.
        agents: Roles in the order in which they may run.
        wire: Makes the uncompiled graph (a LangGraph ``StateGraph``) of a recipe.
        plan_critique, syntax, sql_critique, validation, link_on_error: Switches of single agents.
        max_plans: Times a plan is written, the first included.
        max_refinements, max_actions, max_link_steps, max_validations: Limits of one candidate.
    """

    FIXED: ClassVar[frozenset[str]] = frozenset({"name", "summary", "paper", "agents", "wire"})

    name: str
    summary: str
    paper: str
    agents: tuple[str, ...]
    wire: Callable[[Recipe], Any]
    plan_critique: bool = True
    syntax: bool = True
    sql_critique: bool = True
    validation: bool = True
    link_on_error: bool = True
    max_plans: int = 3
    max_refinements: int = 5
    max_actions: int = 10
    max_link_steps: int = 30
    max_validations: int = 2
