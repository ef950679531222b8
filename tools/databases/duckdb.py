"""DuckDB, read from one file by child processes. The driver is imported in ``duckdb_session``."""

from __future__ import annotations

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.duckdb_errors import classify
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.query import QueryError


class DuckdbConnector(EmbeddedConnector):
    """``duckdb:///relative.duckdb``, ``duckdb:////absolute.duckdb``."""

    dialect = "duckdb"
    scheme = "duckdb"
    session = "quorum.tools.databases.duckdb_session:DuckdbSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.duckdb_catalog import introspect

        return await introspect(self, samples)

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)
