"""Which context a running graph finds: the one attached to its options, or one it opens for itself."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakKeyDictionary

from graph.context import Context, open_context
from graph.options import RunOptions

_attached: WeakKeyDictionary[RunOptions, Context] = WeakKeyDictionary()
_own: OrderedDict[str, asyncio.Task[Context]] = OrderedDict()
"""Contexts that graphs opened for themselves, by run: an interrupted run finds its own again."""

MOST_OWN = 16
"""So many runs may stand interrupted in one process; the oldest is closed and opens anew when it goes on."""


def attach(options: RunOptions, context: Context) -> None:
    """Make ``context`` the one that nodes find for these very options."""
    _attached[options] = context


async def context_of(options: RunOptions, question: str, run_id: str = "") -> Context:
    """The context of the running graph; opened here if nobody attached one (Studio).

    Raises:
        ConfigurationError, DatabaseUnavailable: As ``open_context``.
    """
    if options in _attached:
        return _attached[options]
    if run_id not in _own:
        opening = open_context(options, question, resume=run_id, api_key=options.api_key(), owned=True)
        if not run_id:
            context = await opening
            attach(options, context)
            _own[context.trace.run_id] = asyncio.ensure_future(_ready(context))
            await _close_oldest()
            return context
        _own[run_id] = asyncio.ensure_future(opening)
    context = await asyncio.shield(_own[run_id])
    attach(options, context)
    return context


async def close_own(context: Context) -> None:
    """Close a context that the graph itself opened; does nothing to others."""
    if context.owned:
        _own.pop(context.trace.run_id, None)
        await context.aclose()


async def _ready(context: Context) -> Context:
    return context


async def _close_oldest() -> None:
    while len(_own) > MOST_OWN:
        _, oldest = _own.popitem(last=False)
        await (await oldest).aclose()
