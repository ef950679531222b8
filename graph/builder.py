"""The graph as a LangGraph object, for scripts, the front door and LangGraph Studio."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import STATE_TYPES, RunInput, RunOutput, RunState

Graph = CompiledStateGraph[RunState, Any, RunInput, RunOutput]


def build_graph(
    recipe: str | Recipe = "quorum",
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    options: type[RunOptions] = RunOptions,
) -> Graph:
    """Compile a recipe's graph.

    Its input is ``{"question": …}``, its context ``quorum.graph.options.RunOptions`` (or a dict of
    them) or an open ``quorum.graph.context.Context``, its output ``{"answer": …}``, a
    ``quorum.graph.answer.Answer`` as a dict.

    Args:
        recipe: A name, or what ``find_recipe(name, switches)`` returns.
        checkpointer: The types of the state are added to what its serialiser may load.
        options: The context schema, for other defaults.

    Raises:
        ConfigurationError: There is no such recipe.
    """
    found = find_recipe(recipe) if isinstance(recipe, str) else recipe
    compiled = _compiled(found, options)
    if checkpointer is None:
        return compiled
    types = [(kind.__module__, kind.__name__) for kind in STATE_TYPES]
    return compiled.copy({"checkpointer": checkpointer.with_allowlist(types)})


@lru_cache(maxsize=32)
def _compiled(recipe: Recipe, options: type[RunOptions]) -> Graph:
    """Compiling takes tens of milliseconds, so each recipe is compiled once."""
    compiled = recipe.wire(recipe, options).compile(name=recipe.name)
    return compiled.with_config(recursion_limit=recipe.recursion_limit)  # type: ignore[no-any-return]
