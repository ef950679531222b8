"""Leases: which of several processes writes a run, where their homes are one folder on shared storage.

The option ``checkpoints`` names a PostgreSQL database, which holds LangGraph's checkpoints and a table of
leases. A process writes a run only while it holds its lease, which a thread renews for all runs of the
process. A process that dies or hangs loses its leases after ``SECONDS``, and another one may take them over:
each taking gets a token that no other has. Two things keep the earlier process from writing when it comes
back: the process's own clock, looked at before each write to the run folder, and the token, which must be the
lease's in the transaction of each checkpoint.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError, LeaseLost, QuorumError, is_installed, missing_extra
from quorum.tools.databases.postgres.url import Target

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from psycopg import Connection
    from psycopg.rows import DictRow

SECONDS = 10.0
"""A lease's length. So long may Postgres be away, and so long does a dead process's run wait."""
RENEWED = 2.0
"""Seconds from renewal to renewal; a wish to cancel is heard with one."""
MOST_TAKEN = 5
"""Times that a run is taken over from a process that died: it may be what they die of."""
CONNECTIONS = 5
"""To Postgres, for the checkpoints and leases of all runs of a process."""

_SETUP_LOCK = 0x51554F52
_TABLE = """
CREATE SEQUENCE IF NOT EXISTS quorum_tokens;
CREATE TABLE IF NOT EXISTS quorum_leases (
    run text PRIMARY KEY,
    owner text NOT NULL,
    token bigint NOT NULL DEFAULT nextval('quorum_tokens'),
    expires timestamptz NOT NULL,
    taken int NOT NULL DEFAULT 0,
    cancel boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50)
"""
_TAKE = """
INSERT INTO quorum_leases AS held (run, owner, expires)
VALUES (%s, %s, clock_timestamp() + %s * interval '1 s')
ON CONFLICT (run) DO UPDATE
SET owner = excluded.owner, token = excluded.token, expires = excluded.expires, taken = held.taken + 1
WHERE held.expires < clock_timestamp()
RETURNING token
"""
_RENEW = """
UPDATE quorum_leases SET expires = clock_timestamp() + %s * interval '1 s' WHERE token = ANY(%s)
RETURNING token, cancel
"""
_FENCE = """
SELECT 1 / (SELECT count(*) FROM (SELECT FROM quorum_leases WHERE run = %s AND token = %s FOR SHARE) AS held)
"""
"""Divides by zero where the lease is another's, which ends the transaction without waiting for an answer."""
_HAND_OVER = "UPDATE quorum_leases SET expires = clock_timestamp() WHERE run = %s AND token = %s"
_PURGE = "DELETE FROM quorum_leases WHERE expires < clock_timestamp() - interval '7 days'"
"""Forgets runs that were interrupted a week ago and that nobody went on with."""
_END = "DELETE FROM quorum_leases WHERE run = %s AND token = %s"
_FORGET = """
WITH mine AS (SELECT run FROM quorum_leases WHERE run = %s AND token = %s),
     a AS (DELETE FROM checkpoints USING mine WHERE thread_id = run),
     b AS (DELETE FROM checkpoint_blobs USING mine WHERE thread_id = run),
     c AS (DELETE FROM checkpoint_writes USING mine WHERE thread_id = run)
DELETE FROM quorum_leases USING mine WHERE quorum_leases.run = mine.run
"""
"""Only runs under way have rows: an answered run is never gone on with."""


