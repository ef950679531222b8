"""PostgreSQL over its own protocol. The driver, psycopg 3, is imported in ``session``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Account
from quorum.tools.databases.postgres.account import account_of, identity_of
from quorum.tools.databases.postgres.catalog import introspect
from quorum.tools.databases.postgres.code import OwnCode, unsafe_query
from quorum.tools.databases.postgres.errors import query_error
from quorum.tools.databases.postgres.session import PostgresLink
from quorum.tools.databases.postgres.url import Target
from quorum.tools.databases.server import Refusal, ServerConnector
from quorum.tools.databases.texts import READS, uncallable
from quorum.tools.query import Limits, QueryError, QueryResult

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
ENOUGH = Limits(rows=10**6, bytes=256 * 2**20)
"""For what the database tells of its own code."""


class PostgresConnector(ServerConnector[PostgresLink, Target]):
    """``postgresql://user:password@host:port/database?schema=a,b``; ``postgres://`` as well.

    What the URL leaves out libpq finds where it always does: PG* variables, a password file, a service. Up to
    ``links`` queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "postgres"
    scheme = "postgresql"
    first_words = READS
    hints = HINTS

    def __init__(self, target: Target) -> None:
        super().__init__(target)
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
    def schemas(self) -> tuple[str, ...]:
        """The schemas that the URL names; none for all."""
        return self.target.schemas

    async def open(self) -> None:
        self._code = OwnCode()
        await super().open()
        try:
            await self.own_code()
        except BaseException:
            await self.close()
            raise

    async def own_code(self) -> OwnCode:
        """Read the names that queries may not use, as the database is now.

        Raises:
            DatabaseUnavailable: It cannot be read.
        """
        answer = await self.answered("", ENOUGH, self._current_code)
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The database's own functions cannot be read: {answer.message}")
        return answer

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        self._check_open()
        if problem := self.unsendable(sql) or uncallable(sql, "postgres"):
            return problem

        async def checked(link: PostgresLink) -> QueryResult | QueryError:
            refused = (await self._current_code(link)).refusal(sql)
            return refused or await link.result(sql, limits)

        return await self.answered(sql, limits, checked)

    async def _current_code(self, link: PostgresLink) -> OwnCode:
        if link.mark != self._code.mark:
            self._code = OwnCode.of(await link.ask(unsafe_query()), link.mark)
        return self._code

    async def catalog(self, *, samples: int = 3) -> Catalog:
        return await introspect(self, samples)

    async def reread(self, names: Collection[str], *, samples: int = 3) -> Catalog:
        return await introspect(self, samples, names)

    async def identity(self) -> tuple[str, ...]:
        return await identity_of(self)

    async def account(self) -> Account:
        return await account_of(self)

    async def connect(self) -> PostgresLink:
        return await PostgresLink.connect(self.target)

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        return query_error(refusal, sql)

    def note_opened(self, link: PostgresLink) -> None:
        self._name, self.version, self.server = link.database, link.version, link.server
