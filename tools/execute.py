"""The one way to a database: guard, lint, estimate, approval, limits, run, typed result, ledger."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import BudgetExceeded, QuorumError
from quorum.tools import admission
from quorum.tools.admission import Approver, Proposal
from quorum.tools.databases.base import Connector
from quorum.tools.guard import allowed
from quorum.tools.ledger import Ledger, Usage
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from quorum.tools.record import Recall, Recorder, no_recall, no_record, request_of

Outcome: TypeAlias = QueryResult | QueryError

PASSING = (ErrorKind.TIMEOUT, ErrorKind.RESOURCES, ErrorKind.UNAVAILABLE)
"""Errors that may not recur, so they are not cached."""
KEPT_OUTCOMES = 64
KEPT_BYTES = 128 * 2**20
OVERDUE_SECONDS = 2.0
"""Seconds after the deadline that a connector has to stop its query before it is cancelled."""


class QueryCache:
    """A run's outcomes and running queries, by SQL text.

    Candidates often write the same SQL, which runs once: simultaneous callers share the execution, later ones
    get the cached outcome. A query that no caller waits for any more is cancelled.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Outcome] = OrderedDict()
        self._kept_bytes = 0
        self._running: dict[str, _Shared] = {}
        self._estimates: OrderedDict[str, Estimate] = OrderedDict()

    def knows(self, sql: str) -> bool:
        """Whether a text's outcome is here, or on its way: nobody need pay for it."""
        return sql in self._kept or sql in self._running

    async def estimated(
        self, sql: str, estimate: Callable[[], Awaitable[Estimate | QueryError]]
    ) -> Estimate | QueryError:
        """What ``estimate`` says of ``sql``; kept unless it failed."""
        if found := self._estimates.get(sql):
            return found
        fresh = await estimate()
        if isinstance(fresh, Estimate):
            self._estimates[sql] = fresh
            if len(self._estimates) > KEPT_OUTCOMES:
                self._estimates.popitem(last=False)
        return fresh

    async def recall(self, sql: str, run: Callable[[], Awaitable[Outcome]]) -> tuple[Outcome, bool]:
        """The outcome of ``sql``, and whether this call is the one that ran it.

        Raises:
            Exception: Whatever ``run`` raises, to each of those who wait for it.
        """
        if sql in self._kept:
            self._kept.move_to_end(sql)
            return self._kept[sql], False
        fresh = sql not in self._running
        if fresh:
            self._running[sql] = _Shared(asyncio.ensure_future(run()))
        shared = self._running[sql]
        shared.askers += 1
        try:
            outcome = await asyncio.shield(shared.task)
        finally:
            shared.askers -= 1
            if shared.askers == 0:
                shared.task.cancel()  # does nothing to a finished task
                del self._running[sql]
        self._keep(sql, outcome)
        return outcome, fresh

    def _keep(self, sql: str, outcome: Outcome) -> None:
        passing = isinstance(outcome, QueryError) and outcome.kind in PASSING
        if passing or sql in self._kept:
            return
        self._kept[sql] = outcome
        self._kept_bytes += _size(outcome)
        while self._kept_bytes > KEPT_BYTES or len(self._kept) > KEPT_OUTCOMES:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= _size(oldest)


@dataclass
class _Shared:
    task: asyncio.Future[Outcome]
    askers: int = 0


def _size(outcome: Outcome) -> int:
    return int(outcome.table.nbytes) if isinstance(outcome, QueryResult) else 0


@dataclass(frozen=True)
class Database:
    """An open database with its guard, lint, limits and cache; one per run.

    Attributes:
        limits: Of each query; the run's deadline cuts them further.
        cache: What the run has asked already.
        folder: Where results are kept, each under the hash of its content; None keeps none.
        recall: What an interrupted process of this run has asked already.
        approver: Who is asked before a query runs; None where nobody is.
    """

    connector: Connector
    catalog: Catalog
    linter: Linter
    limits: Limits
    ledger: Ledger
    record: Recorder = no_record
    cache: QueryCache = field(default_factory=QueryCache, repr=False, compare=False)
    folder: Path | None = None
    recall: Recall = no_recall
    approver: Approver | None = None

    async def judge(self, sql: str) -> str | QueryError:
        """Guard and lint: the text that may run, or why none may."""
        return await allowed(sql, self.linter)

    @property
    def frugal(self) -> bool:
        """Whether what a query would read is told before it runs."""
        limited = self.limits.scan is not None or self.ledger.budget.read_bytes is not None
        return self.connector.live and (limited or self.approver is not None)


