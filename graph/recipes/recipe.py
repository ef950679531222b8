"""A recipe is data: which agents run, in which order, under which limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from graph.options import RunOptions
from knowledge.errors import ConfigurationError

MOST = 100
"""No limit of a recipe may be set higher."""


@dataclass(frozen=True)
class Recipe:
    """A named way of wiring the agents.

    Attributes:
        summary: One line for ``quorum recipes``.
        paper: The paper and section it implements.
        agents: Roles in the order in which they may run.
        wire: Makes the uncompiled graph (a LangGraph ``StateGraph``) of a recipe, with a context schema.
        plan_critique, syntax, sql_critique, validation, link_on_error: Switches of single agents.
        max_plans: Times a plan is written, the first included.
        max_refinements, max_actions, max_link_steps, max_validations: Limits of one candidate.
    """

    FIXED: ClassVar[frozenset[str]] = frozenset({"name", "summary", "paper", "agents", "wire"})

    name: str
    summary: str
    paper: str
    agents: tuple[str, ...]
    wire: Callable[[Recipe, type[RunOptions]], Any]
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

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name not in self.FIXED:
                self._check(item.name, getattr(self, item.name))

    def _check(self, name: str, value: Any) -> None:
        if not name.startswith("max_"):
            if not isinstance(value, bool):
                raise ConfigurationError(f"The switch {name} is {value!r}; it is true or false.")
            return
        least = 1 if name in ("max_plans", "max_actions") else 0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
            raise ConfigurationError(f"The limit {name} is {value!r}; it is a number from {least} to {MOST}.")

    @property
    def recursion_limit(self) -> int:
        """Steps that a run, or one candidate's branch, may take; a faulty loop ends there."""
        run = 2 * self.max_plans + 20
        return max(run, 4 * (self.max_actions + self.max_refinements) + 20)
