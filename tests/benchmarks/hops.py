"""Count the functions of ours between a cause and its effect, and print them.

A hop is a distinct function or method of a module below ``quorum.``; comprehensions, lambdas and constructors
are none. Counted are those on the stack when the effect happens: they wait for each other. The stack of a
task or of an executor's thread is joined to that of whoever started it, so neither ``asyncio.run`` nor
LangGraph's tasks hide anything.

- ``ask``, ``ask_sync``: the stack at the first HTTP request to a model, from the command line and a script.
- ``vote``: the stacks at each making of an object of ours that holds the result's fingerprint, from the
  result to the vote; without what starts the graph and its steps.
- ``event``: the stacks when an event is written, read, made part of an object of ours, and printed.
- ``select``, ``guard``: the longest stack while a SELECT runs on PostgreSQL, while a text is judged. The
  guard's own process is run in this one.

    python -m tests.benchmarks.hops [ask ask_sync vote event select guard]
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import openai

from tests.servers.chat_server import ChatServer, status

PATHS = {
    "ask": (12, "`quorum ask` to the first HTTP request"),
    "ask_sync": (8, "ask_sync to the first HTTP request"),
    "vote": (8, "a candidate's result to the vote"),
    "event": (10, "an event to its line in `quorum trace show`"),
    "select": (7, "a SELECT on PostgreSQL, from the connector to libpq"),
    "guard": (8, "the guard's verdict"),
}
"""Goals and titles."""
QUESTION = "How many customers are there?"
ANSWER: dict[str, Any] = dict.fromkeys(("database", "dialect", "recipe"), "any")
ANSWER |= {"question": QUESTION, "status": "no_answer", "usage": {"by_agent": {}, "by_model": {}}}
MARK = "zebra_crossing"
"""A text that only the event has whose way is recorded."""

STEPPING = ("answering.py", "recipes/", "nodes/step.py", "trace.py")
"""What starts the graph and its steps."""

MAKING = ("__init__", "__post_init__")

Hops = dict[str, None]
"""Functions as ``file:function``, in the order in which they were met."""


def named(frame: FrameType) -> str:
    """Return ``tools/execute.py:run`` for a frame of ours, "" for any other."""
    module, code = str(frame.f_globals.get("__name__")), frame.f_code
    if not module.startswith("quorum.") or code.co_name.startswith("<") or code.co_name in MAKING:
        return ""
    file = "/".join(module.split(".")[1:])
    if Path(code.co_filename).name == "__init__.py":
        file += "/__init__"
    return f"{file}.py:{code.co_qualname.replace('.<locals>', '')}"


class Stacks:
    """Joins the stack of a task or a worker's thread to that of whoever started it."""

    def __init__(self) -> None:
        self._tasks: weakref.WeakKeyDictionary[Any, Hops] = weakref.WeakKeyDictionary()
        self._thread = threading.local()

    def here(self, frame: FrameType | None) -> Hops:
        """Return the functions that wait for ``frame``, the outermost first."""
        above: Hops = dict(getattr(self._thread, "above", {}))
        with contextlib.suppress(RuntimeError):  # no loop runs in this thread
            above |= self._tasks.get(asyncio.current_task(), {}) if asyncio.current_task() else {}
        own = []
        while frame is not None:
            own += [name] if (name := named(frame)) else []
            frame = frame.f_back
        return above | dict.fromkeys(reversed(own))

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Watch tasks and executors' work being started."""
        create, future = asyncio.BaseEventLoop.create_task, concurrent.futures.Future
        made, began = future.__init__, future.set_running_or_notify_cancel

        def create_task(loop: Any, coroutine: Any, **more: Any) -> Any:
            task = create(loop, coroutine, **more)
            self._tasks[task] = self.here(sys._getframe())
            return task

        def init(self_: Any) -> None:
            made(self_)
            self_.above = self.here(sys._getframe())

        def set_running(self_: Any) -> bool:
            self._thread.above = self_.above
            return began(self_)

        with (
            patch.object(asyncio.BaseEventLoop, "create_task", create_task),
            patch.object(future, "__init__", init),
            patch.object(future, "set_running_or_notify_cancel", set_running),
        ):
            yield


@contextmanager
def watched(effect: Callable[[FrameType, str, Any], bool]) -> Iterator[list[Hops]]:
    """Collect the stacks at calls that are an effect.

    Args:
        effect: Judges a call: its frame, ``call`` or ``c_call``, and a C function that is called.
    """
    found: list[Hops] = []
    stacks = Stacks()

    def profile(frame: FrameType, event: str, called: Any) -> None:
        if event in ("call", "c_call") and effect(frame, event, called):
            found.append(stacks.here(frame))

    with stacks.joined():
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            yield found
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]


def first_request(ask: Callable[[str], object]) -> Hops:
    """Return the stack at the first request that leaves for a model's endpoint.

    Args:
        ask: Asks ``QUESTION`` with the endpoint at that URL.
    """
    client = openai.DefaultAsyncHttpxClient.__mro__[1]  # of httpx, or of what the version is built on
    send = client.send.__code__
    with (
        tempfile.TemporaryDirectory() as home,
        ChatServer([status(401)]) as server,
        patch.dict(os.environ, {"QUORUM_HOME": home, "OPENAI_API_KEY": "none"}),
        watched(lambda frame, event, _: frame.f_code is send) as found,
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(Exception, SystemExit),
    ):
        ask(server.url)
    return found[0]


