"""DuckDB, read from one file by child processes. The driver is imported in ``duckdb_session``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import Estimate
from quorum.tools.databases.duckdb_errors import classify
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.databases.process import EngineFailed
from quorum.tools.query import Limits, QueryError


class DuckdbConnector(EmbeddedConnector):
    """``duckdb:///relative.duckdb``, ``duckdb:////absolute.duckdb``."""

    dialect = "duckdb"
    scheme = "duckdb"
    session = "quorum.tools.databases.duckdb_session:DuckdbSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from quorum.tools.databases.duckdb_catalog import introspect

        return await introspect(self, samples)

    async def estimate(self, sql: str) -> Estimate | QueryError:
        """DuckDB tells its plan and the rows it expects, but no bytes."""
        answer = await self.run(f"EXPLAIN (FORMAT JSON) {sql}", Limits(rows=10, seconds=5))
        if isinstance(answer, QueryError):
            return answer
        plan = answer.table["explain_value"][0].as_py()
        return Estimate(plan=plan, rows=_expected_rows(json.loads(plan)))

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)


def _expected_rows(plan: list[dict[str, Any]]) -> int | None:
    """The planner's number of rows for the uppermost step that has one."""
    for node in _nodes(plan):
        rows = node.get("extra_info", {}).get("Estimated Cardinality")
        if rows is not None:
            return int(rows)
    return None


def _nodes(plan: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in plan:
        yield node
        yield from _nodes(node.get("children", []))