async def execute(database: Database, sql: str, *, agent: str, candidate: str = "") -> Outcome:
    """Run one query for an agent; what fails comes back as a value.

    The text that runs is the guard's rendering of ``sql``. The same text runs once per run, also where a
    process of it was interrupted: later and simultaneous askers share its outcome and are not charged. No
    rows is a result, not an error. A query leaves one ``query`` event.

    Where bytes are limited or the user is to be asked, the query is estimated first; what reads too much, or
    is not approved, does not run.

    Args:
        agent: Whose account is charged.
        candidate: Id of the candidate that asks; for the trace only.

    Raises:
        BudgetExceeded: The run's deadline has passed, or cut the query short, or its bytes are used up.
        DatabaseUnavailable: The connector is closed.
    """
    database.ledger.check_time()
    note = _Note(database, agent, candidate, sql)
    text = await database.judge(sql)
    if isinstance(text, QueryError):
        return note.write(text)
    admitted = await _admitted(note, text)
    if isinstance(admitted, QueryError):
        return note.write(admitted, executed=text)
    outcome, fresh = await database.cache.recall(text, lambda: _run(note, text))
    return outcome if fresh else note.write(outcome, executed=text, cached=True)


async def _admitted(note: _Note, sql: str) -> QueryError | None:
    """Why a query may not run, or None; the user may be asked, each asker for itself.

    What an interrupted process has run was admitted there.
    """
    database, approver = note.database, note.database.approver
    if not database.frugal:
        return None
    said = approver.answered(sql) if approver else None
    if said is False:
        return admission.NOT_APPROVED
    if database.cache.knows(sql) or database.recall(_request(database, sql)) is not None:
        return None
    estimate = await _checked(database, sql)
    if isinstance(estimate, QueryError):
        return estimate
    if approver is None or said:
        return None
    telling = admission.tells(database.connector)
    proposal = Proposal(sql, estimate, telling, note.agent, note.candidate)
    return None if approver.approves(proposal) else admission.NOT_APPROVED


async def _checked(database: Database, sql: str) -> Estimate | QueryError:
    """What a query would read, which the limits allow.

    Raises:
        BudgetExceeded: It would read more than the run has left.
    """
    limits = database.limits.within(database.ledger.remaining_seconds())
    estimate = await database.cache.estimated(
        sql, lambda: admission.estimated(database.connector, sql, limits)
    )
    if isinstance(estimate, QueryError):
        return estimate
    if problem := admission.refusal(estimate, database.limits, database.ledger, database.connector):
        return problem
    database.ledger.check_bytes(estimate.bytes or 0)
    return estimate


def _request(database: Database, sql: str) -> str:
    return request_of(sql, database.limits.rows, database.limits.bytes)


async def _run(note: _Note, sql: str) -> Outcome:
    """Run and charge; the event is written here, so that it is written even if the asker is gone.

    Raises:
        BudgetExceeded: As ``execute``.
        OSError: The result cannot be kept: the disk is full, say.
    """
    database = note.database
    request = _request(database, sql)
    event = database.recall(request)
    if event and (found := await asyncio.to_thread(_recorded, event, database.folder)):
        return found
    estimate = await _checked(database, sql) if database.frugal else Estimate()
    if isinstance(estimate, QueryError):
        return note.write(estimate, executed=sql)
    expected = estimate.bytes or 0
    database.ledger.reserve_bytes(expected)
    try:
        outcome, seconds = await _asked(database, sql, expected)
    finally:
        database.ledger.release_bytes(expected)
    live = database.connector.live  # else nothing was asked, and nothing is charged
    usage = _usage(outcome, seconds, expected) if live else Usage()
    database.ledger.charge(note.agent, usage)
    told = {"bytes": estimate.bytes, "rows": estimate.rows, "billed": estimate.billed}
    about: dict[str, Any] = {"estimate": told} if database.frugal else {}
    try:
        outcome = await _kept(outcome, database.folder)
    finally:
        note.write(outcome, executed=sql, usage=usage.as_dict(), request=request, **about)
    if isinstance(outcome, QueryError) and outcome.kind is ErrorKind.TIMEOUT:
        _blame_deadline(database.ledger)
    return outcome


