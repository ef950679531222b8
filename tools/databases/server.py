"""What connectors to servers share: a pool of connections, cancelling for real, opening again once."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from quorum.knowledge.errors import DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Connector
from quorum.tools.databases.texts import QUERIES, unsendable
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult, timed_out

T = TypeVar("T")
LinkT = TypeVar("LinkT", bound="Link")
TargetT = TypeVar("TargetT", bound="Target")

ROW_BYTES = 64 * 2**20
"""The least limit of one row's size: a driver holds some copies of a row at once."""
GRACE_SECONDS = 0.5
"""Time for the server to stop a query by itself, after its limit."""
CANCEL_SECONDS = 0.5
"""Time for a request to cancel, and again for the query to end; then the connection is cut."""

OWN_LIMITS = Limits(rows=10**6, bytes=2**28)
"""Limits of what a server tells of itself."""
LONGEST = 1000
"""Characters of a message: it may quote a value."""

UNSTOPPED = (
    "{} queries could not be stopped and may still run on {}: no other is sent there. End them on the "
    "server, then open it again."
)


class Gone(Exception):
    """The connection is lost; the message is the driver's."""


class Unstopped(TimeoutError):
    """A query did not end in time, and the server did not confirm that it stopped."""


@dataclass(eq=False)
class Refusal(Exception):
    """The server's answer to a query that failed.

    Attributes:
        state: The server's own code: SQLSTATE, a number, a reason.
        position: 1-based, in characters; None where the server names none.
    """

    state: str
    message: str
    hint: str = ""
    position: int | None = None

    def __str__(self) -> str:
        return self.message


class Target(Protocol):
    """The parts of a URL."""

    def joined(self, other: Self) -> Self | None:
        """Return what holds the databases of both; None if the engine cannot join them for one account."""

    @property
    def place(self) -> str:
        """The database's place, for people; without secrets."""

    def scrubbed(self, text: str) -> str:
        """Return a text of the driver without secrets."""


def sentence(message: str) -> str:
    """Return one line that begins with a capital, ends with a full stop and is at most ``LONGEST`` long."""
    text = " ".join(message.split()).rstrip(".")
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"{text[:1].upper()}{text[1:]}."


class Link(ABC):
    """A connection that runs one query at a time, inside what cannot write."""

    connect_seconds: ClassVar[float] = 10.0
    """Time for a connection to be made."""
    begin_seconds: ClassVar[float] = 5.0
    """Time for a connection to answer before a query is sent on it, and after one."""
    runs_on = False
    """True if the server may go on with a query that it was asked to stop."""
    _cut = False
    """True if no further query may be sent."""
    begun: Any = None
    """What ``start`` gave for the query that runs."""
    _work: asyncio.Future[Any] | None = None
    """What ``within`` waits for."""

    @property
    def sound(self) -> bool:
        """True if another query can be sent."""
        return not self._cut

    @abstractmethod
    def start(self, seconds: float) -> Coroutine[Any, Any, object]:
        """Return what makes ready for a query that is stopped after ``seconds``.

        Raises:
            Gone: The connection is lost.
            Refusal: The server says no.
        """

    async def end(self) -> None:  # noqa: B027
        """End what a query has left open."""

    @abstractmethod
    async def fetch(self, sql: str, limits: Limits) -> Fetched:
        """Run one statement; keep what ``limits`` allow.

        Raises:
            Gone, Refusal: The connection is lost; the server says that the query is wrong.
        """

    async def estimate(self, sql: str, limits: Limits) -> Estimate:
        """Estimate what a query would read, where the engine can.

        Raises:
            Gone, Refusal: The connection is lost; the server, or we, say no.
        """
        raise NotImplementedError

    async def settle(self) -> None:
        """End what a query has left open; what cannot be ended is cut off. Never raises."""
        if self._cut:
            return
        try:
            await self.within(self.end(), self.begin_seconds, silent=Gone)
        except (Gone, Refusal):
            self._cut = True

    @abstractmethod
    async def close(self) -> None:
        """Give the connection up; safe to call twice."""

    @abstractmethod
    async def cancel(self) -> None:
        """Ask the server to stop what runs; if that is not confirmed, the link is not ``sound`` any more."""

    def sever(self) -> None:
        """Have the driver see a lost connection: whoever waits for the server wakes up. Not ``sound``."""
        self._cut = True

    async def abort(self) -> None:
        """End whatever runs, at once; it raises ``Gone``, also where a driver does not wake up."""
        await self.cancel()
        self.sever()
        if self._work is not None and not self._work.done():
            await asyncio.wait({self._work}, timeout=CANCEL_SECONDS)
            self._work.cancel()

    async def within(
        self, work: Coroutine[Any, Any, T], seconds: float, silent: type[Exception] | None = None
    ) -> T:
        """The result of ``work``; what does not end in time is cancelled on the server, then cut off.

        Args:
            silent: What is raised where it does not end in time.

        Raises:
            TimeoutError: It did not end in time; ``Unstopped`` if cancelling did not end it either.
            Gone: It was aborted.
        """
        self._work = task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._end_task(task)))
            raise
        if not done:
            stopped = await self._end_task(task)
            if silent:
                raise silent("the server does not answer")
            raise TimeoutError if stopped and not self.runs_on else Unstopped
        if task.cancelled():
            raise Gone("it was closed")
        return task.result()

    async def _end_task(self, task: asyncio.Future[Any]) -> bool:
        """End it; whether cancelling was enough."""
        await self.cancel()
        stopped, _ = await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        self.sever()
        await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        task.cancel()
        with suppress(BaseException):
            await task
        return bool(stopped)


