"""One session of Snowflake's, in which several queries run at once, and a place for one of them.

Nothing is kept in the session between queries: what bounds a query (seconds, rows, one statement) is sent
with it. So all links share one login, and an SSO's browser opens once. A lost session is noticed by a
heartbeat before a query is sent, and logged in anew; a query that was sent is never sent again but by the
driver, under the same request id, by which Snowflake knows it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import re
import select
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.databases.introspection import quoted
from quorum.tools.databases.server import CANCEL_SECONDS, GRACE_SECONDS, Gone, Refusal, ThreadLink
from quorum.tools.databases.snowflake.errors import COSTLY, REFUSED, driver_errors, failure, reason
from quorum.tools.databases.snowflake.scope import check
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import Estimate, Limits

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection
    from snowflake.connector.cursor import SnowflakeCursor

    from quorum.tools.databases.snowflake.url import Target

APPLICATION: Final = "quorum"
LOGIN_SECONDS = 25
"""Time for one request of a login; the driver asks twice at most."""
SILENCE_SECONDS = 50.0
"""Longest silence of the server in a request; it says every 45 s that a query goes on."""
BROWSER_SECONDS = 120.0
"""Time for a person to log in."""
LOGOUT_SECONDS = 3.0
IDLE_SECONDS = 5.0
"""A session that has rested longer is asked whether it is still there, before a query is sent."""
SESSION: Final = {
    "QUERY_TAG": APPLICATION,
    "MULTI_STATEMENT_COUNT": 1,
    "QUOTED_IDENTIFIERS_IGNORE_CASE": False,  # a text means here what the guard judged
    "ABORT_DETACHED_QUERY": True,
    "PYTHON_CONNECTOR_QUERY_RESULT_FORMAT": "ARROW",
    "CLIENT_RESULT_CHUNK_SIZE": 48,  # MB, the least
    "CLIENT_TELEMETRY_ENABLED": False,
    "CLIENT_OUT_OF_BAND_TELEMETRY_ENABLED": False,
}
"""Parameters of a session, whatever the account or a named connection says."""


KNOWN = 256
"""Estimates that a session keeps."""
AGAIN = (1, 1, 1)
"""Seconds after the tries of a request that is not answered; then it is given up."""


class _Bounds(threading.local):
    """The bounds of a thread's requests (``bounded``)."""

    seconds: float = LOGOUT_SECONDS
    given_up: Callable[[], bool] = staticmethod(lambda: True)


_THREAD = _Bounds()


