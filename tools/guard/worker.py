"""The guard's process: ``python -m quorum.tools.guard.worker SECONDS BYTES``, a link to its parent as stdin.

The kernel ends it when a verdict takes more of the processor's time than that, whatever code is running, and
when its parent ends it reads the end of the link. It gets no secret and opens nothing.
"""

from __future__ import annotations

import gc
import resource
import signal
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection

from quorum.tools.guard.text import Passed, Refused
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.query import QueryError

KEPT_CATALOGS = 16


def main(seconds: float, memory: int) -> None:
    """Serve until the parent closes the link."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdict_on("SELECT 1", "sqlite")  # loads the parser
    link = Connection(sys.stdin.fileno())
    linters: OrderedDict[int, Linter] = OrderedDict()
    link.send(link.recv() is None)
    while True:
        gc.disable()  # while a catalog comes in, there is nothing but new objects
        try:
            request = link.recv()
        except EOFError:
            return
        finally:
            gc.enable()
        if len(request) == 2:
            number, catalog = request
            linters[number] = Linter(catalog)
            linters[number].prepare()
            while len(linters) > KEPT_CATALOGS:
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
            found = _judged(sql, dialect, linters.get(number))
        link.send(found)


def _judged(sql: str, dialect: str, linter: Linter | None) -> Passed | Refused | QueryError:
    found = verdict_on(sql, dialect)
    if isinstance(found, Refused):
        return found
    problem = linter.lint(found.tree) if linter else None
    return problem or replace(found, tree=None, script=())


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


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
