"""One connection to PostgreSQL: a query in a transaction that cannot write and is always rolled back.

Four locks. The connection is read-only by default and each transaction by itself; a query goes out by the
extended protocol, whose message holds one statement only, so none can end the transaction and go on; only
statements that read are sent, because COPY writes files in any transaction if the role may; and what outlives
a transaction, the session's advisory locks, is given up after it. The driver is imported by what connects.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from quorum.tools.databases.introspection import quoted
from quorum.tools.databases.postgres.code import MARK, Rows
from quorum.tools.databases.server import (
    CANCEL_SECONDS,
    ROW_BYTES,
    Gone,
    Link,
    Refusal,
    received,
    row_too_large,
)
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import Limits

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.pq.abc import PGresult

    from quorum.tools.databases.postgres.url import Target

PATIENCE = {
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""How a connection whose other end is gone without a word is noticed: 25 s after it fell silent, 20 s after
bytes that nobody took (milliseconds)."""
LOCK_SECONDS = 5.0
"""Seconds to wait for a table that somebody alters."""
IDLE_SECONDS = 60
"""Seconds after which the server gives up a transaction that asks nothing, of a process that hangs, say."""
CHUNK_ROWS = 10
"""Rows that come from the driver at a time: it holds them all, however large."""
BATCH_ROWS = 100
BATCH_BYTES = 4 * 2**20
"""Rows that are in memory as objects before they become columns, or fewer once so many bytes have come."""
RECEIVE_BYTES = 2**19
"""What waits for the driver at most: it reads as long as there is more, and the event loop stands still."""
WATCHING = 140_000
"""The version since which a server looks whether its client is still there while it works."""
SETTINGS = {
    "standard_conforming_strings": "on",  # else a backslash ends no string where the guard saw its end
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
}
OWN_FIRST = """
    SELECT pg_catalog.set_config('search_path', CASE WHEN pg_catalog.strpos(path, 'pg_catalog')
        OPERATOR(pg_catalog.>) 1 THEN pg_catalog.concat('pg_catalog, ', path) ELSE path END, true)
    FROM pg_catalog.current_setting('search_path') AS path
"""
"""The server's own functions hide others of their names, also where a role's search path says otherwise."""
END = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()"


