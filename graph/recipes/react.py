"""The agentic baseline: one model with tools in a loop, as Spider-Agent (paper 000, sections 3.1 and 4.1).

    open → documents → (link) ─ Send × votes ─ consensus → answer
    one candidate:  step ⇄ look;  step ⇄ run;  step → run → finish on an answer

Kept from Spider-Agent: thought, action, observation; tools to run SQL and to read schema files; at most
20 steps; a repeated action is refused, two in a row end the loop. Ours, so that only the way of working
differs from the other recipes: the schema text, documents and house rules that they see, the guard, and
a vote if more than one is asked for. There is no plan, no repair, no critique and no validator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from langgraph.graph import END, START

from quorum.agents import schema_linker, tool_user
from quorum.graph.nodes import prepare, tool_loop, voting
from quorum.graph.nodes.step import Steps
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import (
    CandidateGraph,
    Paths,
    RunGraph,
    add_chain,
    as_node,
    branch_graph,
    fan_out,
    run_graph,
)
from quorum.graph.recipes.ending import add_answer
from quorum.graph.recipes.recipe import AtLeastOne, Count, Recipe


@dataclass(frozen=True)
class React(Recipe):
    """Its limits.

    Attributes:
        max_steps: Steps of one candidate.
        max_link_steps: Commands of the SchemaLinker on a schema text too large to be shown; 0 for no linking.
    """

    max_steps: AtLeastOne = tool_user.MAX_STEPS
    max_link_steps: Count = schema_linker.MAX_STEPS

    @property
    def recursion_limit(self) -> int:
        return 2 * self.max_steps + 200


def wire(recipe: React, options: type[RunOptions] = RunOptions) -> RunGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    steps = Steps(recipe)
    graph = run_graph(options)
    graph.add_node("open_run", steps.first(prepare.open_run))
    graph.add_node("retrieve_documents", steps.run(prepare.retrieve_documents))
    before = ["open_run", "retrieve_documents"]
    if recipe.max_link_steps:
        link = partial(prepare.link_large_schema, max_steps=recipe.max_link_steps)
        graph.add_node("link_large_schema", steps.run(link))
        before.append("link_large_schema")
    graph.add_node("send_candidates", steps.run(voting.deal))
    graph.add_node("candidate", as_node(wire_candidate(recipe).compile()))
    graph.add_node("consensus", steps.run(voting.consensus), defer=True)
    add_chain(graph, *before, "send_candidates")
    graph.add_conditional_edges("send_candidates", fan_out, ["candidate"])
    graph.add_edge("candidate", "consensus")
    again: Paths = {"deal": "send_candidates", "answer": add_answer(graph, steps)}
    graph.add_conditional_edges("consensus", voting.after_vote, again)
    return graph


def wire_candidate(recipe: React) -> CandidateGraph:
    """The uncompiled graph of one candidate's branch."""
    steps, most = Steps(recipe), recipe.max_steps
    graph = branch_graph()
    graph.add_node("take_step", steps.branch(partial(tool_loop.take_step, max_steps=most)))
    graph.add_node("run_query", steps.branch(tool_loop.run_query))
    graph.add_node("finish", steps.branch(partial(tool_loop.finish, max_steps=most)))
    graph.add_edge(START, "take_step")
    nodes = ["run_query", "take_step", "finish"]
    graph.add_conditional_edges("take_step", tool_loop.after_step(most), nodes)
    graph.add_conditional_edges("run_query", tool_loop.after_query(most), nodes[1:])
    graph.add_edge("finish", END)
    return graph


RECIPE = React(
    name="react",
    summary="One model in a loop over run-SQL and look-at-files, 20 steps at most: the agentic baseline.",
    paper="Spider-Agent, after ReFoRCE: A Text-to-SQL Agent with Self-Refinement, 3.1 and 4.1",
    agents=("knowledge_retriever", "schema_linker", "tool_user"),
    wire=wire,
    votes=1,
)
