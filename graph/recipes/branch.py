"""What recipes share: graphs whose nodes are steps, a candidate's branch as one node, and the plain branch.

write → run → end
        run → refine → run ...     on an error, and on a first empty result
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Self

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from quorum.graph.node_context import streaming
from quorum.graph.nodes import candidate, clarifying, exploration, finish, prepare, retrieval, voting
from quorum.graph.nodes.routes import MAX_EMPTY, after_model, after_refinement, after_run
from quorum.graph.nodes.step import Step, make_node
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import (
    Candidate,
    CandidateState,
    RunInput,
    RunOutput,
    RunState,
    as_typed,
    branch_input,
    set_fields,
)

Paths = dict[Hashable, str]


ENDS: Paths = {"clarify": "clarify", "answer": "answer"}
"""Where ``voting.ending`` leads."""


class RecipeGraph(StateGraph[Any, RunOptions, Any, Any]):
    """A graph of one recipe: its nodes are steps, and its routers run where they are called.

    LangGraph runs each router that is a function in a thread, which takes a hundred times as long.
    A recipe names nodes in edges before it adds them: it is written in the order in which a question travels.
    """

    def __init__(self, recipe: Recipe, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.recipe = recipe

    def add_step(self, name: str, step: Step, *, first: bool = False) -> Self:
        """Add a node that runs ``step``; ``first`` begins a run.

        A node that asks an agent bears its name; other nodes have a verb.
        """
        node: Any = make_node(name, step, self.recipe, first=first)
        return self.add_node(name, node)

    def add_branch(
        self, name: str, branch: RecipeGraph, *, into: str = "candidates", end: Step = candidate.finish
    ) -> Self:
        """Add a candidate's branch as a node; ``end`` makes its last state a ``Candidate``, kept as ``into``.

        As a node itself it would write all its channels, and parallel branches would clash. All branches of a
        batch end in one step of the run, so what follows them need not be deferred (of several deferred nodes
        LangGraph draws edges that do not exist).
        """
        compiled, finished = branch.compile(), make_node(name, end, self.recipe)

        # of no declared state: LangGraph would give the run a channel for each of the branch's fields
        async def candidate(state: Any, runtime: Runtime[Any]) -> dict[str, list[Candidate]]:
            with streaming(runtime.stream_writer):
                output = await compiled.ainvoke(set_fields(state))
            return {into: (await finished(branch.state_schema(**output), runtime))["candidates"]}

        return self.add_node(name, candidate)

    def add_conditional_edges(self, source: str, path: Any, path_map: Any = None) -> Self:
        return super().add_conditional_edges(source, _Router(path), path_map)

    def add_beginning(self, *names: str, skips: Callable[[RunState], bool] | None = None) -> None:
        """Add the edges from the KnowledgeRetriever over ``names``, each to the next.

        Where a person has verified the question it leads to the answer.

        Args:
            skips: True if all but the last of them have nothing to do: it leads straight there.
        """

        def after_retrieval(state: RunState) -> str:
            if state.winner:
                return "answer"
            return names[-1] if skips and skips(state) else names[0]

        ways = dict.fromkeys(("answer", names[0], names[-1] if skips else names[0]))
        self.add_conditional_edges("KnowledgeRetriever", after_retrieval, list(ways))
        for before, after in pairwise(names):
            self.add_edge(before, after)

    def add_batch(self, dispatch: Step, branch: RecipeGraph, *, end: Step = candidate.finish) -> None:
        """Add ``send_candidates`` and the ``candidate`` branches that it starts (``add_branch``)."""
        self.add_step("send_candidates", dispatch)
        self.add_conditional_edges("send_candidates", fan_out("candidate"), ["candidate"])
        self.add_branch("candidate", branch, end=end)

    def add_vote(self, route: Callable[[RunState], str], ways: Paths) -> None:
        """Add ``Consensus``, and the router that says what follows it."""
        self.add_step("Consensus", voting.consensus)
        self.add_conditional_edges("Consensus", route, ways)

    def add_answer(self, *, again: str = "send_candidates") -> None:
        """Add the end of every recipe: perhaps ask the user which answer is meant, then make the answer.

        Args:
            again: The node to which the user's own words lead: candidates are asked again.
        """
        self.add_step("clarify", clarifying.clarify)
        ways: Paths = {"dispatch": again, "answer": "answer"}
        self.add_conditional_edges("clarify", clarifying.after_clarification, ways)
        self.add_step("answer", finish.answer)
        self.add_edge("answer", END)

    def add_exploration(self, *, max_corrections: int, persist: bool = False, **form: Any) -> None:
        """Add the loop from ``ColumnExplorer`` to ``keep_findings`` (ReFoRCE, Algorithm 1).

        The first version has the same (ReFoRCE first version, Algorithm 1).

        Args:
            max_corrections: Of each query.
            persist: An empty result, and a correction that was tried before, do not end the corrections.
            form: Arguments of ``exploration.begin``.
        """
        run = partial(exploration.run_query, max_corrections=max_corrections, persist=persist)
        loop: Paths = {"run": "explore", "done": "keep_findings"}
        self.add_step("ColumnExplorer", partial(exploration.begin, **form))
        self.add_step("explore", run)
        self.add_step("ExplorationCorrector", partial(exploration.correct_query, persist=persist))
        self.add_conditional_edges(
            "explore", exploration.after_query, {**loop, "correct": "ExplorationCorrector"}
        )
        for name in ("ColumnExplorer", "ExplorationCorrector"):
            self.add_conditional_edges(name, exploration.after_query, loop)
        self.add_step("keep_findings", exploration.keep_findings)

    def add_writer(self, writer: str, write: Step, exploring: Mapping[str, Any] | None = None) -> None:
        """Add how a candidate begins: it writes its first query, on to ``run_sql``.

        Args:
            exploring: Arguments of an exploration of its own before (``add_exploration``); None for none.
        """
        self.add_edge(START, "ColumnExplorer" if exploring else writer)
        if exploring:
            self.add_exploration(**exploring)
            self.add_conditional_edges("keep_findings", after_model, {"go_on": writer, "finish": END})
        self.add_step(writer, write)
        self.add_conditional_edges(writer, after_model, {"go_on": "run_sql", "finish": END})


class _Router(Runnable[Any, Any]):
    """A router that runs where it is called, and is no run of its own in a LangChain trace."""

    def __init__(self, route: Callable[[Any], Any]) -> None:
        self.route, self.name = route, getattr(route, "func", route).__name__

    def invoke(self, input: Any, *_: Any, **__: Any) -> Any:
        return self.route(as_typed(input))

    async def ainvoke(self, input: Any, *_: Any, **__: Any) -> Any:
        return self.route(as_typed(input))


def run_graph(recipe: Recipe, options: type[RunOptions], state: type[RunState] = RunState) -> RecipeGraph:
    """Return the graph of a run with the nodes with which every recipe begins.

    Args:
        state: A dataclass with fields of the recipe's own, each with a default; every question begins with
            these. A field with a reducer (``Annotated[list[str], gather]``) begins with None.
    """
    graph = RecipeGraph(recipe, state, context_schema=options, input_schema=RunInput, output_schema=RunOutput)
    graph.add_edge(START, "open_run")
    graph.add_step("open_run", prepare.open_run, first=True)
    graph.add_edge("open_run", "KnowledgeRetriever")
    graph.add_step("KnowledgeRetriever", retrieval.retrieve_knowledge)
    return graph


def branch_graph(recipe: Recipe) -> RecipeGraph:
    """Return the empty graph of a candidate's branch."""
    return RecipeGraph(recipe, CandidateState, context_schema=RunOptions)


