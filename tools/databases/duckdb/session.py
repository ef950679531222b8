"""A hardened DuckDB connection; runs inside the child process.

With ``read_only`` alone DuckDB still reads any file, writes with COPY TO and loads extensions: the
configuration forbids that and is locked; data files are allowed one by one. Only queries, their EXPLAIN
and descriptive pragmas are accepted: EXPLAIN ANALYZE of another statement would run it, and COPY may write to
a file that may be read.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import duckdb

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.duckdb import text
from quorum.tools.databases.worker import Fetched, check

if TYPE_CHECKING:
    import pyarrow as pa

CONFIGURATION = {
    "access_mode": "READ_ONLY",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # else a query reads this process's variables
    "temp_directory": "",  # any folder named here could be read by queries
    "max_temp_directory_size": "0B",
    "errors_as_json": "true",
    "lock_configuration": "true",
}
LAST = ("enable_external_access", "lock_configuration")
"""Settings that end what may be set."""
EXPLAIN = re.compile(
    r"\s*EXPLAIN\s+(?:ANALYZE\s+)?(?:\(\s*(?:ANALYZE|FORMAT)\b[\w ,']*\)\s*)?", re.IGNORECASE
)
PIVOTED = re.compile(r"\s*(?:\(|FROM\b|PIVOT\b|SELECT\b|WITH\b)", re.IGNORECASE)
"""What a PIVOT that first looks up its columns may begin with; COPY and CREATE could hold one too."""
PRAGMA = re.compile(
    r"\s*PRAGMA\s+(?:table_info|show_tables|show_tables_expanded|show_databases|show|database_list|database_size"
    r"|storage_info|collations|functions|version|platform)\s*(?:\(\s*(?:\w+|'(?:[^']|'')*')\s*\)\s*)?;?\s*",
    re.IGNORECASE,
)
BATCH_ROWS = 5 * 2048  # DuckDB works in vectors of 2048
NOT_ARROW = re.compile(
    r"\bENUM\((?:'(?:[^']|'')*'(?:, )?)+\)"
    r"|\b(?:UHUGEINT|BIT|BIGNUM|VARIANT|GEOMETRY|TIME WITH TIME ZONE)\b"
)
"""Types that Arrow has no plain form for: they would come as bytes or codes, or wrong (UHUGEINT with
a wrapped sign, times without their offset)."""
QUOTED = re.compile(r'("(?:[^"]|"")*")')


class DuckdbSession:
    """See ``quorum.tools.databases.worker.Session``."""

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None:
        check(path, "duckdb")
        try:
            self._connection = _connect(path, memory, files)
            _prove_closed(self._connection)
            _prove_read_only(self._connection)
        except duckdb.Error as error:
            raise _explained(path, str(error)) from error

    def warm_up(self) -> None:
        import quorum.tools.databases.arrow  # noqa: F401 - loads pyarrow

        self._connection.sql("SELECT 1").to_arrow_table()

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:
        """Run one statement; see ``Session.run``."""
        clock = threading.Timer(seconds, self._connection.interrupt)
        clock.start()
        try:
            return self._run(sql, rows, size)
        finally:
            clock.cancel()

    def _run(self, sql: str, rows: int, size: int) -> Fetched:
        from quorum.tools.databases.arrow import capped_table

        if "\0" in sql:  # the driver would end there, and what was judged is more than what runs
            raise ValueError("The text holds a NUL character.")
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise ValueError(f"The text holds {len(statements)} statements; it must be one.")
        if not self._reads(sql, statements[0].type):
            raise PermissionError(f"{statements[0].type.name} statements are not allowed; only reads are.")
        relation = self._bind(sql, statements[0])
        types = tuple(str(kind) for kind in relation.types)
        reader = _plain(relation, types).to_arrow_reader(BATCH_ROWS)
        table, truncated = capped_table(reader, reader.schema, rows, size)
        return Fetched(_narrow(table, types), truncated, types)

    def _reads(self, sql: str, kind: duckdb.StatementType) -> bool:
        """Return True for a query, EXPLAIN of a query, and a pragma that describes."""
        inner = EXPLAIN.sub("", sql, count=1)
        if inner != sql:
            inside = self._connection.extract_statements(inner)
            return len(inside) == 1 and self._reads(inner, inside[0].type)
        if kind == duckdb.StatementType.MULTI:
            return PIVOTED.match(sql) is not None
        if kind == duckdb.StatementType.PRAGMA:
            return PRAGMA.fullmatch(sql) is not None
        return bool(kind == duckdb.StatementType.SELECT)

    def _bind(self, sql: str, statement: duckdb.Statement) -> duckdb.DuckDBPyRelation:
        """Bind the query without running it: only as a relation do its rows stream."""
        try:
            return self._connection.sql(sql)
        except (duckdb.BinderException, duckdb.CatalogException):
            self._connection.execute(statement)  # fails likewise, with the position
            raise


class BuildingSession(DuckdbSession):
    """A new database that is filled by Quorum's own statements, never by a question's.

    Nothing but the database is written, and nothing but ``files`` is read.
    """

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None:
        self._connection = _connect(path, memory, files, access_mode="READ_WRITE")
        _prove_closed(self._connection)

    def _reads(self, sql: str, kind: duckdb.StatementType) -> bool:  # noqa: ARG002
        return True

    def _bind(self, sql: str, statement: duckdb.Statement) -> duckdb.DuckDBPyRelation:
        return super()._bind(sql, statement) or self._connection.sql("SELECT 'done'")  # CREATE gives None


def _connect(
    path: str, memory: int, files: Sequence[str], first: Sequence[str] = (), **changes: str
) -> duckdb.DuckDBPyConnection:
    """Connect to a database. The session may also read ``files``; its settings are locked after ``first``.

    DuckDB takes ``allowed_paths`` only while it may still read everything: they are set before that is
    forbidden, and before any other statement. It follows links there and then.
    """
    config: dict[str, Any] = {**CONFIGURATION, "memory_limit": f"{memory}B", **changes}
    later = {name: config.pop(name) for name in LAST} if files or first else {}
    connection = duckdb.connect(path, read_only=config["access_mode"] == "READ_ONLY", config=config)
    if files:
        connection.execute(f"SET allowed_paths = [{', '.join(map(text, files))}]")
    for statement in (*first, *(f"SET {name} = {value}" for name, value in later.items())):
        connection.execute(statement)
    return connection


def _plain(relation: duckdb.DuckDBPyRelation, types: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Return the relation with every type that Arrow lacks, also nested, cast to text."""
    plain = [_plain_type(kind) for kind in types]
    if plain == list(types):
        return relation
    names = [name.replace('"', '""') for name in relation.columns]
    casts = (
        f'CAST(#{i} AS {wanted}) AS "{name}"' if wanted != kind else f'#{i} AS "{name}"'
        for i, (kind, wanted, name) in enumerate(zip(types, plain, names, strict=True), 1)
    )
    return relation.project(", ".join(casts))


