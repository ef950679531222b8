"""ReFoRCE (paper 000, section 3): compress, write and refine candidates, vote, explore what ties.

    open → documents → schema (→ explore) (→ format) ─ Send × 8 ─ consensus ┬─ answer
                                                    tie or no answer: explore ⇄ correct
                                       findings ─ Send × 8 more ─ consensus ┘   still a tie: draw
    one candidate:  write → run ⇄ refine → finish

Kept from the paper: k = 8 at temperature 1, five refinements, linking above 50K tokens, at most ten
exploration queries with three corrections each, votes of both rounds merged, the draw at the end.
Ours: the schema text is lossless, one correction is one call, and what exploration is aimed at are the
answers that tie. Options of the first version (papers 002 and 003) are switches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from quorum.agents import column_explorer, cte_refiner, exploration_corrector, self_refiner, table_linker
from quorum.graph.nodes import narrowing, planning, tie_breaking, voting
from quorum.graph.nodes.narrowing import Linking
from quorum.graph.nodes.step import Step
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import LINKERS, Paths, RecipeGraph, fan_out, run_graph
from quorum.graph.recipes.recipe import Count, Recipe, switch
from quorum.graph.recipes.reforce_branch import wire_candidate
from quorum.graph.state import RunState

Tokens = Annotated[int, Field(ge=0)]
Way = Literal["dispatch", "explore", "draw", "draw_any", "judge", "leave_open", "answer"]


@dataclass(frozen=True)
class Reforce(Recipe):
    """Its switches and limits."""

    compression: bool = switch(True, "off: every table by itself, however long, and no linking (Table 3)")
    linking: Linking = switch("tables", "of a long schema: by asking of each table, or by what drafts use")
    link_above: Tokens = switch(
        table_linker.ABOVE_TOKENS,
        "tokens of schema and documents above which it is linked; the run's is not used",
    )
    exploration: Literal["ties", "always", "never"] = switch(
        "ties", "look into the database where the vote ties or has no answer; `always`: at once (Table 3)"
    )
    majority_vote: bool = switch(True, "off: one of all candidates that have an answer is drawn (Table 3)")
    random_selection: bool = switch(True, "draw what still ties; off: it has no answer (Table 3)")
    expected_format: bool = switch(False, "say the answer's form before any SQL (first version)")
    self_consistency: bool = switch(False, "an answer counts once it came twice (first version)")
    cte_refinement: bool = switch(False, "without an answer, build it stage by stage (first version)")
    model_vote: bool = switch(False, "a model decides what still ties, before any draw (first version)")
    max_refinements: Count = switch(self_refiner.MAX_ROUNDS, "repairs of one candidate")
    max_queries: Count = switch(column_explorer.MAX_QUERIES, "exploration queries")
    max_corrections: Count = switch(exploration_corrector.MAX_TRIES, "corrections of one exploration query")
    max_rewrites: Count = switch(cte_refiner.MAX_REWRITES, "stages rewritten", paper="open")

    @property
    def explores(self) -> bool:
        """Whether there is any column exploration."""
        return self.exploration != "never" and self.max_queries > 0

    @property
    def recursion_limit(self) -> int:
        queries = self.max_queries * (2 * self.max_corrections + 2)
        branch = 3 * self.max_refinements + 4 * self.max_rewrites
        return 200 + max(queries, branch)


def wire(recipe: Reforce, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    graph.add_batch(partial(voting.dispatch, greedy=False), wire_candidate(recipe))
    chain, again = ["open_run", "KnowledgeRetriever"], "send_candidates"
    for name, step in _schema(recipe).items():
        graph.add_step(name, step)
        chain.append(name)
    if recipe.expected_format:
        graph.add_step("FormatWriter", planning.write_format)
        chain.append("FormatWriter")
        again = "FormatWriter"
    ways: Paths = {"dispatch": "send_candidates", "answer": graph.add_answer(again=again)}
    ways |= _add_tie_breaking(graph, recipe, ways["answer"])
    first = "send_candidates"
    if recipe.explores:
        begin = _add_exploration(graph, recipe, ways)
        first = begin if recipe.exploration == "always" else first
        ways["explore"] = begin
    graph.add_chain(*chain, first)
    graph.add_conditional_edges("Consensus", after_reforce_vote(recipe), ways)
    return graph


def _schema(recipe: Reforce) -> dict[str, Step]:
    """The node that chooses another schema text than the run's, if there is one."""
    if not recipe.compression:
        return {"show_plain_schema": narrowing.show_plain_schema}
    if recipe.linking == "none":
        return {}
    link = partial(narrowing.link_schema, linking=recipe.linking, above=recipe.link_above)
    return {LINKERS[recipe.linking]: link}


