"""What a command that takes a while shows on a terminal: how many questions are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnDone = Callable[[int, int], None]
"""Told how many are done, of how many."""


@contextmanager
def counting(message: str = "reading") -> Iterator[OnDone]:
    """Show on standard error how far it is, where that is a terminal.

    Args:
        message: Shown until the first is done.
    """
    from quorum.render import console

    waiting = console(stderr=True)
    if not waiting.is_terminal:
        yield lambda *_: None
        return
    with waiting.status(message) as status:
        yield lambda done, total: status.update(f"question {done} of {total}")
