"""The context of a node: the one that the graph was given, or one that the graph opens itself.

The front door gives the graph an open ``Context``. Where a graph is given plain options (Studio,
``build_graph`` by itself), its first node opens a context for the run; it lives until the run has its
answer, through interrupts too, and is closed when nothing has used it for ``IDLE_SECONDS``.
``stream`` writes to the custom stream of the run under way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.errors import GraphBubbleUp
from langgraph.types import StreamWriter

from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import REDACTED, mask_url

IDLE_SECONDS = 600.0
"""Seconds that an interrupted run keeps its context; resumed later, it opens a new one."""

OTHER_RECIPE = "The options ask for another recipe, or other switches, than the graph was built with."


@dataclass
class _Own:
    """A context that a graph opened for itself, and how many nodes are using it now.

    Attributes:
        asks: A node has interrupted the run to ask a person; from then on idle time is not the run's.
    """

    opening: asyncio.Future[Context]
    users: int = 0
    asks: bool = False
    used: float = field(default_factory=time.monotonic)


_WRITER: ContextVar[StreamWriter | None] = ContextVar("_WRITER", default=None)


@contextmanager
def streaming(writer: StreamWriter) -> Iterator[None]:
    """Send what ``stream`` is given inside to ``writer``, that of the outermost graph.

    A branch's own writer is silent unless the caller asked for the streams of subgraphs.
    """
    token = _WRITER.set(_WRITER.get() or writer)
    try:
        yield
    finally:
        _WRITER.reset(token)


def stream(part: Any) -> None:
    """Write to the custom stream of the run under way, if there is one."""
    if writer := _WRITER.get():
        writer(part)


_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Own]] = WeakKeyDictionary()


@asynccontextmanager
async def context_of(
    given: Context | RunOptions, recipe: Recipe, question: str, run_id: str
) -> AsyncIterator[Context]:
    """The context for one node's work.

    Args:
        given: What the graph was invoked with.
        recipe: That the graph was built from.
        run_id: The run that the state names; empty at its very beginning, which opens a new run.

    Raises:
        ConfigurationError: Nothing was given, or it asks for another recipe than the graph's, or for another
            database than the run's.
        DatabaseUnavailable: As ``open_context``.
    """
    if isinstance(given, Context):
        _check(given.recipe == recipe)
        yield given
        return
    if not isinstance(given, RunOptions):
        raise ConfigurationError("The graph has no context.", hint="Pass context=RunOptions(…).")
    _check(given.recipe == recipe.name and recipe.has(given.switches, given.preset))
    runs = _loops.setdefault(asyncio.get_running_loop(), {})
    if not run_id:
        await _close_idle(runs)
        context = await open_context(given, recipe, question, owned=True, **given.handles)
        run_id, opened = context.trace.run_id, asyncio.get_running_loop().create_future()
        opened.set_result(context)
        runs[run_id] = _Own(opened)
    elif run_id not in runs:
        _release(run_id)
        runs[run_id] = _Own(asyncio.ensure_future(_reopen(given, recipe, question, run_id)))
    own = runs[run_id]
    own.users += 1
    try:
        context = await asyncio.shield(own.opening)
        if own.asks and own.users == 1:
            context.ledger.spent_seconds -= time.monotonic() - own.used
        yield context
    except GraphBubbleUp:
        own.asks = True
        raise
    except BaseException:
        if own.opening.done() and (own.opening.cancelled() or own.opening.exception()):
            runs.pop(run_id, None)  # it never opened: the next try opens a new one
        raise
    finally:
        own.users -= 1
        own.used = time.monotonic()


async def close_own(context: Context) -> None:
    """Close a context that the graph itself opened; does nothing to others."""
    if context.owned:
        _loops.get(asyncio.get_running_loop(), {}).pop(context.trace.run_id, None)
        await context.aclose()


def _check(same: bool) -> None:
    if not same:
        raise ConfigurationError(OTHER_RECIPE, hint="Build it from find_recipe(name, switches).")


async def _reopen(given: RunOptions, recipe: Recipe, question: str, run_id: str) -> Context:
    """The context of a run that goes on, from an interrupt or a fork, after it was closed."""
    context = await open_context(given, recipe, question, resume=run_id, owned=True, **given.handles)
    asked, named = (await asyncio.to_thread(context.trace.meta))["options"]["database"], given.database
    for secret in context.trace.redact:
        named = [url.replace(secret, REDACTED) for url in named]
    if named != asked:
        await context.aclose()
        raise ConfigurationError(
            f"The run {run_id} asks {', '.join(map(mask_url, asked))}, and the context names "
            f"{', '.join(map(mask_url, named))}.",
            hint="Go on with the context that the run was begun with.",
        )
    return context


async def _close_idle(runs: dict[str, _Own]) -> None:
    now = time.monotonic()
    for run_id, own in list(runs.items()):
        if own.users == 0 and now - own.used > IDLE_SECONDS and own.opening.done():
            del runs[run_id]
            await (await own.opening).aclose()


def _release(run_id: str) -> None:
    """Forget a run that a finished event loop left behind; its child process ended with its pipes."""
    for loop, runs in list(_loops.items()):
        if loop.is_closed() and run_id in runs:
            own = runs.pop(run_id)
            if own.opening.done() and not own.opening.cancelled() and own.opening.exception() is None:
                own.opening.result().trace.close()
