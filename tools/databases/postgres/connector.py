"""PostgreSQL over its own protocol. The driver, psycopg 3, is imported in ``session``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Account, Snapshot
from quorum.tools.databases.postgres import costs as costs
from quorum.tools.databases.postgres.code import OwnCode, unsafe_query
from quorum.tools.databases.postgres.errors import query_error, sentence
from quorum.tools.databases.postgres.session import PostgresLink
from quorum.tools.databases.postgres.url import Target
from quorum.tools.databases.server import Gone, Link, Refusal, ServerConnector, result_of
from quorum.tools.databases.texts import READS, uncallable, unsendable
from quorum.tools.query import Estimate, Limits, QueryError, QueryResult

T = TypeVar("T")
Work = Callable[[Link, str, Limits], Awaitable[T]]

HINTS = (
    (
        "password|authentication|pg_hba",
        "Check user and password, and until when it is valid; PGPASSFILE or a service may hold them, too.",
    ),
    (
        "SSL|certificate",
        "Set sslmode in the URL, and sslrootcert: the file of who signed the server's certificate.",
    ),
    ("does not exist", "Check the database's and the user's name."),
    (
        "too many|connection slots|connection limit",
        "Try again later, or raise the limit of the server or the role.",
    ),
    ("starting up|shutting down|recovery", "Try again in a moment."),
    ("parameter: options", "Let the pooler ignore it (PgBouncer: ignore_startup_parameters = options)."),
)
"""What to do, by what the server says."""
REACH = "Is the server running, and are host and port right?"
ENOUGH = Limits(rows=10**6, bytes=256 * 2**20)
"""For plans, and what they are read by."""


class PostgresConnector(ServerConnector):
    """``postgresql://user:password@host:port/database?schema=a,b``; ``postgres://`` as well.

    What the URL leaves out libpq finds where it always does: PG* variables, a password file, a service. Up to
    ``links`` queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "postgres"
    scheme = "postgresql"
    estimates = True

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._name = target.parameters.get("dbname", "")
        self.version = 0
        """The server's, as 150003 for 15.3; known once it is open."""
        self.server = ""
        """Host and port that the first connection went to; known once it is open."""
        self._code = OwnCode()

    @classmethod
    def from_url(cls, url: str) -> Self:
        target = Target.of(url)
        if not is_installed("psycopg"):
            raise missing_extra("postgres", "A PostgreSQL database", needs="psycopg")
        return cls(target)

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:
        """Schemas of one database, for the same user."""
        targets = [Target.of(url) for url in urls]
        if any(each.parameters != targets[0].parameters for each in targets):
            return None
        named = [each.schemas for each in targets]
        schemas = dict.fromkeys(name for names in named for name in names) if all(named) else {}
        return cls(replace(targets[0], schemas=tuple(schemas)))

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
        self._code = OwnCode()
        await super().open()
        try:
            await self.own_code()
        except BaseException:
            await self.close()
            raise

    async def own_code(self) -> OwnCode:
        """What queries may not name, as the database is now.

        Raises:
            DatabaseUnavailable: It cannot be read.
        """
        answer = await self.answered("", ENOUGH, self._current_code)
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The database's own functions cannot be read: {answer.message}")
        return answer

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        return await self._checked(sql, limits, result_of)

    async def _checked(self, sql: str, limits: Limits, work: Work[T]) -> T | QueryError:
        """What ``work`` makes of a query that names nothing unsafe, in the transaction that says so."""
        self._check_open()
        if problem := self.unsendable(sql) or uncallable(sql, "postgres"):
            return problem

        async def checked(link: Link) -> T | QueryError:
            refused = (await self._current_code(link)).refusal(sql)
            return refused or await work(link, sql, limits)

        return await self.answered(sql, limits, checked)

    async def _current_code(self, link: Link) -> OwnCode:
        assert isinstance(link, PostgresLink)
        if link.mark != self._code.mark:
            self._code = OwnCode.of(await link.ask(unsafe_query()), link.mark)
        return self._code

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        work: Work[str | Estimate] = _inspected if costs.INSPECTS.match(sql) else _explained
        explained = await self._checked(sql, limits, work)
        if not isinstance(explained, str):
            return explained
        plan = await asyncio.to_thread(costs.plan_of, explained)
        found = list[list[dict[str, Any]]]()
        for text in (costs.facts_query(costs.tables_of(plan)), costs.OWN_CODE):
            answer = await self.ask(text, replace(ENOUGH, seconds=limits.seconds))
            if isinstance(answer, QueryError):
                return answer
            found.append(answer.table.to_pylist())
        facts, own = found
        return await asyncio.to_thread(costs.estimate_of, plan, costs.Facts.of(facts), own)

    async def ask(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        """Run a statement of our own, whose operators and functions are the server's whatever else it has."""
        return await super().run(sql, limits)

    async def catalog(self, *, samples: int = 3) -> Catalog:
        return (await self.snapshot(samples=samples)).catalog

    async def snapshot(self, before: Snapshot | None = None, *, samples: int = 3) -> Snapshot:
        from quorum.tools.databases.postgres.catalog import introspect

        return await introspect(self, before, samples)

    async def identity(self) -> tuple[str, ...]:
        from quorum.tools.databases.postgres.account import identity_of

        return await identity_of(self)

    async def account(self) -> Account:
        from quorum.tools.databases.postgres.account import account_of

        return await account_of(self)

    async def connected(self) -> PostgresLink:
        import psycopg

        try:
            return await PostgresLink.connect(self._target)
        except (psycopg.Error, Refusal, Gone, OSError, UnicodeError) as error:
            reason = self.scrubbed(_reason(error))
            hint = next((hint for words, hint in HINTS if re.search(words, reason)), REACH)
            raise DatabaseUnavailable(f"{self.place} cannot be opened: {reason}", hint=hint) from None

    def unsendable(self, sql: str) -> QueryError | None:
        return unsendable(sql, "postgres", READS)

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        return query_error(refusal, sql)

    def scrubbed(self, text: str) -> str:
        return sentence(self._target.scrubbed(text))

    def note_opened(self, link: Link) -> None:
        assert isinstance(link, PostgresLink)
        self._name, self.version, self.server = link.database, link.version, link.server


async def _inspected(_: Link, sql: str, __: Limits) -> Estimate:
    """Of a text that shows a plan or a setting."""
    return Estimate(unknown="EXPLAIN runs its query") if costs.RUNS.search(sql) else Estimate(bytes=0)


async def _explained(link: Link, sql: str, limits: Limits) -> str:
    """The plan of a query, which does not run."""
    try:
        fetched = await link.fetch(costs.EXPLAIN + sql, replace(ENOUGH, seconds=limits.seconds))
    except Refusal as refusal:
        if refusal.position is not None:
            refusal.position = max(1, refusal.position - len(costs.EXPLAIN))
        raise
    return str(fetched.table.column(0)[0].as_py())


def _reason(error: Exception) -> str:
    """The driver's words without where it tried, which ``place`` tells."""
    if isinstance(error, Refusal):
        return error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if "failed: " in line), lines[0] if lines else "")
    return telling.rpartition("failed: ")[2].removeprefix("FATAL:").strip() or type(error).__name__
