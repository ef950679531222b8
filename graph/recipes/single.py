"""The baseline: one call with schema and question, one execution; no plan, no repair, no vote.

    open → documents → write → run → answer

It sees the same schema text, documents and house rules as every other recipe and runs behind the same
guard, so that the difference to another recipe is that recipe's own merit. Asked for more ``votes`` than
one it is plain self-consistency: that many calls, of which the majority counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.graph.nodes import prepare, voting
from quorum.graph.nodes.step import Steps
from quorum.graph.nodes.writing import write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RunGraph, add_chain, as_node, fan_out, run_graph, wire_branch
from quorum.graph.recipes.ending import add_answer
from quorum.graph.recipes.recipe import Recipe


@dataclass(frozen=True)
class Single(Recipe):
    """It has no switches."""


def wire(recipe: Single, options: type[RunOptions] = RunOptions) -> RunGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    steps = Steps(recipe)
    graph = run_graph(options)
    graph.add_node("open_run", steps.first(prepare.open_run))
    graph.add_node("retrieve_documents", steps.run(prepare.retrieve_documents))
    graph.add_node("send_candidates", steps.run(voting.deal))
    graph.add_node("candidate", as_node(wire_branch(recipe, write_sql, max_refinements=0).compile()))
    graph.add_node("consensus", steps.run(voting.consensus), defer=True)
    add_chain(graph, "open_run", "retrieve_documents", "send_candidates")
    graph.add_conditional_edges("send_candidates", fan_out, ["candidate"])
    graph.add_edge("candidate", "consensus")
    again: Paths = {"deal": "send_candidates", "answer": add_answer(graph, steps)}
    graph.add_conditional_edges("consensus", voting.after_vote, again)
    return graph


RECIPE = Single(
    name="single",
    summary="One call, one execution: the baseline.",
    paper="none: the baseline of every other recipe",
    agents=("knowledge_retriever", "sql_writer"),
    wire=wire,
    votes=1,
)