def is_short(state: RunState) -> bool:
    """True if the schema needs no linking."""
    return not state.long


def fan_out(node: str) -> Callable[[RunState], list[Send]]:
    """Return the router that starts one branch for each candidate of the batch."""

    def send(state: RunState) -> list[Send]:
        return [Send(node, branch_input(state, start)) for start in state.batch]

    return send


def wire_branch(
    recipe: Recipe,
    write: Step,
    *,
    max_refinements: int,
    max_empty: int = MAX_EMPTY,
    writer: str = "SqlWriter",
    exploring: Mapping[str, Any] | None = None,
    refine: Step = candidate.refine,
    end: str = END,
) -> RecipeGraph:
    """Return the plain branch: ``write`` gives the first ``sql``, the SelfRefiner repairs it.

    Args:
        max_refinements: 0 for a single try.
        max_empty: Of them, repairs of empty results (``after_run``).
        writer: The node of ``write``.
        exploring: ``add_writer``.
        refine: The SelfRefiner's step.
        end: The node where a query leads that needs no further repair.
    """
    graph = branch_graph(recipe)
    graph.add_writer(writer, write, exploring)
    graph.add_step("run_sql", partial(candidate.run_sql, agent="sql_writer"))
    if not max_refinements:
        graph.add_edge("run_sql", end)
        return graph
    route = partial(after_run, max_refinements=max_refinements, max_empty=max_empty)
    ran: Paths = {"done": end, "refine": "SelfRefiner", "finish": end}
    graph.add_conditional_edges("run_sql", route, ran)
    graph.add_step("SelfRefiner", refine)
    graph.add_conditional_edges("SelfRefiner", after_refinement, {"go_on": "run_sql", "finish": end})
    return graph
