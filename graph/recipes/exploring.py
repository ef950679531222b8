"""The loop of column exploration, for the recipes that have it."""

from __future__ import annotations

from functools import partial

from quorum.graph.nodes import exploration
from quorum.graph.nodes.step import Steps
from quorum.graph.recipes.branch import Paths, RunGraph


def add_exploration(
    graph: RunGraph, steps: Steps, *, max_queries: int, max_corrections: int
) -> tuple[str, str]:
    """Add the nodes that run queries one by one and correct each as often as it may be.

    Returns:
        The names of the first node and of the last, after which the findings are kept.
    """
    begin = partial(exploration.begin, max_queries=max_queries)
    graph.add_node("begin_exploration", steps.run(begin))
    graph.add_node("explore", steps.run(exploration.run_query))
    graph.add_node("correct_query", steps.run(exploration.correct_query))
    graph.add_node("give_up_query", steps.run(exploration.give_up_query))
    graph.add_node("keep_findings", steps.run(exploration.keep_findings))
    loop: Paths = {
        "run": "explore",
        "correct": "correct_query",
        "drop": "give_up_query",
        "done": "keep_findings",
    }
    route = exploration.after_query(max_corrections)
    for name in ("begin_exploration", "explore", "correct_query", "give_up_query"):
        graph.add_conditional_edges(name, route, loop)
    return "begin_exploration", "keep_findings"
