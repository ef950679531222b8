"""DuckDB, read from one file by child processes. The driver is imported in ``duckdb_session``."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import Any

from knowledge.catalog import Catalog
from knowledge.errors import DatabaseUnavailable
from tools.databases.base import Estimate
from tools.databases.duckdb_errors import classify
from tools.databases.embedded import EmbeddedConnector
from tools.databases.process import EngineFailed
from tools.query import Limits, QueryError

MAGIC = b"DUCK"
BLOCK_HEADERS = (4096, 8192)
"""Where the two database headers stand; the one of the greater iteration counts."""
BLOCKS_START = 12_288


class DuckdbConnector(EmbeddedConnector):
    """``duckdb:///relative.duckdb``, ``duckdb:////absolute.duckdb``."""

    dialect = "duckdb"
    scheme = "duckdb"
    session = "tools.databases.duckdb_session:DuckdbSession"

    async def catalog(self, *, samples: int = 3) -> Catalog:
        from tools.databases.duckdb_catalog import introspect

        return await introspect(self, samples)

    async def estimate(self, sql: str) -> Estimate | QueryError:
        """DuckDB tells its plan and the rows it expects, but no bytes."""
        answer = await self.run(f"EXPLAIN (FORMAT JSON) {sql}", Limits(rows=10, seconds=5))
        if isinstance(answer, QueryError):
            return answer
        plan = answer.table["explain_value"][0].as_py()
        return Estimate(plan=plan, rows=_expected_rows(json.loads(plan)))

    def check_header(self, header: bytes, size: int) -> None:
        if not header:
            raise DatabaseUnavailable(f"{self.path} is empty: 0 bytes.", hint="Was it ever written?")
        if header.startswith(b"SQLite format 3"):
            hint = "Write sqlite:/// before its path."
            raise DatabaseUnavailable(f"{self.path} is a SQLite file.", hint=hint)
        if header[8:12] != MAGIC:
            hint = "It may be damaged, or something else."
            raise DatabaseUnavailable(f"{self.path} is not a DuckDB database.", hint=hint)
        expected = _expected_size(header)
        if size < expected:
            raise DatabaseUnavailable(
                f"{self.path} is truncated: {size} of {expected} bytes are there.",
                hint="Copy it again from its source.",
            )

    def explain(self, failure: EngineFailed) -> DatabaseUnavailable:
        message = failure.message.partition("\n")[0].rstrip(".")
        if "Could not set lock" in message:
            holder = re.search(r"PID \d+", message)
            held = f" by the process with {holder[0]}" if holder else ""
            hint = "DuckDB lets nobody else in while a process may write. Close it there, or ask a copy."
            return DatabaseUnavailable(f"{self.path} is locked{held}.", hint=hint)
        if "ncrypt" in message:
            hint = "Copy it into an unencrypted file to ask it questions."
            return DatabaseUnavailable(f"{self.path} is encrypted.", hint=hint)
        if "version" in message:
            hint = "Upgrade the duckdb package, or export and import the database."
            return DatabaseUnavailable(f"{self.path} is of another version of DuckDB: {message}.", hint=hint)
        if "Corrupt" in message or "read enough bytes" in message:
            return DatabaseUnavailable(f"{self.path} is damaged.", hint=f"DuckDB says: {message}.")
        return DatabaseUnavailable(f"{self.path} cannot be opened: {message}.")

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)


def _expected_size(header: bytes) -> int:
    """Bytes that the newer of the two database headers promises; they tell blocks and their size."""
    if len(header) < BLOCKS_START:
        return BLOCKS_START
    headers = [struct.unpack_from("<6Q", header, start) for start in BLOCK_HEADERS]
    _, _, _, _, blocks, block_size = max(headers, key=lambda fields: fields[1])
    plausible = 2**14 <= block_size <= 2**18
    return BLOCKS_START + (blocks * block_size if plausible else 0)


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
