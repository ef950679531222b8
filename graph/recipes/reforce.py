"""ReFoRCE (paper 000, section 3): compress, write and refine candidates, vote, explore what ties.

    open → documents → guidance → schema (→ format) ─ Send × 8 ─ consensus ┬─ answer
                                  tie or no answer ─ Send × 8 more ─ consensus ┘   still a tie: draw
    one candidate:           write → run ⇄ refine
    one of the second round: explore ⇄ correct → write → run ⇄ refine
    of the first version:    run ⇄ again until a result has come twice
                             without an answer: decompose → stage ⇄ review → whole

Kept from the paper: k = 8 at temperature 1, five iterations a candidate, the whole schema up to 50K tokens
and linking above, an exploration for each candidate of the second round with at most ten queries and three
corrections of each, a vote of that round alone, the draw at the end. What is ours stands in
``docs/recipes.md``.
Options of the first version (papers 002 and 003) are switches; the preset ``v1`` sets them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from langgraph.graph import END
from langgraph.types import Send
from pydantic import Field

from quorum.agents import explorers, linkers, refiners
from quorum.graph.nodes import (
    candidate,
    first_version,
    prepare,
    schema_linking,
    tie_breaking,
    voting,
    writing,
)
from quorum.graph.nodes.routes import after_model, after_refinement
from quorum.graph.nodes.step import Step
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import (
    ENDS,
    Paths,
    RecipeGraph,
    branch_graph,
    fan_out,
    run_graph,
    wire_branch,
)
from quorum.graph.recipes.recipe import AtLeastOne, Count, PaperRecipe, switch
from quorum.graph.state import RunState

Tokens = Annotated[int, Field(ge=0)]
Last = Literal["draw_any", "draw", "leave_open"]
Way = Literal["dispatch", "explore", "draw", "draw_any", "judge", "leave_open", "clarify", "answer"]


@dataclass(frozen=True)
class Reforce(PaperRecipe):
    """Its switches and limits."""

    compression: bool = switch(True, "off: every table by itself, however long, and no linking (Table 3)")
    link_above: Tokens = switch(
        linkers.ABOVE_TOKENS,
        "tokens of schema and documents to which it is shown whole, and above which it is linked; the run's "
        "is not used",
    )
    exploration: Literal["ties", "always", "never"] = switch(
        "ties", "look into the database where the vote ties or has no answer; `always`: at once (Table 3)"
    )
    majority_vote: bool = switch(True, "off: one of all candidates that vote is drawn (Table 3)")
    random_selection: bool = switch(True, "draw what still ties; off: it has no answer (Table 3)")
    expected_format: bool = switch(False, "say the answer's form before any SQL (first version)")
    self_consistency: bool = switch(False, "an answer counts once it came twice (first version)")
    cte_refinement: bool = switch(False, "without an answer, build it stage by stage (first version)")
    model_vote: bool = switch(False, "a model decides what still ties, before any draw (first version)")
    max_refinements: Count = switch(
        refiners.MAX_REFINEMENTS - 1, "repairs after a candidate's first try: five iterations in all (App. B)"
    )
    max_empty: Count = switch(refiners.MAX_REFINEMENTS - 1, "of them, repairs of an empty result (Table 6)")
    max_queries: Count = switch(explorers.MAX_QUERIES, "exploration queries")
    row_limit: AtLeastOne = switch(explorers.ROW_LIMIT, "rows that an exploration query asks for (Figure 4)")
    ctes: bool = switch(True, "exploration queries may have CTEs; off in the first version")
    max_corrections: Count = switch(explorers.MAX_TRIES, "corrections of one exploration query")
    max_rewrites: Count = switch(refiners.MAX_REWRITES, "stages rewritten", paper="open")

    def explores(self, when: Literal["ties", "always"]) -> bool:
        """True if candidates explore then."""
        return self.exploration == when and self.max_queries > 0

    @property
    def doubts_blanks(self) -> bool:
        """True too where a result is treated as empty unless it came twice (ReFoRCE first version, 3.2.4)."""
        return self.blanks_give_way or self.self_consistency

    @property
    def recursion_limit(self) -> int:
        queries = self.max_queries * (2 * self.max_corrections + 2)
        return 200 + queries + 3 * self.max_refinements + 4 * self.max_rewrites


def wire(recipe: Reforce, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema.

    Its candidates are threads that know nothing of each other (ReFoRCE first version, equation 6).
    """
    graph = run_graph(recipe, options)
    guidance = partial(prepare.show_guidance, card=recipe.prompts == "house")
    before: dict[str, Step] = {"show_guidance": guidance}
    if recipe.compression:
        before["TableLinker"] = partial(schema_linking.link_by_tables, above=recipe.link_above)
    else:
        before["show_plain_schema"] = schema_linking.show_plain_schema
    if recipe.expected_format:
        before["FormatWriter"] = prepare.write_format
    graph.add_beginning(*before, "send_candidates")
    for name, step in before.items():
        graph.add_step(name, step)
    graph.add_batch(voting.dispatch, wire_candidate(recipe, explores=recipe.explores("always")))
    last = _last(recipe)
    ways: Paths = {"dispatch": "send_candidates", last: last, **ENDS}
    ways |= {"judge": "Judge"} if recipe.model_vote else {}
    if recipe.explores("ties"):
        ways["explore"] = "send_more"
        _add_second_round(graph, recipe)
    else:
        graph.add_edge("candidate", "Consensus")
    graph.add_vote(partial(after_reforce_vote, recipe=recipe), ways)
    _add_tie_breaking(graph, recipe, last)
    graph.add_answer(again="FormatWriter" if recipe.expected_format else "send_candidates")
    return graph


