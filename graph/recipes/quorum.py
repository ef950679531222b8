"""Quorum's own recipe: few calls, more only where candidates disagree.

ARCHITECTURE.md has the picture ("One question's path").

What it takes from the published systems: compression and exploration from ReFoRCE, the decomposed
candidate and the refiner's error classes from ReCAPAgent-SQL, several experts from SSEV. Ours: a plan only
for questions that need one, candidates that differ by how they are written, a vote by expected agreement
(minimum Bayes risk) that ends as soon as it is sure, exploration aimed at what the answers disagree on,
and one validation, of a winner that not all agree on. (Validating every winner, as the first form did,
changed no answer in six questions with hand-written replies, at one call each.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from quorum.agents.writers import Style
from quorum.graph.ballots import FIRST, Vote
from quorum.graph.disagreement import close_rivals
from quorum.graph.nodes import prepare, readings, schema_linking, tie_breaking, voting, winner
from quorum.graph.nodes.prepare import Planning
from quorum.graph.nodes.retrieval import TRIPLETS
from quorum.graph.nodes.writing import take_query, write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, fan_out, run_graph, wire_branch
from quorum.graph.recipes.recipe import BLANKS, HEADS, Count, Recipe, switch
from quorum.graph.state import RunState
from quorum.knowledge.search.values import SHOWN

STYLES: tuple[Style, ...] = ("direct", "decomposed", "plan-led")
"""How the candidates of the first batch are written; later ones take turns."""

Validation = Literal["doubt", "always", "never"]
"""When the winner is validated: where not all candidates agree, in any case, or not at all."""

Way = Literal["dispatch", "plan", "explore", "judge", "validate", "answer"]


@dataclass(frozen=True)
class QuorumRecipe(Recipe):
    """Its switches and limits."""

    linking: bool = switch(
        True, "link a schema longer than the run's `link_above`, by what draft queries use"
    )
    plan: Planning = switch(
        "auto", "write a plan; `auto` for long questions and those with documents, never for a writer alone"
    )
    exploration: bool = switch(True, "look into the database where strong answers disagree")
    judge: bool = switch(True, "a model decides a tie that remains after all batches")
    validation: Validation = switch("doubt", "validate the winner, and revise it once if it is rejected")
    alone: bool = switch(
        True,
        "one writer first, where one model votes and `votes` is not given; more only where its query failed "
        "or it has no answer",
    )
    checks: bool = switch(
        True, "checks of silent errors in the winner's query, without a model; what they find is weighed"
    )
    readings: Count = switch(
        3,
        "other readings, three at most: the ReadingWriter weighs and writes what writers name, and it is run",
    )
    max_refinements: Count = switch(3, "repairs of one candidate")
    max_queries: Count = switch(4, "exploration queries")
    max_corrections: Count = switch(1, "corrections of one exploration query")
    blanks_give_way: bool = switch(True, BLANKS)
    count_heads: bool = switch(True, HEADS)

    @property
    def begins_alone(self) -> bool:
        return self.alone

    @property
    def recursion_limit(self) -> int:
        return 250 + self.max_queries * (2 * self.max_corrections + 2) + 2 * self.max_refinements


def wire(recipe: QuorumRecipe, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema.

    What a switch leaves out is passed over: each router knows the recipe.
    """
    graph = run_graph(recipe, options)
    before = ["DraftLinker", "Planner"] if recipe.linking else ["Planner"]
    graph.add_beginning(*before, "send_candidates", skips=partial(begins_at_once, recipe))
    if recipe.linking:
        graph.add_step("DraftLinker", schema_linking.link_by_drafts)
    graph.add_step("Planner", partial(prepare.plan_if_needed, when=recipe.plan))
    write = partial(write_sql, styles=STYLES)
    graph.add_batch(voting.dispatch, wire_branch(recipe, write, max_refinements=recipe.max_refinements))
    graph.add_edge("candidate", "Consensus")
    checked = "check_winner" if recipe.checks else "ReadingWriter"
    ways: Paths = {"dispatch": "send_candidates", "plan": "Planner", "explore": "ColumnExplorer"}
    ways |= {"judge": "Judge", "validate": "Validator", "answer": checked}
    graph.add_vote(partial(after_quorum_vote, recipe=recipe), ways)
    graph.add_exploration(max_queries=recipe.max_queries, max_corrections=recipe.max_corrections)
    graph.add_edge("keep_findings", "send_candidates")
    graph.add_step("Judge", tie_breaking.ask_judge)
    graph.add_edge("Judge", checked if recipe.validation == "never" else "Validator")
    graph.add_step("Validator", winner.validate_winner)
    judged: Paths = {"revise": "Reviser", "go_on": checked}
    graph.add_conditional_edges("Validator", winner.after_validation, judged)
    graph.add_step("check_winner", winner.check_winner)
    found: Paths = {"revise": "Reviser", "read": "ReadingWriter", "answer": "answer"}
    route = partial(winner.after_check, most_readings=recipe.readings)
    graph.add_conditional_edges("check_winner", route, found)
    _add_revision(graph, recipe)
    _add_readings(graph, recipe)
    graph.add_answer(again="Planner")
    return graph


