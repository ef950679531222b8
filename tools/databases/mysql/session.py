"""One connection to MySQL or MariaDB: a query in a read-only transaction that is always rolled back.

Four locks. The session's transactions are read-only and each is begun so; the driver sends one statement a
message, and no file for LOAD DATA; only statements that read are sent, without the comments that MySQL runs
and without INTO OUTFILE, which writes in any transaction if the account may; named locks are given up after a
query. The driver, PyMySQL, blocks: it works in a thread of the connection's own.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from quorum.tools.databases.server import CANCEL_SECONDS, Gone, Refusal, SessionLink, aside
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import Limits

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from quorum.tools.databases.arrow import Collector
    from quorum.tools.databases.mysql.url import Target

LOCK_SECONDS = 5
"""Seconds to wait for a table that somebody alters."""
CHUNK_ROWS = 200
"""Rows that come at a time, so that few of them are in memory as objects."""
LEAST_BYTES = 2**20
"""Room for a batch of rows as they are sent, where fewer bytes are kept: numbers are sent as texts."""
SQL_MODE = "ONLY_FULL_GROUP_BY"
"""Without ANSI_QUOTES, NO_BACKSLASH_ESCAPES and PIPES_AS_CONCAT: a text means here what the guard judged."""
LIST_BYTES = 2**20
"""Of one GROUP_CONCAT, MariaDB's default; MySQL cuts at 1,024 bytes, and says so in a warning only."""
LOST = {0, 1053, 1077, 1079, 1927, 2000, 2006, 2013, 2014, 2055, 4031}
"""Numbers of errors after which there is no connection."""
READ_ONLY = 1792


class MysqlLink(SessionLink):
    """A connection that runs one query at a time."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._connection: Connection[Any] | None = None
        self.mariadb = False
        self.version: tuple[int, ...] = ()
        self.user = ""

    async def close(self) -> None:
        self.sever()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await self.in_thread(connection._force_close)
        await super().close()

    async def cancel(self) -> None:
        """``KILL QUERY`` on a connection of its own; whoever has run into it gets no further query."""
        connection, self._cut = self._connection, True
        if connection is None:
            return
        self.runs_on = True
        with suppress(Gone, Refusal, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await aside(self._kill, connection.thread_id())

    def sever(self) -> None:
        super().sever()
        line = getattr(self._connection, "_sock", None)
        if line is not None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    # In the link's thread

    def _connect(self) -> None:
        self._connection = connection = _opened(self._target, round(self.connect_seconds))
        if self._cut:
            connection._force_close()
            raise Gone("it was closed")
        self.mariadb = "mariadb" in connection.get_server_info().lower()
        numbers = re.findall(r"\d+", connection.get_server_info().removeprefix("5.5.5-"))
        self.version = tuple(map(int, numbers[:3]))
        self._say(f"SET SESSION sql_mode = '{SQL_MODE}', group_concat_max_len = {LIST_BYTES}")
        if not self.mariadb and self.version >= (8,):  # else what it says of tables is up to a day old
            self._say("SET SESSION information_schema_stats_expiry = 0")
        self._say("SET SESSION TRANSACTION READ ONLY")
        ((user,),) = self._say("SELECT CURRENT_USER()")
        self.user = str(user)

    def _begin(self, seconds: float) -> None:
        limit = f"max_statement_time = {max(0.001, seconds):.3f}"
        if not self.mariadb:
            limit = f"max_execution_time = {max(1, round(seconds * 1000))}"
        wait = max(1, min(LOCK_SECONDS, round(seconds)))
        self._say(f"SET SESSION {limit}, lock_wait_timeout = {wait}, innodb_lock_wait_timeout = {wait}")
        self._say("START TRANSACTION READ ONLY")

    def _prove_read_only(self) -> None:
        try:
            self._say("DROP TABLE IF EXISTS quorum_probe.quorum_probe")
        except Refusal as refusal:
            if refusal.state != str(READ_ONLY):
                raise
        else:
            raise PermissionError("The session could write to the database; it must not.")

    def _end(self) -> None:
        self._say("ROLLBACK")
        self._say("DO RELEASE_ALL_LOCKS()")

    def _say(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        """Run a statement of our own; its rows."""
        import pymysql

        if self._connection is None:
            raise Gone("it was closed")
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
                return tuple(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            raise self._failure(error) from None

    def _fetch(self, sql: str, limits: Limits) -> Fetched:
        import pymysql
        from pymysql.cursors import SSCursor

        from quorum.tools.databases.arrow import Collector
        from quorum.tools.databases.mysql.values import kind_of, type_name

        if self._connection is None:
            raise Gone("it was closed")
        cursor = self._connection.cursor(SSCursor)
        try:
            cursor.execute(sql)
            if cursor.description is None:
                raise Refusal("", "The statement has no result.")
            fields = cursor._result.fields  # flags and character sets stand nowhere else
            names = [field.name for field in fields]
            kept = Collector(names, [kind_of(field) for field in fields], limits.rows, limits.bytes)
            while not kept.truncated and (batch := self._rows(cursor, kept, max(limits.bytes, LEAST_BYTES))):
                kept.add(batch)
            if kept.truncated:  # its other rows are not wanted; the connection goes with it
                with suppress(Gone, Refusal):
                    self._kill(self._connection.thread_id())
                self.sever()
            return Fetched(kept.finish(), kept.truncated, tuple(type_name(field) for field in fields))
        except (pymysql.MySQLError, OSError, UnicodeDecodeError) as error:
            raise self._failure(error) from None
        finally:
            if self._cut and cursor._result is not None:  # else whoever collects it reads on
                cursor._result.unbuffered_active = False

    def _rows(self, cursor: Any, kept: Collector, size: int) -> list[tuple[Any, ...]]:
        """Some more rows, of at most ``size`` bytes as they are sent; where there are more, it says so."""
        assert isinstance(self._connection, bounded())
        batch: list[tuple[Any, ...]] = []
        self._connection.room = size
        try:
            while len(batch) < CHUNK_ROWS and (row := cursor.fetchone()) is not None:
                batch.append(row)
        except Overflow:
            kept.truncated = "bytes"
        finally:
            self._connection.room = math.inf
        return batch

    def _kill(self, thread: int) -> None:
        import pymysql

        try:
            other = _opened(self._target, max(1, round(CANCEL_SECONDS)))
            try:
                other.kill(thread)
                self.runs_on = _is_there(other, thread)
            finally:
                other._force_close()
        except (pymysql.MySQLError, OSError) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> Gone | Refusal:
        found = failure(error)
        self._cut = self._cut or isinstance(found, Gone)
        return found


def failure(error: Exception) -> Gone | Refusal:
    """Return the driver's error as one of ours; ``Gone`` where the connection is lost."""
    if isinstance(error, UnicodeDecodeError):
        return Refusal("1300", "The result holds bytes that are no text.")
    number, *words = error.args if error.args else (0,)
    message = str(words[0]) if words else str(error)
    if not isinstance(number, int) or number in LOST or isinstance(error, OSError):
        return Gone(message)
    return Refusal(str(number), message)


