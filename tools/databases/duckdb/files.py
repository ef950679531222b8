"""Data files as a database: a DuckDB of views over them, made when it is opened."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from quorum.knowledge.catalog import ADVICE, Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.duckdb import text
from quorum.tools.databases.duckdb.connector import DuckdbConnector, brief
from quorum.tools.databases.duckdb.headers import BELOW, FOUND, SEPARATORS, Header, Lines, find, footer, split
from quorum.tools.databases.duckdb.sources import PACKED, FileTable, named, sources_of
from quorum.tools.databases.embedded import file_of, read_stream, states_of
from quorum.tools.databases.introspection import quoted
from quorum.tools.databases.process import EngineDied, EngineFailed, Pool
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from quorum.tools.urls import options_of

if TYPE_CHECKING:
    import pyarrow as pa

WORKBOOKS = "quorum.tools.databases.duckdb.workbook:WorkbookSession"
SHEET_BYTES = 256 * 2**20
"""Bytes of a sheet's values in memory, and of a CSV file that is copied to leave out its footer."""
BUILDER = "quorum.tools.databases.duckdb.session:BuildingSession"
LOOK = Limits(seconds=30.0)
"""Limits of reading one file whole for the types of its columns; beyond them a sample is read."""
WHOLE_JSON = 32 * 2**20
"""Bytes of JSON that are read whole for the types, whenever they are asked."""
SAMPLE = 20_480
"""Rows that DuckDB samples by default."""
ENCODINGS = ("utf-8", "latin-1")
"""Tried in turn where no mark says UTF-16; the last one reads any bytes."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")
ZIP = b"PK\3\4"
HEAD = 2**16
"""Bytes of a CSV file in which its header, and at its end a footer, is looked for."""
_LAST = 100  # lines
_LONE_CELL = re.compile(rb'[\r\n][^,;|\t"\r\n\0]+[,;|\t\s]*\Z')  # not in UTF-16


NO_HEADER = "no-header"
"""The value of ``?skip=`` for a table whose first line is data."""


class UnreadableFile(str):
    """A sentence: the reason for which a file cannot be read, and what to do."""


class FilesConnector(DuckdbConnector):
    """``files:///relative/orders.csv``, ``files:////absolute/folder``: a file is a table (``sources``).

    Queries read those files and no other. What is there when the database is opened counts.
    ``?skip=2`` means that two lines come before the header, ``?skip=no-header`` that there is none;
    ``?skip=a.csv:2&skip=May:0`` means it for one file, and for one sheet of a workbook; then a text below
    the rows is a row.
    """

    scheme = "files"
    views = "table"

    def __init__(self, path: str, headers: Mapping[str, int] | None = None) -> None:
        """``headers``: the line of the header, from 1, by the name of the file or sheet; ``""`` for all."""
        super().__init__(path)
        self._headers = headers or {}
        self._made: TemporaryDirectory[str] | None = None
        self._left_out: list[str] = []
        self._notes: list[str] = []
        self._about: dict[str, str] = {}
        self._copied: dict[str, str] = {}
        self._written: list[str] = []

    @classmethod
    def from_url(cls, url: str) -> Self:
        plain, options = options_of(url, "skip")
        headers = {}
        for given in options.get("skip", ()):
            name, _, lines = given.rpartition(":")
            if lines != NO_HEADER and not (lines.isascii() and lines.isdigit()):
                hint = f"Write ?skip=2, or ?skip=orders.csv:2 for a file of a folder; {NO_HEADER} for none."
                raise ConfigurationError(f"skip={given} is no number of lines.", hint=hint)
            headers[name] = 0 if lines == NO_HEADER else int(lines) + 1
        return cls(file_of(plain, cls.scheme), headers)

    @property
    def folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    async def open(self) -> None:
        await self.close()
        await self._resolve()
        sources, self._left_out = await asyncio.to_thread(sources_of, self.path)
        self._notes, self._about, self._written = [], {}, []
        self._made = await asyncio.to_thread(TemporaryDirectory, prefix="quorum-")
        made = self._place("files.duckdb")
        try:
            sources = named([sheet for source in sources for sheet in await self._sheets(source)])
            files = [source.file for source in sources]
            await self._serve(made, files, BUILDER)
            built = [await self._build(source) for source in sources]
            if not any(built):
                raise DatabaseUnavailable(f"{self.path} cannot be read: {' '.join(self._left_out)}")
            await self._serve(made, files)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await super().close()
        if self._made:
            await asyncio.to_thread(self._made.cleanup)
            self._made = None

    def stamp(self, sentence: str = "") -> str:
        return states_of(filter(None, [self._about.get(sentence)]))

    async def catalog(self, *, samples: int = 3) -> Catalog:
        found = await super().catalog(samples=samples)
        left_out = (*self._left_out, *found.left_out)
        return replace(found, left_out=left_out, notes=(*self._left_out, *self._notes, *found.notes))

    async def _sheets(self, source: FileTable) -> list[FileTable]:
        """Return the sheets of a workbook, each written to a Parquet file; a CSV file without its footer."""
        if source.reader != "xlsx" or not source.size:
            return [await asyncio.to_thread(self._without_footer, source)]
        if not is_installed("python_calamine"):
            error = missing_extra("xlsx", "Reading a workbook", needs="python-calamine")
            self._warn(source, f"{source.shown} is left out. {error}")
            return []
        pool = Pool(WORKBOOKS, 1)
        try:
            async with asyncio.timeout(LOOK.seconds):
                return await self._sheets_of(source, pool)
        except (EngineFailed, EngineDied, TimeoutError) as failure:
            why = "reading it takes too much time or memory. Save its sheets as CSV or Parquet."
            if isinstance(failure, EngineFailed):
                why = f"{brief(failure.message)} {failure.hint}".rstrip()
            self._warn(source, f"{source.shown} is left out: {why}")
            return []
        finally:
            await pool.close()

    async def _sheets_of(self, source: FileTable, pool: Pool) -> list[FileTable]:
        import pyarrow.parquet as pq

        sheets = (await self._of_workbook(source, pool, "")).to_pylist()
        found, empty = [], []
        for sheet in sheets:
            name = sheet["name"]
            asked = json.dumps({"sheet": name, "header": self._line(source.shown, name)})
            table = await self._of_workbook(source, pool, asked)
            if not table.num_columns:
                empty.append(name)
                continue
            file = self._place(f"{len(self._written)}.parquet")
            self._written.append(file)
            await asyncio.to_thread(pq.write_table, table, file)
            shown = f"{source.shown}, sheet {name}"
            found.append(replace(source, table=name, file=file, shown=shown))
            header = Header(**json.loads(table.schema.metadata[FOUND]))
            self._warn(source, header.remark(shown, self._advice(source, name)))
            if header.footer:
                self._warn(source, BELOW.format(shown, header.footer, self._advice(source, name)))
            if not sheet["visible"]:
                self._notes.append(f"{shown}, is hidden in the workbook.")
        if empty:
            self._warn(source, f"{source.shown}: sheets without rows are left out: {', '.join(empty)}.")
        stem = Path(source.shown).stem
        if len(found) == 1:
            return [replace(found[0], table=stem)]
        alone = self.path.is_file()
        return [each if alone else replace(each, table=f"{stem}_{each.table}") for each in found]

    def _without_footer(self, source: FileTable) -> FileTable:
        """Return a copy of a CSV file without last lines that are no rows.

        Large files, and those whose header line the user names, stay as they are.
        """
        plain = Path(source.file).suffix.lower() in (".csv", ".tsv") and source.size <= SHEET_BYTES
        if not plain or self._line(source.shown) is not None:
            return source
        raw = _read(source.file, max(0, source.size - HEAD))
        last = raw.splitlines(keepends=True)[source.size > HEAD :][-_LAST:]
        lines = split(_decoded(b"".join(last))[0] if _LONE_CELL.search(raw) else "", whole=True)
        header = find(lines.rows, lines.width)
        cut, said = footer(lines.rows[header.skip + header.named :], lines.width) if header else (0, "")
        if not cut:
            return source
        self._warn(source, BELOW.format(source.shown, said, self._advice(source)))
        self._copied[source.shown] = source.file
        copy = Path(self._place(f"{len(self._copied)}.csv"))
        copy.write_bytes(Path(source.file).read_bytes().removesuffix(b"".join(last[-cut:])))
        return replace(source, file=str(copy))

    async def _of_workbook(self, source: FileTable, pool: Pool, asked: str) -> pa.Table:
        async with pool.child(source.file, LOOK.memory) as child:
            _, rows = await child.run(asked, rows=LOOK.rows, size=SHEET_BYTES, seconds=LOOK.seconds)
        return await read_stream(rows)

    async def _build(self, source: FileTable) -> bool:
        """Make the view of a source; else warn why it is left out."""
        if not source.size:
            self._warn(source, f"{source.shown} is left out: it is empty, 0 bytes.")
            return False
        reading = await self._reading(source)
        if isinstance(reading, UnreadableFile):
            self._warn(source, f"{source.shown} is left out: {reading}")
            return False
        made = await self.run(f"CREATE VIEW {quoted(source.table)} AS FROM {reading}", LOOK)
        if isinstance(made, QueryError):
            why = brief(made.message.replace(source.file, source.shown))
            self._warn(source, f"{source.shown} is left out: {why} Write it anew, or move it elsewhere.")
            return False
        await self.run(f"COMMENT ON VIEW {quoted(source.table)} IS {text(source.shown)}", LOOK)
        return True

    async def _reading(self, source: FileTable) -> str | UnreadableFile:
        """Return the call that reads a source, with its columns if they had to be found."""
        if source.reader in ("parquet", "xlsx"):
            return f"read_parquet({text(source.file)}, hive_partitioning=false)"
        if source.reader == "csv":
            return await self._csv(source)
        small = source.size <= WHOLE_JSON
        if not small:
            self._guessed(source)
        options = f"hive_partitioning=false, sample_size={-1 if small else SAMPLE}"
        return f"read_json({text(source.file)}, {options})"

    async def _csv(self, source: FileTable) -> str | UnreadableFile:
        """Return the call that reads a CSV file in the form that was found, so that queries need not find it.

        If DuckDB cannot read it otherwise, lines may have several lengths, and a warning says so.
        """
        raw = await asyncio.to_thread(_read, source.file)
        if raw.startswith(ZIP):
            return UnreadableFile("it is a ZIP archive. If it is a workbook, name it .xlsx.")
        start, encodings = _decoded(raw)
        if "\0" in start:
            return UnreadableFile("it holds NUL characters. If it is a text, save it as UTF-8.")
        lines = split(start, whole=len(raw) < HEAD)
        line = self._line(source.shown)
        header = Header.in_line(line) if line is not None else find(lines.rows, lines.width)
        form = {"skip": str(header.skip), "header": str(header.named)} if header else {}
        divided = {"delim": text(lines.separator)} if lines.separator else {}
        uneven = {**divided, "null_padding": "true", "parallel": "false"}
        sample = -1
        for extra in ({}, divided, uneven, {**uneven, "strict_mode": "false"}):
            if "null_padding" in extra and form.get("skip") == "0":
                del form["skip"]  # where it is given, DuckDB refuses lines that are longer than the header
            for encoding in encodings:
                found = await self._sniff(source, {**form, **extra}, encoding, sample)
                if isinstance(found, QueryError) and found.kind is ErrorKind.TIMEOUT:
                    sample = SAMPLE
                    found = await self._sniff(source, {**form, **extra}, encoding, sample)
                if isinstance(found, QueryError):
                    continue
                sniffed = found.table.to_pylist()[0]
                if lines.separator and len(sniffed["Columns"]) == 1:
                    continue
                self._remark(source, lines, header, uneven="null_padding" in extra)
                if sample == SAMPLE:
                    self._guessed(source)
                if encoding != ENCODINGS[0]:
                    self._notes.append(f"{source.shown} is not UTF-8; it is read as {encoding}.")
                return self._described(source, sniffed, extra, encoding)
        above = f" (line 1 is {header.title!r})" if header and header.title else ""
        remedy = f"Save it as CSV in UTF-8, or say in which line its header is: {self._option(source)}"
        return UnreadableFile(f"its lines do not divide into columns{above}. {remedy}")

    def _remark(self, source: FileTable, lines: Lines, header: Header | None, *, uneven: bool) -> None:
        """Warn of what is unusual in a CSV file's form."""
        if header and self._line(source.shown) is None:
            self._warn(source, header.remark(source.shown, self._advice(source)))
        if uneven:
            differ = (
                f"its lines differ in number of fields (most have {lines.width}), quotation marks or ends"
            )
            effect = "Missing fields are NULL, further ones have columns of their own."
            self._warn(source, f"{source.shown}: {differ}. {effect}")

    async def _sniff(
        self, source: FileTable, form: Mapping[str, str], encoding: str, sample: int
    ) -> QueryResult | QueryError:
        given = {**form, "sample_size": str(sample), "encoding": text(encoding)}
        options = ", ".join(f"{name}={value}" for name, value in given.items())
        return await self.run(f"FROM sniff_csv({text(source.file)}, {options})", LOOK)

    def _described(
        self, source: FileTable, form: dict[str, Any], extra: Mapping[str, str], encoding: str
    ) -> str:
        columns = form["Columns"]
        if len(columns) == 1 and any(mark in columns[0]["name"] for mark in SEPARATORS):
            lines = f"{source.shown} looks like one column, {columns[0]['name']!r}"
            self._warn(source, f"{lines}: have all its lines the same number of fields?")
        types = ", ".join(f"{text(column['name'])}: {text(column['type'])}" for column in columns)
        options = {**extra, "skip": form["SkipRows"], "header": form["HasHeader"], "columns": f"{{{types}}}"}
        marks = {"delim": "Delimiter", "quote": "Quote", "escape": "Escape", "comment": "Comment"}
        marks |= {"new_line": "NewLineDelimiter", "dateformat": "DateFormat"}
        for option, name in {**marks, "timestampformat": "TimestampFormat"}.items():
            if form[name] is not None:
                options[option] = text("" if form[name] == "(empty)" else form[name])
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"read_csv({text(source.file)}, auto_detect=false, encoding={text(encoding)}, {given})"

    def _guessed(self, source: FileTable) -> None:
        self._notes.append(f"The types of {source.shown} are those of its first {SAMPLE:,} rows.")

    def _warn(self, source: FileTable, sentence: str) -> None:
        if line := " ".join(sentence.split()):  # names of files may hold line breaks
            self._left_out.append(line)
            self._about[line] = self._copied.get(source.shown, source.file)

    def _place(self, name: str) -> str:
        assert self._made
        return str(Path(self._made.name, name))

    def _line(self, *names: str) -> int | None:
        """Return the line of the header of a file, or of a sheet, that the user names."""
        return next((self._headers[name] for name in (*reversed(names), "") if name in self._headers), None)

    def _advice(self, source: FileTable, sheet: str = "") -> str:
        return f"{ADVICE}{self._option(source, sheet)}"

    def _option(self, source: FileTable, sheet: str = "") -> str:
        """Return how the user names the header's line."""
        name = sheet or ("" if self.path.is_file() else source.shown)
        return f"--db '{self.path}?skip={f'{quote(name)}:' if name else ''}LINES'"


def _read(file: str, start: int = 0) -> bytes:
    """Return the first bytes of a file, unpacked, or those from ``start``; none if they cannot be read."""
    try:
        if Path(file).suffix.lower() in PACKED:
            import pyarrow as pa

            with pa.input_stream(file) as unpacked:
                return bytes(unpacked.read(HEAD))
        with Path(file).open("rb") as opened:
            opened.seek(start)
            return opened.read(HEAD)
    except (OSError, ValueError):  # DuckDB says why
        return b""


def _decoded(raw: bytes) -> tuple[str, Sequence[str]]:
    """Return the first lines as text, and the encodings to try in turn."""
    if raw.startswith(UTF16):
        return codecs.getincrementaldecoder("utf-16")("replace").decode(raw), ("utf-16",)
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(raw), ENCODINGS
    except UnicodeDecodeError:
        return raw.decode(ENCODINGS[1]), ENCODINGS[1:]
