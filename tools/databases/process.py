"""The parent's side of embedded engines: child processes that can be killed, and a pool of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from quorum.tools.children import environment
from quorum.tools.databases.worker import HEAD, pack

START_SECONDS = 30.0
"""Time for a child to start and open its database, even on a slow disk."""
GRACE_SECONDS = 0.5
"""Time for a session to stop after its limit, before its process is killed."""
PATIENCE, PATIENCE_SECONDS = 6, 0.05
"""How often, and how many seconds each time, a query waits for a busy child before another is started.

Starting a child takes as long as all these waits, most queries take a millisecond. Several short waits,
because a busy event loop may see a timeout only when the answer has arrived.
"""


PIECE = 2**20
"""Bytes of a payload that are written at a time."""


class EngineFailed(Exception):
    """The engine answered with an error.

    Attributes:
        type: The driver's exception class, or ``DatabaseUnavailable`` from opening.
        message: The driver's words.
        code: SQLite's name of the error (``SQLITE_BUSY``); empty for other engines.
        hint: What to do, if a session knows.
    """

    def __init__(self, type: str, message: str, code: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.type, self.message, self.code, self.hint = type, message, code, hint


class EngineDied(Exception):
    """The child process ended, as the message says.

    Attributes:
        killed: It was ended from outside (by the system for lack of memory, say): the query need not be why.
    """

    def __init__(self, status: int | None, how: str = "") -> None:
        super().__init__(how or f"ended with status {status}")
        self.killed = status is not None and -status in (signal.SIGKILL, signal.SIGTERM)


class EngineTimeout(EngineDied):
    """The engine did not stop when its time was up; its process was killed."""


Response: TypeAlias = tuple[dict[str, Any], bytes]
"""A child's answer: its header and an Arrow IPC stream."""


@dataclass(frozen=True)
class OpenRequest:
    """A session to open: ``module:Class``, the database's absolute path, memory in bytes, other files."""

    session: str
    path: str
    memory: int
    files: tuple[str, ...] = ()


class Child:
    """One child process with one session, which answers one request at a time."""

    def __init__(self, process: Process, opening: OpenRequest) -> None:
        self._process = process
        self._ready = False
        self._killed = False
        self.opening = opening

    @classmethod
    async def spawn(cls, opening: OpenRequest) -> Child:
        """Start a process; ``open`` then opens its database."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "quorum.tools.databases.worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal reaches the parent only
            env=environment(),
            limit=2**20,
        )
        return cls(process, opening)

    @property
    def ready(self) -> bool:
        """Return True once it has loaded all that a query needs."""
        return self._ready

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def open(self) -> None:
        """Open the session.

        Raises:
            EngineFailed, EngineDied: It could not be opened; the process is gone.
        """
        await self._start(asdict(self.opening) | {"parent": os.getpid()})

    async def warm(self) -> None:
        """Wait until it has loaded all that a query needs, which it does once it has opened.

        Raises:
            EngineFailed, EngineDied: It cannot.
        """
        if not self._ready:
            await self._start(None)
            self._ready = True

    async def run(self, sql: str, *, rows: int, size: int, seconds: float) -> Response:
        """Run one statement; the process is killed if it overruns, or if the task is cancelled.

        Raises:
            EngineFailed, EngineDied: As their names say.
        """
        await self.warm()
        request = {"sql": sql, "rows": rows, "bytes": size, "seconds": seconds}
        return await self._ask(request, seconds + GRACE_SECONDS)

    async def load(self, what: Mapping[str, Any], payload: bytes | memoryview, seconds: float) -> None:
        """Send the session a part that its next query reads (``worker.Loading``).

        Raises:
            EngineFailed, EngineDied: As their names say.
        """
        await self.warm()
        await self._ask({"load": what}, seconds + GRACE_SECONDS, payload)

    def kill(self) -> None:
        """End the process at once; a pending request raises ``EngineDied``."""
        if self.alive and not self._killed:  # a second signal could take its status from asyncio
            self._killed = True
            self._process.kill()

    async def close(self) -> None:
        """Kill the process, collect its status and release its pipes."""
        self.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.communicate()

    async def _start(self, message: dict[str, Any] | None) -> None:
        try:
            await self._ask(message, START_SECONDS)
        except EngineFailed:
            await self.close()
            raise

    async def _ask(
        self, message: dict[str, Any] | None, seconds: float, payload: bytes | memoryview = b""
    ) -> Response:
        """Exchange one request and reply; on any failure the process is closed."""
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        try:
            async with asyncio.timeout(seconds):
                if message is not None:
                    sink.write(pack(message, len(payload)))
                    for start in range(0, len(payload), PIECE):
                        await sink.drain()
                        sink.write(payload[start : start + PIECE])
                    await sink.drain()
                size, length = HEAD.unpack(await source.readexactly(HEAD.size))
                header = json.loads(await source.readexactly(size))
                content = await source.readexactly(length)
        except BaseException as error:
            died = isinstance(error, asyncio.IncompleteReadError | ConnectionError)
            await asyncio.shield(self._end(GRACE_SECONDS if died else 0))
            if isinstance(error, TimeoutError):
                raise EngineTimeout(None, "did not answer") from error
            if died:
                raise EngineDied(self._process.returncode) from error
            raise
        if "error" in header:
            raise EngineFailed(**header["error"])
        return header, content

    async def _end(self, seconds: float) -> None:
        """Wait for a process that is ending, then close."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        await self.close()


class Pool:
    """Up to ``size`` children of one database, started when needed, replaced when they die.

    Another child is started if none becomes free within ``PATIENCE`` waits.
    """

    def __init__(self, session: str, size: int, files: tuple[str, ...] = ()) -> None:
        self._session = session
        self._files = files
        self._slots = asyncio.Semaphore(size)
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._busy = 0
        self._changed = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def child(self, path: str, memory: int) -> AsyncIterator[Child]:
        """A child for one exchange, for as long as the block lasts.

        Raises:
            EngineFailed, EngineDied: A new child could not open the database, or the
                pool is closed.
        """
        async with self._slots:
            self._busy += 1
            try:
                child = await self._take(OpenRequest(self._session, path, memory, self._files))
                try:
                    yield child
                finally:
                    if child.alive:
                        self._idle.append(child)
                    else:
                        self._children.discard(child)
            finally:
                self._busy -= 1
                self._changed.set()

    async def close(self) -> None:
        """Kill all children, busy ones too, and wait until they are gone; the pool cannot be used again."""
        self._closed = True
        self._changed.set()
        for child in self._children:
            child.kill()
        await self._until(lambda: not self._busy)
        self._idle.clear()
        children, self._children = self._children, set()
        await asyncio.gather(*(child.close() for child in children))

    async def _take(self, opening: OpenRequest) -> Child:
        await self._wait_for_idle()
        if self._closed:
            raise EngineDied(None)
        while self._idle:
            child = self._idle.pop()
            if child.alive and child.opening == opening:
                return child
            self._children.discard(child)
            await child.close()
        child = await Child.spawn(opening)
        self._children.add(child)
        if self._closed:  # meanwhile
            child.kill()
        try:
            await child.open()
        except BaseException:
            self._children.discard(child)  # it has closed itself
            raise
        return child

    async def _wait_for_idle(self) -> None:
        """Wait until a child is idle, none is left, or ``PATIENCE`` is used up."""
        left = PATIENCE
        while left > 0:
            left -= all(child.ready for child in self._children)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._until(lambda: bool(not self._children or self._idle or self._closed))
                    return

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._changed.clear()
            await self._changed.wait()
