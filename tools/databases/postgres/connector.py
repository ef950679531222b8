"""PostgreSQL over its own protocol. The driver, psycopg 3, is imported in ``session``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.postgres.account import account_of, identity_of
from quorum.tools.databases.postgres.catalog import introspect
from quorum.tools.databases.postgres.code import OwnCode, unsafe_query
from quorum.tools.databases.postgres.errors import query_error
from quorum.tools.databases.postgres.session import PostgresLink
from quorum.tools.databases.postgres.url import Target
from quorum.tools.databases.server import GRACE_SECONDS, Refusal, ServerConnector
from quorum.tools.databases.texts import READS, uncallable
from quorum.tools.query import Limits, QueryError

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


class PostgresConnector(ServerConnector[PostgresLink, Target]):
    """``postgresql://user:password@host:port/database?schema=a,b``; ``postgres://`` as well.

    What the URL leaves out libpq finds where it always does: PG* variables, a password file, a service. Up to
    ``links`` queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "postgres"
    scheme = "postgresql"
    parse = Target.of
    driver = ("psycopg", "psycopg", "A PostgreSQL database")
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
        answer = await self.ask("SELECT 1", Limits())
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The database's own functions cannot be read: {answer.message}")
        return self._code

    async def look(self, link: PostgresLink, seconds: float) -> None:
        if link.begun != self._code.mark:
            rows = await link.within(link.ask(unsafe_query()), seconds + GRACE_SECONDS)
            self._code = OwnCode.of(rows, link.begun)

    def refusal(self, sql: str) -> QueryError | None:
        return uncallable(sql, "postgres") or self._code.refusal(sql)

    async def reread(self, names: Collection[str], *, samples: int = 3) -> Catalog:
        return await introspect(self, samples=samples, only=names)

    catalog, identity, account = introspect, identity_of, account_of

    async def connect(self) -> PostgresLink:
        return await PostgresLink.connect(self.target)

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        return query_error(refusal, sql)

    def note_opened(self, link: PostgresLink) -> None:
        self._name, self.version, self.server = link.database, link.version, link.server