def _add_exploration(graph: RecipeGraph, recipe: Reforce, ways: Paths) -> str:
    """The loop of exploration and the candidates that follow; the name of its first node."""
    begin, end = graph.add_exploration(max_queries=recipe.max_queries, max_corrections=recipe.max_corrections)
    if recipe.exploration == "always":
        graph.add_edge(end, "send_candidates")
    else:
        graph.add_step("send_more", tie_breaking.dispatch_again)
        graph.add_conditional_edges("send_more", fan_out("candidate"), ["candidate"])
        graph.add_conditional_edges(end, after_exploration(recipe), {**ways, "dispatch": "send_more"})
    return begin


def _add_tie_breaking(graph: RecipeGraph, recipe: Reforce, answer: str) -> Paths:
    """How a vote that stays open ends."""
    last = _last(recipe)
    ends: dict[str, Step] = {
        "draw_any": partial(tie_breaking.draw, among="all"),
        "draw": tie_breaking.draw,
        "leave_open": tie_breaking.leave_open,
    }
    graph.add_step(last, ends[last])
    graph.add_edge(last, answer)
    if not recipe.model_vote:
        return {last: last}

    def after_judge(state: RunState) -> Way:
        return last if state.vote and state.vote.tie else "answer"

    graph.add_step("Judge", tie_breaking.ask_judge)
    graph.add_conditional_edges("Judge", after_judge, {last: last, "answer": answer})
    return {last: last, "judge": "Judge"}


def _last(recipe: Reforce) -> Literal["draw_any", "draw", "leave_open"]:
    if not recipe.majority_vote:
        return "draw_any"
    return "draw" if recipe.random_selection else "leave_open"


def after_reforce_vote(recipe: Reforce) -> Callable[[RunState], Way]:
    """The router after a vote: more candidates, exploration, how a tie ends, or the answer."""

    def route(state: RunState) -> Way:
        if voting.route_vote(state) == "dispatch":
            return "dispatch"
        open_still = tie_breaking.unresolved(state) and not state.limited
        if open_still and recipe.explores and not state.explored:
            return "explore"
        return _end(recipe, state)

    return route


def after_exploration(recipe: Reforce) -> Callable[[RunState], Way]:
    """The router after exploration: candidates again if it found anything, else the vote as it is."""

    def route(state: RunState) -> Way:
        more = state.extras.findings and not state.limited
        return "dispatch" if more else _end(recipe, state)

    return route


def _end(recipe: Reforce, state: RunState) -> Way:
    vote = state.vote
    if vote is None or not vote.clusters or vote.cannot_answer or (recipe.majority_vote and not vote.tie):
        return "answer"
    return "judge" if recipe.model_vote and vote.tie else _last(recipe)


RECIPE = Reforce(
    name="reforce",
    summary="Write and refine eight candidates, vote, explore columns where they tie (ReFoRCE).",
    paper="ReFoRCE: A Text-to-SQL Agent with Self-Refinement, Consensus Enforcement, and Column Exploration",
    agents=(
        "knowledge_retriever",
        "table_linker",
        "draft_linker",
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
)
