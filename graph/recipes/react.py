"""The agentic baseline: one model with tools in a loop, as Spider-Agent (paper 000, sections 3.1 and 4.1).

    open → documents → (link) ─ Send × votes ─ consensus → answer
    one candidate:  step ⇄ look;  step ⇄ run;  step → run → finish on an answer

Kept from Spider-Agent: thought, action, observation; tools to run SQL and to read schema files;
temperature 1; a repeated action is refused, two in a row end the loop. There is no plan, no repair, no
critique and no validator. ``docs/recipes.md`` says what is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from langgraph.graph import END, START

from quorum.agents import linkers, writers
from quorum.graph.nodes import schema_linking, tool_loop, voting
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, branch_graph, is_short, run_graph
from quorum.graph.recipes.recipe import AtLeastOne, Count, PaperRecipe, switch


@dataclass(frozen=True)
class React(PaperRecipe):
    """Its limits."""

    seen: bool = switch(
        True, "an answer's query that has not run yet is run and seen before it counts", paper="open"
    )
    max_steps: AtLeastOne = switch(writers.MAX_TOOL_STEPS, "steps of one candidate", paper="open")
    max_link_steps: Count = switch(
        linkers.MAX_LINK_STEPS,
        "commands of the SchemaLinker on a schema too large to be shown; 0 for no linking",
    )

    @property
    def recursion_limit(self) -> int:
        return 2 * self.max_steps + 200


def wire(recipe: React, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph, most = run_graph(recipe, options), recipe.max_steps
    if recipe.max_link_steps:
        graph.add_beginning("SchemaLinker", "send_candidates", skips=is_short)
        link = partial(schema_linking.link_by_files, max_steps=recipe.max_link_steps)
        graph.add_step("SchemaLinker", link)
    else:
        graph.add_beginning("send_candidates")
    graph.add_batch(voting.dispatch, wire_candidate(recipe), end=partial(tool_loop.finish, max_steps=most))
    graph.add_edge("candidate", "Consensus")
    graph.add_vote(voting.route_vote, {"dispatch": "send_candidates", **ENDS})
    graph.add_answer()
    return graph


def wire_candidate(recipe: React) -> RecipeGraph:
    """Return the uncompiled graph of one candidate's branch."""
    graph, most = branch_graph(recipe), recipe.max_steps
    again: Paths = {"take_step": "ToolUser", "finish": END}
    graph.add_edge(START, "ToolUser")
    graph.add_step("ToolUser", partial(tool_loop.take_step, max_steps=most, seen=recipe.seen))
    stepped = partial(tool_loop.after_step, max_steps=most)
    graph.add_conditional_edges("ToolUser", stepped, {"run_query": "run_sql", **again})
    graph.add_step("run_sql", tool_loop.run_query)
    graph.add_conditional_edges("run_sql", partial(tool_loop.after_query, max_steps=most), again)
    return graph


RECIPE = React(
    name="react",
    summary="One model in a loop over run-SQL and look-at-files, 20 steps at most: the agentic baseline.",
    paper="Spider-Agent, after ReFoRCE: A Text-to-SQL Agent with Self-Refinement, 3.1 and 4.1",
    agents=("knowledge_retriever", "schema_linker", "tool_user"),
    wire=wire,
    votes=1,
    temperature=1.0,
    one_temperature=True,
)
