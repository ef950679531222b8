"""Read the distinct values of a database's text columns, within bounds."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.value_index import ValueIndex
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private
from quorum.tools.query import Limits, QueryError

LEFT_OUT = "left_out"
SECONDS, COLUMN_SECONDS = 5.0, 1.0
"""For all columns together, and for one."""
COLUMN_VALUES, ALL_VALUES = 20_000, 400_000
CHARACTERS = 80
"""Longer values are texts, which nobody names."""

_TEXT = re.compile(r"char|text|clob|string|enum", re.IGNORECASE)


async def read_values(connector: Connector, catalog: Catalog, cache: Path | None = None) -> ValueIndex:
    """The values that hold a letter, of columns that may be shown; what the bounds cut is said.

    Args:
        cache: Folder in which they are kept for catalogs of the same content, counts and samples included.

    Raises:
        DatabaseUnavailable: The connector is closed.
    """
    file = cache / "values" / f"{_digest(catalog.name)}-{catalog.hash}.parquet" if cache else None
    if file and (kept := await asyncio.to_thread(_kept, file)):
        return kept
    index = await _read(connector, catalog)
    if file:
        await asyncio.to_thread(_keep, index, file)
    return index


async def _read(connector: Connector, catalog: Catalog) -> ValueIndex:
    found: dict[tuple[str, str], list[str]] = {}
    unread, cut = [], []
    total, started = 0, time.monotonic()
    for table, column in _text_columns(catalog):
        name = f"{table.full_name}.{column.name}"
        left = SECONDS - (time.monotonic() - started)
        if left <= 0 or total >= ALL_VALUES:
            unread.append(name)
            continue
        limits = Limits(rows=COLUMN_VALUES, bytes=16 * 2**20, seconds=min(left, COLUMN_SECONDS))
        answer = await connector.run(_query(table, column, catalog.dialect), limits)
        if isinstance(answer, QueryError):
            unread.append(name)
            continue
        texts = [value for value in answer.table.column(0).to_pylist() if isinstance(value, str)]
        found[table.full_name, column.name] = [text for text in texts if any(map(str.isalpha, text))]
        total += len(texts)
        cut += [name] if answer.truncated else []
    return ValueIndex(found, _left_out(unread, cut))


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]


def _keep(index: ValueIndex, file: Path) -> None:
    """Write the index; a folder that cannot be written to costs only that it is read again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(*place, text) for place, texts in index.values.items() for text in texts]
    names = ("table", "column", "text")
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(names))]
    table = pa.Table.from_arrays(columns, names=list(names))
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # values of somebody's database
        pq.write_table(table.replace_schema_metadata({LEFT_OUT: json.dumps(index.left_out)}), part)
        part.replace(file)
        for older in file.parent.glob(f"{file.name.partition('-')[0]}-*.parquet"):
            if older != file:
                older.unlink(missing_ok=True)


def _kept(file: Path) -> ValueIndex | None:
    """What ``_keep`` wrote; None if it is not there, or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(pa.BufferReader(file.read_bytes())).read(use_threads=False)
        left_out = json.loads(table.schema.metadata[LEFT_OUT.encode()])
        columns = [table.column(name).to_pylist() for name in ("table", "column", "text")]
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None
    found: dict[tuple[str, str], list[str]] = {}
    for owner, column, text in zip(*columns, strict=True):
        found.setdefault((owner, column), []).append(text)
    return ValueIndex(found, left_out)


def _text_columns(catalog: Catalog) -> Iterator[tuple[Table, Column]]:
    for table, column in catalog.columns():
        plain = not column.type or (_TEXT.search(column.type) and not column.type.endswith("]"))
        if plain and not column.fields and table.row_count != 0 and not is_private(column.name):
            yield table, column


def _query(table: Table, column: Column, dialect: str) -> str:
    name, source = write_name(column.name, dialect), _source(table, dialect)
    return (
        f"SELECT DISTINCT {name} AS v FROM {source} "
        f"WHERE {name} IS NOT NULL AND length({name}) <= {CHARACTERS} LIMIT {COLUMN_VALUES + 1}"
    )


def _source(table: Table, dialect: str) -> str:
    return write_full_name([part for part in (table.database, table.schema, table.name) if part], dialect)


def _left_out(unread: list[str], cut: list[str]) -> Iterator[str]:
    if unread:
        yield f"No values were read of {', '.join(unread[:5])}{' and others' if len(unread) > 5 else ''}."
    if cut:
        yield f"Of {', '.join(cut[:5])}{' and others' if len(cut) > 5 else ''} only some values were read."
