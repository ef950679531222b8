"""How many questions are done, shown on a terminal by commands that take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnDone = Callable[[int, int], None]
"""Called with the number of questions done and of all questions."""


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
