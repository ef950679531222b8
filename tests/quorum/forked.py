"""``quorum`` in processes that can be killed, forked from one that has imported everything.

    with Forked(folder, root) as quorum:
        process = quorum.start("eval", "run", …)
        os.kill(process, signal.SIGKILL)
        quorum.wait()  # -9

What they print lies in ``folder/output.txt``. ``python -m tests.quorum.forked`` is the process that they
come from: it reads arguments as JSON lines, and writes the child's id, then its status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from quorum.cli import main as command
from quorum.graph.trace import Trace
from quorum.tools.databases import process
from quorum.tools.guard import process as guard_process
from quorum.tools.guard.text import Passed, Rejected
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.query import QueryError
from tests.engines import Inside

OUTPUT = "output.txt"
IMPORTED = (
    "quorum.evals.running.runner",
    "quorum.evals.suites.own",
    "quorum.graph.recipes.quorum",
    "quorum.api",
    "quorum.terminal",
    "quorum.commands.ask",
    "quorum.commands.batch",
    "quorum.eval_progress",
    "quorum.graph.recipes.recap",
    "quorum.tools.databases.sqlite.connector",
    "quorum.tools.databases.sqlite.catalog",
    "quorum.tools.databases.sqlite.session",
    "quorum.tools.models.openai_chat",
    "quorum.tools.offline.model",
    "anyio._backends._asyncio",
    "httpcore2",
    "pygments.lexers.sql",
    "rich.syntax",
)


class Forked:
    """The process that forks; a context manager."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.quorum.forked"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(root), "LANGSMITH_TRACING": "false"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self, *arguments: str, events: float | None = None, end: signal.Signals = signal.SIGKILL
    ) -> int:
        """Run ``quorum`` with these arguments; returns its process id.

        Args:
            events: It sends itself ``end`` as soon as so many are recorded; engine and guard are inside it.
        """
        print(json.dumps([events, end, *arguments]), file=self._process.stdin, flush=True)
        return self._read()

    def wait(self) -> int:
        """The exit status of the process that was started last; negative for a signal."""
        return os.waitstatus_to_exitcode(self._read())

    def _read(self) -> int:
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def _end_after(events: float, end: int) -> None:
    """Have this process send itself a signal once so many events are recorded."""
    record, left = Trace.record, [events]

    def last(trace: Trace, kind: str, **fields: Any) -> None:
        record(trace, kind, **fields)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), end)

    Trace.record = last  # type: ignore[method-assign]


def judged(sql: str, dialect: str, linter: Linter | None = None) -> Passed | Rejected | QueryError:
    """Judge in this process, where no process of the guard's is started."""
    found = verdict_on(sql, dialect)
    problem = linter.lint(found.tree) if linter and isinstance(found, Passed) else None
    return problem or found


def main() -> None:
    for module in IMPORTED:
        import_module(module)
    pa.array([1])  # imports pandas, where it is installed
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests' own shell may ignore it
            with Path(OUTPUT).open("a") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            events, end, *arguments = json.loads(line)
            sys.argv = ["quorum", *arguments]
            if events is not None:
                process.Child = Inside  # type: ignore[misc]
                guard_process.PROCESS.ask = judged  # type: ignore[method-assign]
                _end_after(events, end)
            command()
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
