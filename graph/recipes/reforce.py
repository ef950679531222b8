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
from quorum.graph.recipes.branch import Paths, RecipeGraph, fan_out, run_graph
from quorum.graph.recipes.recipe import Count, Recipe
from quorum.graph.recipes.reforce_branch import wire_candidate
from quorum.graph.state import RunState

Tokens = Annotated[int, Field(ge=0)]
Way = Literal["dispatch", "explore", "draw", "draw_any", "judge", "leave_open", "answer"]


@dataclass(frozen=True)
class Reforce(Recipe):
    """Its switches and limits.

    Attributes:
        compression: Off: every table by itself, however long (Table 3), and no linking.
        linking: By asking of each ``tables``, by ``drafts``, or ``none``.
        link_above: Tokens of schema and documents above which it is linked; the run's ``link_above`` is not
            used.
        exploration: Of what ``ties`` or has no answer, ``always`` and at once (Table 3's Column
            Exploration Only), or ``never``.
        majority_vote: Off: one of all candidates that have an answer is drawn (Table 3).
        random_selection: Off: what still ties has no answer (Table 3).
        expected_format: Say the answer's form before any SQL (first version).
        self_consistency: A candidate's answer counts once it came twice (first version).
        cte_refinement: Where a candidate has no answer, build one stage by stage (first version).
        model_vote: A model decides what still ties, before anything is drawn (first version).
        max_refinements, max_queries, max_corrections, max_rewrites: Rounds of a candidate, exploration
            queries, corrections of each, stages rewritten.
    """

    compression: bool = True
    linking: Linking = "tables"
    link_above: Tokens = table_linker.ABOVE_TOKENS
    exploration: Literal["ties", "always", "never"] = "ties"
    majority_vote: bool = True
    random_selection: bool = True
    expected_format: bool = False
    self_consistency: bool = False
    cte_refinement: bool = False
    model_vote: bool = False
    max_refinements: Count = self_refiner.MAX_ROUNDS
    max_queries: Count = column_explorer.MAX_QUERIES
    max_corrections: Count = exploration_corrector.MAX_TRIES
    max_rewrites: Count = cte_refiner.MAX_REWRITES

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
    graph.add_step("show_schema", _schema(recipe))
    graph.add_batch(partial(voting.dispatch, greedy=False), wire_candidate(recipe))
    chain, again = ["open_run", "retrieve_documents", "show_schema"], "send_candidates"
    if recipe.expected_format:
        graph.add_step("write_format", planning.write_format)
        chain.append("write_format")
        again = "write_format"
    ways: Paths = {"dispatch": "send_candidates", "answer": graph.add_answer(again=again)}
    ways |= _add_tie_breaking(graph, recipe, ways["answer"])
    first = "send_candidates"
    if recipe.explores:
        begin = _add_exploration(graph, recipe, ways)
        first = begin if recipe.exploration == "always" else first
        ways["explore"] = begin
    graph.add_chain(*chain, first)
    graph.add_conditional_edges("consensus", after_reforce_vote(recipe), ways)
    return graph


def _schema(recipe: Reforce) -> Step:
    """The step that chooses the schema text."""
    if not recipe.compression:
        return narrowing.show_plain_schema
    return partial(narrowing.link_schema, linking=recipe.linking, above=recipe.link_above)


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

    graph.add_step("judge", tie_breaking.ask_judge)
    graph.add_conditional_edges("judge", after_judge, {last: last, "answer": answer})
    return {last: last, "judge": "judge"}


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
