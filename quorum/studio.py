"""The graph that ``langgraph dev`` and LangGraph Studio serve (see ``langgraph.json``).

Its context form is ``RunOptions`` with the defaults that environment and ``quorum.toml`` set;
what they leave open is the sample database and the offline demonstration, both shown in the form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graph.builder import build_graph, build_studio_graph
from graph.options import RunOptions
from quorum.api import run_options
from quorum.settings import Settings
from tools.urls import SAMPLE

_settings = Settings()
_defaults = run_options(
    _settings.changed(database=_settings.database or SAMPLE, models=_settings.models or ["offline"])
)


@dataclass(eq=False)
class StudioOptions(RunOptions):
    """``RunOptions`` with the user's own defaults."""

    database: str = _defaults.database
    models: list[str] = field(default_factory=lambda: list(_defaults.models))
    votes: int = _defaults.votes
    documents: str = _defaults.documents
    base_url: str = _defaults.base_url
    home: str = _defaults.home

    def api_key(self) -> str:
        return _settings.api_key.get_secret_value() if _settings.api_key else ""


graph = build_studio_graph(StudioOptions)
"""All recipes; the context's ``recipe`` chooses."""

recap = build_graph("recap", options=StudioOptions)
"""One recipe as a graph of its own, for breakpoints at its nodes."""
