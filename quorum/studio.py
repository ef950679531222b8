"""The assistants that ``langgraph dev`` and LangGraph Studio serve: one for each recipe, and ``chat``.

An assistant's form is ``RunOptions`` with the defaults that environment, ``.env`` and ``quorum.toml`` set;
what they leave open is the sample database and the offline demonstration, both shown in the form. A node's
update has what it changed in the state, null for nothing; the custom stream has the steps that
``quorum ask`` shows. Names and descriptions stand in ``langgraph.json``.

``chat`` is a conversation by messages for Agent Chat UI and other clients of LangGraph's API: its input is
``{"messages": [{"role": "user", "content": "…"}]}``, and its state has the typed answer beside the messages.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from langgraph_sdk.runtime import ServerRuntime
from pydantic import create_model
from pydantic_core import PydanticUndefined

from quorum.chat import message_of
from quorum.event_text import step_of
from quorum.graph.builder import Graph, build_graph
from quorum.graph.conversation import build_conversation
from quorum.graph.node_context import stream
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, recipe_of
from quorum.graph.runs import Event
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.tools.urls import SAMPLE, url_secrets

_settings = Settings()
_defaults = _settings.changed(
    database=_settings.database or [SAMPLE], models=_settings.models or ["offline"]
).run_options()


def tell(event: Event) -> None:
    """Write an event to the custom stream as the step that progress shows: the fields of ``EventText``."""
    if (step := step_of(event)).live:
        stream(asdict(step))


class _StudioOptions(RunOptions):
    """The options with what is no option: the models' key, and who hears of the steps."""

    handles: ClassVar[Mapping[str, Any]] = {"api_key": _settings.key, "listener": tell}


def options_for(recipe: str) -> type[RunOptions]:
    """``RunOptions`` with every default as the user set it, for one recipe; its form shows no password."""
    values = {name: getattr(_defaults, name) for name in RunOptions.model_fields} | {"recipe": recipe}
    if recipe != _defaults.recipe:
        values |= {"switches": {}, "preset": "", "model_for": {}}
    fields: dict[str, Any] = {}
    for name, value in values.items():
        field = copy.copy(RunOptions.model_fields[name])
        field.default = value
        urls = value if isinstance(value, list) else [value]
        if RunOptions.declared()[name].secret and any(map(url_secrets, urls)):
            field.default, field.default_factory = (
                PydanticUndefined,
                partial(copy.copy, value),
            )  # in no schema
        if name == "recipe":
            field.json_schema_extra = {"enum": [recipe]}
        fields[name] = (field.annotation, field)
    return create_model("StudioOptions", __base__=_StudioOptions, __doc__=RunOptions.__doc__, **fields)


def assistant(recipe: str, *, talks: bool = False) -> Callable[[ServerRuntime[Any]], Graph]:
    """Return the function that the server calls for the recipe's graph, for a run or to draw it.

    Args:
        talks: The graph is a conversation, whose questions go through the recipe's.
    """
    options = options_for(recipe)
    build_graph(recipe_of(options()), options=options)  # compiled now, not while runs wait

    def graph(runtime: ServerRuntime[Any]) -> Graph:
        """The graph with the switches that the context sets.

        The context is checked here because the server drops names that it does not know before the graph
        sees them.

        Raises:
            ConfigurationError: The context names no option, another recipe, or a value that does not fit.
        """
        run = runtime.execution_runtime
        given = (run.context or {}) if run else {}
        if (other := given.get("recipe", recipe)) != recipe:  # first of all: no client has a module imported
            raise ConfigurationError(
                f"The assistant {recipe!r} runs its own recipe only, not {other!r}.",
                hint=f"The assistants are {', '.join(RECIPES)}.",
            )
        asked = options(**{name: value for name, value in given.items() if not name.startswith("__")})
        if talks:
            return build_conversation(recipe_of(asked), message_of, options=options)
        built = build_graph(recipe_of(asked), options=options)
        return built.copy({"output_channels": built.stream_channels_asis})

    return graph


chat = assistant(_defaults.recipe, talks=True)
globals().update({name: assistant(name) for name in RECIPES})  # where the server looks for them
