"""What recipes share: the graph of a run, a candidate's branch as one of its nodes, and the plain branch.

write → run → finish
        run → refine → run ...     on an error, and on a first empty result
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, update_wrapper
from typing import Any, Protocol, Self, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from quorum.graph.nodes import candidate
from quorum.graph.nodes.routes import Routes, after_model, after_refinement
from quorum.graph.nodes.step import Step, Steps
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import CandidateInput, CandidateOutput, CandidateState, RunInput, RunOutput, RunState

Paths = dict[Hashable, str]
RunGraph = StateGraph[RunState, RunOptions, RunInput, RunOutput]
CandidateGraph = StateGraph[CandidateState, RunOptions, CandidateInput, CandidateOutput]


class _Graph(StateGraph[Any, RunOptions, Any, Any]):
    """A graph whose routers run where they are called: LangGraph hands each one that is no coroutine to a
    thread, which takes a hundred times as long as a look at the state."""

    def add_conditional_edges(self, source: str, path: Any, path_map: Any = None) -> Self:
        return super().add_conditional_edges(source, _routed(path), path_map)


def _routed(route: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def routed(state: Any) -> Any:
        return route(state)

    return update_wrapper(routed, getattr(route, "func", route))


class BranchNode(Protocol):
    """A node of the run that is a candidate's whole branch."""

    async def __call__(self, state: CandidateInput) -> CandidateOutput: ...


def run_graph(options: type[RunOptions]) -> RunGraph:
    """The empty graph of a run."""
    return _Graph(RunState, context_schema=options, input_schema=RunInput, output_schema=RunOutput)


def branch_graph() -> CandidateGraph:
    """The empty graph of a candidate's branch."""
    return _Graph(
        CandidateState,
        context_schema=RunOptions,
        input_schema=CandidateInput,
        output_schema=CandidateOutput,
    )


def as_node(branch: CompiledStateGraph[Any, Any, Any, Any]) -> BranchNode:
    """A branch as a node. As a node itself it would, under event streaming, write all its channels
    instead of its narrow output, and parallel branches would clash."""

    async def candidate(state: CandidateInput) -> CandidateOutput:
        return cast(CandidateOutput, await branch.ainvoke(state))

    return candidate


def fan_out(state: RunState, *, to: str = "candidate") -> list[Send]:
    """One branch for each candidate that was dealt."""
    return [Send(to, seat) for seat in state["seats"]]


def add_chain(graph: RunGraph, *names: str) -> None:
    """Edges from each node to the next; the first follows START."""
    for before, after in zip((START, *names), names, strict=False):
        graph.add_edge(before, after)


def wire_branch(recipe: Recipe, write: Step, *, max_refinements: int) -> CandidateGraph:
    """The uncompiled plain branch: ``write`` gives the first ``sql``, the SelfRefiner repairs it.

    Args:
        max_refinements: 0 for a candidate that has one try.
    """
    steps = Steps(recipe)
    graph = branch_graph()
    graph.add_node("write", steps.branch(write))
    graph.add_node("run_sql", steps.branch(partial(candidate.run_sql, agent="sql_writer")))
    graph.add_node("refine", steps.branch(candidate.refine))
    graph.add_node("finish", steps.branch(candidate.finish))
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", after_model, {"go_on": "run_sql", "finish": "finish"})
    after_run: Paths = {"validate": "finish", "link": "refine", "refine": "refine", "finish": "finish"}
    graph.add_conditional_edges("run_sql", Routes(max_refinements).after_run, after_run)
    graph.add_conditional_edges("refine", after_refinement, {"go_on": "run_sql", "finish": "finish"})
    graph.add_edge("finish", END)
    return graph
