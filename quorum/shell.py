"""Good manners of a command in a shell: streams that may end early, Ctrl-C that ends work in order."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def standard_input() -> str:
    """Return all of standard input as UTF-8; other bytes become lone surrogates."""
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


class Interrupted(Exception):
    """A signal ended the work.

    Attributes:
        status: The exit status by which shells report the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


async def interruptible(work: Coroutine[Any, Any, T], on_first: Callable[[], None]) -> T:
    """Return what ``work`` returns. SIGINT or SIGTERM cancels it; a second one ends the process at once.

    Must run in the main thread. A signal that the process was started to ignore (a shell's background job)
    stays ignored.

    Raises:
        Interrupted: The work was cancelled, and has ended.
    """
    import asyncio  # most commands end before they need it

    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    obeyed = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    heard: list[int] = []

    def stop(number: int) -> None:
        for each in obeyed:
            signal.signal(each, _end_at_once)
        heard.append(number)
        on_first()
        task.cancel()

    for number in obeyed:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not heard:
            raise
        raise Interrupted(heard[0]) from None
    finally:
        for number in obeyed:
            loop.remove_signal_handler(number)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)
