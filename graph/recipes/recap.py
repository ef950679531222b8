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

from dataclasses import dataclass
from functools import partial

from langgraph.graph import END, START

from quorum.agents import schema_linker, self_refiner
from quorum.agents.plan_critique import MAX_ROUNDS as PLAN_ROUNDS
from quorum.graph.nodes import candidate, planning, prepare, voting
from quorum.graph.nodes.routes import Routes, after_action, after_model, after_refinement
from quorum.graph.nodes.step import Steps
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import (
    CandidateGraph,
    Paths,
    RunGraph,
    as_node,
    branch_graph,
    fan_out,
    run_graph,
)
from quorum.graph.recipes.ending import add_answer
from quorum.graph.recipes.recipe import AtLeastOne, Count, Recipe


@dataclass(frozen=True)
class Recap(Recipe):
    """Its switches and limits.

    Attributes:
        plan_critique, syntax, sql_critique, validation, link_on_error: Switches of single agents.
        max_plans: Times a plan is written, the first included.
        max_refinements, max_actions, max_link_steps, max_validations: Limits of one candidate.
    """

    plan_critique: bool = True
    syntax: bool = True
    sql_critique: bool = True
    validation: bool = True
    link_on_error: bool = True
    max_plans: AtLeastOne = PLAN_ROUNDS
    max_refinements: Count = self_refiner.MAX_ROUNDS
    max_actions: AtLeastOne = 10
    max_link_steps: Count = schema_linker.MAX_STEPS
    max_validations: Count = 2

    @property
    def recursion_limit(self) -> int:
        run = 2 * self.max_plans + 200
        return max(run, 4 * (self.max_actions + self.max_refinements) + 20)


def wire(recipe: Recap, options: type[RunOptions] = RunOptions) -> RunGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    steps = Steps(recipe)
    graph = run_graph(options)
    graph.add_node("open_run", steps.first(prepare.open_run))
    graph.add_node("retrieve_documents", steps.run(prepare.retrieve_documents))
    graph.add_node(
        "link_large_schema", steps.run(partial(prepare.link_large_schema, max_steps=recipe.max_link_steps))
    )
    graph.add_node("write_plan", steps.run(planning.write_plan))
    graph.add_node("send_candidates", steps.run(voting.deal))
    graph.add_node("candidate", as_node(wire_candidate(recipe).compile()))
    graph.add_node("consensus", steps.run(voting.consensus), defer=True)

    graph.add_edge(START, "open_run")
    graph.add_edge("open_run", "retrieve_documents")
    graph.add_edge("retrieve_documents", "link_large_schema")
    graph.add_edge("link_large_schema", "write_plan")
    last = "write_plan"
    if recipe.plan_critique:
        graph.add_node("review_plan", steps.run(planning.review_plan))
        graph.add_edge(last, "review_plan")
        following = "retrieve_syntax" if recipe.syntax else "send_candidates"
        routes: Paths = {"write_plan": "write_plan", "go_on": following}
        graph.add_conditional_edges("review_plan", planning.after_review(recipe.max_plans), routes)
        last = ""
    if recipe.syntax:
        graph.add_node("retrieve_syntax", steps.run(prepare.retrieve_syntax))
        if last:
            graph.add_edge(last, "retrieve_syntax")
        last = "retrieve_syntax"
    if last:
        graph.add_edge(last, "send_candidates")
    graph.add_conditional_edges("send_candidates", fan_out, ["candidate"])
    graph.add_edge("candidate", "consensus")
    again: Paths = {"deal": "send_candidates", "answer": add_answer(graph, steps, deal="write_plan")}
    graph.add_conditional_edges("consensus", voting.after_vote, again)
    return graph


def wire_candidate(recipe: Recap) -> CandidateGraph:
    """The uncompiled graph of one candidate's branch."""
    steps = Steps(recipe)
    graph = branch_graph()
    routes = Routes(recipe.max_refinements, recipe.max_validations)
    to_run = "review_sql" if recipe.sql_critique else "run_sql"
    graph.add_node("act", steps.branch(partial(candidate.act, max_actions=recipe.max_actions)))
    graph.add_node("run_sql", steps.branch(candidate.run_sql))
    graph.add_node("refine", steps.branch(candidate.refine))
    graph.add_node("finish", steps.branch(candidate.finish))
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", after_action, {"sql": to_run, "act": "act", "finish": "finish"})
    graph.add_conditional_edges("refine", after_refinement, {"go_on": to_run, "finish": "finish"})
    if recipe.sql_critique:
        graph.add_node("review_sql", steps.branch(candidate.review_sql))
        graph.add_conditional_edges("review_sql", after_model, {"go_on": "run_sql", "finish": "finish"})
    after_run: Paths = {"refine": "refine", "finish": "finish"}
    after_run["validate"] = "validate" if recipe.validation else "finish"
    after_run["link"] = "link" if recipe.link_on_error else "refine"
    graph.add_conditional_edges("run_sql", routes.after_run, after_run)
    if recipe.link_on_error:
        link = partial(candidate.link, max_steps=recipe.max_link_steps)
        graph.add_node("link", steps.branch(link))
        graph.add_conditional_edges("link", after_model, {"go_on": "refine", "finish": "finish"})
    if recipe.validation:
        validate = partial(candidate.validate, max_validations=recipe.max_validations)
        graph.add_node("validate", steps.branch(validate))
        graph.add_conditional_edges("validate", routes.after_validation, ["act", "finish"])
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