async def _asked(database: Database, sql: str, reserved: int) -> tuple[Outcome, float]:
    """What the database says within the limits, and the seconds that it took."""
    remaining = database.ledger.remaining_seconds()
    latest = None if remaining is None else remaining + OVERDUE_SECONDS
    limits = admission.server_limits(database.limits, database.ledger, reserved).within(remaining)
    outcome: Outcome
    started = time.monotonic()
    try:
        async with asyncio.timeout(latest):
            outcome = await database.connector.run(sql, limits)
    except TimeoutError:
        outcome = QueryError(ErrorKind.TIMEOUT, "The query was still waiting when the run's time was up.")
    return outcome, time.monotonic() - started


async def _kept(outcome: Outcome, folder: Path | None) -> Outcome:
    """The outcome with the file of its result, which is written to ``folder``."""
    if folder is None or isinstance(outcome, QueryError):
        return outcome
    from quorum.tools.results.files import write_result

    return replace(outcome, file=await asyncio.to_thread(write_result, outcome.table, folder))


def _recorded(event: Mapping[str, Any], folder: Path | None) -> Outcome | None:
    """What an interrupted process of the run got; None where that is not known, or may not recur."""
    if folder is None:
        return None
    if "error" in event:
        error = _error(event["error"])
        return error if error and error.kind not in PASSING else None
    from quorum.tools.results.files import read_result

    try:
        file = folder / event["file"]
        table, seconds, truncated = read_result(file), float(event["seconds"]), str(event["truncated"])
        return QueryResult(table, seconds, truncated, sql=str(event["executed"]), file=file)
    except (QuorumError, KeyError, TypeError, ValueError):
        return None


def _error(kept: Any) -> QueryError | None:
    """A QueryError as an event holds it."""
    try:
        lists = {part: tuple(kept[part]) for part in ("suggestions", "also")}
        return QueryError(**(kept | lists | {"kind": ErrorKind(kept["kind"])}))
    except (KeyError, TypeError, ValueError):
        return None


def _blame_deadline(ledger: Ledger) -> None:
    """Raise if the run's deadline, not the query's own limit, stopped a query."""
    if ledger.remaining_seconds() == 0.0:
        raise BudgetExceeded(
            f"The deadline of {ledger.budget.seconds:g} s passed while a query ran; it was stopped.",
            limit="deadline",
        )


def _usage(outcome: Outcome, seconds: float, expected: int) -> Usage:
    """What a query used; what one that failed has read is not told, so all that was expected counts.

    Where some of several databases do not tell what they read, what is left of the expected counts for them.
    """
    read = outcome.bytes_scanned
    if isinstance(outcome, QueryError):
        left = max(0, expected - (read or 0))
        return Usage(queries=1, query_seconds=seconds, read_bytes=read or 0, estimated_bytes=left)
    untold = any(part.read is None for part in outcome.parts)
    return Usage(
        queries=1,
        rows=outcome.row_count,
        bytes=outcome.table.nbytes,
        read_bytes=read or 0,
        estimated_bytes=expected if read is None else max(0, expected - read) if untold else 0,
        slot_seconds=outcome.slot_seconds or 0.0,
        query_seconds=outcome.seconds,
    )


@dataclass(frozen=True)
class _Note:
    """Who asked what, for the trace."""

    database: Database
    agent: str
    candidate: str
    sql: str

    def write(self, outcome: Outcome, *, executed: str = "", cached: bool = False, **more: Any) -> Outcome:
        """Record the one event of a query and hand the outcome on; a step that is repeated says it once."""
        approver, ran = self.database.approver, "usage" in more
        if approver and approver.told(executed or self.sql) and not ran:
            return outcome
        if outcome.parts:
            more["parts"] = [part.describe() for part in outcome.parts]
        if isinstance(outcome, QueryError):
            more["error"] = asdict(outcome) | {"kind": outcome.kind.value}
            del more["error"]["parts"]
        else:
            more |= {
                "rows": outcome.row_count,
                "columns": outcome.columns,
                "truncated": outcome.truncated,
                "seconds": outcome.seconds,
                "file": outcome.file.name if outcome.file else "",
            }
        self.database.record(
            "query",
            agent=self.agent,
            candidate=self.candidate,
            sql=self.sql,
            executed=executed,
            cached=cached,
            **more,
        )
        return outcome
