"""Choose when Python collects garbage: never in the middle of a check, rarely while a run is open."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000
"""New objects that start a collection. Python's default of 700 is reached every few milliseconds, and
nearly all of them are still in use."""


@contextmanager
def own_garbage() -> Iterator[None]:
    """Hold off Python's garbage collector during a check, then collect what the check left.

    A check makes tens of thousands of short-lived objects. A collection during the check would move them to
    the older generations, which take 25 ms and more to collect (a check takes 5); after the check the
    youngest generation takes one or two. The older ones are collected when due: after ten checks, and after a
    hundred of those. Does not collect within ``rare_collections``.
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


_lock = threading.Lock()
_open = 0  # runs under way
_before: tuple[int, int, int] = gc.get_threshold()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect less often while a run is open, and leave out the objects that exist already.

    With Python's default a question spends a third of its processor time on collections that find nothing
    (``tests.benchmarks.bench_overhead``). It holds for the whole process until the last run has ended.
    """
    global _open, _before
    with _lock:
        _open += 1
        if _open == 1:
            _before = gc.get_threshold()
            gc.freeze()
            gc.set_threshold(max(YOUNG, _before[0]), *_before[1:])
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if _open == 0:
                gc.set_threshold(*_before)
                gc.unfreeze()
