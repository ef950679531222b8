"""MySQL and MariaDB over their own protocol. The driver, PyMySQL, is imported in ``session``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Account, Snapshot
from quorum.tools.databases.mysql import costs as costs
from quorum.tools.databases.mysql.code import OwnCode
from quorum.tools.databases.mysql.errors import query_error
from quorum.tools.databases.mysql.session import MysqlLink, failure
from quorum.tools.databases.mysql.url import Target
from quorum.tools.databases.postgres.errors import sentence
from quorum.tools.databases.server import Gone, Link, Refusal, ServerConnector
from quorum.tools.databases.texts import READS, uncallable, unsendable
from quorum.tools.query import Estimate, Limits, QueryError, QueryResult

HINTS = (
    ("Access denied", "Check user, password and database; an option file (~/.my.cnf) may hold them, too."),
    ("Unknown database", "Check the database's name."),
    ("Too many connections|max_user_connections", "Try again later, or raise the limit of the server."),
    ("SSL|certificate", "Set ssl_ca, and ssl_verify=ca or identity, in the URL as the server wants them."),
)
"""What to do, by what the server says."""
REACH = "Is the server running, and are host and port right?"


class MysqlConnector(ServerConnector):
    """``mysql://user:password@host:port/database?schema=a,b``; ``mariadb://`` as well.

    MySQL's databases are schemas here: those that the URL names are shown, and may be joined. Up to ``links``
    queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "mysql"
    scheme = "mysql"
    estimates = True

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self.mariadb = False
        """Whether the server is MariaDB; known once it is open."""
        self.user = ""
        """Whom the server takes us for; known once it is open."""
        self._code = OwnCode()

    @classmethod
    def from_url(cls, url: str) -> Self:
        target = Target.of(url)
        if not is_installed("pymysql"):
            raise missing_extra("mysql", "A MySQL or MariaDB database", needs="pymysql")
        return cls(target)

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:
        """Databases of one server, for the same user."""
        targets = [Target.of(url) for url in urls]
        who = [each.parameters | {"database": ""} for each in targets]
        if any(each != who[0] for each in who):
            return None
        schemas = dict.fromkeys(name for each in targets for name in each.schemas)
        return cls(replace(targets[0], schemas=tuple(schemas)))

    @property
    def name(self) -> str:
        """The database's name, for people."""
        return str(self._target.parameters["database"])

    @property
    def place(self) -> str:
        return self._target.place

    @property
    def schemas(self) -> tuple[str, ...]:
        """The databases that the URL names."""
        return self._target.schemas

    async def open(self) -> None:
        await super().open()
        try:
            await self.look_again()
        except BaseException:
            await self.close()
            raise

    async def look_again(self) -> None:
        """Read which functions and views of the database's own may not be used.

        Raises:
            DatabaseUnavailable: They cannot be read.
        """
        self._code = await OwnCode.of(self.ask)

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        self._check_open()
        return self._refusal(sql) or await self.ask(sql, limits)

    async def ask(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        """Run a statement of our own."""
        return await super().run(sql, limits)

    async def catalog(self, *, samples: int = 3) -> Catalog:
        return (await self.snapshot(samples=samples)).catalog

    async def snapshot(self, before: Snapshot | None = None, *, samples: int = 3) -> Snapshot:
        from quorum.tools.databases.mysql.catalog import introspect

        return await introspect(self, before, samples)

    async def identity(self) -> tuple[str, ...]:
        from quorum.tools.databases.mysql.catalog import identity_of

        return (f"server: {self._target.server}", *await identity_of(self))

    async def account(self) -> Account:
        from quorum.tools.databases.mysql.catalog import account_of

        return await account_of(self)

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        self._check_open()
        if problem := self._refusal(sql):
            return problem
        if costs.INSPECTS.match(sql):
            return Estimate(unknown="EXPLAIN runs its query") if costs.RUNS.search(sql) else Estimate(bytes=0)
        few = await asyncio.to_thread(costs.few_rows, sql)
        return await self.answered(sql, limits, lambda link: _explained(link, sql, few))

    async def connected(self) -> MysqlLink:
        import pymysql

        try:
            return await MysqlLink.connect(self._target)
        except (pymysql.MySQLError, Refusal, Gone, OSError, RuntimeError) as error:
            found = error if isinstance(error, Refusal | Gone) else failure(error, lambda: None)
            reason = self.scrubbed(found.message if isinstance(found, Refusal) else str(found))
            hint = next((hint for words, hint in HINTS if re.search(words, reason)), REACH)
            raise DatabaseUnavailable(f"{self.place} cannot be opened: {reason}", hint=hint) from None

    def unsendable(self, sql: str) -> QueryError | None:
        return unsendable(sql, "mysql", READS)

    def _refusal(self, sql: str) -> QueryError | None:
        """Why a query may not run."""
        return self.unsendable(sql) or uncallable(sql, "mysql") or self._code.refusal(sql)

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:  # noqa: ARG002
        return query_error(refusal)

    def scrubbed(self, text: str) -> str:
        return sentence(self._target.scrubbed(text))

    def note_opened(self, link: Link) -> None:
        assert isinstance(link, MysqlLink)
        self.mariadb, self.user = link.mariadb, link.user


async def _explained(link: Link, sql: str, few: int | None) -> Estimate:
    assert isinstance(link, MysqlLink)
    return await link.explained(sql, few)
