"""PostgreSQL over its own protocol. The driver, psycopg 3, is imported in ``postgres_session``."""

from __future__ import annotations

import asyncio
import re
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable, missing_extra
from quorum.tools.databases.base import Account, Connector
from quorum.tools.databases.postgres_errors import Refusal, query_error, sentence
from quorum.tools.databases.postgres_session import GRACE_SECONDS, READS, Gone, Link
from quorum.tools.databases.postgres_url import Target
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult, timed_out

if TYPE_CHECKING:
    from quorum.tools.databases.session import Fetched

LINKS = 4
"""Queries that run at the same time on one connector."""
HINTS = (
    (
        "password|authentication|pg_hba",
        "Check user and password; PGPASSFILE or a service may hold them, too.",
    ),
    ("does not exist", "Check the database's and the user's name."),
    (
        "too many|connection slots|connection limit",
        "Try again later, or raise the limit of the server or the role.",
    ),
    ("starting up|shutting down|recovery", "Try again in a moment."),
    ("parameter: options", "Let the pooler ignore it (PgBouncer: ignore_startup_parameters = options)."),
    ("SSL|certificate", "Set sslmode and sslrootcert in the URL as the server wants them."),
)
"""What to do, by what the server says."""
REACH = "Is the server running, and are host and port right?"


class PostgresConnector(Connector):
    """``postgresql://user:password@host:port/database?schema=a,b``; ``postgres://`` as well.

    What the URL leaves out libpq finds where it always does: PG* variables, a password file, a service. Up to
    ``LINKS`` queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "postgres"
    scheme = "postgresql"

    def __init__(self, target: Target) -> None:
        self._target = target
        self._slots = asyncio.Semaphore(LINKS)
        self._idle: list[Link] = []
        self._busy: set[Link] = set()
        self._quiet = asyncio.Event()
        self._opened = False
        self._name = target.parameters.get("dbname", "")
        self.version = 0
        """The server's, as 150003 for 15.3; known once it is open."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        target = Target.of(url)
        if find_spec("psycopg") is None:
            raise missing_extra("postgres", "A PostgreSQL database", needs="psycopg")
        return cls(target)

    @property
    def name(self) -> str:
        """The database's name, for people."""
        return self._name

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return self._target.place

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas that the URL names; none for all."""
        return self._target.schemas

    async def open(self) -> None:
        await self.close()
        link = await self._connected()
        self._name, self.version = link.database, link.version
        self._idle.append(link)
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        await asyncio.gather(*(link.abort() for link in self._busy))
        while self._busy:
            self._quiet.clear()
            await self._quiet.wait()
        idle, self._idle = self._idle, []
        await asyncio.gather(*(link.close() for link in idle))

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.postgres_catalog import introspect

        return await introspect(self, samples)

    async def account(self) -> Account:
        from quorum.tools.databases.postgres_account import account_of

        return await account_of(self)

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        self._check_open()
        if problem := _unsendable(sql):
            return problem
        async with self._slots:
            try:
                return await self._run(sql, limits)
            except Refusal as refusal:
                found = query_error(refusal, sql)
                stopped = found.kind is ErrorKind.TIMEOUT and self._opened
                return timed_out(limits) if stopped else self._unless_closed(found)
            except TimeoutError:
                return timed_out(limits)
            except Gone as lost:
                return self._unless_closed(QueryError(ErrorKind.UNAVAILABLE, self._lost(lost)))
            except DatabaseUnavailable as error:
                return self._unless_closed(QueryError(ErrorKind.UNAVAILABLE, str(error)))

    async def _run(self, sql: str, limits: Limits) -> QueryResult:
        link = await self._begun(limits.seconds)
        try:
            started = time.monotonic()
            work = link.fetch(sql, limits.rows, limits.bytes)
            fetched: Fetched = await link.within(work, limits.seconds + GRACE_SECONDS)
            seconds = time.monotonic() - started
        finally:
            await asyncio.shield(asyncio.ensure_future(self._put_back(link)))
        return QueryResult(fetched.table, seconds, fetched.truncated, sql=sql, column_types=fetched.types)

    async def _begun(self, seconds: float) -> Link:
        """A connection inside a transaction; one that turns out to be lost is opened again, once.

        Raises:
            Gone, Refusal, DatabaseUnavailable: There is none.
        """
        again = True
        while True:
            link = self._idle.pop() if self._idle else None
            again = again and link is not None
            link = link or await self._connected()
            self._busy.add(link)
            try:
                if not self._opened:  # meanwhile
                    raise Gone("it was closed")
                await link.begin(seconds)
            except BaseException as error:
                await self._put_back(link)
                if not (isinstance(error, Gone) and again):
                    raise
                await self._forget()
            else:
                return link

    async def _forget(self) -> None:
        """Close what is idle: where one connection is lost, the others are too."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(link.close() for link in idle))

    async def _put_back(self, link: Link) -> None:
        """Keep a connection for the next query, or close it."""
        await link.settle()
        self._busy.discard(link)
        if link.sound and self._opened:
            self._idle.append(link)
        else:
            await link.close()
        self._quiet.set()

    async def _connected(self) -> Link:
        """A new connection.

        Raises:
            DatabaseUnavailable: There is none to be had.
        """
        import psycopg

        try:
            return await Link.connect(self._target)
        except (psycopg.Error, Refusal, Gone, OSError, UnicodeError) as error:
            reason = sentence(self._target.scrubbed(_reason(error)))
            hint = next((hint for words, hint in HINTS if re.search(words, reason)), REACH)
            raise DatabaseUnavailable(f"{self.place} cannot be opened: {reason}", hint=hint) from None

    def _lost(self, lost: Gone) -> str:
        return f"The connection to {self.place} is lost: {sentence(self._target.scrubbed(str(lost)))}"

    def _unless_closed(self, error: QueryError) -> QueryError:
        if self._opened:
            return error
        return QueryError(ErrorKind.UNAVAILABLE, "The connection was closed while the query ran.")

    def _check_open(self) -> None:
        if not self._opened:
            raise DatabaseUnavailable(f"The connection to {self.place} is closed.", hint="Open it first.")


def _unsendable(sql: str) -> QueryError | None:
    """Why a text never reaches the server."""
    if "\0" in sql:  # the protocol would end there, and what was judged is more than what runs
        return QueryError(ErrorKind.SYNTAX, "The text holds a NUL character.")
    try:
        sql.encode()
    except UnicodeEncodeError:
        return QueryError(ErrorKind.SYNTAX, "The text cannot be encoded as UTF-8.")
    if not sql.strip(" \t\r\n;"):
        return QueryError(ErrorKind.SYNTAX, "The text holds no query.")
    if not READS.match(sql):
        return QueryError(
            ErrorKind.PERMISSION, "Only queries are sent to the server: SELECT, WITH, VALUES and TABLE."
        )
    return None


def _reason(error: Exception) -> str:
    """The driver's words without where it tried, which ``place`` tells."""
    if isinstance(error, Refusal):
        return error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if "failed: " in line), lines[0] if lines else "")
    return telling.rpartition("failed: ")[2].removeprefix("FATAL:").strip() or type(error).__name__
