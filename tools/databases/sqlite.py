"""SQLite, read from one file by child processes. The driver is imported in ``sqlite_session``."""

from __future__ import annotations

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.databases.sqlite_errors import classify
from quorum.tools.query import QueryError


class SqliteConnector(EmbeddedConnector):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``."""

    dialect = "sqlite"
    scheme = "sqlite"
    session = "quorum.tools.databases.sqlite_session:SqliteSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.sqlite_catalog import introspect

        return await introspect(self, samples)

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)
