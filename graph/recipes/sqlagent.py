"""SQLAgent (paper 001): explore a database first (``quorum explore``), then two agents use what it found.

    open → KnowledgeRetriever ─ Send × votes ─ Consensus → answer
    one candidate:  InfoAgent → ContextExpander → GenAgent → run → Validator
                    run → InfoAgent on a failure;  Validator → InfoAgent on a mismatch, five rounds at most

The InfoAgent finds columns by an index over their texts, the ContextExpander adds what joins them, the
GenAgent sees them and the triplets of the exploration nearest to the question. After a failed round what its
query did not use is pruned, and other keywords bring in more. ``DEVIATIONS`` says what is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from langgraph.graph import END, START

from quorum.graph.nodes import candidate, synthesis, voting
from quorum.graph.nodes.routes import MAX_EMPTY, after_model
from quorum.graph.nodes.synthesis import Knowledge, Rounds
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import ENDS, Paths, RecipeGraph, branch_graph, run_graph
from quorum.graph.recipes.recipe import AtLeastOne, Count, Deviation, Recipe, switch

DEVIATIONS = (
    Deviation(
        ours="Columns and triplets are found by words; `embedding_model` makes it embeddings.",
        paper="text-embedding-3-small and FAISS (appendix A)",
        why="It works without a model to download; the trace says which was used.",
    ),
    Deviation(
        ours="Triplets are compared by query and description, not by the query alone.",
        paper="embeddings of the SQL by a model of code (appendix B.1)",
        why="Words and sentence models see little in SQL; the description is in the question's language.",
    ),
    Deviation(
        ours="The InfoAgent is told the names of the tables.",
        paper="keywords come from the question alone (3.3, Algorithm 3)",
        why="Its keywords are guesses without them, said its readers.",
    ),
    Deviation(
        ours="A table of up to twenty columns stays whole.",
        paper="the top-k columns (3.3)",
        why="Leaving some out saves few tokens and may cost a key.",
    ),
    Deviation(
        ours="The GenAgent sees the queries of earlier rounds with their errors.",
        paper="feedback reaches the InfoAgent alone (Algorithm 3)",
        why="It would write the same query again.",
    ),
    Deviation(
        ours="The Validator checks fidelity, and sees the query and its tables beside question and result.",
        paper="CheckFidelity sees question and result (Algorithm 3)",
        why="It is the same task in every recipe; without the query it cannot see a missing condition.",
    ),
    Deviation(
        ours="A second empty result in a row is believed.",
        paper="an empty result is a failed execution (Algorithm 3)",
        why="An empty answer can be right.",
    ),
    Deviation(
        ours="After the last round the last result is shown as a best effort, not approved.",
        paper="failure is returned (Algorithm 3)",
        why="A person may still see that it is right.",
    ),
    Deviation(
        ours="An action may take up to six columns.",
        paper="one column an action (appendix E)",
        why="300 attempts would never cover a wide database.",
    ),
    Deviation(
        ours="One call chooses a round's actions; its branches run at a time.",
        paper="one choice for each expansion (3.2)",
        why="A third of the calls, and no slower with more branches.",
    ),
)


@dataclass(frozen=True)
class SqlAgent(Recipe):
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
    max_rounds: AtLeastOne = switch(5, "rounds of grounding and writing")
    max_tables: AtLeastOne = switch(3, "tables that one search brings in")
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
    """Return the uncompiled graph of one candidate's branch (Algorithm 3)."""
    graph, rounds = branch_graph(recipe), Rounds(recipe.max_rounds, max_empty=MAX_EMPTY)
    again: Paths = {"ground": "InfoAgent", "finish": END}
    graph.add_edge(START, "InfoAgent")
    agent, tables = recipe.info == "agent", recipe.max_tables
    ground = partial(synthesis.ground, agent=agent, tables=tables, pruning=recipe.pruning)
    graph.add_step("InfoAgent", ground)
    grounded: Paths = {"go_on": "ContextExpander" if recipe.expansion else "GenAgent", "finish": END}
    graph.add_conditional_edges("InfoAgent", after_model, grounded)
    if recipe.expansion:
        graph.add_step("ContextExpander", synthesis.expand)
        graph.add_conditional_edges("ContextExpander", after_model, {"go_on": "GenAgent", "finish": END})
    joint, shots = recipe.retrieval == "joint", recipe.max_triplets
    write = partial(synthesis.write, knowledge=recipe.knowledge, joint=joint, shots=shots)
    graph.add_step("GenAgent", write)
    graph.add_conditional_edges("GenAgent", after_model, {"go_on": "run_sql", "finish": END})
    graph.add_step("run_sql", partial(candidate.run_sql, agent="gen_agent"))
    ran: Paths = {"validate": "Validator" if recipe.fidelity else END, **again}
    graph.add_conditional_edges("run_sql", rounds.after_run, ran)
    if recipe.fidelity:
        graph.add_step("Validator", candidate.validate)
        graph.add_conditional_edges("Validator", rounds.after_check, again)
    return graph


RECIPE = SqlAgent(
    name="sqlagent",
    summary="Ground, generate with triplets of an exploration, check, in up to five rounds (SQLAgent).",
    paper="SQLAgent: Learning to Explore Before Generating as a Data Engineer, 3.3",
    agents=("knowledge_retriever", "info_agent", "context_expander", "gen_agent", "validator"),
    wire=wire,
    votes=1,
    temperature=0.7,
    one_temperature=True,
    deviations=DEVIATIONS,
)