def _add_second_round(graph: RecipeGraph, recipe: Reforce) -> None:
    """Add a second round, whose candidates explore; the first votes again where it has no result."""
    graph.add_step("send_more", tie_breaking.begin_second_round)
    graph.add_conditional_edges("send_more", after_sending, ["exploring_candidate", "clarify"])
    graph.add_branch("exploring_candidate", wire_candidate(recipe, explores=True))
    graph.add_step("recall_first_round", tie_breaking.recall_first_round)
    for node in ("candidate", "exploring_candidate"):
        graph.add_edge(node, "recall_first_round")
    graph.add_edge("recall_first_round", "Consensus")


def after_sending(state: RunState) -> list[Send] | Literal["clarify"]:
    """Start a second round, or leave the vote as it is where there is none to be sent."""
    return fan_out("exploring_candidate")(state) or "clarify"


def _add_tie_breaking(graph: RecipeGraph, recipe: Reforce, last: Last) -> None:
    """Add how a vote that stays open ends."""
    if recipe.model_vote:

        def after_judge(state: RunState) -> Way:
            return last if state.vote and state.vote.tie else "answer"

        graph.add_step("Judge", tie_breaking.ask_judge)
        graph.add_conditional_edges("Judge", after_judge, {last: last, "answer": "clarify"})
    ends: dict[Last, Step] = {
        "draw_any": partial(tie_breaking.draw, among="all"),
        "draw": tie_breaking.draw,
        "leave_open": tie_breaking.leave_open,
    }
    graph.add_step(last, ends[last])
    graph.add_edge(last, "clarify")


def _last(recipe: Reforce) -> Last:
    if not recipe.majority_vote:
        return "draw_any"
    return "draw" if recipe.random_selection else "leave_open"


def after_reforce_vote(state: RunState, *, recipe: Reforce) -> Way:
    """Route after a vote (ReFoRCE, equation 7).

    What is resolved is the answer, the rest is explored once, and what still ties is drawn.
    """
    if voting.route_vote(state) == "dispatch":
        return "dispatch"
    vote, open_still = state.vote, tie_breaking.unresolved(state) and not state.limited
    if open_still and recipe.explores("ties") and not state.explored:
        return "explore"
    if not (vote and vote.clusters) or (recipe.majority_vote and (vote.cannot_answer or not vote.tie)):
        return voting.ending(state)
    return "judge" if recipe.model_vote and vote.tie else _last(recipe)


