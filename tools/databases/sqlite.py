"""SQLite, read from one file by child processes. The driver is imported in ``sqlite_session``."""

from __future__ import annotations

from knowledge.catalog import Catalog
from knowledge.errors import DatabaseUnavailable
from tools.databases.base import Estimate
from tools.databases.embedded import EmbeddedConnector
from tools.databases.process import EngineFailed
from tools.databases.sqlite_errors import classify
from tools.query import Limits, QueryError

MAGIC = b"SQLite format 3\x00"


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

    def check_header(self, header: bytes, size: int) -> None:
        if not header:
            raise DatabaseUnavailable(f"{self.path} is empty: 0 bytes.", hint="Was it ever written?")
        if header[8:12] == b"DUCK":
            hint = "Write duckdb:/// before its path."
            raise DatabaseUnavailable(f"{self.path} is a DuckDB file.", hint=hint)
        if not header.startswith(MAGIC):
            hint = "It may be encrypted, damaged, or something else."
            raise DatabaseUnavailable(f"{self.path} is not a SQLite database.", hint=hint)
        expected = _expected_size(header)
        if expected is not None and size < expected:
            raise DatabaseUnavailable(
                f"{self.path} is truncated: {size} of {expected} bytes are there.",
                hint="Copy it again from its source.",
            )

    def explain(self, failure: EngineFailed) -> DatabaseUnavailable:
        if failure.code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            hint = "Another program is writing to it; try again when it is done."
            return DatabaseUnavailable(f"{self.path} is locked.", hint=hint)
        if failure.code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return DatabaseUnavailable(
                f"{self.path} cannot be opened read-only ({failure.message}).",
                hint="It has an unfinished write-ahead log or journal beside it. Open it once with a program "
                "that may write, or copy it with sqlite3's .backup, and use the copy.",
            )
        if failure.code.startswith("SQLITE_CORRUPT"):
            hint = "sqlite3's .recover may save its content."
            return DatabaseUnavailable(f"{self.path} is damaged: {failure.message}.", hint=hint)
        return DatabaseUnavailable(f"{self.path} cannot be opened: {failure.message}.")

    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        return classify(failure, sql)


def _expected_size(header: bytes) -> int | None:
    """Bytes that the header promises (sqlite.org/fileformat.html, 1.3); None if it may be out of date."""
    if len(header) < 100 or header[24:28] != header[92:96]:
        return None
    page = int.from_bytes(header[16:18], "big")
    return (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
