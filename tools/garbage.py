"""Choose when Python collects garbage: rarely while a run is open."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000
"""New objects that start a collection. Python's default of 700 is reached every few milliseconds, and
nearly all of them are still in use."""


@contextmanager
def no_collections() -> Iterator[None]:
    """Hold off Python's garbage collector while many objects are made that all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
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
