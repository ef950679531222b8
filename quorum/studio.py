"""The graph that ``langgraph dev`` and LangGraph Studio serve (see ``langgraph.json``).

Its context form is ``RunOptions`` with the defaults that environment and ``quorum.toml`` set;
what they leave open is the sample database and the offline demonstration, both shown in the form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graph.builder import build_graph, build_studio_graph
from graph.options import SAMPLE, RunOptions
from quorum.settings import Settings

_settings = Settings()


@dataclass(eq=False)
class StudioOptions(RunOptions):
    """``RunOptions`` with the user's own defaults."""

    database: str = _settings.database or SAMPLE
    models: list[str] = field(default_factory=lambda: list(_settings.models) or ["offline"])
    votes: int = _settings.votes
    documents: str = str(_settings.documents or "")
    base_url: str = _settings.base_url or ""
    home: str = str(_settings.home)

    def api_key(self) -> str:
        return _settings.api_key.get_secret_value() if _settings.api_key else ""


graph = build_studio_graph(StudioOptions)
"""All recipes; the context's ``recipe`` chooses."""

recap = build_graph("recap", options=StudioOptions)
"""One recipe as a graph of its own, for breakpoints at its nodes."""
