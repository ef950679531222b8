"""The run folder: every step of a run on disk, written as it happens, readable after a crash.

    <home>/runs/<run id>/
        run.json           the question and the options, without secrets
        events.jsonl       one step per line, each flushed on its own
        blobs/<sha>.txt    texts over ``LONG`` characters, once each, named by their SHA-256
        results/*.parquet  finished results
        answer.json        the answer, once there is one
        checkpoint.sqlite  LangGraph's own, unless it keeps them in PostgreSQL (``quorum.graph.leases``)

A ``RunFolder`` (``quorum.graph.runs``) reads; a ``Trace`` is a run folder that also writes.

A line is written where it is recorded: that takes microseconds, far less than waking a thread, and does not
wait for the disk. Whole files take several calls, some of which may wait; one thread writes those of all
runs. A failing disk ends no run: what could not be written is left out whole, and the next write is tried.
"""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import hashlib
import io
import json
import math
import re
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from quorum.agents.role import find_role
from quorum.graph.runs import ENDED, Event, RunFolder, new_run_id
from quorum.knowledge.atomic import lock, replace_file, write_once
from quorum.knowledge.errors import ConfigurationError, LeaseLost
from quorum.tools.record import BLOB
from quorum.tools.urls import REDACTED

if TYPE_CHECKING:
    from quorum.graph.leases import Lease

LONG = 2048
"""Texts of more characters than this are stored once, as blobs."""

HEAD = 120
SHORTEST_SECRET = 4  # redacting shorter strings would tear ordinary text apart

