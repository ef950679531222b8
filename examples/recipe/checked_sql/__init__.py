"""The recipe ``checked``: a query, repaired twice at most, and a check of the units of its result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from checked_sql.nodes import CheckedState, check_units, note_units
from checked_sql.roles import UNIT_CHECKER
from quorum.graph.nodes import voting
from quorum.graph.nodes.writing import write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RecipeGraph, run_graph, wire_branch
from quorum.graph.recipes.recipe import Recipe, switch


@dataclass(frozen=True)
class Checked(Recipe):
    """A recipe's own switches are fields: ``--switch all_units=true``."""

    all_units: bool = switch(False, "the answer names right units, too")


def wire(recipe: Checked, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph, in the order in which a question travels."""
    graph = run_graph(recipe, options, CheckedState)
    graph.add_beginning("send_candidates")
    graph.add_batch(voting.dispatch, wire_branch(recipe, write_sql, max_refinements=2))
    graph.add_edge("candidate", "Consensus")
    ways: Paths = {"dispatch": "send_candidates", "clarify": "UnitChecker", "answer": "UnitChecker"}
    graph.add_vote(voting.route_vote, ways)
    graph.add_step("UnitChecker", check_units)
    graph.add_edge("UnitChecker", "note_units")
    graph.add_step("note_units", partial(note_units, all_units=recipe.all_units))
    graph.add_edge("note_units", "clarify")
    graph.add_answer()
    return graph


RECIPE = Checked(
    name="checked",
    summary="One query, and a check of the units of its result.",
    paper="none: an example",
    agents=("knowledge_retriever", "sql_writer", "self_refiner", "unit_checker"),
    roles=(UNIT_CHECKER,),
    wire=wire,
    votes=1,
)
