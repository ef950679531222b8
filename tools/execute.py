"""The one way to a database: guard, lint, estimate, approval, limits, run, typed result, ledger."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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

if TYPE_CHECKING:
    from quorum.tools.guard.text import Allowed
    from quorum.tools.lint.lineage import Masks

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
        self._estimates: dict[str, Estimate] = {}

    def has(self, sql: str) -> bool:
        """Return True if this SQL has run or is running, so that asking again is free."""
        return sql in self._kept or sql in self._running

    async def estimate(
        self, sql: str, estimate: Callable[[], Awaitable[Estimate | QueryError]]
    ) -> Estimate | QueryError:
        """Return the kept estimate of ``sql``, else a new one, which is kept unless it failed."""
        if found := self._estimates.get(sql):
            return found
        fresh = await estimate()
        if isinstance(fresh, Estimate):
            self._estimates[sql] = fresh
        return fresh

    async def outcome(self, sql: str, run: Callable[[], Awaitable[Outcome]]) -> tuple[Outcome, bool]:
        """Return the outcome of ``sql``, and True if this call ran it.

        Raises:
            Exception: Whatever ``run`` raises, to each caller that waits for it.
        """
        if sql in self._kept:
            self._kept.move_to_end(sql)
            return self._kept[sql], False
        fresh = sql not in self._running
        if fresh:
            self._running[sql] = _Shared(asyncio.ensure_future(run()))
        shared = self._running[sql]
        shared.callers += 1
        try:
            outcome = await asyncio.shield(shared.task)
        finally:
            shared.callers -= 1
            if shared.callers == 0:
                shared.task.cancel()  # does nothing to a finished task
                # read its error, a lost lease say: nobody waits, and the loop would log it
                shared.task.add_done_callback(lambda task: task.cancelled() or task.exception())
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
    callers: int = 0


def _size(outcome: Outcome) -> int:
    return int(outcome.table.nbytes) if isinstance(outcome, QueryResult) else 0


@dataclass(frozen=True)
class Database:
    """An open database with its guard, lint, limits and cache; one per run.

    Attributes:
        limits: Limits of each query; the run's deadline cuts them further.
        cache: The queries that the run has asked already.
        folder: Results are written here, each under the hash of its content; None writes none.
        recall: Finds the outcome of a query that an interrupted process of this run has asked.
        approver: Asks the user before a query runs; None runs queries unasked.
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

    async def judge(self, sql: str) -> Allowed | QueryError:
        """Return the text that may run, or why guard or lint refuse it."""
        return await allowed(sql, self.linter)

    @property
    def estimates_first(self) -> bool:
        """True if a query is estimated before it runs: bytes are limited, or the user approves queries."""
        limited = self.limits.scan is not None or self.ledger.budget.read_bytes is not None
        return self.connector.live and (limited or self.approver is not None)


async def execute(database: Database, sql: str, *, agent: str, candidate: str = "") -> Outcome:
    """Run one query for an agent. A failure is returned as a value.

    The text that runs is the guard's rendering of ``sql``. The same text runs once per run, also if a process
    of the run was interrupted: later and simultaneous callers share its outcome and are not charged. No rows
    is a result, not an error. Each call records one ``query`` event.

    If bytes are limited or the user approves queries, the query is estimated first. It does not run if it
    would read too much or is not approved.

    Args:
        agent: The account to charge.
        candidate: Id of the candidate that asks; for the trace only.

    Raises:
        BudgetExceeded: The run's deadline has passed, or cut the query short, or its bytes are used up.
        DatabaseUnavailable: The connector is closed.
    """
    database.ledger.check_time()
    event = _QueryEvent(database, agent, candidate, sql)
    judged = await database.judge(sql)
    if isinstance(judged, QueryError):
        return event.record(judged)
    event, text = replace(event, masks=judged.masks), str(judged)
    if database.estimates_first and (refusal := await _refusal(event, text)):
        return event.record(refusal, executed=text)
    outcome, fresh = await database.cache.outcome(text, lambda: _run(event, text))
    return outcome if fresh else event.record(outcome, executed=text, cached=True)


async def _refusal(event: _QueryEvent, sql: str) -> QueryError | None:
    """Return why a query may not run: it reads too much, or the user says no. Each caller is asked by itself.

    A query that an interrupted process has run was admitted there.
    """
    database, approver = event.database, event.database.approver
    answer = approver.answered(sql) if approver else None
    if answer is False:
        return admission.NOT_APPROVED
    if database.cache.has(sql) or database.recall(_request(database, sql)) is not None:
        return None
    estimate = await _estimate(database, sql)
    if isinstance(estimate, QueryError):
        return estimate
    if approver is None or answer:
        return None
    estimable = admission.estimates_bytes(database.connector)
    proposal = Proposal(sql, estimate, estimable, event.agent, event.candidate)
    return None if approver.approves(proposal) else admission.NOT_APPROVED


async def _estimate(database: Database, sql: str) -> Estimate | QueryError:
    """Return the bytes that a query would read; an error if they exceed the query's limit.

    Raises:
        BudgetExceeded: It would read more than the run has left.
    """
    limits = database.limits.within(database.ledger.remaining_seconds())
    estimate = await database.cache.estimate(sql, lambda: admission.estimate(database.connector, sql, limits))
    withheld = database.linter.catalog.withheld  # an engine's errors name what is behind views
    if isinstance(estimate, QueryError):
        if withheld:
            from quorum.tools.rights import without_values

            estimate = without_values(estimate, sql, withheld)
        return estimate
    if problem := admission.refusal(estimate, database.limits, database.ledger, database.connector):
        return problem
    database.ledger.check_bytes(estimate.bytes or 0)
    return estimate