def ask() -> Hops:
    """Return the stack of the command line at its first request."""
    from quorum.cli import main

    def command(url: str) -> None:
        options = ["--db", "sample", "--model", "openai:test", "--base-url", url]
        with patch.object(sys, "argv", ["quorum", "ask", QUESTION, *options]):
            main()

    return first_request(command)


def ask_sync() -> Hops:
    """Return the stack of a script at its first request."""
    from quorum import ask_sync as front

    return first_request(lambda url: front(QUESTION, db="sample", models="openai:test", base_url=url))


def makes(frame: FrameType, event: str, mark: str) -> bool:
    """Return True if an object of ours is made, with ``mark`` in its values."""
    if event != "call" or frame.f_code.co_name not in MAKING:
        return False
    return any(_holds(value, mark) for name, value in frame.f_locals.items() if name != "self")


def vote() -> Hops:
    """Return the way of a candidate's result to the vote."""
    from quorum import ask_sync as front

    with tempfile.TemporaryDirectory() as home:
        mark = front(QUESTION, db="sample", models="offline", home=home).candidates[0].fingerprint
        voted: list[Any] = []

        def heard(event: Mapping[str, Any]) -> None:
            voted.extend([event] if event["kind"] == "vote" else [])

        def effect(frame: FrameType, event: str, _: object) -> bool:
            return not voted and makes(frame, event, mark)

        with watched(effect) as found:
            front(QUESTION, db="sample", models="offline", home=home, on_event=heard)
    frame = ("api.py", "session.py", *(f"graph/{each}" for each in STEPPING))
    return {name: None for stack in found for name in stack if not name.startswith(frame)}


def event() -> Hops:
    """Return the way of an event to its line in the terminal."""
    from rich.console import Console

    from quorum.commands.trace import command
    from quorum.graph.trace import Trace

    def writes(_: FrameType, __: str, called: Any) -> bool:
        return called is os.write or getattr(called, "__name__", "") == "write"

    def reads(frame: FrameType, event: str, _: Any) -> bool:
        if frame.f_code is Console.print.__code__:
            return any(MARK in str(each) or _cells(each) for each in frame.f_locals.get("objects", ()))
        parsed = event == "call" and frame.f_code is json.loads.__code__ and _holds(frame.f_locals["s"], MARK)
        return parsed or makes(frame, event, MARK)

    with tempfile.TemporaryDirectory() as home:
        trace = Trace.create(Path(home), "r1", meta={"question": QUESTION, "options": {}})
        trace.record("begun", agent="run", run="r1", resumed=False)
        with watched(writes) as written:
            trace.record("plan_review", agent="plan_critique", update_plan=True, feedback=MARK)
            trace.flush()
        trace.finish(ANSWER)
        trace.close()
        with watched(reads) as shown, contextlib.redirect_stdout(io.StringIO()):
            command(["show", "r1", "--home", home], standalone_mode=False)
    return {name: None for stack in [*written, *shown] for name in stack}


def _cells(shown: Any) -> bool:
    """Return True if a table has the mark in a cell."""
    return any(MARK in str(cell) for column in getattr(shown, "columns", ()) for cell in column.cells)


def ours(frame: FrameType, event: str, _: object) -> bool:
    """Return True at a call of a function of ours."""
    return event == "call" and bool(named(frame))


def select() -> Hops:
    """Return the longest stack while a SELECT runs; libpq is asked at its end."""
    from quorum.tools.databases import connect_all
    from quorum.tools.query import Limits
    from tests.servers.postgres_server import running_postgres

    async def run(url: str) -> list[Hops]:
        async with connect_all([url]) as database:
            await database.run("SELECT 1", Limits())  # opens a connection
            with watched(ours) as found:
                await database.run("SELECT 2", Limits())
            return found

    with running_postgres() as server:
        return max(asyncio.run(run(f"{server.admin_url}/{server.new_database()}")), key=len)


def guard() -> Hops:
    """Return the longest stacks of a verdict: of the caller to the guard's process, and in that process."""
    from quorum.tools.guard import check
    from quorum.tools.guard.verdict import verdict_on

    sql = "SELECT name FROM orders WHERE state = 'paid'"
    check(sql, "postgres")
    verdict_on(sql, "postgres")

    with watched(ours) as asking:
        check(sql, "postgres")
    with watched(ours) as judging:
        verdict_on(sql, "postgres")
    return max(asking, key=len) | {"tools/guard/process.py:serve": None} | max(judging, key=len)


def _holds(value: Any, mark: str, depth: int = 5) -> bool:
    """Return True if a text in the value holds ``mark``; handles of a whole run are no value."""
    if isinstance(value, str):
        return mark in value
    if isinstance(value, bytes):
        return mark.encode() in value
    if depth == 0 or isinstance(value, int | float | None):
        return False
    if isinstance(value, Mapping):
        return any(_holds(item, mark, depth - 1) for item in list(value.values()))  # threads change it
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds(item, mark, depth - 1) for item in list(value))
    fields = getattr(value, "__dict__", None)
    module = type(value).__module__
    if not isinstance(fields, dict) or not module.startswith("quorum.") or hasattr(value, "aclose"):
        return False
    return any(_holds(item, mark, depth - 1) for item in list(fields.values()))


def main() -> None:
    """Print each path and its length."""
    for name in sys.argv[1:] or PATHS:
        (goal, title), hops = PATHS[name], globals()[name]()
        print(f"{title}: {len(hops)} (goal: {goal})")
        print(*(f"  {number:2} {hop}" for number, hop in enumerate(hops, 1)), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
