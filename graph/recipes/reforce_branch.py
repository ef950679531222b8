"""A candidate of ReFoRCE, with the options of its first version.

(explore →) write → run ⇄ refine          on an error, and on an empty result
        run ⇄ again                       self-consistency: until a result has come twice
        no answer: decompose → stage ⇄ review → whole → finish
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from langgraph.graph import END

from quorum.graph.context import Context
from quorum.graph.nodes import candidate, consistency, stages, writing
from quorum.graph.nodes.routes import Routes, after_model, after_refinement
from quorum.graph.nodes.step import Update
from quorum.graph.recipes.branch import Paths, RecipeGraph, branch_graph, wire_branch
from quorum.graph.state import CandidateState

if TYPE_CHECKING:
    from quorum.graph.recipes.reforce import Reforce

WRITER = "sql_writer"


def wire_candidate(recipe: Reforce, *, explores: bool = False) -> RecipeGraph:
    """The uncompiled graph of one candidate's branch; the plain one where no option is on.

    Args:
        explores: It begins with an exploration of its own.
    """
    explored = recipe.limits if explores else None
    repairs, empty = recipe.max_refinements, recipe.max_empty
    if not (recipe.self_consistency or recipe.cte_refinement):
        write = writing.write_sql
        return wire_branch(recipe, write, max_refinements=repairs, max_empty=empty, explored=explored)
    graph = branch_graph(recipe)
    graph.add_writer("SqlWriter", writing.write_sql, explored)
    if recipe.self_consistency:
        graph.add_step("run_sql", partial(consistency.run_and_compare, agent=WRITER))
        again: Paths = {"again": "SelfChecker", "refine": "SelfRefiner", "end": "conclude"}
        graph.add_conditional_edges("run_sql", consistency.after_run(repairs, empty), again)
        graph.add_step("SelfChecker", consistency.answer_again)
        graph.add_conditional_edges("SelfChecker", after_model, {"go_on": "run_sql", "finish": END})
    else:
        graph.add_step("run_sql", partial(candidate.run_sql, agent=WRITER))
        ran: Paths = dict.fromkeys(("link", "refine"), "SelfRefiner")
        ran |= dict.fromkeys(("validate", "finish"), "conclude")
        graph.add_conditional_edges("run_sql", Routes(repairs, max_empty=empty).after_run, ran)
    graph.add_step("SelfRefiner", candidate.refine)
    graph.add_conditional_edges("SelfRefiner", after_refinement, {"go_on": "run_sql", "finish": "conclude"})
    graph.add_step("conclude", consistency.conclude if recipe.self_consistency else accept)
    if recipe.cte_refinement:
        _add_stages(graph, recipe)
    else:
        graph.add_edge("conclude", END)
    return graph


async def accept(_: CandidateState, __: Context) -> Update:
    """Nothing to conclude: a candidate's result is its answer."""
    return {}


def _add_stages(graph: RecipeGraph, recipe: Reforce) -> None:
    """Add what follows ``conclude``: a candidate without an answer builds one stage by stage."""

    def route(state: CandidateState) -> Literal["decompose", "finish"]:
        return "decompose" if stages.fruitless(state) else "finish"

    graph.add_conditional_edges("conclude", route, {"decompose": "decompose", "finish": END})
    graph.add_step("decompose", stages.decompose)
    graph.add_conditional_edges("decompose", after_model, {"go_on": "run_stage", "finish": END})
    graph.add_step("run_stage", stages.run_stage)
    graph.add_conditional_edges("run_stage", stages.after_stage, {"go_on": "CteRefiner", "finish": END})
    graph.add_step("CteRefiner", stages.review_stage)
    ways: Paths = {"stage": "run_stage", "whole": "run_whole", "finish": END}
    graph.add_conditional_edges("CteRefiner", stages.after_review(recipe.max_rewrites), ways)
    graph.add_step("run_whole", partial(candidate.run_sql, agent="cte_refiner"))
    graph.add_edge("run_whole", END)
