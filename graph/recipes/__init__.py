"""The recipes: each published system as a way of wiring the same agents."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from quorum.agents.role import GROUPS, find_role
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.knowledge.errors import ConfigurationError


class _Recipes(Mapping[str, Recipe]):
    """Recipes by name; a module is imported when its recipe is first asked for."""

    known = ("quorum", "recap", "react", "reforce", "single", "sqlagent", "ssev", "team")

    def __getitem__(self, name: str) -> Recipe:
        if name not in self.known:
            raise KeyError(name)
        recipe: Recipe = importlib.import_module(f"quorum.graph.recipes.{name}").RECIPE
        return recipe

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


RECIPES: Mapping[str, Recipe] = _Recipes()


def find_recipe(name: str, switches: Mapping[str, Any] | None = None, preset: str = "") -> Recipe:
    """The recipe of that name, with a preset, and with some of its switches and limits set otherwise.

    A name that is not Quorum's is a plug-in's: its entry point's, or ``package.module:NAME``.

    Raises:
        ConfigurationError: No recipe, preset or switch has that name, or the plug-in cannot be used.
    """
    recipe = RECIPES[name] if name in RECIPES else _plugged_in(name)
    return recipe.set_to(preset).switched(switches or {})


def _plugged_in(name: str) -> Recipe:
    """The recipe of another package, named as it is asked for: a run that goes on finds it again."""
    from quorum.tools import plugins

    recipe = plugins.load(plugins.RECIPES, name)
    if recipe is None:
        known = dict.fromkeys([*RECIPES, *(point.name for point in plugins.installed(plugins.RECIPES))])
        hint = f"Known: {', '.join(known)}. One of your own: package.module:NAME."
        raise ConfigurationError(f"There is no recipe {name!r}.", hint=hint)
    if not isinstance(recipe, Recipe):
        raise ConfigurationError(f"{name!r} is of the type {type(recipe).__name__}, and no Recipe.")
    return replace(recipe, name=name)


def recipe_of(options: RunOptions) -> Recipe:
    """The recipe that a run's options name, with their preset and switches.

    Raises:
        ConfigurationError: As ``find_recipe``, or the options have a model for a role that is never asked.
    """
    recipe = find_recipe(options.recipe, options.switches, options.preset)
    roles = [agent for agent in recipe.agents if find_role(agent)]
    for name in options.model_for:
        if set(roles).isdisjoint(GROUPS.get(name, (name,))):
            raise ConfigurationError(
                f"There is a model for {name!r}, and the recipe {recipe.name!r} never asks it.",
                hint=f"Its roles are {', '.join(roles)}.",
            )
    return recipe