_WHOLE = {"model_call": ("reply", "problem"), "query": ("executed",)}
"""Texts that stay in their event's line, however long: a resumed run goes by them, a kill may lose a blob."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_OTHER_HOME = "Set another folder with QUORUM_HOME or `home` in quorum.toml."


_FILES = ThreadPoolExecutor(1, thread_name_prefix="trace-files")

_LOCATION: ContextVar[dict[str, str]] = ContextVar("_LOCATION", default={})  # noqa: B039 - never changed


@contextmanager
def located(**place: str) -> Iterator[None]:
    """Events that are recorded inside name this place: ``node``, ``recipe``, ``code`` and ``task``."""
    token = _LOCATION.set(place)
    try:
        yield
    finally:
        _LOCATION.reset(token)


def plain(value: Any, change: Callable[[str], Any] = str) -> Any:
    """Return ``value`` as JSON can hold it: models and dataclasses as objects, the unknown as text.

    Numbers that JSON has no form for (NaN, infinities) become text too.

    Args:
        change: Applied to every text, keys included.
    """
    kind = type(value)
    if kind is str:
        return value if change is str else change(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        if change is str:
            return {str(key): plain(item) for key, item in value.items()}
        return {_key(change, str(key)): plain(item, change) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [plain(item, change) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else change(str(value))
    return _plain_other(value, change)


def _key(change: Callable[[str], Any], key: str) -> str:
    changed = change(key)
    return changed if isinstance(changed, str) else key


def _plain_other(value: Any, change: Callable[[str], Any]) -> Any:
    """``plain`` for types that JSON does not have."""
    if isinstance(value, Enum):
        return plain(value.value, change)
    if isinstance(value, int):
        return value
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"), change)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, change)
    if isinstance(value, Mapping):
        return plain(dict(value), change)
    if isinstance(value, list | tuple | set | frozenset):
        return plain(list(value), change)
    return change(str(value))


_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain)
_FIELD = json.JSONEncoder(ensure_ascii=False)


class Trace(RunFolder):
    """A run folder that is being written: a recorder for agents and tools.

    No other process can write the run until it is closed. ``create``, ``resume``, ``flush`` and ``close``
    touch the disk: from a coroutine, call them in a thread or use ``aflush`` and ``aclose``. ``record`` and
    ``put`` wait for no disk and are safe from any thread. The operating system has an event when ``record``
    returns; a long text is a file of its own that follows shortly after, so a kill may lose the last ones but
    for their first characters. ``flush`` waits for all, ``aflush`` for what a checkpoint may name.

    Attributes:
        redact: Texts (keys, passwords) that are replaced before anything is written or heard.
        listener: Called with every event as it is written, on the recording thread; its exceptions reach the
            caller.
        finished: The answer, once there is one.
        failure: Why something could not be written (a full disk, say); empty while all is well.
        over: True once the run is not to go on by itself.
        lease: This process's right to write the run, where its checkpoints are in PostgreSQL.
        earlier_approvals: What interrupted processes asked the user before queries ran, and the replies.

    Args:
        about: ``run.json`` of a new run: what makes a folder a run.

    Raises:
        ConfigurationError: Another process is writing the run.
        FileExistsError: A new run has the name of another one.
        LeaseLost: Another process may be writing the run.
        OSError: The folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        redact: Sequence[str] = (),
        listener: Callable[[Event], None] | None = None,
        lease: Lease | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(folder)
        self.redact = sorted({s for s in redact if len(s) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._escaped = [_FIELD.encode(secret)[1:-1] for secret in self.redact]
        self._change = self._clean if self.redact else str
        self.listener = listener
        self.lease = lease
        self.finished: Any = None
        self.failure, self.over = "", False
        self._spent, self._start = 0.0, 0.0
        self._kept: set[str] = set()
        self._calls = defaultdict[tuple[str, str], deque[Event]](deque)
        self._queries: dict[str, Event] = {}
        self.earlier_approvals: list[Event] = []
        self._gate = threading.Lock()  # lines come whole, and nothing gets in behind the end
        self._closed = False
        # ``_FILES`` writes in order: what was asked for before a file is written when that file is
        self._latest: Future[None] | None = None
        self._named: Future[None] | None = None
        path = folder / "run.json"
        if lease is None:  # locked before others see a run
            self._lines_file = _locked_for_appending(folder)
            if about is not None:
                replace_file(path, self._object(about))
        else:
            if about is not None:
                self._begin(path, self._object(about), lease)
            try:
                self._lines_file = _own_for_appending(folder)
            except OSError:
                if about is not None:
                    path.unlink(missing_ok=True)
                raise
        atexit.register(self.close)

    def _begin(self, path: Path, content: bytes, lease: Lease) -> None:
        """Write ``run.json``, which one process does, also where one died that had made the folder."""
        lease.check()
        if (self.folder / "events.jsonl").exists() or not write_once(path, content):
            raise FileExistsError

    def _remember(self, event: Event) -> None:
        """Keep what a step that runs again will ask for; a reply that held a secret is not in the trace."""
        request = event.get("request", "")
        if event["kind"] == "model_call" and request and REDACTED not in str(event.get("reply")):
            self._calls[event.get("task", ""), request].append(event)
        elif event["kind"] == "query" and request:
            self._queries[request] = event
        elif event["kind"] in ("approval_asked", "approval"):
            self.earlier_approvals.append(event)

    def recorded_call(self, request: str) -> Event | None:
        """Return what an interrupted process recorded of a model call in the step that runs now.

        A step that makes one request several times gets each reply once, in the order in which they came;
        the same request in another step is another call.
        """
        found = self._calls.get((self.step(), request))
        return found.popleft() if found else None

    def recorded_query(self, request: str) -> Event | None:
        """Return what an interrupted process recorded of a query: the same text runs once per run."""
        return self._queries.get(request)

    @staticmethod
    def step() -> str:
        """Return LangGraph's id of the step that runs now; empty outside the graph."""
        return _LOCATION.get().get("task", "")

    @classmethod
    def create(
        cls,
        home: Path,
        run_id: str | None = None,
        meta: Mapping[str, Any] | None = None,
        *,
        redact: Sequence[str] = (),
        listener: Callable[[Event], None] | None = None,
        lease: Lease | None = None,
    ) -> Self:
        """Start a run: make its folder and write ``run.json`` (``meta``, the id, the time).

        Raises:
            ConfigurationError: The id is taken or malformed, or the folder cannot be written.
        """
        run_id = run_id or new_run_id()
        if not _RUN_ID.fullmatch(run_id):
            raise ConfigurationError(f"{run_id!r} cannot name a run: use letters, digits, '-', '_', '.'.")
        folder = home / "runs" / run_id
        try:
            # rows of somebody's database will lie here
            folder.mkdir(parents=True, mode=0o700, exist_ok=lease is not None)
            (folder / "results").mkdir(exist_ok=True)
            (folder / "blobs").mkdir(exist_ok=True)
            if not (ignore := home / ".gitignore").exists():
                ignore.write_text("*\n!kb/\n!kb/**\n")  # what people verified is for review
            started = datetime.now().astimezone().isoformat(timespec="seconds")
            about = {"run_id": run_id, "started": started, **(meta or {})}
            return cls(folder, redact=redact, listener=listener, lease=lease, about=about)
        except FileExistsError:
            raise ConfigurationError(f"The run {run_id} exists already.", hint="Leave its id out.") from None
        except OSError as error:
            message = f"Cannot write traces to {home}: {error.strerror}."
            raise ConfigurationError(message, hint=_OTHER_HOME) from error

    @classmethod
    def resume(
        cls,
        home: Path,
        run: str,
        *,
        redact: Sequence[str] = (),
        listener: Callable[[Event], None] | None = None,
        lease: Lease | None = None,
    ) -> Self:
        """Go on writing an existing run; its clock continues where the last event left it.

        Raises:
            ConfigurationError: There is no such run, or another process is writing it.
        """
        trace = cls(RunFolder.open(home, run).folder, redact=redact, listener=listener, lease=lease)
        try:  # once no other process writes them
            for event in trace.events():
                trace._spent = max(trace._spent, event["t"])
                trace._remember(event)
        except BaseException:
            trace.close()
            raise
        return trace

    def record(self, kind: str, **fields: Any) -> None:
        """Write one step: ``kind`` and any JSON-like fields (``agent``, ``candidate``, ...).

        The clock of ``t`` starts with the first step. Cost and deadline also count the opening of databases.

        An event also names, as far as it has them, the graph's ``node`` with file and line of its ``code``,
        the ``recipe``, and where its agent is ``declared``, with its ``prompt`` file.

        Raises:
            LeaseLost: Another process may be writing the run.
        """
        self._start = self._start or time.monotonic() - self._spent
        moment = {"t": round(time.monotonic() - self._start, 4), "kind": kind} | _LOCATION.get()
        if role := find_role(str(fields.get("agent", ""))):
            moment |= {"declared": role.declared, "prompt": role.prompt}
        if self._closed:  # a cancelled task's last words: recorders never raise
            return
        if self.lease:
            self.lease.check()
        self.over = kind in ENDED
        event, line = moment | fields, ""
        with suppress(TypeError, ValueError):  # JSON has no NaN and no keys but texts
            line = _LINE.encode(event)
        if not line or any(secret in line for secret in self._escaped):
            event = plain(event, self._change)
            line = _LINE.encode(event)
        short = len(line) <= LONG
        if not short:  # else no text in it is longer
            whole = {name: event[name] for name in _WHOLE.get(kind, ()) if name in event}
            line = _LINE.encode(plain(event, self._stored) | whole)
        with self._gate, self._noting_failure():
            if not self._closed:
                _append(self._lines_file, _bytes(line + "\n"))
        if self.listener is not None:
            self.listener(json.loads(line) if short else plain(event))  # a line is faster read than copied

    def put(self, text: str) -> str:
        """Store a text under its SHA-256 (hex), once; returns the hash."""
        sha = self._store(self._clean(text))
        self._named = self._latest
        return sha

    def amend(self, **fields: Any) -> None:
        """Change fields of ``run.json``."""
        meta = json.loads((self.folder / "run.json").read_bytes())
        self._save("run.json", {**meta, **fields}, at_once=True)

    def finish(self, answer: Any) -> None:
        """Write ``answer.json``; one that another process has written stays."""
        if self.lease:
            self.lease.check()
        self.finished = answer
        self._save("answer.json", answer)
        self._named = self._latest

    def flush(self) -> None:
        """Wait until everything recorded so far is with the operating system, or noted in ``failure``."""
        wait([self._latest] if self._latest else [])

    async def aflush(self) -> None:
        """Wait until texts that were ``put``, and the answer, are with the operating system."""
        await _written(self._named)

    def close(self) -> None:
        """Write what is left and release the run; safe to call twice."""
        self._end()
        self.flush()
        self._lines_file.close()
        atexit.unregister(self.close)
        if self.lease:
            self.lease.release(ended=self.over, answered=bool(self.finished) and not self.failure)

    async def aclose(self) -> None:
        """``close`` without blocking the event loop."""
        self._end()
        await _written(self._latest)
        if self.lease:
            await asyncio.to_thread(self.close)
        else:
            self.close()

    def _end(self) -> None:
        with self._gate:
            self._closed = True

    def _clean(self, text: str) -> str:
        for secret in self.redact:
            text = text.replace(secret, REDACTED)
        return text

    def _stored(self, text: str) -> Any:
        """Return the text as a line of ``events.jsonl`` holds it."""
        if len(text) <= LONG:
            return text
        return {BLOB: self._store(text), "chars": len(text), "head": text[:HEAD]}

    def _store(self, text: str) -> str:
        sha = hashlib.sha256(_bytes(text)).hexdigest()
        if sha not in self._kept:
            self._kept.add(sha)
            self._replace(self.folder / "blobs" / f"{sha}.txt", _bytes(text))
        return sha

    def _save(self, name: str, value: Any, *, at_once: bool = False) -> None:
        self._replace(self.folder / name, self._object(value), at_once=at_once)

    def _object(self, value: Any) -> bytes:
        """Return an object as a file, with a line for each of its fields."""
        lines = (f"  {_FIELD.encode({key: item})[1:-1]}" for key, item in plain(value, self._change).items())
        return _bytes("{\n" + ",\n".join(lines) + "\n}\n")

    def _replace(self, path: Path, content: bytes, *, at_once: bool = False) -> None:
        """Write a file, all of it or nothing: soon, or before this returns."""

        def write() -> None:
            with self._noting_failure():
                if self.lease:
                    self.lease.check()
                once = self.lease and path.name == "answer.json"
                (write_once if once else replace_file)(path, content)

        if at_once:
            write()
            return
        with self._gate:
            if not self._closed:
                self._latest = _FILES.submit(write)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Note in ``failure`` that something cannot be written."""
        try:
            yield
        except LeaseLost as error:
            self.finished, self.failure = None, str(error)
        except OSError as error:
            self.failure = self.failure or f"{error.strerror or error}."
        except Exception as error:  # noqa: BLE001 - a trace ends no run
            self.failure = self.failure or f"{type(error).__name__}: {error}."


async def _written(file: Future[None] | None) -> None:
    if file and not file.done():
        await asyncio.shield(asyncio.wrap_future(file))  # others wait for it, too


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate must not end a run


def _own_for_appending(folder: Path) -> io.FileIO:
    """Open the events for appending, under another inode than before.

    So a process that lost its lease between a look at it and a write appends to a file without a name.
    """
    path = folder / "events.jsonl"
    if path.exists():
        replace_file(path, b"".join(path.read_bytes().rpartition(b"\n")[:2]))
    return io.FileIO(path, "a")


def _locked_for_appending(folder: Path) -> io.FileIO:
    """Open the events for appending, alone; cut off a line that a crash left unfinished."""
    path = folder / "events.jsonl"
    file = io.FileIO(path, "a")
    if not lock(file):
        file.close()
        raise ConfigurationError(
            f"The run {folder.name} is being written by another process.", hint="Wait for it, or stop it."
        )
    if file.tell():
        whole = path.read_bytes().rpartition(b"\n")
        file.truncate(len(whole[0] + whole[1]))
    return file


def _append(file: io.FileIO, data: bytes) -> None:
    """Append all or nothing: half a line would spoil the next one too."""
    written = file.write(data)
    if written == len(data):
        return
    end = file.tell() - written
    try:
        while data := data[written:]:
            written = file.write(data)
    except OSError:
        file.truncate(end)
        raise
