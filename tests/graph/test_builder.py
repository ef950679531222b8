"""The graph as others see it: its picture, and clear errors for wrong names."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from quorum.agents.role import find_role
from quorum.graph.builder import build_graph
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.knowledge.errors import ConfigurationError

OPTIONAL = {"DraftLinker", "TableLinker", "FormatWriter", "SelfChecker", "CteRefiner", "Judge"} | {
    "ColumnExplorer",
    "ExplorationCorrector",
}
"""Agents that only a switch brings into a graph."""


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_drawn_graph(name: str, snapshot: SnapshotAssertion) -> None:
    assert build_graph(name).get_graph(xray=1).draw_mermaid() == snapshot


def test_a_drawn_graph_has_the_declared_edges_and_no_others(subtests: pytest.Subtests) -> None:
    """LangGraph draws by simulation; with two deferred nodes it drew edges that do not exist."""
    for name, switches in (
        *[(name, {}) for name in RECIPES],
        *[("ssev", {"stage": stage}) for stage in ("base", "sl", "sr", "sr_sl", "sr_vote")],
        ("quorum", {"validation": "never", "judge": False, "exploration": False, "plan": "never"}),
        ("recap", {"own_plans": False, "exploration": True}),
        ("reforce", {"exploration": "always", "model_vote": True, "expected_format": True}),
        ("reforce", {"compression": False, "self_consistency": True, "cte_refinement": True}),
    ):
        with subtests.test(name=name):
            recipe = find_recipe(name, switches)
            wired = recipe.wire(recipe, RunOptions)
            routed = {
                (source, target)
                for source, branches in wired.branches.items()
                for branch in branches.values()
                for target in branch.ends.values()
            }
            drawn = {(edge.source, edge.target) for edge in build_graph(recipe).get_graph().edges}
            assert drawn == wired.edges | routed


@pytest.mark.parametrize("name", list(RECIPES))
def test_nodes_that_ask_agents_bear_their_names(name: str) -> None:
    """Every agent of a recipe stands in its graph; what is no agent's node has a verb."""
    drawn = {node.rpartition(":")[2] for node in build_graph(name).get_graph(xray=1).nodes}
    asked = {agent: find_role(agent) for agent in RECIPES[name].agents}
    agents = {role.title if role else agent.title().replace("_", "") for agent, role in asked.items()}
    named = {node for node in drawn if node[0].isupper()}
    assert named - {"Consensus", "PreSQLConsensus"} <= agents
    assert agents - named <= OPTIONAL


def test_an_unknown_recipe_and_a_wrong_switch_are_named(subtests: pytest.Subtests) -> None:
    for name, switches, said in (
        ("nope", {}, r"'nope'.*recap"),
        ("recap", {"maxplans": 1}, r"'maxplans'.*max_plans"),
        ("recap", {"wire": None}, "wire"),
        ("ssev", {"stage": "7"}, "stage"),
        ("ssev", {"max_rows": -1}, "max_rows"),
        ("ssev", {"presql_votes": 1}, "presql_votes"),
        ("ssev", {"max_shots": "nine"}, "max_shots"),
        ("reforce", {"exploration": True}, "exploration"),
    ):
        with subtests.test(name=name), pytest.raises(ConfigurationError, match=said):
            find_recipe(name, switches)
