"""The graph as others see it: its picture, its forms, and clear errors for wrong names."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from quorum.graph.builder import build_graph
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.knowledge.errors import ConfigurationError


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_drawn_graph(name: str, snapshot: SnapshotAssertion) -> None:
    assert build_graph(name).get_graph(xray=1).draw_mermaid() == snapshot


def test_the_forms_that_studio_shows(snapshot: SnapshotAssertion) -> None:
    graph = build_graph("quorum")
    assert {"input": graph.get_input_jsonschema(), "context": graph.get_context_jsonschema()} == snapshot


def test_an_unknown_recipe_and_an_unknown_switch_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'nope'.*recap"):
        build_graph("nope")
    with pytest.raises(ConfigurationError, match=r"'sqlcritique'.*sql_critique"):
        find_recipe("recap", {"sqlcritique": False})
    with pytest.raises(ConfigurationError, match="wire"):
        find_recipe("recap", {"wire": None})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"votes": 0}, "votes"),
        ({"models": []}, "model"),
        ({"retrieval": "magic"}, "magic"),
        ({"retrieval": "hybrid"}, "embedding_model"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        RunOptions(**wrong)  # type: ignore[arg-type]