@dataclass
class Lease:
    """The right to write a run, until it is lost or released.

    Attributes:
        run: The run's name in Postgres, ``thread`` in its ``run.json``: its id, and letters that tell runs of
            one id in different homes apart.
        until: On the clock ``time.monotonic``.
        cancel: Somebody wishes the run to be cancelled.
    """

    leases: Leases = field(repr=False)
    run: str
    token: int
    until: float
    cancel: bool = False
    lost: bool = False

    @property
    def gone(self) -> bool:
        """True where the run may be another process's by now."""
        return self.lost or time.monotonic() >= self.until

    def check(self) -> None:
        """Raise where the run may be another process's by now; from then on it is not this one's.

        Raises:
            LeaseLost: It may.
        """
        if self.gone:
            self.lost = True
            run = run_id_of(self.run)
            raise LeaseLost(
                f"This process has lost the run {run}: it hung, or PostgreSQL cannot be reached.",
                hint=f"Processes of `quorum serve` take it over; else `quorum ask --resume {run}` goes on.",
            )

    def release(self, *, ended: bool, answered: bool) -> None:
        """Let the run go; safe to call twice. One that has not ended can be taken over at once.

        Where Postgres cannot be asked the lease ends with its time.
        """
        held = self.leases.held.pop(self.token, None)
        if held and not self.lost:
            self.lost = True
            with suppress(QuorumError):
                self.leases.ask(_FORGET if answered else _END if ended else _HAND_OVER, self.run, self.token)

    def saver(self) -> BaseCheckpointSaver[str]:
        """Return LangGraph's saver for this run, which writes while the lease is held."""
        return _fenced()(self)


class Expired(NamedTuple):
    """A lease of which the time is over; ``taken``: how often the run was taken over before."""

    run: str
    taken: int
    cancel: bool


class Leases:
    """The leases of this process in one Postgres, and the connections for its checkpoints.

    Attributes:
        held: Its leases by their tokens, with those that it lost and whose runs have not noticed yet.

    Raises:
        ConfigurationError: The URL is malformed, or a package is missing.
        QuorumError: Postgres cannot be reached, or refuses.
    """

    def __init__(self, url: str) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            hint = "Write postgresql://user:password@host:5432/database."
            raise ConfigurationError("The option checkpoints names no PostgreSQL database.", hint=hint)
        if not is_installed("langgraph.checkpoint.postgres"):
            raise missing_extra(
                "serve", "Keeping checkpoints in PostgreSQL", needs="langgraph-checkpoint-postgres"
            )
        import psycopg
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        self.target = Target.of(url)
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.held = dict[int, Lease]()
        given: dict[str, Any] = {"connect_timeout": "5", "tcp_user_timeout": "5000"}
        given |= {**self.target.parameters, "autocommit": True, "row_factory": dict_row}
        self.pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
            kwargs=given,
            min_size=1,
            max_size=CONNECTIONS,
            num_workers=1,
            timeout=SECONDS,
            open=False,
            check=ConnectionPool.check_connection,  # so a restart of the server costs no run
        )
        with _explained(self.target), psycopg.connect(**given) as connection:
            _set_up(connection)
        self.pool.open()
        atexit.register(self.pool.close)
        threading.Thread(target=self._renew, name="leases", daemon=True).start()

    def take(self, run: str, patience: float = 0.0) -> Lease:
        """Take the lease of a run that nobody has.

        Args:
            patience: Seconds to wait for another process that has it.

        Raises:
            LeaseLost: Another process has it.
            QuorumError: Postgres cannot be asked.
        """
        start = begun = time.monotonic()
        while not (found := self.ask(_TAKE, run, self.owner, SECONDS)) and start < begun + patience:
            time.sleep(0.1)
            start = time.monotonic()
        if not found:
            what = f"The run {run_id_of(run)} is being written by another process."
            raise LeaseLost(what, hint="Wait for it, or stop it.")
        lease = Lease(self, run, found[0]["token"], start + SECONDS)
        self.held[lease.token] = lease
        return lease

    def expired(self) -> list[Expired]:
        """Return the leases whose process is gone, the oldest first."""
        rows = self.ask(
            "SELECT run, taken, cancel FROM quorum_leases WHERE expires < clock_timestamp() ORDER BY token"
        )
        return [Expired(**row) for row in rows]

    def cancel(self, run: str) -> None:
        """Wish that whoever has a run, or takes it over, cancels it."""
        self.ask("UPDATE quorum_leases SET cancel = true WHERE run = %s", run)

    def ask(self, statement: str, *values: Any) -> Sequence[DictRow]:
        """Run a statement; return its rows."""
        with _explained(self.target), self.pool.connection() as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def _renew(self) -> None:
        """Renew all leases, again and again."""
        while True:
            time.sleep(RENEWED)
            held, start = [lease for lease in [*self.held.values()] if not lease.lost], time.monotonic()
            try:
                rows = self.ask(_RENEW, SECONDS, [lease.token for lease in held]) if held else []
            except QuorumError:  # the leases last a while
                continue
            found = {row["token"]: row["cancel"] for row in rows}
            for lease in held:
                lease.lost = lease.lost or lease.token not in found
                lease.cancel = found.get(lease.token, False)
                lease.until = start + SECONDS