def _plain_type(kind: str) -> str:
    parts = QUOTED.split(kind)  # names of fields, which may look like types, at odd places
    if any("UNION(" in part for part in parts[::2]):
        return "VARCHAR"
    return "".join(part if i % 2 else NOT_ARROW.sub("VARCHAR", part) for i, part in enumerate(parts))


def _narrow(table: pa.Table, types: Sequence[str]) -> pa.Table:
    """Make HUGEINT, the type of every sum of integers, int64 if all values fit."""
    import pyarrow as pa

    for i, kind in enumerate(types):
        if kind == "HUGEINT":
            with suppress(pa.ArrowInvalid):
                table = table.set_column(i, table.field(i).with_type(pa.int64()), table[i].cast(pa.int64()))
    return table


def _explained(path: str, reason: str) -> DatabaseUnavailable:
    """Explain why DuckDB could not open a file that looks like one of its own."""
    reason = reason.partition("\n")[0].rstrip(".")
    if "Could not set lock" in reason:
        holder = re.search(r"PID \d+", reason)
        by = f" by the process with {holder[0]}" if holder else ""
        hint = "DuckDB lets nobody else in while a process may write. Close it there, or ask a copy."
        return DatabaseUnavailable(f"{path} is locked{by}.", hint=hint)
    if "encrypt" in reason.lower():
        hint = "Copy it into an unencrypted file to ask it questions."
        return DatabaseUnavailable(f"{path} is encrypted.", hint=hint)
    if "Corrupt" in reason or "read enough bytes" in reason:
        return DatabaseUnavailable(f"{path} is damaged.", hint=f"DuckDB says: {reason}.")
    return DatabaseUnavailable(f"{path} cannot be opened: {reason}.")


def _prove_closed(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise PermissionError if files can be read that the configuration does not allow."""
    try:
        connection.execute("FROM glob('/*')")
    except duckdb.PermissionException:
        return
    raise PermissionError("The session could read files of others; it must not.")


def _prove_read_only(
    connection: duckdb.DuckDBPyConnection,
    begin: str = "BEGIN",
    refusal: type[duckdb.Error] = duckdb.InvalidInputException,
) -> None:
    """Raise PermissionError unless a write in a transaction that begins like this fails with ``refusal``."""
    connection.execute(begin)
    try:
        connection.execute("CREATE TABLE quorum_probe(x INTEGER)")
    except refusal:
        return
    finally:
        connection.execute("ROLLBACK")
    raise PermissionError("The session could write to the database; it must not.")
