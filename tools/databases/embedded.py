"""The base of the embedded engines: a database that is one file, served by child processes."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from os import stat_result
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.definitions import FOLDER, with_descriptions
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.base import Connector
from quorum.tools.databases.process import EngineDied, EngineFailed, EngineTimeout, Pool
from quorum.tools.databases.worker import Load
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult, timed_out
from quorum.tools.urls import path_of

if TYPE_CHECKING:
    import pyarrow as pa

SMALL = 2**18
"""A result up to this many bytes is decoded in the event loop: waking a thread would take longer."""

CHILDREN = 4
"""Queries that run at the same time on one connector."""

TICK_SECONDS = 2.0
"""The coarsest clock of a file system: within it a file may change and show the same time."""

UNSOUND = (ErrorKind.RESOURCES, ErrorKind.UNAVAILABLE, ErrorKind.OTHER)
"""Errors that may leave an engine unwell (short of memory, say): its process answers no further query."""


class EmbeddedConnector(Connector):
    """A connector for an engine that is a library and reads one local file.

    The engine runs in child processes (``tools/databases/worker.py``): a crash, hang or exhausted memory
    stays there. Up to ``CHILDREN`` queries run at once, each in its own process.
    """

    session: ClassVar[str]
    """``module:Class`` of the engine's session, see ``quorum.tools.databases.worker.Session``."""

    def __init__(self, path: str) -> None:
        """``path``: the file as the user wrote it; relative to the working directory, ``~`` allowed."""
        self.path = Path(path)
        self._served, self._files = "", tuple[str, ...]()
        self._pool = Pool(self.session, CHILDREN)
        self._opened = False

    @classmethod
    def from_url(cls, url: str) -> Self:
        return cls(file_of(url, cls.scheme))

    @property
    def name(self) -> str:
        """Return the database's name, for people."""
        return self.path.stem

    @property
    def place(self) -> str:
        """Return the file's path, for people."""
        return str(self.path)

    @property
    def folder(self) -> Path:
        """Return the folder in which the database lies, with its descriptions."""
        return self.path.parent

    async def open(self) -> None:
        await self._resolve()
        await self._serve(str(self.path))

    async def _resolve(self) -> None:
        try:
            self.path = await asyncio.to_thread(lambda: self.path.expanduser().absolute())
        except RuntimeError as error:  # ~nobody
            raise DatabaseUnavailable(f"There is no home folder for {self.path}.") from error

    async def _serve(self, file: str, files: Sequence[str] = (), session: str = "") -> None:
        """Open ``file`` in new child processes, which may read ``files`` as well.

        Raises:
            DatabaseUnavailable: They cannot.
        """
        self._opened = False
        await self._pool.close()
        self._served, self._files = file, tuple(files)
        self._pool = Pool(session or self.session, CHILDREN, self._files)
        try:
            async with self._pool.child(file, Limits().memory):
                self._opened = True
        except EngineFailed as failure:
            raise DatabaseUnavailable(failure.message, hint=failure.hint) from failure
        except EngineDied as failure:
            raise DatabaseUnavailable(
                f"The engine could not open {self.path}: its process {failure}.",
                hint="Is the file damaged, or on a file system that does not answer?",
            ) from failure

    async def close(self) -> None:
        self._opened = False
        await self._pool.close()

    async def run(self, sql: str, limits: Limits, loads: Sequence[Load] = ()) -> QueryResult | QueryError:
        """See ``Connector.run``. The session takes ``loads`` before (``tools.databases.worker.Loading``)."""
        if not self._opened:
            raise DatabaseUnavailable(f"The connection to {self.path} is closed.", hint="Open it first.")
        try:
            try:
                return await self._run_in_child(sql, limits, loads)
            except EngineDied as failure:
                if not (failure.killed and self._opened):
                    raise
                return await self._run_in_child(sql, limits, loads)
        except EngineFailed as failure:  # a further child could not open the database
            return QueryError(ErrorKind.UNAVAILABLE, f"{failure.message} {failure.hint}".strip())
        except EngineTimeout:
            return timed_out(limits)
        except EngineDied as failure:
            if not self._opened:
                return QueryError(ErrorKind.UNAVAILABLE, "The connection was closed while the query ran.")
            message = f"The engine's process {failure}; most likely the query needs more memory"
            return QueryError(ErrorKind.RESOURCES, f"{message} than {limits.memory // 2**20} MiB.")

    async def _run_in_child(
        self, sql: str, limits: Limits, loads: Sequence[Load]
    ) -> QueryResult | QueryError:
        """Run a query in one child; a child that it may have left unwell is closed.

        Raises:
            EngineFailed, EngineDied: As ``Pool.child``, or the child ended.
        """
        async with self._pool.child(self._served, limits.memory) as child:
            try:
                for what, payload in loads:
                    await child.load(what, payload, limits.seconds)
                header, rows = await child.run(
                    sql, rows=limits.rows, size=limits.bytes, seconds=limits.seconds
                )
            except EngineFailed as failure:
                error = self.classify(failure, sql)
                if error.kind in UNSOUND:
                    await child.close()
                return timed_out(limits) if error.kind is ErrorKind.TIMEOUT else error
        return QueryResult(
            table=await read_stream(rows),
            seconds=header["seconds"],
            truncated=header["truncated"],
            sql=sql,
            column_types=tuple(header["types"]),
        )

    async def identity(self) -> tuple[str, ...]:
        """Return the path of a database that is one file, unless it has just been changed."""
        alone = self._served == str(self.path) and not self._files
        states = await asyncio.to_thread(list, _states(self._parts))
        changed = max((found.st_mtime for found in states), default=0.0)
        return (str(self.path),) if alone and changed < time.time() - TICK_SECONDS else ()

    def stamp(self, sentence: str = "") -> str:  # noqa: ARG002
        return states_of(self._parts)

    @property
    def _parts(self) -> tuple[str, ...]:
        """Return the database's file, its log of changes, and the data files that it reads."""
        return (str(self.path), f"{self.path}-wal", f"{self.path}.wal", *self._files)

    @abstractmethod
    def classify(self, failure: EngineFailed, sql: str) -> QueryError:
        """Return the engine's error as a ``QueryError``."""


def with_file_descriptions(connector: Connector, catalog: Catalog) -> Catalog:
    """Return the catalog with the descriptions in the folder of the database's file, if there are some."""
    if isinstance(connector, EmbeddedConnector) and (folder := connector.folder / FOLDER).is_dir():
        return with_descriptions(catalog, folder)
    return catalog


def states_of(files: Iterable[str]) -> str:
    """Return the size and the time of change of each file that exists, and its number: it may be replaced."""
    return " ".join(f"{each.st_size}:{each.st_mtime_ns}:{each.st_ino}" for each in _states(files))


def _states(files: Iterable[str]) -> Iterator[stat_result]:
    for file in files:
        with suppress(OSError):
            yield Path(file).stat()


def file_of(url: str, scheme: str) -> str:
    """Return the file that ``scheme:///path`` names, percent-decoded; a relative path stays relative.

    Raises:
        ConfigurationError: No file is named, or the URL has a host or options.
    """
    example = f"Write {scheme}:///relative/path.db or {scheme}:////absolute/path.db."
    path = path_of(url, scheme, "file", example)
    if path in ("", ":memory:"):
        raise ConfigurationError(f"{url} names no file; memory holds nothing to ask.", hint=example)
    return path


async def read_stream(payload: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream; a large one is decoded in a thread."""
    import pyarrow as pa

    stream = pa.ipc.open_stream(payload)
    return stream.read_all() if len(payload) < SMALL else await asyncio.to_thread(stream.read_all)
