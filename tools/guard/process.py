"""The guard's own process: a text may take it, but never the caller, to its limits of time and memory.

The kernel ends the process when a verdict takes more of the processor's time than ``SECONDS``, whatever code
is running, and when its parent ends it reads the end of the link. It gets no secret and opens nothing.
"""

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import QuorumError
from quorum.tools.children import environment
from quorum.tools.guard.text import Passed, Rejected, too_long

if TYPE_CHECKING:
    from quorum.tools.lint import Linter
    from quorum.tools.query import QueryError

SECONDS = 0.7
"""Processor time for guard and lint on one text; people's take 5 to 20 ms."""
MEMORY = 512 * 2**20
"""Bytes of memory for one text, on top of what the process has before it."""
WAIT_SECONDS = 0.9
"""Longest wait for a verdict by the clock, others' texts not counted; with ending the process at most 1 s."""
START_SECONDS = 60.0
"""Longest wait for the process to start, or to read a catalog."""
CATALOGS = 16
"""Catalogs that the process remembers."""
KILLED = frozenset({0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
"""Exit codes of a process that somebody else ended, not its text; it is 0 where SIGCHLD is ignored."""

TOO_MUCH = Rejected(
    f"Judging the SQL takes over {SECONDS:g} s or {MEMORY >> 20} MiB; write it shorter or with less nesting.",
    "too_complex",
)


class GuardFailed(QuorumError):
    """The guard's process does not start, so nothing can be judged and nothing may run."""


class Process:
    """One process that judges one text at a time; started when it is needed, again after it had to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._link: Connection | None = None
        self._killed = False  # the last one, by somebody else

    def ask(self, sql: str, dialect: str, linter: Linter | None = None) -> Passed | Rejected | QueryError:
        """Return the verdict of guard and, with ``linter``, lint; wait for those who asked before.

        Raises:
            GuardFailed: The process does not start, or cannot read the catalog.
        """
        if refusal := too_long(sql):
            return refusal
        number = linter.number if linter else None
        with self._lock:
            for _ in range(2):
                if self._link is None:
                    self._start()
                found = self._exchange((sql, dialect, number), WAIT_SECONDS)
                if found == number and linter:  # it asks for the catalog
                    self._tell(linter)
                    found = self._exchange((sql, dialect, number), WAIT_SECONDS)
                if found is not None:
                    verdict: Passed | Rejected | QueryError = found
                    return verdict
                if not self._killed:
                    break
        return TOO_MUCH

    def prepare(self, linter: Linter) -> None:
        """Start the process and give it the catalog, so that the first text need not wait for either.

        Raises:
            GuardFailed: As ``ask``.
        """
        with self._lock:
            if self._link is None:
                self._start()
            self._tell(linter)

    def _tell(self, linter: Linter) -> None:
        if self._exchange((linter.number, linter.outline), START_SECONDS) is not True:
            raise GuardFailed("The guard's process cannot read the catalog.")

    def end(self) -> None:
        """End the process once the text under way is judged; the next text starts another one."""
        with self._lock:
            self.close()

    def close(self) -> int | None:
        """End the process; return its exit code, None if there was none."""
        status = None
        if self._child is not None and self._link is not None:
            self._link.close()
            self._child.kill()
            status = self._child.wait()
        self._child = self._link = None
        return status

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        serve_ = f"from quorum.tools.guard.process import serve; serve({SECONDS}, {MEMORY})"
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-c", serve_],
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
        """Return its reply; None, and the process is closed, if it ended or takes too long."""
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


PROCESS = Process()
THREAD = ThreadPoolExecutor(1, thread_name_prefix="guard")
"""Where coroutines wait for the process: it judges one text at a time."""


def _after_fork() -> None:
    """Give a forked process, which may not share the link, a process of its own."""
    global PROCESS, THREAD
    PROCESS, THREAD = Process(), ThreadPoolExecutor(1, thread_name_prefix="guard")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: PROCESS.close())


def serve(seconds: float, memory: int) -> None:
    """Judge texts, in the guard's process, until the parent closes the link, which is the standard input.

    A request is None (are you ready?), a linter's number and catalog, or a text with its dialect and the
    number of its linter, which is sent back if the catalog is not here.
    """
    from quorum.tools.guard.verdict import verdict_on
    from quorum.tools.lint import Linter

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdict_on("SELECT 1", "sqlite")  # loads the parser
    link = Connection(sys.stdin.fileno())
    linters: OrderedDict[int, Linter] = OrderedDict()
    link.send(link.recv() is None)
    gc.disable()  # a collection in the middle of a text would move what it makes to older generations
    while True:
        try:
            request = link.recv()
        except EOFError:
            return
        if len(request) == 2:
            number, catalog = request
            linters[number] = Linter(catalog)
            linters[number].prepare()
            while len(linters) > CATALOGS:
                linters.popitem(last=False)
            gc.collect()
            gc.freeze()  # a catalog may hold a million objects
            link.send(True)
            continue
        sql, dialect, number = request
        if number is not None and number not in linters:
            link.send(number)
            continue
        with _limited(seconds, memory):
            found = verdict_on(sql, dialect)
            reply: Passed | Rejected | QueryError = found
            if isinstance(found, Passed):
                bare = replace(found, tree=None, script=())
                reply = bare if number is None else linters[number].judge(found)
        link.send(reply)
        _, young, old = gc.get_count()  # between two texts: nobody waits
        gc.collect(2 if old > 100 else 1 if young > 10 else 0)


@contextmanager
def _limited(seconds: float, memory: int) -> Iterator[None]:
    """End this process after ``seconds`` of work; allow ``memory`` bytes more than it has."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":  # macOS ignores the limit
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - for each verdict
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    yield  # not in try: after an exception the process ends
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
