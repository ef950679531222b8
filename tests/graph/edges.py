"""Edges of a recipe's graphs that real runs take, and those that are drawn.

``with recorded() as recorder: await run(…)`` collects the edges of every run inside, of its branches as well.
LangGraph tells each task its step and its namespace: what runs in a step follows what ran in the step before,
in the same graph.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START

from quorum.graph.builder import build_graph
from quorum.graph.recipes.recipe import Recipe


class Edge(NamedTuple):
    """An edge; ``graph`` is empty for a run's, else the node that is the branch, such as ``candidate``."""

    graph: str
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.graph or 'run'}: {self.source} -> {self.target}"


class Recorder(BaseCallbackHandler):
    """Hears of each task of LangGraph as it starts."""

    run_inline = True

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._running: dict[UUID, tuple[str, str]] = {}
        self._failed: set[tuple[str, str]] = set()

    def on_chain_start(
        self, *_: Any, run_id: UUID, metadata: dict[str, Any] | None = None, **about: Any
    ) -> None:
        """A task is the run that bears its node's name."""
        told = metadata or {}
        node = told.get("langgraph_node")
        if node is None or about.get("name") != node:
            return
        within, _, own = told["langgraph_checkpoint_ns"].rpartition("|")
        if own.partition(":")[0] == node:
            place = str(told.get("thread_id")), within
            self._running[run_id] = place
            self._steps[place][told["langgraph_step"]].add(node)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A graph whose task fails does not reach its end."""
        if run_id in self._running and not isinstance(error, GraphBubbleUp):
            self._failed.add(self._running[run_id])

    @property
    def edges(self) -> set[Edge]:
        """Those taken so far."""
        found = set()
        for place, steps in self._steps.items():
            graph = "|".join(part.partition(":")[0] for part in place[1].split("|"))
            last = () if place in self._failed else (END,)
            ran = [(START,), *(tuple(steps[step]) for step in sorted(steps)), last]
            for before, after in itertools.pairwise(ran):
                found |= {Edge(graph, source, target) for source in before for target in after}
        return found


_RECORDER: ContextVar[Recorder | None] = ContextVar("_RECORDER", default=None)
register_configure_hook(_RECORDER, inheritable=True)


@contextmanager
def recorded() -> Iterator[Recorder]:
    """A recorder of all runs inside."""
    token = _RECORDER.set(recorder := Recorder())
    try:
        yield recorder
    finally:
        _RECORDER.reset(token)


@cache
def drawn(recipe: Recipe) -> set[Edge]:
    """Return the edges of a recipe's graph and of its branches, as LangGraph draws them."""
    graph = build_graph(recipe)
    graphs = {"": graph, **dict(graph.get_subgraphs(recurse=True))}
    return {
        Edge(name, edge.source, edge.target)
        for name, each in graphs.items()
        for edge in each.get_graph().edges
    }
