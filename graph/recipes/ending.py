"""How every recipe ends: the user may be asked which answer is meant, then the answer is made."""

from __future__ import annotations

from langgraph.graph import END

from quorum.graph.nodes import clarifying, finish
from quorum.graph.nodes.step import Steps
from quorum.graph.recipes.branch import Paths, RunGraph


def add_answer(graph: RunGraph, steps: Steps, *, deal: str = "send_candidates") -> str:
    """Add the nodes ``clarify`` and ``answer``.

    Args:
        deal: The node to which the user's own words lead: it deals the candidates anew.

    Returns:
        The name of the first: where a settled vote goes.
    """
    graph.add_node("clarify", steps.run(clarifying.clarify))
    graph.add_node("answer", steps.run(finish.answer))
    ways: Paths = {"deal": deal, "answer": "answer"}
    graph.add_conditional_edges("clarify", clarifying.after_clarification, ways)
    graph.add_edge("answer", END)
    return "clarify"