class PostgresLink(Link):
    """A connection that runs one query at a time."""

    def __init__(self, connection: AsyncConnection[Any], schemas: Sequence[str]) -> None:
        self._connection = connection
        self._schemas = schemas
        self._names: dict[tuple[int, int], str] = {}

    @classmethod
    async def connect(cls, target: Target) -> PostgresLink:
        """Connect, and prove that a transaction cannot write.

        Raises:
            Gone, Refusal, OSError: The server cannot be reached or refuses.
            PermissionError: A write did not fail.
        """
        import psycopg

        from quorum.tools.databases.postgres.values import READERS, loader

        known: dict[str, Any] = PATIENCE | {
            "application_name": "quorum",
            "connect_timeout": round(cls.connect_seconds),
        }
        options = f"{os.environ.get('PGOPTIONS', '')} -c default_transaction_read_only=on".strip()
        given = known | target.parameters | {"client_encoding": "utf8", "options": options}
        try:
            connection = await psycopg.AsyncConnection.connect(
                autocommit=True, prepare_threshold=None, **given
            )
        except (psycopg.Error, UnicodeError) as error:
            raise Gone(_reason(error)) from None
        for name, read in READERS.items():
            connection.adapters.register_loader(name, loader(read))
        link = cls(connection, target.schemas)
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        try:
            await link.within(link._prove_read_only(), cls.connect_seconds, silent=Gone)
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def sound(self) -> bool:
        """True if another query can be sent."""
        from psycopg.pq import TransactionStatus

        return not self._cut and self._connection.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def database(self) -> str:
        return self._connection.info.dbname

    @property
    def server(self) -> str:
        """The host, or the folder of a socket, and the port that it is connected to."""
        return f"{self._connection.info.host}:{self._connection.info.port}"

    @property
    def version(self) -> int:
        """The server's, as 150003 for 15.3."""
        return self._connection.info.server_version

    def start(self, seconds: float) -> Coroutine[Any, Any, Rows]:
        """Begin a transaction whose statements are stopped after ``seconds``; it answers ``MARK``."""
        return self.ask(self._beginning(seconds))

    async def fetch(self, sql: str, limits: Limits) -> Fetched:
        """Run one statement inside the transaction; keep what ``limits`` allow.

        Raises:
            Gone, Refusal: The connection is lost; the server says that the query is wrong.
        """
        from psycopg import capabilities
        from psycopg.adapt import Transformer

        from quorum.tools.databases.arrow import Collector
        from quorum.tools.databases.postgres.values import kind_of

        kept: Collector | None = None
        transformer, types = Transformer(self._connection), list[tuple[int, int]]()
        largest = max(limits.bytes, ROW_BYTES)
        batch: list[tuple[Any, ...]] = []
        came = received(self._socket)
        line = self._connection.pgconn
        with self._or_gone():
            line.send_query_params(sql.encode(), None)
            if capabilities.has_stream_chunked():
                line.set_chunked_rows_mode(CHUNK_ROWS)
            else:
                line.set_single_row_mode()
        while (result := await self._next(largest)) is not None:
            if kept is None:
                names = [(result.fname(i) or b"").decode() for i in range(result.nfields)]
                types = [(result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
                kinds = [kind_of(number) for number, _ in types]
                kept = Collector(names, kinds, limits.rows, limits.bytes)
            transformer.set_pgresult(result)
            batch += transformer.load_rows(0, result.ntuples, tuple)
            if len(batch) < BATCH_ROWS and received(self._socket) - came < BATCH_BYTES:
                continue
            kept.add(batch)
            batch, came = [], received(self._socket)
            if kept.truncated:
                await self._stop()
                break
        assert kept is not None, "a statement that reads has a result"
        kept.add(batch)
        await self.ask(END)
        return Fetched(kept.finish(), kept.truncated, await self._type_names(types))

    async def end(self) -> None:
        """Roll back."""
        await self.ask(END)

    async def settle(self) -> None:
        """End the transaction that a query has left open; what cannot be ended is cut off."""
        from psycopg.pq import TransactionStatus

        status = self._connection.pgconn.transaction_status
        self._cut = self._cut or status == TransactionStatus.ACTIVE
        if status != TransactionStatus.IDLE:
            await super().settle()

    async def close(self) -> None:
        self._cut = True
        await self._connection.close()

    async def cancel(self) -> None:
        """Ask the server to stop.

        If it does not confirm, the request could hit a later query: the connection gets none.
        """
        import psycopg

        try:
            await self._connection.cancel_safe(timeout=CANCEL_SECONDS)
        except (psycopg.Error, OSError):
            self._cut = True

    def sever(self) -> None:
        super().sever()
        with suppress(Gone, OSError, ValueError), socket.socket(fileno=os.dup(self._socket)) as line:
            line.shutdown(socket.SHUT_RDWR)

    @property
    def _socket(self) -> int:
        import psycopg

        try:
            return self._connection.pgconn.socket
        except psycopg.Error as error:
            raise Gone(str(error)) from error

    def _beginning(self, seconds: float) -> str:
        settings = SETTINGS | {
            "statement_timeout": f"{max(1, round(seconds * 1000))}ms",
            "lock_timeout": f"{max(1, round(min(seconds, LOCK_SECONDS) * 1000))}ms",
        }
        if self.version >= WATCHING:
            settings["client_connection_check_interval"] = "2s"
        lines = ["BEGIN READ ONLY", *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())]
        if self._schemas:
            lines.append(f"SET LOCAL search_path = {', '.join(map(quoted, self._schemas))}")
        return "; ".join([*lines, OWN_FIRST, MARK])

    async def _prove_read_only(self) -> None:
        await self.ask(self._beginning(self.begin_seconds))
        try:
            await self.ask("CREATE TEMP TABLE quorum_probe (x integer)")
        except Refusal as refusal:
            if refusal.state != "25006":
                raise
        else:
            raise PermissionError("The session could write to the database; it must not.")
        await self.ask(END)

    async def ask(self, statements: str = "") -> Rows:
        """Run our own statements, or read all that still comes; the rows of the last result.

        Raises:
            Gone, Refusal: The connection is lost; the server says no.
        """
        if statements:
            with self._or_gone():
                self._connection.pgconn.send_query(statements.encode())
        failed: Refusal | None = None
        last: PGresult | None = None
        while True:
            try:
                if (result := await self._next()) is None:
                    break
                last = result
            except Refusal as refusal:
                failed = failed or refusal
        if failed:
            raise failed
        return _rows(last) if last else []

    @contextmanager
    def _or_gone(self) -> Iterator[None]:
        """Raise ``Gone`` for the driver's errors: what the server says is no error to it."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            self._cut = True
            raise Gone(str(error)) from error

    async def _next(self, largest: int = ROW_BYTES) -> PGresult | None:
        """The next result; None when there is none left.

        Args:
            largest: Bytes that may arrive before a result is complete: the driver keeps all of them.

        Raises:
            Gone, Refusal: The connection is lost; the result is an error, or larger than that.
        """
        from psycopg.pq import ExecStatus

        line = self._connection.pgconn
        with self._or_gone():
            before = received(self._socket)
            while line.flush():
                await _ready(self._socket, writing=True)
            while line.is_busy():
                await _ready(self._socket)
                line.consume_input()
                if received(self._socket) - before > largest:
                    await self.cancel()
                    self.sever()
                    raise row_too_large(largest)
            result = line.get_result()
        if result is not None and result.status == ExecStatus.FATAL_ERROR:
            refusal = _refusal(result)
            if not refusal.state:  # libpq's own words: the server is gone
                self._cut = True
                raise Gone(refusal.message)
            with suppress(Refusal):
                await self.ask()
            raise refusal
        return result

    async def _stop(self) -> None:
        """Stop a query whose other rows are not wanted."""
        from psycopg.pq import TransactionStatus

        if self._connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            await self.cancel()
            with suppress(Refusal):
                await self.ask()

    async def _type_names(self, wanted: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        """The engine's own names of types, such as ``numeric(10,2)``, by their numbers and modifiers."""
        if missing := list(dict.fromkeys(pair for pair in wanted if pair not in self._names)):
            asked = ", ".join(f"pg_catalog.format_type({kind}, {modifier})" for kind, modifier in missing)
            (names,) = await self.ask(f"SELECT {asked}")
            self._names.update(zip(missing, names, strict=True))
        return tuple(self._names[pair] for pair in wanted)


def _rows(result: PGresult) -> Rows:
    columns = range(result.nfields)
    return [
        tuple((result.get_value(row, column) or b"").decode(errors="replace") for column in columns)
        for row in range(result.ntuples)
    ]


def _refusal(result: PGresult) -> Refusal:
    from psycopg.pq import DiagnosticField as Part

    def part(name: Part) -> str:
        return (result.error_field(name) or b"").decode(errors="replace")

    position = part(Part.STATEMENT_POSITION)
    message = part(Part.MESSAGE_PRIMARY) or result.error_message.decode(errors="replace")
    return Refusal(
        part(Part.SQLSTATE),
        message,
        hint=part(Part.MESSAGE_HINT),
        position=int(position) if position.isdigit() else None,
    )


def _reason(error: Exception) -> str:
    """Return the driver's words without where it tried, which ``Target.place`` says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if "failed: " in line), lines[0] if lines else "")
    return telling.rpartition("failed: ")[2].removeprefix("FATAL:").strip() or type(error).__name__


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def _ready(descriptor: int, *, writing: bool = False) -> None:
    """Wait until there is something to read, or room to write."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add = loop.add_writer if writing else loop.add_reader
    remove = loop.remove_writer if writing else loop.remove_reader
    add(descriptor, _tell, ready)
    try:
        await ready
    finally:
        remove(descriptor)