def _request(database: Database, sql: str) -> str:
    return request_of(sql, database.limits.rows, database.limits.bytes)


async def _run(event: _QueryEvent, sql: str) -> Outcome:
    """Run a query, charge it, keep its result and record its event, also if the caller is gone.

    Raises:
        BudgetExceeded: As ``execute``.
        OSError: The result cannot be written: the disk is full, say.
    """
    database, ledger, more = event.database, event.database.ledger, dict[str, Any]()
    request = _request(database, sql)
    earlier = database.recall(request)
    if earlier and (found := await asyncio.to_thread(_recorded_outcome, earlier, database.folder)):
        return found
    expected = 0
    if database.estimates_first:
        estimate = await _estimate(database, sql)
        if isinstance(estimate, QueryError):
            return event.record(estimate, executed=sql)
        expected = estimate.bytes or 0
        more["estimate"] = {"bytes": estimate.bytes, "billed": estimate.billed}
    with ledger.reserve_bytes(expected):
        started = time.monotonic()
        outcome = await _run_in_time(database, sql, expected)
        if (catalog := database.linter.catalog).withheld:
            from quorum.tools.rights import withhold

            outcome = await asyncio.to_thread(withhold, outcome, sql, event.masks, catalog)
    usage = Usage()
    if database.connector.live:  # else no database was asked, and nothing is charged
        usage = _usage(outcome, time.monotonic() - started, expected)
    ledger.charge(event.agent, usage)
    try:
        if database.folder and isinstance(outcome, QueryResult):
            from quorum.tools.results.files import write_result

            file = await asyncio.to_thread(write_result, outcome.table, database.folder)
            outcome = replace(outcome, file=file)
    finally:
        event.record(outcome, executed=sql, usage=usage.as_dict(), request=request, **more)
    timed_out = isinstance(outcome, QueryError) and outcome.kind is ErrorKind.TIMEOUT
    if timed_out and ledger.remaining_seconds() == 0.0:  # the run's deadline stopped it, not its own limit
        text = f"The deadline of {ledger.budget.seconds:g} s passed while a query ran; it was stopped."
        raise BudgetExceeded(text, limit="deadline")
    return outcome


async def _run_in_time(database: Database, sql: str, reserved: int) -> Outcome:
    """Run a query within the limits; a connector that does not stop in time is cancelled."""
    remaining = database.ledger.remaining_seconds()
    latest = None if remaining is None else remaining + OVERDUE_SECONDS
    limits = admission.server_limits(database.limits, database.ledger, reserved).within(remaining)
    try:
        async with asyncio.timeout(latest):
            return await database.connector.run(sql, limits)
    except TimeoutError:
        return QueryError(ErrorKind.TIMEOUT, "The query was still waiting when the run's time was up.")


def _recorded_outcome(event: Mapping[str, Any], folder: Path | None) -> Outcome | None:
    """Return the outcome that an interrupted process recorded; None if it is lost, or may not recur."""
    if folder is None:
        return None
    try:
        if error := event.get("error"):
            lists = {part: tuple(error[part]) for part in ("suggestions", "also")}
            found = QueryError(**(error | lists | {"kind": ErrorKind(error["kind"])}))
            return found if found.kind not in PASSING else None
        from quorum.tools.results.files import read_result

        file = folder / event["file"]
        table, seconds, truncated = read_result(file), float(event["seconds"]), str(event["truncated"])
        return QueryResult(table, seconds, truncated, sql=str(event["executed"]), file=file)
    except (QuorumError, KeyError, TypeError, ValueError):
        return None


def _usage(outcome: Outcome, seconds: float, expected: int) -> Usage:
    """Return the usage to charge. A failed query reports no bytes, so its whole estimate is charged.

    If some of several databases report no bytes, the rest of the estimate is charged for them.
    """
    read = outcome.bytes_scanned
    if isinstance(outcome, QueryError):
        left = max(0, expected - (read or 0))
        return Usage(queries=1, query_seconds=seconds, read_bytes=read or 0, estimated_bytes=left)
    unreported = any(part.read is None for part in outcome.parts)
    return Usage(
        queries=1,
        rows=outcome.row_count,
        bytes=outcome.table.nbytes,
        read_bytes=read or 0,
        estimated_bytes=expected if read is None else max(0, expected - read) if unreported else 0,
        slot_seconds=outcome.slot_seconds or 0.0,
        query_seconds=outcome.seconds,
    )


@dataclass(frozen=True)
class _QueryEvent:
    """The event of one call of ``execute``."""

    database: Database
    agent: str
    candidate: str
    sql: str
    masks: Masks = False

    def record(self, outcome: Outcome, *, executed: str = "", cached: bool = False, **more: Any) -> Outcome:
        """Record the event and return the outcome. A step that is repeated records a query once."""
        approver, ran = self.database.approver, "usage" in more
        if approver and approver.was_recorded(executed or self.sql) and not ran:
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
        about = {"agent": self.agent, "candidate": self.candidate, "sql": self.sql}
        self.database.record("query", **about, executed=executed, cached=cached, **more)
        return outcome
