"""The graph that ``langgraph dev`` and LangGraph Studio serve (see ``langgraph.json``).

Its context form is ``RunOptions`` with the defaults that environment and ``quorum.toml`` set;
what they leave open is the sample database and the offline demonstration, both shown in the form.
"""

from __future__ import annotations

import copy
from dataclasses import field, fields, make_dataclass
from typing import Any, get_type_hints

from quorum.api import run_options
from quorum.graph.builder import build_graph, build_studio_graph
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.settings import Settings
from quorum.tools.urls import SAMPLE

_settings = Settings()
_defaults = run_options(
    _settings.changed(database=_settings.database or SAMPLE, models=_settings.models or ["offline"])
)
_recipes = {
    name: find_recipe(name, _defaults.switches if name == _defaults.recipe else None) for name in RECIPES
}


def _with_defaults() -> type[RunOptions]:
    """``RunOptions`` with every default as the user set it."""
    hints = get_type_hints(RunOptions)

    def default(name: str) -> Any:
        value = getattr(_defaults, name)
        if isinstance(value, list | dict):
            return field(default_factory=lambda: copy.copy(value))
        return field(default=value)  # the form shows plain defaults only

    def api_key(_: RunOptions) -> str:
        return _settings.api_key.get_secret_value() if _settings.api_key else ""

    defaults = [(item.name, hints[item.name], default(item.name)) for item in fields(RunOptions)]
    return make_dataclass(
        "StudioOptions", defaults, bases=(RunOptions,), namespace={"api_key": api_key}, eq=False
    )


StudioOptions = _with_defaults()

graph = build_studio_graph(StudioOptions, _recipes)
"""All recipes; the context's ``recipe`` chooses."""

recipe = build_graph(_recipes[_defaults.recipe], options=StudioOptions)
"""The recipe that is set, as a graph of its own, for breakpoints at its nodes."""
