"""The graph that ``langgraph dev`` and LangGraph Studio serve (see ``langgraph.json``).

Its context form is ``RunOptions`` with the defaults that environment and ``quorum.toml`` set;
what they leave open is the sample database and the offline demonstration, both shown in the form.
"""

from __future__ import annotations

import copy
import os
from typing import Any

from pydantic import create_model

from quorum.graph.builder import build_graph, build_studio_graph
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.settings import Settings
from quorum.tools.urls import SAMPLE

_settings = Settings()
_defaults = _settings.changed(
    database=_settings.database or SAMPLE, models=_settings.models or ["offline"]
).run_options()
_recipes = {
    name: find_recipe(name, _defaults.switches if name == _defaults.recipe else None) for name in RECIPES
}
if _settings.key:  # the graph opens its models itself and finds their key where OpenAI's own client does
    os.environ["OPENAI_API_KEY"] = _settings.key


def _with_defaults() -> type[RunOptions]:
    """``RunOptions`` with every default as the user set it, and the recipes to choose from."""
    fields: dict[str, Any] = {}
    for name, declared in RunOptions.model_fields.items():
        field = copy.copy(declared)
        field.default = getattr(_defaults, name)
        if name == "recipe":
            field.json_schema_extra = {"enum": list(_recipes)}
        fields[name] = (field.annotation, field)
    return create_model("StudioOptions", __base__=RunOptions, __doc__=RunOptions.__doc__, **fields)


StudioOptions = _with_defaults()

graph = build_studio_graph(StudioOptions, _recipes)
"""All recipes; the context's ``recipe`` chooses."""

recipe = build_graph(_recipes[_defaults.recipe], options=StudioOptions)
"""The recipe that is set, as a graph of its own, for breakpoints at its nodes."""
