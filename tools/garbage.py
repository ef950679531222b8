"""When Python collects garbage: never in the middle of a check, and rarely while many questions run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000
"""New objects that start a collection. Python's 700 come every few milliseconds, and while a hundred
questions run nearly all of them are still in use."""


@contextmanager
def own_garbage() -> Iterator[None]:
    """Hold off Python's garbage collector during a check, then collect what the check left.

    A check makes tens of thousands of objects that live for milliseconds. A collection in the middle of
    it would move them to the older generations, whose collections walk through the whole process (25 ms and
    more, where a check takes 5); right after the check they are gone in one or two. The older generations
    are collected when they are due: after ten checks, and after a hundred of those. Within
    ``rare_collections`` nothing is collected here.
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
    """Collect less often, and leave out the objects that exist already."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
