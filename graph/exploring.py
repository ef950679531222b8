"""The exploration stage as a graph: a tree search that fills a database's triplets (paper 001, section 3.2).

    Explorer ─ Send × branches ─ keep ─ Explorer ...    until enough is covered or tried
    one branch:  Simulator → run_sql → Describer

The store is what lasts: a search that was stopped, or killed, goes on from it in another process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from langgraph.graph import END, START
from langgraph.runtime import Runtime
from langgraph.types import Send

from quorum.agents.explorers import DESCRIBER, EXPLORER, SIMULATOR
from quorum.graph.context import Context, open_context
from quorum.graph.node_context import streaming
from quorum.graph.nodes import tree_search
from quorum.graph.nodes.tree_search import Search, SearchState, SimulationState
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import Paths, RecipeGraph
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.resources import Resources, explored_in
from quorum.graph.runs import Event
from quorum.graph.tree_search import SearchTree
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.ledger import Usage
from quorum.tools.sql.linking import marks_hold
from quorum.tools.triplet_store import TripletStore


@dataclass(frozen=True)
class ExplorationResult:
    """The outcome of an exploration.

    Attributes:
        ended: ``coverage``, ``attempts``, ``stuck``, or the limit that was reached (``max_calls``, …).
        outcomes: Of all expansions so far, by outcome.
        usage: Of this process.
        run: Folder of its trace.
    """

    folder: Path
    ended: str
    fields: int
    covered: int
    attempts: int
    triplets: int
    outcomes: dict[str, int]
    usage: Usage
    run: Path

    @property
    def coverage(self) -> float:
        """Share of fields that a triplet uses."""
        return self.covered / self.fields if self.fields else 1.0

    @property
    def success(self) -> float:
        """Share of expansions that became triplets (paper 001, Table 13)."""
        return self.outcomes.get("worked", 0) / self.attempts if self.attempts else 0.0


async def explore(
    options: RunOptions,
    resources: Resources,
    *,
    root: Path,
    resume: bool = False,
    groups: bool = True,
    told: Callable[[Search], None] | None = None,
    listener: Callable[[Event], None] | None = None,
    **limits: Any,
) -> ExplorationResult:
    """Search until a limit is reached; what is found is kept as it is found.

    Args:
        root: Folder of what was explored; each database has its own below.
        resume: Go on with what was explored before; without it there must be nothing.
        groups: ``SearchTree``.
        told: Called at the beginning and after each round.
        limits: Fields of ``Search``.

    Raises:
        ConfigurationError: The database cannot be queried, was explored before, or is being explored.
        ModelUnavailable, DatabaseUnavailable: As a run.
    """
    catalog, execution = resources.linter.catalog, limits.get("execution", True)
    if execution and not resources.connector.live:
        raise ConfigurationError(
            f"{catalog.name} is a schema without data: no query can run there.",
            hint="With --no-execution queries are written and checked only.",
        )
    folder = await asyncio.to_thread(explored_in, root, options, catalog, static=not execution)
    store = await asyncio.to_thread(TripletStore.open, folder, catalog)
    try:
        if store.expansions and not resume:
            raise ConfigurationError(
                f"{catalog.name} was explored before: {len(store.triplets)} triplets.",
                hint=f"Go on with --resume, or delete {folder} to begin again.",
            )
        tree = await asyncio.to_thread(_tree, store, resources, groups)
        search = Search(tree, store, **limits)
        if told:
            told(search)
        return await _searched(search, options, resources, folder, told, listener)
    finally:
        store.close()


def _tree(store: TripletStore, resources: Resources, groups: bool) -> SearchTree:
    """The tree as far as the present schema still allows it: changed tables have to be covered again."""
    catalog = resources.linter.catalog
    fits = [triplet for triplet in store.triplets if marks_hold(triplet.tables, catalog)]
    stale = {triplet.id for triplet in store.triplets} - {triplet.id for triplet in fits}
    return SearchTree(catalog, store.expansions, fits, groups=groups, stale=stale)


async def _searched(
    search: Search,
    options: RunOptions,
    resources: Resources,
    folder: Path,
    told: Callable[[Search], None] | None,
    listener: Callable[[Event], None] | None,
) -> ExplorationResult:
    question = f"Explore {resources.catalog.name}."
    placed = options.model_copy(update={"home": folder, "recipe": RECIPE.name})
    context = await open_context(placed, RECIPE, question, resources=resources, listener=listener)
    try:
        context.trace.record("begun", agent="run", run=context.trace.run_id, resumed=bool(search.tried))
        state: dict[str, Any] = {"stopped_by": "", "misses": 0}
        if not search.ended:
            graph = wire_search(search, told).compile(name=RECIPE.name)
            most = (tree_search.MAX_MISSES + 3) * search.attempts  # steps of an attempt, at most
            config: Any = {"recursion_limit": 20 + most}
            start = {"question": question, "run_id": context.trace.run_id}
            handles: Any = context  # nodes take an open context as well as options
            state = await graph.ainvoke(start, config, context=handles)
        stuck = state["misses"] >= tree_search.MAX_MISSES
        made = _summary(search, state["stopped_by"] or ("stuck" if stuck else search.ended), context)
        context.trace.record("explored", agent="explorer", ended=made.ended, coverage=made.coverage)
        return made
    except Exception as error:
        context.trace.record("failed", agent="run", error=type(error).__name__, message=str(error))
        raise
    finally:
        await context.aclose()


def wire_search(search: Search, told: Callable[[Search], None] | None = None) -> RecipeGraph:
    """The uncompiled graph of a search."""
    graph = RecipeGraph(RECIPE, SearchState, context_schema=RunOptions)
    branch = _wire_branch(search).compile()

    async def simulated(state: SimulationState, runtime: Runtime[Any]) -> dict[str, Any]:
        with streaming(runtime.stream_writer):
            output = await branch.ainvoke(vars(state))
        return {"tried": output["tried"], "stopped_by": output["stopped_by"]}

    def send(state: SearchState) -> list[Send] | str:
        way = tree_search.after_choice(state)
        if way == "simulate":
            return [
                Send("simulate", SimulationState(state.question, state.run_id, checked=checked))
                for checked in state.batch
            ]
        return "Explorer" if way == "choose" else END

    graph.add_step("Explorer", partial(tree_search.choose, search=search))
    graph.add_node("simulate", simulated)
    graph.add_step("keep", partial(tree_search.keep, search=search, told=told))
    graph.add_edge(START, "Explorer")
    graph.add_conditional_edges("Explorer", send, ["simulate", "Explorer", END])
    graph.add_edge("simulate", "keep")
    again: Paths = {"choose": "Explorer", "end": END}
    graph.add_conditional_edges("keep", partial(tree_search.after_keeping, search=search), again)
    return graph


def _wire_branch(search: Search) -> RecipeGraph:
    graph = RecipeGraph(RECIPE, SimulationState, context_schema=RunOptions)
    graph.add_step("Simulator", partial(tree_search.simulate, search=search))
    graph.add_step("run_sql", partial(tree_search.run_query, search=search))
    graph.add_step("Describer", partial(tree_search.describe, search=search))
    graph.add_edge(START, "Simulator")
    for name, then in (("Simulator", "run_sql"), ("run_sql", "Describer")):
        ways: Paths = {"go_on": then, "end": END}
        graph.add_conditional_edges(name, tree_search.after_simulation, ways)
    graph.add_edge("Describer", END)
    return graph


def _summary(search: Search, ended: str, context: Context) -> ExplorationResult:
    store, tree = search.store, search.tree
    return ExplorationResult(
        folder=context.options.home,
        ended=ended,
        fields=len(tree.fields),
        covered=len(tree.covered),
        attempts=search.tried,
        triplets=len(store.triplets),
        outcomes=dict(Counter(each.outcome for each in store.expansions)),
        usage=context.ledger.total,
        run=context.trace.folder,
    )


def _no_question(recipe: Recipe, _: type[RunOptions]) -> NoReturn:
    raise ConfigurationError(f"{recipe.name} answers no question.", hint="quorum explore --db URL")


RECIPE = Recipe(
    name="explore",
    summary="Learn a database by a tree search: choose, simulate, describe, keep.",
    paper="SQLAgent: Learning to Explore Before Generating as a Data Engineer, 3.2",
    agents=(EXPLORER.name, SIMULATOR.name, DESCRIBER.name),
    wire=_no_question,
    one_temperature=True,
)
