"""Data files as a database: a DuckDB of views over them, made when it is opened."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.data_files import Source, sources_of
from quorum.tools.databases.duckdb import DuckdbConnector
from quorum.tools.databases.embedded import file_of
from quorum.tools.databases.introspection import quoted
from quorum.tools.databases.view_files import text
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult

BUILDER = "quorum.tools.databases.duckdb_session:BuildingSession"
LOOK = Limits(seconds=30.0)
"""Of a look through one file for the types of its columns; after that a sample tells them."""
WHOLE_JSON = 32 * 2**20
"""Bytes of JSON that are read whole for the types, whenever they are asked."""
SAMPLE = 20_480
"""Rows that DuckDB samples by default."""
ENCODINGS = ("utf-8", "latin-1")
"""Tried in turn where no mark says UTF-16; the last one reads any bytes."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")
SEPARATORS = ",;|\t"


class FilesConnector(DuckdbConnector):
    """``files:///relative/orders.csv``, ``files:////absolute/folder``: a file is a table (``data_files``).

    Queries read those files and no other. What is there when the database is opened counts.
    """

    scheme = "files"
    views = "table"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._made: TemporaryDirectory[str] | None = None
        self._left_out: list[str] = []
        self._notes: list[str] = []

    @classmethod
    def from_url(cls, url: str) -> Self:
        return cls(file_of(url, cls.scheme))

    @property
    def folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def in_place(self) -> tuple[str, tuple[str, ...]]:
        return self._served, self._files

    async def open(self) -> None:
        await self.close()
        await self._resolve()
        sources, self._left_out = await asyncio.to_thread(sources_of, self.path)
        self._notes = []
        files = [file for source in sources for file in source.files]
        self._made = await asyncio.to_thread(TemporaryDirectory, prefix="quorum-")
        made = str(Path(self._made.name, "files.duckdb"))
        try:
            await self._serve(made, files, BUILDER)
            built = [await self._build(source) for source in sources]
            if not any(built):
                raise DatabaseUnavailable(f"{self.path} cannot be read. {' '.join(self._left_out)}")
            await self._serve(made, files)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await super().close()
        if self._made:
            await asyncio.to_thread(self._made.cleanup)
            self._made = None

    async def catalog(self, *, samples: int = 3) -> Catalog:
        found = await super().catalog(samples=samples)
        left_out = (*self._left_out, *found.left_out)
        return replace(found, left_out=left_out, notes=(*self._left_out, *self._notes, *found.notes))

    async def _build(self, source: Source) -> bool:
        """Make the view of a source; else say why it is left out."""
        if not source.size:
            self._left_out.append(f"{source.shown} is left out: it is empty, 0 bytes.")
            return False
        reading = await self._reading(source)
        made: object = reading
        if not isinstance(reading, QueryError):
            made = await self.run(f"CREATE VIEW {quoted(source.table)} AS FROM {reading}", LOOK)
        if isinstance(made, QueryError):
            self._left_out.append(f"{source.shown} cannot be read and is left out: {made.message}")
            return False
        await self.run(f"COMMENT ON VIEW {quoted(source.table)} IS {text(source.shown)}", LOOK)
        return True

    async def _reading(self, source: Source) -> str | QueryError:
        """The call that reads a source, with its columns where they had to be found."""
        files = f"[{', '.join(map(text, source.files))}]"
        parts = f"union_by_name=true, hive_partitioning={str(source.partitioned).lower()}"
        if source.reader == "parquet":
            return f"read_parquet({files}, {parts})"
        if source.reader == "csv" and len(source.files) == 1:
            return await self._csv(source)
        small = source.size <= WHOLE_JSON
        if not small:
            self._guessed(source)
        return f"read_{source.reader}({files}, {parts}, sample_size={-1 if small else SAMPLE})"

    async def _csv(self, source: Source) -> str | QueryError:
        """A CSV file with all that was found of its form: else every query would look for it anew."""
        marked = await asyncio.to_thread(_begins, source.files[0]) in UTF16
        for encoding in ("utf-16",) if marked else ENCODINGS:
            found = await self._sniff(source, encoding, sample=-1)
            if isinstance(found, QueryError) and found.kind is ErrorKind.TIMEOUT:
                self._guessed(source)
                found = await self._sniff(source, encoding, sample=SAMPLE)
            if isinstance(found, QueryError):
                failed = found
                continue
            if encoding != ENCODINGS[0]:
                self._notes.append(f"{source.shown} is not UTF-8; it is read as {encoding}.")
            return self._described(source, found.table.to_pylist()[0], encoding)
        return failed

    async def _sniff(self, source: Source, encoding: str, sample: int) -> QueryResult | QueryError:
        options = f"sample_size={sample}, encoding={text(encoding)}"
        return await self.run(f"FROM sniff_csv({text(source.files[0])}, {options})", LOOK)

    def _described(self, source: Source, form: dict[str, Any], encoding: str) -> str:
        columns = form["Columns"]
        if len(columns) == 1 and any(mark in columns[0]["name"] for mark in SEPARATORS):
            lines = f"{source.shown} looks like one column, {columns[0]['name']!r}"
            self._left_out.append(f"{lines}: have all its lines the same number of fields?")
        types = ", ".join(f"{text(column['name'])}: {text(column['type'])}" for column in columns)
        options = {"skip": form["SkipRows"], "header": form["HasHeader"], "columns": f"{{{types}}}"}
        marks = {"delim": "Delimiter", "quote": "Quote", "escape": "Escape", "comment": "Comment"}
        marks |= {"new_line": "NewLineDelimiter", "dateformat": "DateFormat"}
        for option, name in {**marks, "timestampformat": "TimestampFormat"}.items():
            if form[name] is not None:
                options[option] = text("" if form[name] == "(empty)" else form[name])
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"read_csv({text(source.files[0])}, auto_detect=false, encoding={text(encoding)}, {given})"

    def _guessed(self, source: Source) -> None:
        self._notes.append(f"The types of {source.shown} are those of its first {SAMPLE:,} rows.")


def _begins(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(2)
