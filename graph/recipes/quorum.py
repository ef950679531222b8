"""Quorum's own recipe: as few calls as an answer can be trusted with, more only where candidates disagree.

    open → documents → schema (→ plan) ─ Send × wave ─ consensus ┬─ all agree: answer
                                                                 ├─ decided:   validate → answer
                                                                 ├─ open:      another wave
                                                                 └─ dispute:   explore → another wave
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
from typing import Any, Literal

from quorum.agents.sql_writer import Style
from quorum.graph.contest import contest
from quorum.graph.nodes import narrowing, planning, prepare, settling, voting, winner
from quorum.graph.nodes.narrowing import Linking
from quorum.graph.nodes.planning import Planning
from quorum.graph.nodes.routes import limited
from quorum.graph.nodes.step import Steps
from quorum.graph.nodes.writing import FREE, write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RunGraph, add_chain, as_node, fan_out, run_graph, wire_branch
from quorum.graph.recipes.ending import add_answer
from quorum.graph.recipes.exploring import add_exploration
from quorum.graph.recipes.recipe import Count, Recipe
from quorum.graph.state import RunState

STYLES: tuple[Style, ...] = ("direct", "decomposed", "plan-led")
"""How the candidates of the first wave are written; later ones take turns."""

Validation = Literal["doubt", "always", "never"]
"""When the winner is validated: where not all candidates agree, in any case, or not at all."""

Way = Literal["deal", "explore", "judge", "validate", "answer"]


@dataclass(frozen=True)
class Quorum(Recipe):
    """Its switches and limits.

    Attributes:
        linking: Of a schema above the run's ``link_above`` tokens: by ``drafts``, by ``tables``, or ``none``.
        plan: ``auto`` plans for long questions and those with documents (``quorum.graph.nodes.planning``).
        styles: Off: every candidate is written as its model likes.
        exploration: Look into the database where strong answers disagree.
        judge: A model decides a tie that the waves leave.
        validation: Validate the winner, and revise it once if it is rejected: ``doubt`` where not all agree.
        max_refinements: Repairs of one candidate.
        max_queries, max_corrections: Exploration queries, corrections of each.
    """

    linking: Linking = "drafts"
    plan: Planning = "auto"
    styles: bool = True
    exploration: bool = True
    judge: bool = True
    validation: Validation = "doubt"
    max_refinements: Count = 3
    max_queries: Count = 4
    max_corrections: Count = 1

    @property
    def explores(self) -> bool:
        """Whether there is any column exploration."""
        return self.exploration and self.max_queries > 0

    @property
    def recursion_limit(self) -> int:
        return 250 + self.max_queries * (2 * self.max_corrections + 2) + 2 * self.max_refinements


def wire(recipe: Quorum, options: type[RunOptions] = RunOptions) -> RunGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    steps = Steps(recipe)
    graph = run_graph(options)
    write = partial(write_sql, styles=STYLES if recipe.styles else FREE)
    branch = wire_branch(recipe, write, max_refinements=recipe.max_refinements)
    before = ["open_run", "retrieve_documents", "link_schema"]
    graph.add_node("open_run", steps.first(prepare.open_run))
    graph.add_node("retrieve_documents", steps.run(prepare.retrieve_documents))
    graph.add_node("link_schema", steps.run(partial(narrowing.link_schema, linking=recipe.linking)))
    if recipe.plan != "never":
        graph.add_node("write_plan", steps.run(partial(planning.plan_if_needed, when=recipe.plan)))
        before.append("write_plan")
    graph.add_node("send_candidates", steps.run(voting.deal))
    graph.add_node("candidate", as_node(branch.compile()))
    graph.add_node("consensus", steps.run(voting.consensus), defer=True)
    add_chain(graph, *before, "send_candidates")
    graph.add_conditional_edges("send_candidates", fan_out, ["candidate"])
    graph.add_edge("candidate", "consensus")

    settled = add_answer(graph, steps, deal=before[-1] if recipe.plan != "never" else "send_candidates")
    checked = settled if recipe.validation == "never" else _add_validation(graph, steps, recipe, settled)
    ways: Paths = {"deal": "send_candidates", "validate": checked, "answer": settled}
    if recipe.judge:
        graph.add_node("judge", steps.run(settling.ask_judge))
        graph.add_edge("judge", checked)
        ways["judge"] = "judge"
    if recipe.explores:
        limits = {"max_queries": recipe.max_queries, "max_corrections": recipe.max_corrections}
        ways["explore"], found = add_exploration(graph, steps, **limits)
        graph.add_edge(found, "send_candidates")
    graph.add_conditional_edges("consensus", after_vote(recipe), ways)
    return graph


def _add_validation(graph: RunGraph, steps: Steps, recipe: Quorum, settled: str) -> str:
    """Validate the winner; where it is rejected, a revision may be written, run and weighed against it."""
    branch = wire_branch(recipe, winner.take_revision, max_refinements=recipe.max_refinements)
    graph.add_node("validate_winner", steps.run(winner.validate_winner))
    graph.add_node("revise_winner", steps.run(winner.revise_winner))
    graph.add_node("send_revision", steps.run(winner.send_revision))
    graph.add_node("revision", as_node(branch.compile()))
    graph.add_node("weigh_revision", steps.run(winner.weigh_revision), defer=True)
    rejected: Paths = {"revise": "revise_winner", "go_on": settled}
    graph.add_conditional_edges("validate_winner", winner.after_validation, rejected)
    revised: Paths = {"send": "send_revision", "go_on": settled}
    graph.add_conditional_edges("revise_winner", winner.after_revision, revised)
    graph.add_conditional_edges("send_revision", partial(fan_out, to="revision"), ["revision"])
    graph.add_edge("revision", "weigh_revision")
    graph.add_edge("weigh_revision", settled)
    return "validate_winner"


def after_vote(recipe: Quorum) -> Callable[[RunState], Way]:
    """The router after a vote."""

    def route(state: RunState) -> Way:
        if voting.after_vote(state) == "deal":
            disputed = bool(state["vote"]) and bool(contest(state["vote"]))
            return "explore" if recipe.explores and disputed and not state.get("explored") else "deal"
        if limited(state) or not state["vote"]["clusters"]:
            return "answer"
        if recipe.judge and state["vote"]["tie"]:
            return "judge"
        return "answer" if recipe.validation == "doubt" and unanimous(state["vote"]) else "validate"

    return route


def unanimous(vote: dict[str, Any]) -> bool:
    """Whether three candidates or more have a result that can vote, none has another, and none failed."""
    voters = sum(len(cluster["candidates"]) for cluster in vote["clusters"])
    return len(vote["clusters"]) == 1 and voters == vote["cast"] >= 3 and not vote["blank"]


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
        "column_explorer",
        "exploration_corrector",
        "judge",
        "validator",
        "reviser",
    ),
    wire=wire,
    votes=8,
    strategy="mbr",
    stopping="beta:0.9",
)