def begins_at_once(recipe: QuorumRecipe, state: RunState) -> bool:
    """True if the first writers need neither linking nor a plan."""
    return not (recipe.linking and state.long) and not prepare.needs_plan(state, recipe.plan)


def _add_revision(graph: RecipeGraph, recipe: QuorumRecipe) -> None:
    """Add the revision of a winner that is objected to; it is run and weighed against it."""
    branch = wire_branch(recipe, take_query, max_refinements=recipe.max_refinements, writer="take_query")
    graph.add_step("Reviser", winner.revise_winner)
    ways: Paths = {"send": "send_revision", "go_on": "ReadingWriter"}
    graph.add_conditional_edges("Reviser", winner.after_revision, ways)
    graph.add_step("send_revision", winner.send_revision)
    graph.add_conditional_edges("send_revision", fan_out("revision"), ["revision"])
    graph.add_branch("revision", branch)
    graph.add_edge("revision", "weigh_revision")
    graph.add_step("weigh_revision", winner.weigh_revision)
    graph.add_edge("weigh_revision", "ReadingWriter")


def _add_readings(graph: RecipeGraph, recipe: QuorumRecipe) -> None:
    """Add what else the question could mean; it is written, run and compared with the answer."""
    repairs = min(1, recipe.max_refinements)
    branch = wire_branch(recipe, take_query, max_refinements=repairs, max_empty=0, writer="take_query")
    graph.add_step("ReadingWriter", partial(readings.write_readings, most=recipe.readings))
    graph.add_conditional_edges("ReadingWriter", readings.fan_out_readings, ["reading", *ENDS])
    graph.add_branch("reading", branch, into="read")
    graph.add_edge("reading", "weigh_readings")
    graph.add_step("weigh_readings", readings.weigh_readings)
    graph.add_edge("weigh_readings", "clarify")


def after_quorum_vote(state: RunState, *, recipe: QuorumRecipe) -> Way:
    """Route after a vote."""
    vote = state.vote
    if voting.route_vote(state) == "dispatch":
        explores = recipe.exploration and recipe.max_queries and not state.explored
        if explores and close_rivals(vote):
            return "explore"
        return "plan" if prepare.needs_plan(state, recipe.plan) else "dispatch"
    if vote is None or state.limited or not vote.clusters or vote.cannot_answer:
        return "answer"
    if recipe.judge and vote.tie:
        return "judge"
    validated = recipe.validation == "always" or (recipe.validation == "doubt" and not unanimous(vote))
    return "validate" if validated else "answer"


def unanimous(vote: Vote) -> bool:
    """True if three or more candidates agree and none failed, or if the first candidate is enough."""
    if vote.stopping == FIRST:
        return True
    return len(vote.clusters) == 1 and vote.voters == vote.cast >= 3 and not vote.blank


RECIPE = QuorumRecipe(
    name="quorum",
    summary="One writer, and what else is meant; more candidates that vote only where it fails.",
    paper="none: Quorum's own",
    agents=(
        "knowledge_retriever",
        "draft_linker",
        "planner",
        "sql_writer",
        "self_refiner",
        "reading_writer",
        "column_explorer",
        "exploration_corrector",
        "judge",
        "validator",
        "reviser",
    ),
    wire=wire,
    votes=8,
    matched_values=SHOWN,
    triplets=TRIPLETS,
    strategy="mbr",
    stopping="beta:0.9",
)