def wire_candidate(recipe: Reforce, *, explores: bool = False) -> RecipeGraph:
    """Return the graph of one candidate's branch (ReFoRCE first version, equation 5).

    It is uncompiled, and the plain one where no option of the first version is on.

    Args:
        explores: It begins with an exploration of its own.
    """
    names = ("max_queries", "max_corrections", "row_limit", "ctes")
    form = {name: getattr(recipe, name) for name in names} | {"persist": True}
    exploring = form if explores else None
    given: dict[str, Any] = {"max_refinements": recipe.max_refinements, "max_empty": recipe.max_empty}
    refine = partial(candidate.refine, persist=True, confirm=False)
    end = "conclude" if recipe.self_consistency or recipe.cte_refinement else END
    if recipe.self_consistency:
        graph = branch_graph(recipe)
        graph.add_writer("SqlWriter", writing.write_sql, exploring)
        graph.add_step("run_sql", partial(first_version.run_and_compare, agent="sql_writer"))
        again: Paths = {"again": "SelfChecker", "refine": "SelfRefiner", "end": end}
        graph.add_conditional_edges("run_sql", partial(first_version.after_run, **given), again)
        graph.add_step("SelfChecker", first_version.answer_again)
        graph.add_conditional_edges("SelfChecker", after_model, {"go_on": "run_sql", "finish": END})
        graph.add_step("SelfRefiner", refine)
        graph.add_conditional_edges("SelfRefiner", after_refinement, {"go_on": "run_sql", "finish": end})
    else:
        graph = wire_branch(recipe, writing.write_sql, **given, exploring=exploring, refine=refine, end=end)
    if end == END:
        return graph
    graph.add_step("conclude", first_version.conclude)
    if recipe.cte_refinement:
        _add_stages(graph, recipe)
    else:
        graph.add_edge("conclude", END)
    return graph


def _add_stages(graph: RecipeGraph, recipe: Reforce) -> None:
    """Add what follows ``conclude``: a candidate without an answer builds one stage by stage."""
    graph.add_conditional_edges("conclude", first_version.fruitless, {True: "decompose", False: END})
    graph.add_step("decompose", first_version.decompose)
    graph.add_conditional_edges("decompose", after_model, {"go_on": "run_stage", "finish": END})
    graph.add_step("run_stage", first_version.run_stage)
    ran: Paths = {"go_on": "CteRefiner", "finish": END}
    graph.add_conditional_edges("run_stage", first_version.after_stage, ran)
    graph.add_step("CteRefiner", first_version.review_stage)
    ways: Paths = {"stage": "run_stage", "whole": "run_whole", "finish": END}
    route = partial(first_version.after_review, max_rewrites=recipe.max_rewrites)
    graph.add_conditional_edges("CteRefiner", route, ways)
    graph.add_step("run_whole", partial(candidate.run_sql, agent="cte_refiner"))
    graph.add_edge("run_whole", END)


V1: dict[str, Any] = {
    "votes": 3,
    "exploration": "always",
    "row_limit": 100,
    "ctes": False,
    "expected_format": True,
    "self_consistency": True,
    "cte_refinement": True,
    "model_vote": True,
    "max_empty": 1,
}
"""The first version (003, 3.2): three threads, each with an exploration; two empty results end one."""

RECIPE = Reforce(
    name="reforce",
    summary="Write and refine eight candidates, vote, explore columns where they tie (ReFoRCE).",
    paper="ReFoRCE: A Text-to-SQL Agent with Self-Refinement, Consensus Enforcement, and Column Exploration",
    agents=(
        "knowledge_retriever",
        "table_linker",
        "format_writer",
        "sql_writer",
        "self_refiner",
        "self_checker",
        "cte_refiner",
        "column_explorer",
        "exploration_corrector",
        "judge",
    ),
    wire=wire,
    votes=8,
    strategy="majority",
    temperature=1.0,
    one_temperature=True,
    presets={"v1": V1},
)