def _opened(target: Target, seconds: int) -> Connection[Any]:
    """A connection of the driver's.

    Raises:
        Gone, Refusal: There is none to be had.
    """
    import pymysql

    from quorum.tools.databases.mysql.url import USUAL_OPTION_FILE
    from quorum.tools.databases.mysql.values import converters

    parameters: dict[str, Any] = dict(target.parameters)
    if USUAL_OPTION_FILE.expanduser().is_file():
        parameters.setdefault("read_default_file", str(USUAL_OPTION_FILE))
    try:
        opened = bounded()(
            **parameters,
            charset="utf8mb4",
            autocommit=False,
            connect_timeout=seconds,
            read_timeout=seconds,
            local_infile=False,
            program_name="quorum",
            conv=converters(),
        )
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        raise failure(error) from None
    opened._read_timeout = None
    return opened


def _is_there(connection: Connection[Any], thread: int) -> bool:
    """Return True if a session that was killed is still at work after ``CANCEL_SECONDS``."""
    sql = f"SELECT 1 FROM information_schema.processlist WHERE id = {thread}"
    end = time.monotonic() + CANCEL_SECONDS / 2
    with connection.cursor() as cursor:
        while cursor.execute(sql):
            if time.monotonic() > end:
                return True
            time.sleep(CANCEL_SECONDS / 20)
    return False


class Overflow(Exception):
    """More bytes came than there is room for."""


@cache
def bounded() -> type[Any]:
    """The driver's connection, which takes no more bytes than its ``room`` before that is set again.

    The driver itself reads a row as a whole, however long it is.
    """
    from pymysql.connections import Connection

    class Bounded(Connection):  # type: ignore[misc]
        room = math.inf

        def _read_bytes(self, num_bytes: int) -> bytes:
            self.room -= num_bytes
            if self.room < 0:
                raise Overflow
            return bytes(super()._read_bytes(num_bytes))

    return Bounded
