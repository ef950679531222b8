"""One connection through SQLAlchemy: a query in a transaction that is always rolled back.

What forbids to write is the engine's session where it has such a one, and that is proven by a write that must
fail; else nothing does, and the connector judges each text. Texts go to the driver as they are
(``exec_driver_sql`` without parameters): ``%``, ``?`` and ``:x`` mean nothing. SQLAlchemy and its drivers
block: they work in a thread of the connection's own, which the end of the process does not wait for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from quorum.knowledge.errors import ConfigurationError, install_command
from quorum.tools.databases.server import CANCEL_SECONDS, Gone, Refusal, SessionLink, aside
from quorum.tools.databases.sqlalchemy.engines import DRIVERS, Engine
from quorum.tools.databases.sqlalchemy.errors import refusal_of
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import Limits

if TYPE_CHECKING:
    import sqlalchemy

    from quorum.tools.databases.sqlalchemy.url import Target

T = TypeVar("T")

CHUNK_ROWS = 500
"""Rows that come at a time, so that few of them are in memory as objects."""
LOGGER = "quorum"
READ_ONLY = re.compile(r"(?i)read[- ]?only")


def engine_of(target: Target) -> sqlalchemy.Engine:
    """SQLAlchemy's engine, which connects nothing yet.

    Raises:
        ConfigurationError: A package is missing, the URL is none, or its driver is one for asyncio.
    """
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SAWarning
    from sqlalchemy.pool import NullPool

    _warm_up(target.engine.dialect)
    logging.getLogger(f"sqlalchemy.pool.impl.NullPool.{LOGGER}").setLevel(logging.CRITICAL)  # of cut lines
    warnings.filterwarnings("ignore", category=SAWarning, module=r"quorum\.tools\.databases\.")
    try:
        url = sqlalchemy.make_url(target.url)
        if url.get_dialect().is_async:
            raise ConfigurationError(
                f"{url.drivername} is a driver for asyncio.", hint="Name one that blocks."
            )
        return sqlalchemy.create_engine(
            url, poolclass=NullPool, pool_logging_name=LOGGER, hide_parameters=True
        )
    except NoSuchModuleError as error:
        raise missing(target.engine.packages, target.name) from error
    except ModuleNotFoundError as error:
        raise missing(DRIVERS.get(error.name or "", error.name or ""), target.name) from error
    except (ArgumentError, ValueError, TypeError) as error:
        raise ConfigurationError(f"SQLAlchemy does not take the URL: {target.scrubbed(str(error))}") from None


def _warm_up(dialect: str) -> None:
    """Load what the first query needs, which would count as its time."""
    from quorum.tools.databases.arrow import Collector
    from quorum.tools.databases.sqlalchemy.values import KIND
    from quorum.tools.sql import sqlglot_dialect

    sqlglot_dialect(dialect).tokenize("SELECT 1")
    rows = Collector(["a"], [KIND], 1, 100)
    rows.add([(1,)])
    rows.finish()


def missing(packages: str, name: str) -> ConfigurationError:
    """The error that a dialect or a driver is not installed."""
    hint = f"Install it with {install_command(*shlex.split(packages))}."
    return ConfigurationError(f"Asking {name} needs {packages}.", hint=hint)


class AlchemyLink(SessionLink):
    """A connection that runs one query at a time."""

    connect_seconds = 30.0
    begin_seconds = 10.0

    def __init__(self, engine: sqlalchemy.Engine, known: Engine) -> None:
        super().__init__()
        self._engine, self._known = engine, known
        self._connection: sqlalchemy.Connection | None = None
        self._driver: Any = None
        self._cursor: Any = None
        self.limited = False
        """Whether the server took a limit of time."""

    @property
    def stops(self) -> bool:
        """True if a query that takes too long is stopped on the server, by itself or by the driver."""
        return self.limited or next(self._ways_to_cancel(), None) is not None

    async def read(self, function: Callable[[sqlalchemy.Connection], T]) -> T:
        """Run a function on the connection, in its thread.

        Raises:
            Gone, Refusal: The connection is lost; the server says no.
        """
        return await self.in_thread(self._read, function)

    async def close(self) -> None:
        self.sever()
        if self._connection is not None:
            closed = asyncio.ensure_future(self.in_thread(self._close))
            await asyncio.wait({closed}, timeout=CANCEL_SECONDS)
            closed.cancel()  # a driver that hangs is left behind
        await super().close()

    async def cancel(self) -> None:
        """Have the server stop by what the driver has for it; the link gets no further query."""
        self._cut = True
        way = next(self._ways_to_cancel(), None)
        if way is not None:
            with suppress(Exception):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await aside(way)

    def sever(self) -> None:
        """Shut the connection's socket, where the driver shows it."""
        super().sever()
        line = next((x for name in ("_sock", "_usock") if (x := getattr(self._driver, name, None))), None)
        with suppress(Exception):
            if line is not None:
                line.shutdown(socket.SHUT_RDWR)
            elif hasattr(self._driver, "fileno"):
                with socket.socket(fileno=os.dup(self._driver.fileno())) as other:
                    other.shutdown(socket.SHUT_RDWR)

    def _ways_to_cancel(self) -> Iterator[Callable[[], object]]:
        """Yield what may be called from another thread to stop a query, the surest first."""
        for owner in (self._driver, self._cursor):
            for name in ("cancel_safe", "cancel", "interrupt"):
                if callable(way := getattr(owner, name, None)):
                    yield way

    # In the link's thread

    def _connect(self) -> None:
        with self._told() as connection:
            for statement in self._known.opening:
                connection.exec_driver_sql(statement)
            connection.commit()  # else PostgreSQL takes the settings back
            self._cursor = self._driver.cursor()

    def _open(self) -> None:
        from sqlalchemy import event

        if self._cut:
            raise Gone("it was closed")
        self._connection = self._engine.connect()
        self._driver = self._connection.connection.driver_connection
        event.listen(self._connection, "before_cursor_execute", self._note_cursor)

    def _note_cursor(self, *arguments: Any) -> None:
        self._cursor = arguments[1]

    def _begin(self, seconds: float) -> None:
        with self._told() as connection:
            for statement in self._known.beginning:
                connection.exec_driver_sql(statement)
        self._limit(seconds)

    def _limit(self, seconds: float) -> None:
        """Have the server, else the driver, stop what takes longer."""
        milliseconds, whole = max(1, round(seconds * 1000)), max(1, round(seconds + 0.499))
        if self._known.limit:
            try:
                with self._told() as connection:
                    connection.exec_driver_sql(
                        self._known.limit.format(milliseconds=milliseconds, seconds=whole)
                    )
                self.limited = True
            except Refusal:
                self.limited = False
        elif hasattr(self._driver, "call_timeout"):  # Oracle's
            self._driver.call_timeout = milliseconds
            self.limited = True
        elif self._known.dialect == "tsql" and hasattr(self._driver, "timeout"):  # pyodbc's
            self._driver.timeout = whole
            self.limited = True

    def _prove_read_only(self) -> None:
        if not self._known.proof:
            return
        try:
            with self._told() as connection:
                connection.exec_driver_sql(self._known.proof)
        except Refusal as refusal:
            if not READ_ONLY.search(refusal.message):
                raise
        else:
            raise PermissionError("The session could write to the database; it must not.")

    def _end(self) -> None:
        with self._told() as connection:
            connection.rollback()
            for statement in self._known.ending:
                connection.exec_driver_sql(statement)
            connection.rollback()

    def _read(self, function: Callable[[sqlalchemy.Connection], T]) -> T:
        with self._told() as connection:
            return function(connection)

    def _fetch(self, sql: str, limits: Limits) -> Fetched:
        from quorum.tools.databases.arrow import Collector
        from quorum.tools.databases.sqlalchemy.values import KIND, plain, type_names

        options = {"no_parameters": True, "stream_results": True, "max_row_buffer": CHUNK_ROWS}
        with self._told() as connection:
            if self._cut:
                raise Gone("the connection was cut")
            result = connection.exec_driver_sql(sql, execution_options=options)
            cursor = result.cursor
            if not result.returns_rows or cursor is None:
                raise Refusal("", "The statement has no result.")
            described = list(cursor.description)
            names = [str(column[0]) for column in described]
            kept = Collector(names, [KIND] * len(names), limits.rows, limits.bytes)
            while batch := result.fetchmany(CHUNK_ROWS):
                kept.add([tuple(map(plain, row)) for row in batch])
                if kept.truncated:
                    break
            result.close()
            table = kept.finish()
            return Fetched(table, kept.truncated, type_names(described, table))

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        unread = getattr(self._cursor, "_result", None)
        if unread is not None:  # else PyMySQL reads on from a line that is cut
            unread.unbuffered_active = False
        self._cursor = self._driver = None
        if connection is not None:
            with suppress(Exception):
                connection.invalidate()
            with suppress(Exception):
                connection.close()

    @contextmanager
    def _told(self) -> Iterator[sqlalchemy.Connection]:
        """The connection; what SQLAlchemy and drivers raise becomes ``Gone`` or ``Refusal``."""
        from sqlalchemy.exc import DBAPIError

        try:
            if self._connection is None:
                self._open()
            assert self._connection is not None
            yield self._connection
        except (Gone, Refusal):
            raise
        except Exception as error:  # noqa: BLE001 - each driver has its own, and some raise what they like
            original: Any = error
            if isinstance(error, DBAPIError):
                original = error.orig or error
                self._cut = self._cut or error.connection_invalidated
            if self._cut or isinstance(original, OSError):
                self._cut = True
                raise Gone(str(original)) from None
            raise refusal_of(original) from None
