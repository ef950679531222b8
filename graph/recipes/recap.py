"""ReCAPAgent-SQL (paper 004, section 3.3): plan, act, critique, refine and validate, then vote.

    open → documents → (link) → plan ⇄ critique → syntax ─ Send × votes ─ consensus → answer
    one candidate:  act ⇄ look;  act → critique → run → validate → finish
                    run → (link) → refine → critique → run ...;  validate → act on rejection

Kept from the paper: roles, triggers (Table 1), three rounds of plan critique, 30 linker steps,
five refinements (its Termination Criteria leave the number open). Ours: retrieval and planning
are done once and shared by all candidates, so that their prompts share a cached prefix; a
correction by the SQLCritique takes effect at once, so its reasons are not passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from langgraph.graph import END, START

from quorum.agents import column_explorer, exploration_corrector, schema_linker, self_refiner
from quorum.agents.plan_critique import MAX_ROUNDS as PLAN_ROUNDS
from quorum.graph.close_rivals import close_rivals
from quorum.graph.nodes import candidate, planning, prepare, tie_breaking, voting
from quorum.graph.nodes.routes import Routes, after_action, after_model, after_refinement
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RecipeGraph, branch_graph, fan_out, run_graph
from quorum.graph.recipes.recipe import AtLeastOne, Count, Recipe, switch
from quorum.graph.state import RunState

Exploring: TypeAlias = Literal["never", "disputes", "always"]


@dataclass(frozen=True)
class Recap(Recipe):
    """Its switches and limits."""

    plan_critique: bool = switch(True, "review each plan")
    syntax: bool = switch(True, "look up the dialect's syntax after planning")
    sql_critique: bool = switch(True, "review each query before it runs")
    validation: bool = switch(True, "judge each candidate's result")
    link_on_error: bool = switch(True, "link the schema where a table or column was not found")
    max_plans: AtLeastOne = switch(PLAN_ROUNDS, "times a plan is written, the first included")
    max_refinements: Count = switch(self_refiner.MAX_ROUNDS, "repairs of one candidate", paper="open")
    max_actions: AtLeastOne = switch(10, "actions of one candidate", paper="open")
    max_link_steps: Count = switch(schema_linker.MAX_STEPS, "commands of the SchemaLinker")
    exploration: Exploring = switch(
        "never", "look into the database where strong answers disagree or there is none; `always`: at once"
    )
    max_queries: Count = switch(column_explorer.MAX_QUERIES, "exploration queries", paper="none")
    max_corrections: Count = switch(
        exploration_corrector.MAX_TRIES, "corrections of one exploration query", paper="none"
    )
    max_validations: Count = switch(2, "validations of one candidate", paper="open")

    @property
    def explores(self) -> bool:
        """Whether there is any column exploration."""
        return self.exploration != "never" and self.max_queries > 0

    @property
    def recursion_limit(self) -> int:
        run = 2 * self.max_plans + self.max_queries * (2 * self.max_corrections + 2) + 200
        return max(run, 4 * (self.max_actions + self.max_refinements) + 20)


def wire(recipe: Recap, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    graph.add_step("SchemaLinker", partial(prepare.link_large_schema, max_steps=recipe.max_link_steps))
    graph.add_step("Planner", planning.write_plan)
    graph.add_batch(voting.dispatch, wire_candidate(recipe))
    graph.add_chain("open_run", "KnowledgeRetriever", "SchemaLinker", "Planner")
    ways: Paths = {"dispatch": "send_candidates", "answer": graph.add_answer(again="Planner")}
    following = _add_exploration(graph, recipe, ways) if recipe.explores else "send_candidates"
    if recipe.syntax:
        graph.add_step("SyntaxRetriever", prepare.retrieve_syntax)
        graph.add_edge("SyntaxRetriever", following)
        following = "SyntaxRetriever"
    if recipe.plan_critique:
        graph.add_step("Critique", planning.review_plan)
        graph.add_edge("Planner", "Critique")
        routes: Paths = {"write_plan": "Planner", "go_on": following}
        graph.add_conditional_edges("Critique", planning.after_review(recipe.max_plans), routes)
    else:
        graph.add_edge("Planner", following)
    graph.add_conditional_edges("Consensus", after_vote(recipe), ways)
    return graph


def _add_exploration(graph: RecipeGraph, recipe: Recap, ways: Paths) -> str:
    """Column exploration (ReFoRCE's), and the candidates that see its findings; the node after the plan."""
    begin, end = graph.add_exploration(max_queries=recipe.max_queries, max_corrections=recipe.max_corrections)
    if recipe.exploration == "always":
        graph.add_edge(end, "send_candidates")
        return begin
    graph.add_step("send_more", tie_breaking.dispatch_again)
    graph.add_conditional_edges("send_more", fan_out("candidate"), ["candidate"])
    more: Paths = {"dispatch": "send_more", "answer": ways["answer"]}
    graph.add_conditional_edges(end, after_findings, more)
    ways["explore"] = begin
    return "send_candidates"


def after_vote(recipe: Recap) -> Callable[[RunState], Literal["dispatch", "explore", "answer"]]:
    """The router after a vote: more candidates, exploration once where it is disputed, or the answer."""

    def route(state: RunState) -> Literal["dispatch", "explore", "answer"]:
        if voting.route_vote(state) == "dispatch":
            return "dispatch"
        disputed = tie_breaking.unresolved(state) or close_rivals(state.vote)
        more = recipe.exploration == "disputes" and not state.explored and not state.limited
        return "explore" if recipe.explores and more and disputed else "answer"

    return route


def after_findings(state: RunState) -> Literal["dispatch", "answer"]:
    """The router after exploration: candidates again if it found anything, else the vote as it is."""
    return "dispatch" if state.extras.findings and not state.limited else "answer"


def wire_candidate(recipe: Recap) -> RecipeGraph:
    """The uncompiled graph of one candidate's branch."""
    graph = branch_graph(recipe)
    routes = Routes(recipe.max_refinements, recipe.max_validations)
    to_run = "Critique" if recipe.sql_critique else "run_sql"
    graph.add_step("Action", partial(candidate.act, max_actions=recipe.max_actions))
    graph.add_step("run_sql", candidate.run_sql)
    graph.add_step("SelfRefiner", candidate.refine)
    graph.add_step("finish", candidate.finish)
    graph.add_edge(START, "Action")
    graph.add_conditional_edges("Action", after_action, {"sql": to_run, "act": "Action", "finish": "finish"})
    graph.add_conditional_edges("SelfRefiner", after_refinement, {"go_on": to_run, "finish": "finish"})
    if recipe.sql_critique:
        graph.add_step("Critique", candidate.review_sql)
        graph.add_conditional_edges("Critique", after_model, {"go_on": "run_sql", "finish": "finish"})
    after_run: Paths = {"refine": "SelfRefiner", "finish": "finish"}
    after_run["validate"] = "Validator" if recipe.validation else "finish"
    after_run["link"] = "SchemaLinker" if recipe.link_on_error else "SelfRefiner"
    graph.add_conditional_edges("run_sql", routes.after_run, after_run)
    if recipe.link_on_error:
        graph.add_step("SchemaLinker", partial(candidate.link, max_steps=recipe.max_link_steps))
        graph.add_conditional_edges("SchemaLinker", after_model, {"go_on": "SelfRefiner", "finish": "finish"})
    if recipe.validation:
        again: Paths = {"act": "Action", "finish": "finish"}
        graph.add_step("Validator", partial(candidate.validate, max_validations=recipe.max_validations))
        graph.add_conditional_edges("Validator", routes.after_validation, again)
    graph.add_edge("finish", END)
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
        "action",
        "sql_critique",
        "schema_linker",
        "self_refiner",
        "validator",
    ),
    wire=wire,
)