def received(descriptor: int) -> int:
    """A number that grows with the bytes that arrive on a connection, also where they are encrypted.

    Of a TCP connection on Linux it is their count since it was opened; elsewhere (a Unix socket, macOS) the
    most bytes of memory that this process has used. See how far it grew since the last row: a driver shows
    nothing of a row before it is complete.
    """
    with socket.socket(fileno=os.dup(descriptor)) as line:
        if sys.platform == "linux" and line.family != socket.AF_UNIX:
            (count,) = struct.unpack_from("Q", line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136), 128)
            return int(count)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def row_too_large(size: int) -> Refusal:
    """The refusal of a row of which more than ``size`` bytes arrived."""
    message = (
        f"A row is larger than {size // 2**20} MiB: the query was stopped. Select fewer columns, or cut long "
        "values, for example left(column, 1000)."
    )
    return Refusal("54000", message)


class LooseThread:
    """A thread that runs functions one after another, and that the process's end does not wait for.

    An executor's would be waited for, however long a driver hangs in it.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._serve, name="quorum-database", daemon=True).start()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return the function's result, once it is its turn."""
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                    future.set_exception(error)

        self._tasks.put(work)
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """End it after what it was given; nobody waits for it."""
        self._tasks.put(None)

    def _serve(self) -> None:
        while task := self._tasks.get():
            task()
            del task  # holds its result


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Run a blocking function in a thread of its own that nothing waits for."""
    thread = LooseThread()
    try:
        return await thread.run(function, *arguments)
    finally:
        thread.stop()


class ThreadLink(Link):
    """A connection of a driver that blocks: its calls run one after another in a thread of the link's own."""

    def __init__(self) -> None:
        self._thread = LooseThread()

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking function and return its result."""
        return await self._thread.run(function, *arguments)

    async def close(self) -> None:
        self._cut = True
        self._thread.stop()


class SessionLink(ThreadLink):
    """A connection of a driver that blocks, whose session is made to forbid writing."""

    async def opened(self) -> Self:
        """Connect, and prove that a transaction cannot write.

        Raises:
            Gone, Refusal: The server cannot be reached; it refuses.
            PermissionError: A write did not fail.
        """
        try:
            await self.within(self.in_thread(self._connect), self.connect_seconds, silent=Gone)
            for work in (self._begin, self.begin_seconds), (self._prove_read_only,), (self._end,):
                await self.within(self.in_thread(*work), self.begin_seconds, silent=Gone)
        except BaseException:
            await self.close()
            raise
        return self

    def start(self, seconds: float) -> Coroutine[Any, Any, None]:
        return self.in_thread(self._begin, seconds)

    async def end(self) -> None:
        await self.in_thread(self._end)

    async def fetch(self, sql: str, limits: Limits) -> Fetched:
        return await self.in_thread(self._fetch, sql, limits)

    # In the link's thread

    @abstractmethod
    def _connect(self) -> None: ...

    @abstractmethod
    def _begin(self, seconds: float) -> None: ...

    @abstractmethod
    def _prove_read_only(self) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _fetch(self, sql: str, limits: Limits) -> Fetched: ...


class ServerConnector(Connector, Generic[LinkT, TargetT]):
    """A database on a server. Up to ``links`` queries run at once, each on a link of its own, used again.

    A subclass says how a link is made, which texts are sent at all and what the server's refusals mean.
    """

    links: ClassVar[int] = 4
    first_words: ClassVar[Collection[str]] = QUERIES
    """Words that a text which is sent begins with."""
    hints: ClassVar[Sequence[tuple[str, str]]] = ()
    """What to do where no connection is to be had, by a pattern of what the server says."""
    reach: ClassVar[str] = "Is the server running, and are host and port right?"
    """The hint where none of these fits."""

    urls: ClassVar[type[Any]]
    """The class of the URL's parts; its ``of`` raises ConfigurationError where a URL is malformed."""
    driver: ClassVar[tuple[str, str, str]]
    """The driver's module, what pip calls it, and what it opens; the dialect names its extra."""

    def __init__(self, target: TargetT) -> None:
        self.target = target
        self._slots = asyncio.Semaphore(self.links)
        self._idle: list[LinkT] = []
        self._busy: set[LinkT] = set()
        self._quiet = asyncio.Event()
        self._opened = False
        self._unstopped = 0
        """Queries since it was opened that the server may still work on."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        target, (module, package, what) = cls.urls.of(url), cls.driver
        if not is_installed(module):
            raise missing_extra(cls.dialect, what, needs=package)
        return cls(target)

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:
        first, *others = map(cls.urls.of, urls)
        target = reduce(lambda known, other: known and known.joined(other), others, first)
        return cls(target) if target else None

    @property
    def place(self) -> str:
        """The database's place, for people; without secrets."""
        return self.target.place

    @property
    @abstractmethod
    def name(self) -> str:
        """The database's name, for people."""

    @abstractmethod
    async def connect(self) -> LinkT:
        """Make a connection, proven to be read-only where the engine has such a session.

        Raises:
            Gone, Refusal, OSError: There is none to be had.
        """

    async def connected(self) -> LinkT:
        """Make a connection.

        Raises:
            DatabaseUnavailable: There is none to be had.
        """
        try:
            return await self.connect()
        except (Gone, Refusal, OSError) as error:
            raise self.unreachable(error) from None

    def unreachable(self, why: Exception) -> DatabaseUnavailable:
        """Return the error that the database cannot be asked."""
        reason = self.scrubbed(str(why))
        hint = next((hint for words, hint in self.hints if re.search(words, reason)), self.reach)
        return DatabaseUnavailable(f"{self.place} cannot be opened: {reason}", hint=hint)

    def unsendable(self, sql: str) -> QueryError | None:
        """Return why a text never reaches the server; None where it may."""
        return unsendable(sql, self.dialect, self.first_words)

    @abstractmethod
    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        """Return what the server said, in the taxonomy."""

    def scrubbed(self, text: str) -> str:
        """Return a text of the driver's as a sentence without secrets."""
        return sentence(self.target.scrubbed(text))

    def note_opened(self, link: LinkT) -> None:
        """Keep what the first connection says: names, versions."""

    async def open(self) -> None:
        await self.close()
        link = await self.connected()
        self.note_opened(link)
        self._idle.append(link)
        self._unstopped = 0
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        await asyncio.gather(*(link.abort() for link in self._busy))
        while self._busy:
            self._quiet.clear()
            await self._quiet.wait()
        await self._forget()

    async def run(self, sql: str, limits: Limits, *, own: bool = False) -> QueryResult | QueryError:
        """See ``Connector.run``; a statement of our ``own`` is believed by engines that look more closely."""
        self._check_open()
        if problem := self.unsendable(sql):
            return problem
        refusal = None if own else self.refusal
        found = await self.answered(sql, limits, lambda link: link.fetch(sql, limits), refusal)
        if isinstance(found, QueryError):
            return found
        fetched, seconds = found
        return QueryResult(
            fetched.table,
            seconds,
            fetched.truncated,
            bytes_scanned=fetched.scanned,
            slot_seconds=fetched.slot_seconds,
            sql=sql,
            column_types=fetched.types,
        )

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        self._check_open()
        if not self.estimates:
            return None
        if problem := self.unsendable(sql):
            return problem
        found = await self.answered(sql, limits, lambda link: link.estimate(sql, limits))
        return found if isinstance(found, QueryError) else found[0]

    async def ask(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        """Run a statement of our own."""
        return await self.run(sql, limits, own=True)

    async def own_rows(self, sql: str, what: str) -> list[dict[str, Any]]:
        """Return the rows of a statement of our own.

        Raises:
            DatabaseUnavailable: They cannot be read, so that ``what`` is not known.
        """
        answer = await self.ask(sql, OWN_LIMITS)
        if isinstance(answer, QueryError) or answer.truncated:
            why = answer.message if isinstance(answer, QueryError) else "there are too many"
            raise DatabaseUnavailable(f"{what} cannot be read: {why}")
        return list(answer.table.to_pylist())

    async def look(self, link: LinkT, seconds: float) -> None:
        """Bring what ``refusal`` goes by up to date."""

    def refusal(self, sql: str) -> QueryError | None:  # noqa: ARG002
        """Return why a text that may be sent is not run; None where it is."""
        return None

    async def answered(
        self,
        sql: str,
        limits: Limits,
        work: Callable[[LinkT], Coroutine[Any, Any, T]],
        refusal: Callable[[str], QueryError | None] | None = None,
    ) -> tuple[T, float] | QueryError:
        """Run ``work`` on a connection; return its result and the seconds that it took, or why there is none.

        Of queries that the server does not stop there may be as many as connections: then nothing is sent.
        """
        async with self._slots:
            if self._unstopped >= self.links:
                return QueryError(ErrorKind.RESOURCES, UNSTOPPED.format(self._unstopped, self.place))
            began = time.monotonic()
            try:
                async with self.link(limits.seconds) as link:
                    await self.look(link, limits.seconds)
                    # in a thread, for it may read its lists
                    if refusal and (refused := await asyncio.to_thread(refusal, sql)):
                        return refused
                    started = time.monotonic()
                    done = await link.within(work(link), limits.seconds + GRACE_SECONDS)
                    return done, time.monotonic() - started
            except Refusal as refusal_:
                found = self.query_error(refusal_, sql)
                if found.kind is ErrorKind.TIMEOUT and self._opened:
                    return _stopped(found, refusal_, limits, time.monotonic() - began)
                return self._unless_closed(found)
            except TimeoutError as error:
                self._unstopped += isinstance(error, Unstopped)
                return timed_out(limits, stopped=not isinstance(error, Unstopped))
            except Gone as lost:
                message = f"The connection to {self.place} is lost: {self.scrubbed(str(lost))}"
                return self._unless_closed(QueryError(ErrorKind.UNAVAILABLE, message))
            except DatabaseUnavailable as error:
                return self._unless_closed(QueryError(ErrorKind.UNAVAILABLE, str(error)))

    @asynccontextmanager
    async def link(self, seconds: float) -> AsyncIterator[LinkT]:
        """A connection made ready for a query of so many seconds; one that is lost is opened again.

        Raises:
            Gone, Refusal, DatabaseUnavailable: There is none.
        """
        while True:
            kept = self._idle.pop() if self._idle else None
            link = kept or await self.connected()
            self._busy.add(link)
            try:
                if not self._opened:  # meanwhile
                    raise Gone("it was closed")
                link.begun = await link.within(link.start(seconds), link.begin_seconds, silent=Gone)
                break
            except BaseException as error:
                await self._put_back(link)
                if kept is None or not isinstance(error, Gone):
                    raise
                await self._forget()
        try:
            yield link
        finally:
            await asyncio.shield(asyncio.ensure_future(self._put_back(link)))

    async def _forget(self) -> None:
        """Close what is idle: where one connection is lost, the others are too."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(link.close() for link in idle))

    async def _put_back(self, link: LinkT) -> None:
        """Keep a connection for the next query, or close it."""
        await link.settle()
        self._busy.discard(link)
        if link.sound and self._opened:
            self._idle.append(link)
        else:
            await link.close()
        self._quiet.set()

    def _unless_closed(self, error: QueryError) -> QueryError:
        if self._opened:
            return error
        return QueryError(ErrorKind.UNAVAILABLE, "The connection was closed while the query ran.")

    def _check_open(self) -> None:
        if not self._opened:
            raise DatabaseUnavailable(f"The connection to {self.place} is closed.", hint="Open it first.")


def _stopped(found: QueryError, refusal: Refusal, limits: Limits, seconds: float) -> QueryError:
    """The error of a query that the server has stopped: at its limit, or by somebody else's will before."""
    if seconds > 0.9 * limits.seconds:
        return timed_out(limits)
    killed = re.search(r"user request|interrupted", refusal.message)
    return replace(found, kind=ErrorKind.UNAVAILABLE) if killed else found
