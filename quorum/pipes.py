"""The standard streams: a reader that leaves early, text of another encoding."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


def standard_input() -> str:
    """All of standard input, read as UTF-8; bytes that are none become lone surrogates."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def write_anything(*, utf8: bool = False) -> None:
    """Let both output streams take every text: what their encoding lacks is written as ``\\u…``.

    Args:
        utf8: Standard output is data (JSON, CSV) and UTF-8 whatever the terminal speaks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # in a notebook or a test it may be another
            encoding = "utf-8" if utf8 and stream is sys.stdout else None
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


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
    poll.register(stream.fileno(), 0)  # errors are always reported
    return any(event & select.POLLERR for _, event in poll.poll(0))
