"""Standard output whose reader has had enough (``| head``): that is no error of ours."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """End the block quietly when the reader of standard output has gone; what follows it still happens."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone(sys.stdout):  # another pipe broke, a database's process, say
            raise
        discard(sys.stdout)


def discard(stream: IO[str]) -> None:
    """Send what is still written to ``stream`` nowhere, at the interpreter's end too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _reader_is_gone(stream: IO[str]) -> bool:
    poll = select.poll()
    poll.register(stream.fileno(), 0)  # errors are always told
    return any(event & select.POLLERR for _, event in poll.poll(0))