@contextmanager
def bounded(seconds: float, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Bound the driver's requests in this thread: the silence of each, and for how long it asks again."""
    before = _THREAD.seconds, _THREAD.given_up
    _THREAD.seconds, _THREAD.given_up = min(seconds, SILENCE_SECONDS), given_up
    try:
        yield
    finally:
        _THREAD.seconds, _THREAD.given_up = before


def patience() -> Iterator[int]:
    """Seconds between the driver's tries of one request; it would go on without end.

    Raises:
        Gone: None of them was answered, or nobody waits any more.
    """
    yield AGAIN[0]  # asked for before the first try
    for wait in AGAIN[1:]:
        if _THREAD.given_up():
            break
        yield wait
    raise Gone(f"the server does not answer: {reason(sys.exception())}")


class Session:
    """A login; its methods are for threads."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._lock = threading.Lock()
        self.current: SnowflakeConnection | None = None
        self.estimates: dict[str, Estimate] = {}
        """What texts would read, as far as it was asked lately."""
        self._used = -math.inf

    @property
    def stale(self) -> bool:
        """True if it has rested for some time."""
        return time.monotonic() - self._used > IDLE_SECONDS

    @property
    def connection(self) -> SnowflakeConnection:
        """The driver's connection.

        Raises:
            Gone: There is none.
        """
        if self.current is None:
            raise Gone("it was closed")
        return self.current

    def log_in(self) -> None:
        """Connect where there is no connection.

        Raises:
            Exception: The driver's errors; ``ConfigurationError``: no database is named.
        """
        with self._lock:
            if self.current is None:
                self.target, self.current = connected(self.target)
                self.touch()

    def touch(self) -> None:
        """Say that the server has just answered."""
        self._used = time.monotonic()

    def doubt(self) -> None:
        """Say that the server may be gone: it is asked before the next query."""
        self._used = -math.inf

    def answers(self, connection: SnowflakeConnection | None) -> bool:
        """Return True if a session is still there; the driver renews one whose token has expired."""
        with bounded(SnowflakeLink.begin_seconds):
            alive = connection is not None and connection.is_valid()
        if alive:
            self.touch()
        return alive

    def drop(self, connection: SnowflakeConnection | None) -> None:
        """Forget a connection that is lost, without asking the server; another one in its place stays."""
        with self._lock:
            mine = self.current is connection  # of several that saw it, the first
            if mine:
                self.current = None
        if mine and connection is not None and connection.rest is not None:
            atexit.unregister(connection._close_at_exit)
            with suppress(RuntimeError):  # whoever waits for it still may change what the driver goes through
                connection.rest.close()

    def close(self) -> None:
        """Log out."""
        with self._lock:
            connection, self.current = self.current, None
        if connection is not None:
            with bounded(LOGOUT_SECONDS, lambda: True):
                connection.close(retry=False)


def connected(target: Target) -> tuple[Target, SnowflakeConnection]:
    """A login, and the target with what the named connection adds to it.

    Raises:
        Exception: The driver's errors; ``ConfigurationError``: no database is named.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # on pandas, which is not used
        import snowflake.connector
        from snowflake.connector.config_manager import CONFIG_MANAGER

    named: dict[str, Any] = {}
    if target.connection:
        known: Any = CONFIG_MANAGER["connections"]
        if target.connection not in known:
            hint = "Name one of connections.toml, or the account: snowflake://user@account/database."
            raise ConfigurationError(f"connections.toml has no connection {target.connection}.", hint=hint)
        found = known[target.connection]
        named = dict(found.unwrap() if hasattr(found, "unwrap") else found)  # SNOWFLAKE_CONNECTIONS has dicts
    target = target.completed(named)
    parameters = dict(target.parameters)
    told = parameters.get("session_parameters", {}) | SESSION | {"SEARCH_PATH": search_path(target)}
    parameters["session_parameters"] = told
    if "role" in parameters:
        parameters.setdefault("secondary_roles", "NONE")  # that role, and nothing else that the user may
    current = target.current

    class Connection(snowflake.connector.SnowflakeConnection):
        @property
        def socket_timeout(self) -> Any:
            return _THREAD.seconds

    _replace_console()
    with bounded(LOGIN_SECONDS):
        connection = Connection(
            **parameters
            | {
                "application": APPLICATION,
                "database": quoted(current.database),
                "schema": quoted(current.schemas[0]) if current.schemas else None,
                "validate_default_parameters": True,
                "arrow_number_to_decimal": True,
                "client_prefetch_threads": 1,
                "login_timeout": LOGIN_SECONDS,
                "network_timeout": None,  # else its clock stops queries, whatever their limit
                "backoff_policy": patience,
                "platform_detection_timeout_seconds": 0.0,  # else it asks the clouds' metadata services
                "log_imported_packages_in_telemetry": False,
            }
        )
    connection.telemetry_enabled = False
    if (found := str(connection.database).strip('"')) != current.database:
        connection.close(retry=False)
        raise ConfigurationError(f"The session is in the database {found}, not in {current.database}.")
    return target, connection


def _replace_console() -> None:
    """Have the driver's login in a browser fit a program.

    By itself it prints to standard output, which a program may read, asks at a terminal that may not be
    there, and waits for the browser without end.
    """
    from snowflake.connector.auth import oauth_code, webbrowser

    vars(webbrowser).update(print=_say, input=_ask, select=_Select)
    vars(oauth_code).update(print=_say, input=_ask)  # it waits with an end of its own


def _say(*words: Any) -> None:
    print(*words, file=sys.stderr)


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        raise Gone("no browser could be opened to log in, and there is no terminal to ask at")
    _say(question)
    return sys.stdin.readline().strip()


class _Select:
    """The module ``select`` with an end."""

    @staticmethod
    def select(reading: Sequence[Any], writing: Sequence[Any], failing: Sequence[Any]) -> Any:
        found = select.select(reading, writing, failing, BROWSER_SECONDS)
        if not any(found):
            raise Gone(f"nobody has logged in with the browser within {BROWSER_SECONDS:g} s")
        return found


def search_path(target: Target) -> str:
    """Return where unqualified names are looked up: in named schemas; by default PUBLIC would be one."""
    others = (name for name in target.current.schemas[1:] if re.fullmatch("[A-Z_][A-Z0-9_]*", name))
    return ", ".join(("$current", *others))


class SnowflakeLink(ThreadLink):
    """A place for one query of a session."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._running: tuple[str, str] | None = None  # text and request id
        self._still = threading.Event()
        self._still.set()

    async def start(self, seconds: float) -> None:  # noqa: ARG002
        """See whether a session that has rested is still there."""
        session = self._session
        if not session.stale:
            return
        tried = session.current
        try:
            async with asyncio.timeout(self.begin_seconds):
                alive = await self.in_thread(session.answers, tried)
        except TimeoutError:
            alive = False
        if not alive:
            self._cut = True
            await asyncio.to_thread(session.drop, tried)
            raise Gone("the session has ended, or the server does not answer")

    async def fetch(self, sql: str, limits: Limits) -> Fetched:
        return await self.in_thread(self._fetch, sql, limits)

    async def rows(self, sql: str, limits: Limits) -> list[dict[str, Any]]:
        """The rows of a statement of Quorum's own, which may be SHOW, as the driver's objects."""
        return await self.in_thread(self._rows, sql, limits)

    async def estimate(self, sql: str, limits: Limits) -> Estimate:
        return await self.in_thread(self._estimate, sql, limits)

    async def cancel(self) -> None:
        self._cut = True
        if self._running is not None:
            await asyncio.to_thread(self._abort)

    # In threads

    def _abort(self) -> None:
        """Have the server stop what runs, until it is still: the request may overtake the query's."""
        deadline = time.monotonic() + 2 * CANCEL_SECONDS
        while (running := self._running) and time.monotonic() < deadline:
            with suppress(Gone, *driver_errors()), bounded(2 * CANCEL_SECONDS, lambda: True):
                self._session.connection._cancel_query(running[0], uuid.UUID(running[1]))
            if self._still.wait(CANCEL_SECONDS / 5):
                return

    def _fetch(self, sql: str, limits: Limits) -> Fetched:
        check(sql, self._session.target)
        if limits.scan is not None:
            known = self._session.estimates.get(sql)
            found = (known or self._explained(sql, limits)).bytes
            if found is not None and found > limits.scan:
                raise Refusal(
                    COSTLY,
                    f"The query would read {found:,} bytes; {limits.scan:,} are allowed. LIMIT hardly "
                    "lessens what is read: name fewer columns, or filter by what the table is clustered by.",
                )
        return self._fetched(sql, limits)

    def _fetched(self, sql: str, limits: Limits) -> Fetched:
        from quorum.tools.databases.arrow import capped
        from quorum.tools.databases.snowflake.values import plain_batches, table_of, type_name

        with self._executed(sql, limits) as cursor:
            names = [column.name for column in cursor.description]
            types = tuple(map(type_name, cursor.description))
            chunks = cursor.fetch_arrow_batches(force_microsecond_precision=True)
            batches, truncated = capped(plain_batches(chunks), limits.rows, limits.bytes)
            return Fetched(table_of(batches, names, types), truncated, types)

    def _rows(self, sql: str, limits: Limits) -> list[dict[str, Any]]:
        with self._executed(sql, limits) as cursor:
            names = [column.name for column in cursor.description]
            found: list[Any] = cursor.fetchmany(limits.rows)
            return [dict(zip(names, row, strict=True)) for row in found]

    def _estimate(self, sql: str, limits: Limits) -> Estimate:
        check(sql, self._session.target)
        return self._explained(sql, limits)

    def _explained(self, sql: str, limits: Limits) -> Estimate:
        """The plan's own guess: compiling costs nothing, and no warehouse has to run for it."""
        with self._executed(f"EXPLAIN USING JSON {sql}", replace(limits, rows=1)) as cursor:
            row: Any = cursor.fetchone()
        plan = json.loads(row[0])
        size = plan.get("GlobalStats", {}).get("bytesAssigned")
        unknown = "its plan tells no size" if size is None else ""
        found = Estimate(bytes=None if size is None else int(size), unknown=unknown)
        known = self._session.estimates
        if len(known) >= KNOWN:
            known.clear()
        known[sql] = found
        return found

    @contextmanager
    def _executed(self, sql: str, limits: Limits) -> Iterator[SnowflakeCursor]:
        """A cursor on the answer to a text; until the end of the block it counts as running.

        Raises:
            Gone, Refusal: Snowflake is out of reach; it says no.
        """
        bounds: dict[str, Any] = {
            "requestId": str(uuid.uuid4()),
            "STATEMENT_TIMEOUT_IN_SECONDS": max(1, math.ceil(limits.seconds)),
            "ROWS_PER_RESULTSET": limits.rows + 1,
            "MULTI_STATEMENT_COUNT": 1,
        }
        connection = self._session.connection
        self._still.clear()
        self._running = sql, bounds["requestId"]
        try:
            if self._cut:
                raise Gone("it was closed")
            silence = limits.seconds + GRACE_SECONDS + 2 * CANCEL_SECONDS
            with bounded(silence, lambda: self._cut), connection.cursor() as cursor:
                vars(cursor)["_create_file_transfer_agent"] = _no_files  # any answer may ask for one
                cursor.execute(sql, _statement_params=bounds)
                self._session.touch()
                yield cursor
        except Gone as lost:
            raise self._lost(lost) from None
        except driver_errors() as error:
            found = failure(error)
            raise self._lost(found) if isinstance(found, Gone) else found from None
        finally:
            self._running = None
            self._still.set()

    def _lost(self, why: Gone) -> Gone:
        self._cut = True
        self._session.doubt()
        return why


def _no_files(*_: Any, **__: Any) -> None:
    raise Refusal(REFUSED, "The server asks for a file, or to write one.")
