"""MySQL and MariaDB over their own protocol. The driver, PyMySQL, is imported in ``session``."""

from __future__ import annotations

from quorum.tools.databases.mysql.catalog import account_of, identity_of, introspect
from quorum.tools.databases.mysql.code import OwnCode
from quorum.tools.databases.mysql.errors import query_error
from quorum.tools.databases.mysql.session import MysqlLink
from quorum.tools.databases.mysql.url import Target
from quorum.tools.databases.server import Refusal, ServerConnector
from quorum.tools.databases.texts import READS, uncallable
from quorum.tools.query import QueryError


class MysqlConnector(ServerConnector[MysqlLink, Target]):
    """``mysql://user:password@host:port/database?schema=a,b``; ``mariadb://`` as well.

    MySQL's databases are schemas here: those that the URL names are shown, and may be joined. Up to ``links``
    queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "mysql"
    scheme = "mysql"
    urls = Target
    driver = ("pymysql", "pymysql", "A MySQL or MariaDB database")
    first_words = READS
    hints = (
        ("Access denied", "Check user, password and database; an option file (~/.my.cnf) may hold them."),
        ("Unknown database", "Check the database's name."),
        ("Too many connections|max_user_connections", "Try again later, or raise the limit of the server."),
        ("SSL|certificate", "Set ssl_ca, and ssl_verify=ca or identity, in the URL as the server wants."),
    )

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.mariadb = False
        """True if the server is MariaDB; known once it is open."""
        self.user = ""
        """The account that the server takes the connector for; known once it is open."""
        self._code = OwnCode()

    @property
    def name(self) -> str:
        return str(self.target.parameters["database"])

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
        self._code = await OwnCode.of(self.own_rows)

    def refusal(self, sql: str) -> QueryError | None:
        return uncallable(sql, "mysql") or self._code.refusal(sql)

    catalog, account = introspect, account_of

    async def identity(self) -> tuple[str, ...]:
        return (f"server: {self.target.server}", *await identity_of(self))

    async def connect(self) -> MysqlLink:
        return await MysqlLink(self.target).opened()

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:  # noqa: ARG002
        return query_error(refusal)

    def note_opened(self, link: MysqlLink) -> None:
        self.mariadb, self.user = link.mariadb, link.user