_OPENING = threading.Lock()


def leases_at(url: str) -> Leases:
    """Return this process's leases in the Postgres of that URL; opened with the first call.

    Raises:
        ConfigurationError, QuorumError: As ``Leases``.
    """
    with _OPENING:
        return _leases_of(os.getpid(), url)


@cache
def _leases_of(_: int, url: str) -> Leases:
    return Leases(url)


def new_thread(run_id: str) -> str:
    """Return a name in Postgres for a new run."""
    return f"{run_id}:{secrets.token_hex(4)}"


def run_id_of(thread: str) -> str:
    """Return the id of the run that has that name in Postgres."""
    return thread.partition(":")[0]


def lease_of(url: str, run: RunFolder) -> Lease:
    """Take the lease of a run that goes on, whose checkpoints are in PostgreSQL.

    Raises:
        LeaseLost: Another process has it, or has answered it.
        ConfigurationError: No database is given.
        QuorumError: Postgres cannot be asked.
    """
    if not url:
        hint = "Give the option checkpoints as the run was begun with."
        raise ConfigurationError(f"The checkpoints of the run {run.run_id} are in PostgreSQL.", hint=hint)
    lease = leases_at(url).take(str(run.meta()["thread"]))
    if (run.folder / "answer.json").exists():
        lease.release(ended=True, answered=True)
        raise LeaseLost(
            f"The run {run.run_id} has been answered by another process.", hint="Ask for it again."
        )
    return lease


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    """Raise what psycopg says as a ``QuorumError``."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        what = target.scrubbed(" ".join(str(error).split())) or type(error).__name__
        hint = "See to that server, or leave the option out: a run's checkpoints then lie in its folder."
        raise QuorumError(f"The checkpoints at {target.place} cannot be used: {what}", hint=hint) from None


def _set_up(connection: Connection[DictRow]) -> None:
    """Make the tables of LangGraph and of the leases where they are missing; one process does.

    The lock is tried for: a wait inside Postgres would hold up what is done ``CONCURRENTLY``.
    """
    from langgraph.checkpoint.postgres import PostgresSaver

    asking = "SELECT pg_try_advisory_lock(%s) AS got"
    while not connection.execute(asking, (_SETUP_LOCK,)).fetchall()[0]["got"]:
        time.sleep(0.05)
    PostgresSaver(connection).setup()
    connection.execute(_TABLE)
    connection.execute(_PURGE)


@cache
def _fenced() -> Callable[[Lease], BaseCheckpointSaver[str]]:
    """The class of savers, made when first used: psycopg is imported then."""
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row

    from quorum.graph.checkpoints import serializer

    class FencedSaver(PostgresSaver):
        """LangGraph's Postgres saver for the run of a lease, from a coroutine."""

        def __init__(self, lease: Lease) -> None:
            super().__init__(lease.leases.pool, serde=serializer())
            self._lease = lease

        @contextmanager
        def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:
            """A cursor; what it writes (``pipeline``) is a transaction that begins with the lease's token."""
            lease = self._lease
            lease.check()
            with _explained(lease.leases.target):
                try:
                    with lease.leases.pool.connection() as connection:
                        if not pipeline:
                            yield connection.cursor(binary=True, row_factory=dict_row)
                            return
                        with (
                            connection.pipeline(),
                            connection.transaction(),
                            connection.cursor(binary=True, row_factory=dict_row) as cursor,
                        ):
                            cursor.execute(_FENCE, (lease.run, lease.token))
                            yield cursor
                except (psycopg.errors.DivisionByZero, psycopg.OperationalError):
                    lease.lost = True  # or Postgres is away: whoever finds the lease over goes on
                    lease.check()

        async def aget_tuple(self, config: Any) -> Any:
            return await asyncio.to_thread(self.get_tuple, config)

        async def aput(self, *given: Any) -> Any:
            return await asyncio.to_thread(self.put, *given)

        async def aput_writes(self, *given: Any) -> None:
            await asyncio.to_thread(self.put_writes, *given)

    return FencedSaver
