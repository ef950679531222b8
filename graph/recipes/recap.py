"""ReCAPAgent-SQL (paper 004, section 3.3): plan, act, critique, refine and validate, then vote.

    open → documents → (link) ─ Send × experts ─ consensus → answer
    one candidate:  plan ⇄ critique → syntax → act ⇄ look;  act → critique → run → validate → finish
                    run → refine → run → critique → validate;  critique → run where it corrects
                    run → link → plan ⇄ critique → refine on a schema error
                    validate → act on rejection;  run, refine → act once the repairs are used up

The steps and routers are in ``quorum.graph.nodes.recap``. Five refinements and ten actions are ours: the
paper leaves the numbers open. ``DEVIATIONS`` says where the recipe departs from the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from langgraph.graph import END, START

from quorum.agents import explorers, linkers, planners, refiners
from quorum.graph.disagreement import close_rivals
from quorum.graph.nodes import candidate, schema_linking, tie_breaking, voting
from quorum.graph.nodes import recap as loop
from quorum.graph.nodes.routes import after_model
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, branch_graph, fan_out, is_short, run_graph
from quorum.graph.recipes.recipe import (
    LATER,
    PROMPTS,
    VOTES,
    AtLeastOne,
    Count,
    Deviation,
    PaperRecipe,
    switch,
)
from quorum.graph.state import RunState

Exploring: TypeAlias = Literal["never", "disputes", "always"]

DEVIATIONS = (
    PROMPTS,
    *VOTES,
    Deviation(
        ours="Documents, and what a large schema is linked to, are found once and shared by all candidates.",
        paper="each model runs all of it by itself; their answers vote (3.1.2, 3.3)",
        why="All prompts share a cached prefix.",
    ),
    Deviation(
        ours="Action writes the whole query at once and sees the whole plan.",
        paper="each step of the plan is turned into a fragment or a look at the data (3.3.5)",
        why="One call in place of one for each step; it may still look first.",
    ),
    Deviation(
        ours="A query of Action's is reviewed before it runs, one of the SelfRefiner's after it ran, with "
        "its result; a correction is not reviewed again.",
        paper="the SQLCritique reviews each query (Table 1) and each result (3.3.5, 3.3.6)",
        why="The Validator judges every result next. One call for each query in place of two.",
    ),
    Deviation(
        ours="The same error twice in a row is linked for once.",
        paper="the SchemaLinker is called at each schema error (Table 1)",
        why="What it found for this very error is already in the prompts.",
    ),
    Deviation(
        ours="What the SchemaLinker names is cut from the catalog, with keys, in the usual notation.",
        paper="its own text, table(column:TYPE[values]), is shown (3.3.4)",
        why="Names stay spelt and quoted as SQL needs them, and none is invented.",
    ),
    Deviation(
        ours="The SelfRefiner is shown the plan that was written anew after linking.",
        paper="its prompt lists no plan (3.3.6)",
        why="It writes the next query, so the new plan would reach nobody in time.",
    ),
    Deviation(
        ours="The Validator sees the tables used, types and numbers of distinct values, up to ten rows, the "
        "documents and the expected format as well.",
        paper="column names, NULL counts, number of rows, three rows (3.3.7)",
        why="It cannot judge a business term or a small result without them.",
    ),
    Deviation(
        ours="Files are looked at by commands that are run in process over text made from the catalog.",
        paper="shell commands in a Docker container (3.3.4)",
        why="Nothing that a model writes is executed as code.",
    ),
    Deviation(
        ours="Documents are found by words; `retrieval=hybrid` adds embeddings.",
        paper="embeddings and FAISS (3.3.2)",
        why="It works without a model to download.",
    ),
    LATER,
)


@dataclass(frozen=True)
class Recap(PaperRecipe):
    """Its switches and limits."""

    own_plans: bool = switch(True, "each candidate plans by itself; else all follow one plan")
    plan_critique: bool = switch(True, "review each plan")
    syntax: bool = switch(True, "look up the dialect's syntax after planning")
    sql_critique: bool = switch(True, "review each query before it runs, a refined one with its result")
    validation: bool = switch(True, "judge each candidate's result")
    link_on_error: bool = switch(True, "link the schema where a table or column was not found")
    replan: bool = switch(True, "plan anew from what was linked after such an error, for this candidate")
    max_plans: AtLeastOne = switch(
        1 + planners.MAX_PLAN_REVIEWS,
        "times a plan is written, the first included; each but the last is reviewed",
    )
    max_refinements: Count = switch(
        refiners.MAX_REFINEMENTS, "repairs of one query of Action's", paper="open"
    )
    confirm_empty: bool = switch(
        False,
        "the SelfRefiner may confirm an empty result (ours)",
    )
    max_actions: AtLeastOne = switch(10, "actions of one candidate", paper="open")
    max_link_steps: Count = switch(linkers.MAX_LINK_STEPS, "commands of the SchemaLinker")
    exploration: Exploring = switch(
        "never", "look into the database where strong answers disagree or there is none; `always`: at once"
    )
    max_queries: Count = switch(explorers.MAX_QUERIES, "exploration queries", paper="none")
    max_corrections: Count = switch(explorers.MAX_TRIES, "corrections of one exploration query", paper="none")

    @property
    def explores(self) -> bool:
        """True if there is any column exploration."""
        return self.exploration != "never" and self.max_queries > 0

    @property
    def reviews_plans(self) -> bool:
        """True if a plan is reviewed: one that may be written again."""
        return self.plan_critique and self.max_plans > 1

    @property
    def links_on_error(self) -> bool:
        """True if a schema error calls the SchemaLinker; what it finds is for the repair."""
        return self.link_on_error and self.max_link_steps > 0 and self.max_refinements > 0

    @property
    def replans(self) -> bool:
        """True if a candidate plans anew after a schema error."""
        return self.replan and self.links_on_error

    @property
    def recursion_limit(self) -> int:
        run = 2 * self.max_plans + self.max_queries * (2 * self.max_corrections + 2) + 200
        repair = 4 + 2 * self.max_plans
        return max(run, self.max_actions * (5 + repair * self.max_refinements) + 2 * self.max_plans + 20)


def wire(recipe: Recap, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    at_once = recipe.explores and recipe.exploration == "always"
    planned = "ColumnExplorer" if at_once else "send_candidates"
    first = planned if recipe.own_plans else "Planner"
    if recipe.max_link_steps:
        graph.add_beginning("SchemaLinker", first, skips=is_short)
        link = partial(schema_linking.link_schema, linking="files", max_steps=recipe.max_link_steps)
        graph.add_step("SchemaLinker", link)
    else:
        graph.add_beginning(first)
    if not recipe.own_plans:
        _add_planning(graph, recipe, {"write": "SyntaxRetriever" if recipe.syntax else planned})
        if recipe.syntax:
            graph.add_step("SyntaxRetriever", loop.retrieve_syntax)
            graph.add_edge("SyntaxRetriever", planned)
    if recipe.explores:
        graph.add_exploration(max_queries=recipe.max_queries, max_corrections=recipe.max_corrections)
    if at_once:
        graph.add_edge("keep_findings", "send_candidates")
    graph.add_batch(voting.dispatch, wire_candidate(recipe))
    graph.add_edge("candidate", "Consensus")
    disputed: Paths = {"explore": "ColumnExplorer"} if recipe.explores and not at_once else {}
    voted = partial(after_vote, recipe=recipe)
    graph.add_vote(voted, {"dispatch": "send_candidates", **disputed, **ENDS})
    if disputed:
        more: Paths = {"dispatch": "send_more", "answer": "clarify"}
        graph.add_conditional_edges("keep_findings", after_findings, more)
        graph.add_step("send_more", partial(tie_breaking.dispatch_again, merge_rounds=True))
        graph.add_conditional_edges("send_more", fan_out("candidate"), ["candidate"])
    graph.add_answer(again="send_candidates" if recipe.own_plans else "Planner")
    return graph


def _add_planning(graph: RecipeGraph, recipe: Recap, ways: Paths) -> None:
    """Add Planner and PlanCritique; ``ways`` lead on from a plan."""
    graph.add_step("Planner", loop.write_plan)
    most = recipe.max_plans if recipe.reviews_plans else 1
    review: Paths = {"review": "PlanCritique"} if recipe.reviews_plans else {}
    graph.add_conditional_edges("Planner", partial(loop.after_plan, max_plans=most), {**review, **ways})
    if recipe.reviews_plans:
        graph.add_step("PlanCritique", loop.review_plan)
        graph.add_conditional_edges("PlanCritique", loop.after_plan_review, {"plan": "Planner", **ways})


def after_vote(state: RunState, *, recipe: Recap) -> Literal["dispatch", "explore", "clarify", "answer"]:
    """Route after a vote to more candidates, to exploration once where it is disputed, or to the end."""
    if voting.route_vote(state) == "dispatch":
        return "dispatch"
    disputed = tie_breaking.unresolved(state) or close_rivals(state.vote)
    more = recipe.exploration == "disputes" and not state.explored and not state.limited
    return "explore" if recipe.explores and more and disputed else voting.ending(state)


def after_findings(state: RunState) -> Literal["dispatch", "answer"]:
    """Route to candidates again if exploration found anything, else leave the vote as it is."""
    return "dispatch" if state.extras.findings and not state.limited else "answer"


def wire_candidate(recipe: Recap) -> RecipeGraph:
    """Return the uncompiled graph of one candidate's branch: the execution loop of Table 1."""
    graph = branch_graph(recipe)
    to_run = "SQLCritique" if recipe.sql_critique else "run_sql"
    to_validate = "Validator" if recipe.validation else END
    graph.add_edge(START, "Planner" if recipe.own_plans else "Action")
    if recipe.own_plans or recipe.replans:
        ways: Paths = {"refine": "SelfRefiner"} if recipe.replans else {}
        if recipe.own_plans:
            ways["write"] = "SyntaxRetriever" if recipe.syntax else "Action"
        _add_planning(graph, recipe, {**ways, "finish": END})
    if recipe.own_plans and recipe.syntax:
        graph.add_step("SyntaxRetriever", loop.retrieve_syntax)
        graph.add_conditional_edges("SyntaxRetriever", after_model, {"go_on": "Action", "finish": END})
    graph.add_step("Action", partial(loop.act, max_actions=recipe.max_actions))
    graph.add_conditional_edges("Action", loop.after_action, {"sql": to_run, "act": "Action", "finish": END})
    if recipe.sql_critique:
        graph.add_step("SQLCritique", loop.review_sql)
        reviewed: Paths = {"run": "run_sql", "validate": to_validate, "finish": END}
        graph.add_conditional_edges("SQLCritique", loop.after_sql_review, reviewed)
    graph.add_step("run_sql", candidate.run_sql)
    ran: Paths = {"validate": to_validate, "act": "Action", "finish": END}
    if recipe.max_refinements:
        ran |= {"link": "SchemaLinker" if recipe.links_on_error else "SelfRefiner", "refine": "SelfRefiner"}
        ran["review"] = "SQLCritique" if recipe.sql_critique else to_validate
    graph.add_conditional_edges(
        "run_sql", partial(loop.after_run, max_refinements=recipe.max_refinements), ran
    )
    if recipe.links_on_error:
        link = partial(schema_linking.link_after_error, max_steps=recipe.max_link_steps)
        graph.add_step("SchemaLinker", link)
        linked: Paths = {"plan": "Planner" if recipe.replans else "SelfRefiner"}
        linked |= {"refine": "SelfRefiner", "finish": END}
        graph.add_conditional_edges("SchemaLinker", loop.after_linking, linked)
    if recipe.max_refinements:
        graph.add_step("SelfRefiner", partial(candidate.refine, confirm=recipe.confirm_empty))
        repaired: Paths = {"run": "run_sql", "act": "Action", "finish": END}
        graph.add_conditional_edges("SelfRefiner", loop.after_repair, repaired)
    if recipe.validation:
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
    deviations=DEVIATIONS,
)
