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
(the paper's naive vote), ``wma`` or ``rwma``.

Ours: the tree is parsed, where the paper proposes regular expressions, and keys stay; the rows are the
first of each table, as a random draw would read all of it; a candidate that fails to the end is kept
and shown, but votes only if it has a result; where no PostSQL has one, the vote is on PreSQL; votes
compare results, but for ``sql_majority``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from langgraph.types import Send

from quorum.agents import self_refiner
from quorum.graph.nodes import prepare, presql, voting
from quorum.graph.nodes.step import Steps
from quorum.graph.nodes.writing import write_sql
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RunGraph, add_chain, as_node, fan_out, run_graph, wire_branch
from quorum.graph.recipes.ending import add_answer
from quorum.graph.recipes.recipe import Count, Recipe
from quorum.graph.state import RunState
from quorum.knowledge import demonstrations
from quorum.tools import sample_rows

Stage = Literal["base", "sl", "sr", "sr_sl", "sr_vote", "full"]


@dataclass(frozen=True)
class Ssev(Recipe):
    """Its switches and limits.

    Attributes:
        stage: Which parts run; see above.
        presql_votes: PreSQL votes beside PostSQL in the last vote, as section 3.2 has it; in section 4.1
            the vote is on what follows the linking.
        max_refinements: Repairs of one candidate in one round; the paper leaves the number open.
        max_rows: Sampled rows a table.
        max_tables: Tables of which rows are sampled; each takes a query.
        max_shots: Demonstrations, if the run has a file of them.
    """

    stage: Stage = "full"
    presql_votes: bool = False
    max_refinements: Count = self_refiner.MAX_ROUNDS
    max_rows: Count = sample_rows.ROWS
    max_tables: Count = sample_rows.TABLES
    max_shots: Count = demonstrations.SHOTS

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


def wire(recipe: Ssev, options: type[RunOptions] = RunOptions) -> RunGraph:
    """The uncompiled graph of a run; ``options`` is its context schema."""
    steps = Steps(recipe)
    graph = run_graph(options)
    rows = partial(presql.show_rows, max_rows=recipe.max_rows, max_tables=recipe.max_tables)
    shots = partial(presql.show_demonstrations, max_shots=recipe.max_shots)
    graph.add_node("open_run", steps.first(prepare.open_run))
    graph.add_node("retrieve_documents", steps.run(prepare.retrieve_documents))
    graph.add_node("show_rows", steps.run(rows))
    graph.add_node("show_demonstrations", steps.run(shots))
    graph.add_node("send_candidates", steps.run(voting.deal))
    last = wire_branch(recipe, write_sql, max_refinements=recipe.last_repairs)
    graph.add_node("candidate", as_node(last.compile()))
    graph.add_node("consensus", steps.run(voting.consensus), defer=True)

    first = "send_presql" if recipe.writes_twice else "send_candidates"
    add_chain(graph, "open_run", "retrieve_documents", "show_rows", "show_demonstrations", first)
    if recipe.writes_twice:
        _add_presql(graph, recipe, steps)
    else:
        graph.add_edge("candidate", "consensus")
    graph.add_conditional_edges("send_candidates", fan_out, ["candidate"])
    voted: Paths = {"deal": "send_candidates", "answer": add_answer(graph, steps)}
    if recipe.stage == "sr_vote":
        graph.add_node("link", steps.run(presql.link_presql))
        graph.add_edge("link", "clarify")
        voted["answer"] = "link"
    graph.add_conditional_edges("consensus", voting.after_vote, voted)
    return graph


def _add_presql(graph: RunGraph, recipe: Ssev, steps: Steps) -> None:
    """The first round, up to where the second one begins; with a vote of its own in stage 6."""
    branch = wire_branch(recipe, write_sql, max_refinements=recipe.first_repairs)
    begin = partial(presql.begin_postsql, presql_votes=recipe.presql_votes)
    graph.add_node("send_presql", steps.run(presql.deal_presql))
    graph.add_node("presql", as_node(branch.compile()))
    graph.add_node("begin_postsql", steps.run(begin))
    graph.add_conditional_edges("send_presql", _fan_out, ["presql"])
    if recipe.stage == "full":
        graph.add_node("vote_presql", steps.run(voting.consensus), defer=True)
        graph.add_node("link", steps.run(presql.link_presql))
        graph.add_edge("presql", "vote_presql")
        voted: Paths = {"deal": "send_presql", "link": "link", "answer": "clarify"}
        graph.add_conditional_edges("vote_presql", presql.after_vote, voted)
    else:
        graph.add_node("link", steps.run(presql.link_presql), defer=True)
        graph.add_edge("presql", "link")
    linked: Paths = {"begin": "begin_postsql", "vote": "consensus"}
    graph.add_conditional_edges("link", presql.after_link, linked)
    graph.add_edge("begin_postsql", "send_candidates")
    graph.add_node("recall_presql", steps.run(presql.recall_presql), defer=True)
    graph.add_edge("candidate", "recall_presql")
    graph.add_edge("recall_presql", "consensus")


def _fan_out(state: RunState) -> list[Send]:
    """One branch for each PreSQL candidate."""
    return [Send("presql", seat) for seat in state["seats"]]


RECIPE = Ssev(
    name="ssev",
    summary="Write, link the schema by what was written, write again, refine, vote (SSEV).",
    paper="LLM-Based SQL Generation: Prompting, Self-Refinement, and Adaptive Weighted Majority Voting, 3.2",
    agents=("knowledge_retriever", "sql_writer", "self_refiner"),
    wire=wire,
    votes=1,
)
