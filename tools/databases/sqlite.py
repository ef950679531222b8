"""SQLite, read from one file by child processes. The driver is imported in ``sqlite_session``."""

from __future__ import annotations

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import Estimate
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.databases.sqlite_errors import classify
from quorum.tools.query import Limits, QueryError


class SqliteConnector(EmbeddedConnector):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``."""

    dialect = "sqlite"
    scheme = "sqlite"
    session = "quorum.tools.databases.sqlite_session:SqliteSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.sqlite_catalog import introspect

        return await introspect(self, samples)

    async def estimate(self, sql: str) -> Estimate | QueryError:
        """SQLite tells its plan, but neither rows nor bytes."""
        answer = await self.run(f"EXPLAIN QUERY PLAN {sql}", Limits(rows=1000, seconds=5))
        if isinstance(answer, QueryError):
            return answer
        return Estimate(plan="\n".join(answer.table["detail"].to_pylist()))

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)
