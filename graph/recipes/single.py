"""The baseline: one call with schema and question, one execution; no plan, no repair, no vote.

    open → documents → write → run → answer

It sees the same schema text, documents and house rules as every other recipe and runs behind the same
guard, so that the difference to another recipe is that recipe's own merit. Asked for more ``votes`` than
one it is plain self-consistency: that many calls, of which the majority counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.graph.nodes import voting
from quorum.graph.nodes.writing import write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, RecipeGraph, run_graph, wire_branch
from quorum.graph.recipes.recipe import Recipe


@dataclass(frozen=True)
class Single(Recipe):
    """It has no switches."""


def wire(recipe: Single, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    graph.add_beginning("send_candidates")
    graph.add_batch(voting.dispatch, wire_branch(recipe, write_sql, max_refinements=0))
    graph.add_edge("candidate", "Consensus")
    graph.add_vote(voting.route_vote, {"dispatch": "send_candidates", **ENDS})
    graph.add_answer()
    return graph


RECIPE = Single(
    name="single",
    summary="One call, one execution: the baseline.",
    paper="none: the baseline of every other recipe",
    agents=("knowledge_retriever", "sql_writer"),
    wire=wire,
    votes=1,
)
