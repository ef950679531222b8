"""SSEV (paper 004, sections 3.1 and 3.2): PreSQL, schema linking by parsing, PostSQL, refinement, vote.

    open → documents → rows → demonstrations ─ Send × experts ─ (vote) → link → begin
         ─ Send × experts ─ vote → answer
    one candidate:  write → run → refine → run …

``stage`` is one of the six settings of section 4.1:

=============  ====================================  ==========================================
``base``       1  Base                               PreSQL, vote
``sl``         2  Base + SL                          PreSQL, link, PostSQL, vote
``sr``         3  Base + SR                          PreSQL refined, vote
``sr_sl``      4  Base + SR + SL                     PreSQL refined, link, PostSQL, vote
``sr_vote``    5  Base + SR + Vote                   PreSQL refined, vote; its winner is linked
``full``       6  Base + SR + Vote + SL + SR + Vote  ``sr_vote``, then PostSQL refined, vote
=============  ====================================  ==========================================

Stage 5 answers as stage 3 (their rows in Tables 3-5 are equal); what it links is in the trace. One vote
a model, drawn at temperature 0, unless the run asks for more; the strategy is the run's: ``sql_majority``
(the paper's naive vote), ``wma`` or ``rwma``. ``docs/recipes.md`` says what is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from quorum.agents import refiners
from quorum.graph.nodes import candidate, two_rounds, voting
from quorum.graph.nodes.writing import write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, fan_out, run_graph, wire_branch
from quorum.graph.recipes.recipe import Count, PaperRecipe, switch
from quorum.knowledge import demonstrations
from quorum.tools import sample_rows

Pipeline = Literal["base", "sl", "sr", "sr_sl", "sr_vote", "full"]


@dataclass(frozen=True)
class Ssev(PaperRecipe):
    """Its switches and limits."""

    stage: Pipeline = switch("full", "which parts run: the settings of section 4.1")
    presql_votes: bool = switch(
        False, "PreSQL votes beside PostSQL in the last vote, as in 3.2; in 4.1 the vote is on PostSQL"
    )
    max_refinements: Count = switch(
        refiners.MAX_REFINEMENTS, "repairs of one candidate in one round", paper="open"
    )
    max_rows: Count = switch(sample_rows.ROWS, "sampled rows a table")
    max_tables: Count = switch(
        sample_rows.TABLES, "tables of which rows are sampled, one query each", paper="all"
    )
    max_shots: Count = switch(demonstrations.SHOTS, "demonstrations, if the run has a file of them")

    @property
    def recursion_limit(self) -> int:
        return 200 + 2 * self.max_refinements

    @property
    def writes_twice(self) -> bool:
        return self.stage in ("sl", "sr_sl", "full")

    @property
    def first_repairs(self) -> int:
        """Refinements of the first candidates: PreSQL."""
        return self.max_refinements if self.stage in ("sr", "sr_sl", "sr_vote", "full") else 0

    @property
    def last_repairs(self) -> int:
        """Refinements of the candidates that are voted on in the end."""
        return self.first_repairs if self.stage != "sr_sl" else 0


def wire(recipe: Ssev, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph, twice = run_graph(recipe, options), recipe.writes_twice
    graph.add_beginning("show_rows", "show_demonstrations", "send_presql" if twice else "send_candidates")
    rows = partial(two_rounds.show_rows, max_rows=recipe.max_rows, max_tables=recipe.max_tables)
    graph.add_step("show_rows", rows)
    graph.add_step("show_demonstrations", partial(two_rounds.show_demonstrations, max_shots=recipe.max_shots))
    if twice:
        _add_presql(graph, recipe)
    graph.add_batch(voting.dispatch, _wire_candidate(recipe, recipe.last_repairs))
    if twice:
        graph.add_edge("candidate", "recall_presql")
        graph.add_step("recall_presql", two_rounds.recall_presql)
    graph.add_edge("recall_presql" if twice else "candidate", "Consensus")
    links_last = recipe.stage == "sr_vote"
    ends: Paths = dict.fromkeys(ENDS, "link_presql") if links_last else ENDS
    graph.add_vote(voting.route_vote, {"dispatch": "send_candidates", **ends})
    if links_last:
        graph.add_step("link_presql", two_rounds.link_presql)
        graph.add_edge("link_presql", "clarify")
    graph.add_answer()
    return graph


def _wire_candidate(recipe: Ssev, repairs: int) -> RecipeGraph:
    """Return a candidate's branch: errors and empty results are refined alike (SSEV, 3.2)."""
    refine = partial(candidate.refine, persist=True, confirm=False)
    return wire_branch(recipe, write_sql, max_refinements=repairs, max_empty=repairs, refine=refine)


def _add_presql(graph: RecipeGraph, recipe: Ssev) -> None:
    """Add the first round, up to where the second one begins; with a vote of its own in stage 6."""
    graph.add_step("send_presql", two_rounds.dispatch_presql)
    graph.add_conditional_edges("send_presql", fan_out("presql"), ["presql"])
    graph.add_branch("presql", _wire_candidate(recipe, recipe.first_repairs))
    votes = recipe.stage == "full"
    graph.add_edge("presql", "PreSQLConsensus" if votes else "link_presql")
    if votes:
        graph.add_step("PreSQLConsensus", voting.consensus)
        voted: Paths = {"dispatch": "send_presql", "link": "link_presql", "answer": "clarify"}
        graph.add_conditional_edges("PreSQLConsensus", two_rounds.after_presql_vote, voted)
    graph.add_step("link_presql", two_rounds.link_presql)
    linked: Paths = {"begin": "begin_postsql", "vote": "Consensus"}
    graph.add_conditional_edges("link_presql", two_rounds.after_link, linked)
    graph.add_step("begin_postsql", partial(two_rounds.begin_postsql, presql_votes=recipe.presql_votes))
    graph.add_edge("begin_postsql", "send_candidates")


RECIPE = Ssev(
    name="ssev",
    summary="Write, link the schema by what was written, write again, refine, vote (SSEV).",
    paper="LLM-Based SQL Generation: Prompting, Self-Refinement, and Adaptive Weighted Majority Voting, 3.2",
    agents=("knowledge_retriever", "sql_writer", "self_refiner"),
    wire=wire,
    votes=1,
)
