"""SQLAgent (paper 001): explore a database first (``quorum explore``), then two agents use what it found.

    open → KnowledgeRetriever ─ Send × votes ─ Consensus → answer
    one candidate:  InfoAgent → ContextExpander → prune → GenAgent → run → Validator
                    run → InfoAgent on a failure;  Validator → InfoAgent on a mismatch, five rounds at most

The InfoAgent finds columns by an index over their texts, the ContextExpander adds what joins them, the
GenAgent sees them and the triplets of the exploration nearest to the question. After a failed round other
keywords bring in more, and what the query did not use is pruned. ``docs/recipes.md`` says what is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

from langgraph.graph import END, START

from quorum.graph.nodes import candidate, synthesis, voting
from quorum.graph.nodes.routes import after_model
from quorum.graph.nodes.step import Step
from quorum.graph.nodes.synthesis import Knowledge
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, branch_graph, run_graph
from quorum.graph.recipes.recipe import AtLeastOne, Count, PaperRecipe, switch


@dataclass(frozen=True)
class SqlAgent(PaperRecipe):
    """Its switches and limits."""

    info: Literal["agent", "search"] = switch(
        "agent", "the InfoAgent's keywords, or a search by the question alone"
    )
    expansion: bool = switch(True, "add keys and columns without which nothing joins")
    pruning: bool = switch(True, "after a failed round, drop what its query did not use")
    knowledge: Knowledge = switch(
        "triplets", "what the GenAgent sees of the exploration; `static`: of one that ran nothing"
    )
    retrieval: Literal["joint", "keywords"] = switch(
        "joint", "triplets are found by question and schema together, or by the question's words"
    )
    fidelity: bool = switch(True, "check that a result is what was asked for")
    table_names: bool = switch(False, "the columns' texts that an embedder sees name their tables")
    max_rounds: AtLeastOne = switch(5, "rounds of grounding and writing")
    max_tables: AtLeastOne = switch(3, "tables that one search brings in")
    max_columns: AtLeastOne = switch(10, "columns that one keyword brings in", paper="open")
    max_triplets: Count = switch(3, "triplets that the GenAgent sees", paper="open")

    @property
    def recursion_limit(self) -> int:
        return 6 * self.max_rounds + 200


def wire(recipe: SqlAgent, options: type[RunOptions] = RunOptions) -> RecipeGraph:
    """Return the uncompiled graph of a run; ``options`` is its context schema."""
    graph = run_graph(recipe, options)
    graph.add_beginning("send_candidates")
    graph.add_batch(voting.dispatch, wire_candidate(recipe))
    graph.add_edge("candidate", "Consensus")
    graph.add_vote(voting.route_vote, {"dispatch": "send_candidates", **ENDS})
    graph.add_answer()
    return graph


def wire_candidate(recipe: SqlAgent) -> RecipeGraph:
    """Return the uncompiled graph of one candidate's branch (SQLAgent, Algorithm 3).

    The comments name the algorithm's lines. Its ``i`` is the grounding's ``rounds``. Its ``feedback_info`` is
    the last of the state's ``earlier`` queries, with the grounding's ``before``.
    """
    graph = branch_graph(recipe)
    ground = partial(
        synthesis.ground,
        agent=recipe.info == "agent",
        named=recipe.table_names,
        tables=recipe.max_tables,
        columns=recipe.max_columns,
    )
    joint, shots = recipe.retrieval == "joint", recipe.max_triplets
    write = partial(
        synthesis.write, knowledge=recipe.knowledge, joint=joint, shots=shots, most=recipe.max_rounds
    )
    outcome = partial(synthesis.round_outcome, most=recipe.max_rounds)  # line 5
    loop: dict[str, Step] = {
        "InfoAgent": ground,  # lines 6 and 7
        "ContextExpander": synthesis.expand,  # line 8
        "prune_unused": synthesis.prune_unused,  # line 9
        "GenAgent": write,  # lines 10 to 12
        "run_sql": partial(candidate.run_sql, agent="gen_agent"),  # line 13
    }
    left_out = {"ContextExpander": not recipe.expansion, "prune_unused": not recipe.pruning}
    steps = [(name, step) for name, step in loop.items() if not left_out.get(name)]
    graph.add_edge(START, "InfoAgent")
    for name, step in steps:
        graph.add_step(name, step)
    for (name, _), (then, _) in pairwise(steps[:-1]):
        graph.add_conditional_edges(name, after_model, {"go_on": then, "finish": END})
    written: Paths = {"run": "run_sql", "search": "InfoAgent", "finish": END}
    graph.add_conditional_edges("GenAgent", synthesis.after_writing, written)
    check = "Validator" if recipe.fidelity else END
    ran: Paths = {"success": check, "empty": "InfoAgent", "error": "InfoAgent", "end": END}
    graph.add_conditional_edges("run_sql", outcome, ran)  # lines 14 to 16
    if recipe.fidelity:
        graph.add_step("Validator", candidate.validate)  # line 17
        checked: Paths = {"end": END, "mismatch": "InfoAgent", "success": END}
        graph.add_conditional_edges("Validator", outcome, checked)  # lines 18 to 23
    return graph


RECIPE = SqlAgent(
    name="sqlagent",
    summary="Ground, generate with triplets of an exploration, check, in up to five rounds (SQLAgent).",
    paper="SQLAgent: Learning to Explore Before Generating as a Data Engineer, 3.3",
    agents=("knowledge_retriever", "info_agent", "context_expander", "gen_agent", "validator"),
    wire=wire,
    votes=1,
    one_temperature=True,
)
