"""The guard's own process: what is judged may take it, but never the caller, to its limits."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import QuorumError
from quorum.tools.children import environment
from quorum.tools.guard.text import Passed, Refused, too_long

if TYPE_CHECKING:
    from quorum.tools.lint import Linter
    from quorum.tools.query import QueryError

SECONDS = 0.7
"""Processor time for guard and lint on one text; people's take 5 to 20 ms."""
MEMORY = 512 * 2**20
"""Bytes of memory for one text, on top of what the process holds before it."""
WAIT_SECONDS = 0.9
"""Longest wait for a verdict by the clock, others' texts not counted; with ending the process at most 1 s."""
START_SECONDS = 60.0
"""Longest wait for the process to start, or to read a catalog."""
KILLED = frozenset({0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
"""How a process ends that somebody else ended, not its text; 0 is told where SIGCHLD is ignored."""

TOO_MUCH = Refused(
    f"Judging the SQL takes over {SECONDS:g} s or {MEMORY >> 20} MiB; write it shorter or with less nesting.",
    "too_complex",
)


class GuardFailed(QuorumError):
    """The guard's process does not start, so nothing can be judged and nothing may run."""


class _Process:
    """One process that judges one text at a time; started when it is needed, again after it had to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._link: Connection | None = None
        self._killed = False  # the last one, by somebody else

    def ask(self, sql: str, dialect: str, linter: Linter | None) -> Passed | Refused | QueryError:
        """The verdict of guard and, with ``linter``, lint.

        Raises:
            GuardFailed: The process does not start, or cannot read the catalog.
        """
        with self._lock:
            found = self._verdict(sql, dialect, linter)
            if found is None and self._killed:
                found = self._verdict(sql, dialect, linter)
            return TOO_MUCH if found is None else found

    def close(self) -> int | None:
        """End the process; how it ended, if it was there."""
        status = None
        if self._child is not None and self._link is not None:
            self._link.close()
            self._child.kill()
            status = self._child.wait()
        self._child = self._link = None
        return status

    def _verdict(self, sql: str, dialect: str, linter: Linter | None) -> Any:
        """The verdict; None if the process ended over it."""
        if self._link is None:
            self._start()
        number = linter.number if linter else None
        found = self._exchange((sql, dialect, number), WAIT_SECONDS)
        if found == number and linter:  # it asks for the catalog
            if self._exchange((linter.number, linter.outline), START_SECONDS) is not True:
                raise GuardFailed("The guard's process cannot read the catalog.")
            found = self._exchange((sql, dialect, number), WAIT_SECONDS)
        return found

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "quorum.tools.guard.worker", str(SECONDS), str(MEMORY)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # the terminal's Ctrl-C is the parent's affair
                env=environment(),
            )
        self._link = Connection(ours.detach())
        if self._exchange(None, START_SECONDS) is not True:
            raise GuardFailed("The guard's process does not start.", hint="Run `quorum doctor`.")

    def _exchange(self, request: Any, seconds: float) -> Any:
        """Its reply; None, and the process is closed, if it ended or takes too long."""
        assert self._link is not None
        ended = True
        try:
            with suppress(EOFError, OSError):
                self._link.send(request)
                ended = self._link.poll(seconds)
                if ended:
                    return self._link.recv()
        except BaseException:
            self.close()  # else the next caller would get this one's reply
            raise
        self._killed = self.close() in KILLED and ended
        return None


_process = _Process()
THREAD = ThreadPoolExecutor(1, thread_name_prefix="guard")
"""Where coroutines wait for the process: it judges one text at a time."""


def ask(sql: str, dialect: str, linter: Linter | None = None) -> Passed | Refused | QueryError:
    """The verdict of guard and, with ``linter``, lint; waits for those who asked before.

    Raises:
        GuardFailed: The process does not start, or cannot read the catalog.
    """
    return too_long(sql) or _process.ask(sql, dialect, linter)


def _after_fork() -> None:
    """A forked process may not share the link: it starts a process of its own."""
    global _process, THREAD
    _process, THREAD = _Process(), ThreadPoolExecutor(1, thread_name_prefix="guard")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _process.close())
