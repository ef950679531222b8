"""A DuckDB in memory with the parts that one query over several databases reads; runs in the child process.

Each database is a catalog of its name. Those that are DuckDB files are attached, read-only, before the
session is closed to files; of others the parts that a query needs are handed over before it (``load``) and
dropped before the next one. A part is a view, so that no row number of ours can be taken for the owner's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from quorum.tools.databases.duckdb import text
from quorum.tools.databases.duckdb.session import DuckdbSession, _connect, _prove_closed, _prove_read_only
from quorum.tools.databases.introspection import quoted
from quorum.tools.databases.worker import Fetched

if TYPE_CHECKING:
    import pyarrow as pa

STORE = "quorum_parts"
"""The schema of each catalog in which the rows of its parts lie."""
WHOLE = re.compile("U?(?:TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)")
"""Types of whole numbers."""
BEGIN = "BEGIN TRANSACTION READ ONLY"
MOST_DIGITS = 38
"""Of a decimal in DuckDB."""


class PartsSession(DuckdbSession):
    """See ``quorum.tools.databases.worker.Loading``; ``path`` is JSON: DuckDB files by their names here."""

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None:
        attached = [
            f"ATTACH {text(file)} AS {quoted(name)} (READ_ONLY)"
            for name, file in json.loads(path or "{}").items()
        ]
        first = ["SET TimeZone = 'UTC'", *attached]  # what has no zone means the same in every part
        self._connection = _connect(":memory:", memory, files, first, access_mode="AUTOMATIC")
        self._made: list[str] = []
        self._parts = 0
        _prove_closed(self._connection)
        _prove_read_only(self._connection, BEGIN, duckdb.TransactionException)

    def warm_up(self) -> None:
        super().warm_up()
        import pyarrow as pa

        self._connection.register("incoming", pa.table({"c0": [1]}))  # loads what scans of Arrow need
        self._connection.sql("FROM incoming").to_arrow_table()
        self._connection.unregister("incoming")

    def load(self, what: Mapping[str, Any], payload: bytes) -> None:
        """Forget the parts of the query before; take one (``table``); look bare names up in ``path``.

        A part: ``table`` is its catalog, schema and name, ``columns`` are names, types that they should have
        and whether texts may become them; without a payload it is the table ``source`` of an attached file,
        or has ``rows`` rows without values.
        """
        if "table" in what:
            self._take(what, payload)
        elif "path" in what:
            schemas = ",".join(quoted(*schema) for schema in what["path"])
            self._connection.execute(f"SET search_path = {text(schemas)}")
        else:
            self._connection.execute("SET search_path = 'memory.main'")
            for name in self._made:
                self._connection.execute(f"DETACH {quoted(name)}")
            self._made.clear()

    def _take(self, what: Mapping[str, Any], payload: bytes) -> None:
        self._parts += 1
        catalog, schema, name = what["table"]
        if catalog not in self._made:
            self._connection.execute(f"ATTACH ':memory:' AS {quoted(catalog)}")
            self._made.append(catalog)
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog, schema)}")
        columns, rows = "*", ""
        if payload:
            rows = self._stored(catalog, what["columns"], payload)
        elif "source" in what:
            rows = quoted(*what["source"])
        else:
            columns = ", ".join(
                f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind, _ in what["columns"]
            )
            rows = f"range({int(what['rows'])})"
        self._connection.execute(
            f"CREATE VIEW {quoted(catalog, schema, name)} AS SELECT {columns} FROM {rows}"
        )

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:
        """Run one statement, in a transaction that cannot write; see ``Session.run``."""
        self._connection.execute(BEGIN)
        try:
            return super().run(sql, rows, size, seconds)
        finally:
            self._connection.execute("ROLLBACK")

    def _reads(self, sql: str, kind: duckdb.StatementType) -> bool:
        if kind == duckdb.StatementType.EXPLAIN:
            return super()._reads(sql, kind)
        return bool(kind == duckdb.StatementType.SELECT)

    def _stored(self, catalog: str, columns: Sequence[Sequence[Any]], payload: bytes) -> str:
        """Keep a part's rows. Return the name of their table."""
        import pyarrow as pa

        rows = _held(pa.ipc.open_stream(payload).read_all())
        place = quoted(catalog, STORE, f"part{self._parts}")
        self._connection.register("incoming", rows)
        try:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog, STORE)}")
            wanted = ", ".join(
                f"{value} AS {quoted(name)}"
                for value, (name, *_) in zip(self._values(columns), columns, strict=True)
            )
            self._connection.execute(f"CREATE TABLE {place} AS SELECT {wanted} FROM incoming")
        finally:
            self._connection.unregister("incoming")
        return place

    def _values(self, columns: Sequence[Sequence[Any]]) -> list[str]:
        """Return each column in SQL: of the type that it should have, if no value is lost by that."""
        found = [str(kind) for kind in self._connection.sql("FROM incoming").types]
        texts = {
            i: "DOUBLE" if wanted.startswith("DECIMAL") else wanted  # there was a value that is no decimal
            for i, (kind, (_, wanted, readable)) in enumerate(zip(found, columns, strict=True))
            if readable and kind == "VARCHAR" and wanted not in ("", "VARCHAR")
        }
        tests = [f"count(c{i}) = count(TRY_CAST(c{i} AS {wanted}))" for i, wanted in texts.items()]
        answer = (
            self._connection.execute(f"SELECT {', '.join(tests)} FROM incoming").fetchone() if tests else None
        )
        casts = {i: wanted for (i, wanted), fits in zip(texts.items(), answer or (), strict=True) if fits}
        casts |= {  # no value is lost
            i: wanted
            for i, (kind, (_, wanted, _)) in enumerate(zip(found, columns, strict=True))
            if wanted and ('"NULL"' in kind or (wanted == "DOUBLE" and WHOLE.fullmatch(kind)))
        }
        return [f"CAST(c{i} AS {casts[i]})" if i in casts else f"c{i}" for i in range(len(found))]


def _held(rows: pa.Table) -> pa.Table:
    """Return the rows under plain names, with no decimal that DuckDB cannot hold."""
    import pyarrow as pa

    columns = []
    for column in rows.columns:
        try:
            columns.append(column.cast(_narrow(column.type, pa.decimal128)))
        except pa.ArrowInvalid:
            columns.append(column.cast(_narrow(column.type, lambda *_: pa.float64())))
    return pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


def _narrow(kind: pa.DataType, narrower: Callable[[int, int], pa.DataType]) -> pa.DataType:
    """Return the type with ``narrower`` (of digits and scale) for each decimal that is too wide."""
    import pyarrow as pa

    if pa.types.is_decimal256(kind):
        return narrower(MOST_DIGITS, kind.scale)
    if pa.types.is_list(kind):
        return pa.list_(_narrow(kind.value_type, narrower))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_narrow(field.type, narrower)) for field in kind])
    return kind
