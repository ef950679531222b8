"""When Python looks for garbage: never in the middle of a check, and rarely while many questions run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000
"""Objects made since the last collection that bring on the next one. Python's 700 is a few milliseconds of
one question: of what a hundred hold at once, each collection finds nearly all in use."""


@contextmanager
def own_garbage() -> Iterator[None]:
    """Let a check collect what it leaves behind, and no more than that.

    Parsing makes tens of thousands of short-lived objects. Collected while in use they grow old and bring
    on full collections, which walk the whole process (25 ms and more beside 5 ms of judging); collected
    once, young, they cost a millisecond or two. What a verdict holds outlives that, so the older generations
    have their turn too: after ten checks, and after a thousand in a process that does nothing else.
    Among ``rare_collections`` nothing is collected: the young are everybody's.
    """
    enabled, rare = gc.isenabled(), gc.get_threshold()[0] >= YOUNG
    gc.disable()
    try:
        yield
    finally:
        if enabled and not rare:
            _, young, old = gc.get_count()
            gc.collect(2 if old > 100 else 1 if young > 10 else 0)
        if enabled:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect less often, and do not walk again and again through what lives since before."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
