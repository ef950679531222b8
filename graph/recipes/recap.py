"""ReCAPAgent-SQL (paper 004, section 3.3): plan, act, critique, refine and validate, then vote.

    open → documents → (link) ─ Send × experts ─ consensus → answer
    one candidate:  plan ⇄ critique → syntax → act ⇄ look;  act → critique → run → validate → finish
                    run → refine → run → critique → validate;  critique → run where it corrects
                    run → link → plan ⇄ critique → refine on a schema error
                    validate → act on rejection;  run, refine → act once the repairs are used up

The steps and routers are in ``quorum.graph.nodes.recap``. Five refinements and ten actions are ours: the
paper leaves the numbers open. ``docs/recipes.md`` says where the recipe departs from the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from langgraph.graph import END, START

from quorum.agents import explorers, linkers, planners, refiners
from quorum.graph.disagreement import close_rivals
from quorum.graph.nodes import candidate, schema_linking, tie_breaking, voting
from quorum.graph.nodes import recap as loop
from quorum.graph.nodes.routes import after_model
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, branch_graph, fan_out, is_short, run_graph
from quorum.graph.recipes.recipe import AtLeastOne, Count, PaperRecipe, switch
from quorum.graph.state import RunState

CONFIRM_EMPTY = "the SelfRefiner may confirm an empty result (ours)"


@dataclass(frozen=True)
class Recap(PaperRecipe):
    """Its switches and limits."""

    own_plans: bool = switch(True, "each candidate plans by itself; else all follow one plan")
    max_plans: AtLeastOne = switch(
        1 + planners.MAX_PLAN_REVIEWS,
        "times a plan is written, the first included; each but the last is reviewed",
    )
    max_refinements: Count = switch(
        refiners.MAX_REFINEMENTS, "repairs of one query of Action's", paper="open"
    )
    confirm_empty: bool = switch(False, CONFIRM_EMPTY)
    max_actions: AtLeastOne = switch(10, "actions of one candidate", paper="open")
    max_link_steps: AtLeastOne = switch(linkers.MAX_LINK_STEPS, "commands of the SchemaLinker")
    exploration: bool = switch(
        False, "look into the database where strong answers disagree or there is none", paper="none"
    )
    max_queries: Count = switch(explorers.MAX_QUERIES, "exploration queries", paper="none")
    max_corrections: Count = switch(explorers.MAX_TRIES, "corrections of one exploration query", paper="none")

    @property
    def recursion_limit(self) -> int:
        run = 2 * self.max_plans + self.max_queries * (2 * self.max_corrections + 2) + 200
        repair = 4 + 2 * self.max_plans
        return max(run, self.max_actions * (5 + repair * self.max_refinements) + 2 * self.max_plans + 20)


def wire(recipe: Recap, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    first = "send_candidates" if recipe.own_plans else "Planner"
    graph.add_beginning("SchemaLinker", first, skips=is_short)
    link = partial(schema_linking.link_by_files, max_steps=recipe.max_link_steps)
    graph.add_step("SchemaLinker", link)
    if not recipe.own_plans:
        _add_planning(graph, recipe, {"write": "SyntaxRetriever"})
        graph.add_edge("SyntaxRetriever", "send_candidates")
    graph.add_batch(voting.dispatch, wire_candidate(recipe))
    graph.add_edge("candidate", "Consensus")
    disputed: Paths = {"explore": "ColumnExplorer"} if recipe.exploration else {}
    voted = partial(after_vote, recipe=recipe)
    graph.add_vote(voted, {"dispatch": "send_candidates", **disputed, **ENDS})
    if recipe.exploration:
        graph.add_exploration(max_queries=recipe.max_queries, max_corrections=recipe.max_corrections)
        more: Paths = {"dispatch": "send_more", "answer": "clarify"}
        graph.add_conditional_edges("keep_findings", after_findings, more)
        graph.add_step("send_more", voting.dispatch_all)
        graph.add_conditional_edges("send_more", fan_out("candidate"), ["candidate"])
    graph.add_answer(again=first)
    return graph


def _add_planning(graph: RecipeGraph, recipe: Recap, ways: Paths) -> None:
    """Add Planner, PlanCritique and SyntaxRetriever; ``ways`` lead on from a plan."""
    planned = partial(loop.after_plan, max_plans=recipe.max_plans)
    graph.add_step("Planner", loop.write_plan)
    graph.add_conditional_edges("Planner", planned, {"review": "PlanCritique", **ways})
    graph.add_step("PlanCritique", loop.review_plan)
    graph.add_conditional_edges("PlanCritique", loop.after_plan_review, {"plan": "Planner", **ways})
    if "write" in ways:
        graph.add_step("SyntaxRetriever", loop.retrieve_syntax)


def after_vote(state: RunState, *, recipe: Recap) -> Literal["dispatch", "explore", "clarify", "answer"]:
    """Route after a vote to more candidates, to exploration once where it is disputed, or to the end."""
    if voting.route_vote(state) == "dispatch":
        return "dispatch"
    disputed = tie_breaking.unresolved(state) or close_rivals(state.vote)
    explores = recipe.exploration and not state.explored and not state.limited
    return "explore" if explores and disputed else voting.ending(state)


def after_findings(state: RunState) -> Literal["dispatch", "answer"]:
    """Route to candidates again if exploration found anything, else leave the vote as it is."""
    return "dispatch" if state.extras.findings and not state.limited else "answer"


def wire_candidate(recipe: Recap) -> RecipeGraph:
    """Return the uncompiled graph of one candidate's branch: the execution loop of Table 1."""
    graph = branch_graph(recipe)
    planned: Paths = {"refine": "SelfRefiner", "finish": END}
    if recipe.own_plans:
        planned["write"] = "SyntaxRetriever"
    graph.add_edge(START, "Planner" if recipe.own_plans else "Action")
    _add_planning(graph, recipe, planned)
    if recipe.own_plans:
        graph.add_conditional_edges("SyntaxRetriever", after_model, {"go_on": "Action", "finish": END})
    graph.add_step("Action", partial(loop.act, max_actions=recipe.max_actions))
    acted: Paths = {"sql": "SQLCritique", "act": "Action", "finish": END}
    graph.add_conditional_edges("Action", loop.after_action, acted)
    graph.add_step("SQLCritique", loop.review_sql)
    reviewed: Paths = {"run": "run_sql", "validate": "Validator", "finish": END}
    graph.add_conditional_edges("SQLCritique", loop.after_sql_review, reviewed)
    graph.add_step("run_sql", candidate.run_sql)
    ran: Paths = {"review": "SQLCritique", "validate": "Validator", "act": "Action", "finish": END}
    ran |= {"link": "SchemaLinker", "refine": "SelfRefiner"}
    after_run = partial(loop.after_run, max_refinements=recipe.max_refinements)
    graph.add_conditional_edges("run_sql", after_run, ran)
    link = partial(schema_linking.link_after_error, max_steps=recipe.max_link_steps)
    graph.add_step("SchemaLinker", link)
    linked: Paths = {"plan": "Planner", "refine": "SelfRefiner", "finish": END}
    graph.add_conditional_edges("SchemaLinker", loop.after_linking, linked)
    graph.add_step("SelfRefiner", partial(candidate.refine, confirm=recipe.confirm_empty))
    repaired: Paths = {"run": "run_sql", "act": "Action", "finish": END}
    graph.add_conditional_edges("SelfRefiner", loop.after_repair, repaired)
    graph.add_step("Validator", candidate.validate)
    graph.add_conditional_edges("Validator", loop.after_validation, {"act": "Action", "finish": END})
    return graph


RECIPE = Recap(
    name="recap",
    summary="Plan, act, critique, refine and validate each candidate, then vote (ReCAPAgent-SQL).",
    paper="LLM-Based SQL Generation: Prompting, Self-Refinement, and Adaptive Weighted Majority Voting, 3.3",
    agents=(
        "knowledge_retriever",
        "planner",
        "plan_critique",
        "syntax_retriever",
        "column_explorer",
        "exploration_corrector",
        "action",
        "sql_critique",
        "schema_linker",
        "self_refiner",
        "validator",
    ),
    wire=wire,
    votes=1,
)
