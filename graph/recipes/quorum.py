"""Quorum's own recipe: few calls, more only where candidates disagree.

    open → documents → schema (→ plan) ─ Send × batch ─ consensus ┬─ all agree: answer
                                                                 ├─ decided:   validate → answer
                                                                 ├─ open:      another batch
                                                                 └─ dispute:   explore → another batch
    validate → revise → judge → answer    where the Validator rejects the winner
    one candidate:  write → run ⇄ refine → finish

What it takes from the published systems: compression and exploration from ReFoRCE, the decomposed
candidate and the refiner's error classes from ReCAPAgent-SQL, several experts from SSEV. Ours: a plan only
for questions that need one, candidates that differ by how they are written, a vote by expected agreement
(minimum Bayes risk) that ends as soon as it is sure, exploration aimed at what the answers disagree on,
and one validation, of a winner that not all agree on. (Validating every winner, as the first form did,
changed no answer in six questions with hand-written replies, at one call each.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from quorum.agents.writers import Style
from quorum.graph.ballots import FIRST, Vote
from quorum.graph.close_rivals import close_rivals
from quorum.graph.nodes import checking, planning, readings, schema_linking, tie_breaking, voting, winner
from quorum.graph.nodes.planning import Planning
from quorum.graph.nodes.retrieval import TRIPLETS
from quorum.graph.nodes.schema_linking import Linking
from quorum.graph.nodes.writing import take_query, write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import LINKERS, Paths, RecipeGraph, fan_out, run_graph, wire_branch
from quorum.graph.recipes.recipe import Count, Recipe, switch
from quorum.graph.state import RunState
from quorum.knowledge.search.values import SHOWN

STYLES: tuple[Style, ...] = ("direct", "decomposed", "plan-led")
"""How the candidates of the first batch are written; later ones take turns."""

UNSTYLED: tuple[Style, ...] = ("", "", "plan-led")
"""Without prescribed styles; a plan leads one candidate even so."""

Validation = Literal["doubt", "always", "never"]
"""When the winner is validated: where not all candidates agree, in any case, or not at all."""

Way = Literal["dispatch", "explore", "judge", "validate", "answer"]


@dataclass(frozen=True)
class Quorum(Recipe):
    """Its switches and limits."""

    linking: Linking = switch(
        "drafts",
        "link a schema longer than the run's `link_above`: by what draft queries use, table by table",
    )
    plan: Planning = switch("auto", "write a plan; `auto` for long questions and those with documents")
    styles: bool = switch(True, "candidates differ by how they are written")
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
        3, "other readings, three at most: a colleague weighs what writers name, writes it, and it is run"
    )
    max_refinements: Count = switch(3, "repairs of one candidate")
    max_queries: Count = switch(4, "exploration queries")
    max_corrections: Count = switch(1, "corrections of one exploration query")

    @property
    def explores(self) -> bool:
        """Whether there is any column exploration."""
        return self.exploration and self.max_queries > 0

    @property
    def revises(self) -> bool:
        """Whether anything may object to the winner."""
        return self.checks or self.validation != "never"

    @property
    def begins_alone(self) -> bool:
        return self.alone

    @property
    def recursion_limit(self) -> int:
        return 250 + self.max_queries * (2 * self.max_corrections + 2) + 2 * self.max_refinements


def wire(recipe: Quorum, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    write = partial(write_sql, styles=STYLES if recipe.styles else UNSTYLED)
    graph.add_batch(voting.dispatch, wire_branch(recipe, write, max_refinements=recipe.max_refinements))
    before = []
    if recipe.linking != "none":
        before.append(LINKERS[recipe.linking])
        graph.add_step(before[-1], partial(schema_linking.link_schema, linking=recipe.linking))
    again = "send_candidates"
    if recipe.plan != "never":
        graph.add_step("Planner", partial(planning.plan_if_needed, when=recipe.plan))
        graph.add_edge("Planner", again)
        again = "Planner"
    graph.add_chain(*before, again)
    decided = _add_readings(graph, recipe, graph.add_answer(again=again))
    revised = _add_revision(graph, recipe, decided) if recipe.revises else decided
    if recipe.checks:
        graph.add_step("check_winner", checking.check_winner)
        objected: Paths = {"revise": revised, "go_on": decided}
        graph.add_conditional_edges("check_winner", checking.after_check, objected)
        decided = "check_winner"
    checked = decided
    if recipe.validation != "never":
        graph.add_step("Validator", winner.validate_winner)
        rejected: Paths = {"revise": revised, "go_on": decided}
        graph.add_conditional_edges("Validator", winner.after_validation, rejected)
        checked = "Validator"
    ways: Paths = {"dispatch": again, "validate": checked, "answer": decided}
    if recipe.judge:
        graph.add_step("Judge", tie_breaking.ask_judge)
        graph.add_edge("Judge", checked)
        ways["judge"] = "Judge"
    if recipe.explores:
        ways["explore"], found = graph.add_exploration(
            max_queries=recipe.max_queries, max_corrections=recipe.max_corrections
        )
        graph.add_edge(found, "send_candidates")
    graph.add_conditional_edges("Consensus", after_quorum_vote(recipe), ways)
    return graph


def _add_revision(graph: RecipeGraph, recipe: Quorum, decided: str) -> str:
    """What is objected to may be revised; the revision is run and weighed against it."""
    branch = wire_branch(recipe, take_query, max_refinements=recipe.max_refinements, writer="take_query")
    graph.add_step("Reviser", winner.revise_winner)
    graph.add_step("send_revision", winner.send_revision)
    graph.add_branch("revision", branch)
    graph.add_step("weigh_revision", winner.weigh_revision)
    ways: Paths = {"send": "send_revision", "go_on": decided}
    graph.add_conditional_edges("Reviser", winner.after_revision, ways)
    graph.add_conditional_edges("send_revision", fan_out("revision"), ["revision"])
    graph.add_edge("revision", "weigh_revision")
    graph.add_edge("weigh_revision", decided)
    return "Reviser"


def _add_readings(graph: RecipeGraph, recipe: Quorum, decided: str) -> str:
    """What else the question could mean is written, run and held against the answer."""
    repairs = min(1, recipe.max_refinements)
    branch = wire_branch(recipe, take_query, max_refinements=repairs, max_empty=0, writer="take_query")
    graph.add_step("ReadingWriter", partial(readings.write_readings, most=recipe.readings))
    graph.add_branch("reading", branch, into="read")
    graph.add_step("weigh_readings", readings.weigh_readings)
    graph.add_conditional_edges("ReadingWriter", readings.fan_out_readings(decided), ["reading", decided])
    graph.add_edge("reading", "weigh_readings")
    graph.add_edge("weigh_readings", decided)
    return "ReadingWriter"


def after_quorum_vote(recipe: Quorum) -> Callable[[RunState], Way]:
    """The router after a vote."""

    def route(state: RunState) -> Way:
        vote = state.vote
        if voting.route_vote(state) == "dispatch":
            explore = recipe.explores and not state.explored and close_rivals(vote)
            return "explore" if explore else "dispatch"
        if vote is None or state.limited or not vote.clusters or vote.cannot_answer:
            return "answer"
        if recipe.judge and vote.tie:
            return "judge"
        return "answer" if recipe.validation == "doubt" and unanimous(vote) else "validate"

    return route


def unanimous(vote: Vote) -> bool:
    """Whether at least three candidates have a result that can vote, all the same, and none failed; or the
    first one's stands alone."""
    if vote.stopping == FIRST:
        return True
    return len(vote.clusters) == 1 and vote.voters == vote.cast >= 3 and not vote.blank


RECIPE = Quorum(
    name="quorum",
    summary="Few, different candidates that vote; explore, judge and write more only where they disagree.",
    paper="none: Quorum's own",
    agents=(
        "knowledge_retriever",
        "draft_linker",
        "table_linker",
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
