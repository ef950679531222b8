"""The graph as a LangGraph object, for scripts, the front door and LangGraph Studio."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from quorum.graph.node_context import OTHER_RECIPE
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe, recipe_of
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import CandidateState, RunInput, RunOutput, RunState, classes_in
from quorum.knowledge.errors import ConfigurationError

Graph = CompiledStateGraph[RunState, Any, RunInput, RunOutput]


def build_graph(
    recipe: str | Recipe = "",
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    options: type[RunOptions] | RunOptions = RunOptions,
) -> Graph:
    """Compile a recipe's graph.

    Its input is ``{"question": …}``, its context ``quorum.graph.options.RunOptions`` (or a dict of
    them) or an open ``quorum.graph.context.Context``, its output ``{"answer": …}``, a
    ``quorum.graph.answer.Answer`` as a dict.

    Args:
        recipe: A name, or what ``find_recipe(name, switches)`` returns; by default that of ``options``.
        checkpointer: The types of the state are added to what its serialiser may load.
        options: The context schema, for other defaults; or the options of every run, which make the graph
            one that needs no context: a node of any other graph, say.

    Raises:
        ConfigurationError: There is no such recipe, or ``options`` have another one.
    """
    if isinstance(options, RunOptions):
        found = recipe_of(options)
        if recipe not in ("", found.name, found):
            raise ConfigurationError(OTHER_RECIPE, hint="Name it in the options, with its switches.")
        compiled = _compiled.__wrapped__(replace(found, bound=options), type(options))
    else:
        found = find_recipe(recipe or "quorum") if isinstance(recipe, str) else recipe
        compiled = _compiled(found, options)
    if checkpointer is None:
        return compiled
    kinds = classes_in(compiled.builder.state_schema, CandidateState)  # type: ignore[arg-type]  # classes hash
    types = [(kind.__module__, kind.__name__) for kind in kinds]
    return compiled.copy({"checkpointer": checkpointer.with_allowlist(types)})


@lru_cache(maxsize=32)
def _compiled(recipe: Recipe, options: type[RunOptions]) -> Graph:
    """Compiling takes tens of milliseconds, so each recipe is compiled once."""
    compiled = recipe.wire(recipe, options).compile(name=recipe.name)
    return compiled.with_config(recursion_limit=recipe.recursion_limit)  # type: ignore[no-any-return]
