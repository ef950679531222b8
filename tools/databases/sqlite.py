"""SQLite, read from one file by child processes. The driver is imported in ``sqlite_session``."""

from __future__ import annotations

from knowledge.catalog import Catalog
from tools.databases.base import Estimate
from tools.databases.embedded import EmbeddedConnector
from tools.databases.process import EngineFailed
from tools.databases.sqlite_errors import classify
from tools.query import Limits, QueryError


class SqliteConnector(EmbeddedConnector):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``."""

    dialect = "sqlite"
    scheme = "sqlite"
    session = "tools.databases.sqlite_session:SqliteSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from tools.databases.sqlite_catalog import introspect

        return await introspect(self, samples)

    async def estimate(self, sql: str) -> Estimate | QueryError:
        """SQLite tells its plan, but neither rows nor bytes."""
        answer = await self.run(f"EXPLAIN QUERY PLAN {sql}", Limits(rows=1000, seconds=5))
        if isinstance(answer, QueryError):
            return answer
        return Estimate(plan="\n".join(answer.table["detail"].to_pylist()))

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)
