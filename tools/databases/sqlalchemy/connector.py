"""Engines without a connector of their own, by SQLAlchemy URL. SQLAlchemy is imported in what connects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quorum.knowledge.errors import DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Account
from quorum.tools.databases.server import GRACE_SECONDS, Gone, Refusal, ServerConnector
from quorum.tools.databases.sqlalchemy.catalog import introspect
from quorum.tools.databases.sqlalchemy.engines import BUILT_IN
from quorum.tools.databases.sqlalchemy.errors import query_error
from quorum.tools.databases.sqlalchemy.session import AlchemyLink, engine_of, missing
from quorum.tools.databases.sqlalchemy.url import Target
from quorum.tools.databases.texts import uncallable
from quorum.tools.guard import Rejected, check
from quorum.tools.plugins import installed
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult, timed_out

if TYPE_CHECKING:
    import sqlalchemy

T = TypeVar("T")

TOO_LONG = "it takes too long"


class SqlalchemyConnector(ServerConnector[AlchemyLink, Target]):
    """``dialect+driver://user:password@host:port/database?quorum_schema=a,b``: the last resort.

    Where the engine has a session that forbids to write (``Engine.proof``), ``open`` proves it. Where it has
    none, each text is judged by the guard once more before it is sent, whoever asks; the account's rights are
    the only other lock. ``account`` tells which promises of ``Connector`` do not hold.
    """

    dialect = ""
    scheme = "sqlalchemy"
    urls = Target
    reach = "Is the server running, and are host, port, user and password right?"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._engine: sqlalchemy.Engine | None = None
        self.dialect, self.bills = target.engine.dialect, target.engine.bills
        self.stops = False
        """True if what takes too long is stopped for sure; known once it is open."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        target = Target.of(url)
        if not is_installed("sqlalchemy"):
            raise missing_extra("sqlalchemy", f"Asking {target.name} by a SQLAlchemy URL", needs="sqlalchemy")
        if target.name not in BUILT_IN and not _is_plugged_in(target.name):
            raise missing(target.engine.packages, target.name)
        return cls(target)

    @property
    def name(self) -> str:
        return self.target.database

    @property
    def sealed(self) -> bool:
        """True if a session forbids to write."""
        return bool(self.target.engine.proof)

    async def account(self) -> Account:
        """Return the account that the URL names, and which promises do not hold."""
        self._check_open()
        return Account(self.target.user, sealed=self.sealed, gaps=tuple(self._gaps()))

    def _gaps(self) -> Iterator[str]:
        if not self.sealed:
            yield "Nothing in the engine is known to forbid writing; the guard's strict rules do."
            yield "Use an account that may only SELECT: its rights are the only other lock."
        if not self.stops:
            yield "A query that takes too long is cut off, and the server may go on with it."
        yield "What a query costs is not known before it runs, and no limit on bytes read is enforced."
        if self.bills:
            yield "Reading is billed: the catalog holds no values, and with a limit on bytes no query runs."
        yield "What the account may do, which rows a policy hides and what views call is not looked at."
        yield "A row is held whole in memory, however large it is."

    async def run(self, sql: str, limits: Limits, *, own: bool = False) -> QueryResult | QueryError:
        self._check_open()
        if not self.sealed:
            found = await asyncio.to_thread(check, sql, self.dialect)
            if isinstance(found, Rejected):
                return found.error()
            sql = found.sql
        outcome = await super().run(sql, limits, own=own)
        if isinstance(outcome, QueryError) and outcome.kind is ErrorKind.TIMEOUT and not self.stops:
            return timed_out(limits, stopped=False)
        return outcome

    def refusal(self, sql: str) -> QueryError | None:
        return uncallable(sql, self.dialect) if self.sealed else None

    async def read(self, function: Callable[[sqlalchemy.Connection], T], seconds: float) -> T:
        """Run a function on a connection, within a query's transaction.

        Raises:
            DatabaseUnavailable: The connection is gone, or does not answer in time.
        """
        self._check_open()
        try:
            async with self._slots, self.link(seconds) as link:
                return await link.within(link.read(function), seconds + GRACE_SECONDS)
        except (Gone, Refusal, TimeoutError) as error:
            message = f"The catalog of {self.place} cannot be read: {self.scrubbed(str(error) or TOO_LONG)}"
            hint = "Name fewer schemas with ?quorum_schema=." if isinstance(error, TimeoutError) else ""
            raise DatabaseUnavailable(message, hint=hint) from None

    catalog = introspect

    def written(self, statement: Any) -> str:
        """A statement of SQLAlchemy's in the engine's SQL."""
        assert self._engine is not None
        compiled = statement.compile(dialect=self._engine.dialect, compile_kwargs={"literal_binds": True})
        return str(compiled)

    async def connect(self) -> AlchemyLink:
        if self._engine is None:
            self._engine = await asyncio.to_thread(engine_of, self.target)
        return await AlchemyLink(self._engine, self.target.engine).opened()

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        found = query_error(refusal, sql, self.dialect)
        return replace(found, message=self.target.scrubbed(found.message))

    def note_opened(self, link: AlchemyLink) -> None:
        self.stops = link.stops


def _is_plugged_in(name: str) -> bool:
    return any(point.name.partition(".")[0] == name for point in installed("sqlalchemy.dialects"))
