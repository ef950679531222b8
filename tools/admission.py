"""What a query would read: told before it runs, held to limits, and asked for where the user wants that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from quorum.tools.databases.base import Connector
from quorum.tools.ledger import Ledger
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError
from quorum.tools.results.readable import size_text

UNTOLD = "the engine does not tell"
NOT_APPROVED = QueryError(
    ErrorKind.NOT_APPROVED,
    "The user was asked whether this query may run, and did not approve it.",
    by="user",
)


@dataclass(frozen=True)
class Proposal:
    """A query that is about to run.

    Attributes:
        sql: As it would run.
        estimate: What it would read; without bytes where that cannot be told.
        telling: Whether the database tells what most queries would read, or charges for it.
        agent, candidate: Who wants it to run.
    """

    sql: str
    estimate: Estimate
    telling: bool
    agent: str
    candidate: str


class Approver(Protocol):
    """Asks the user before queries run; the same text is asked for once in a run."""

    def answered(self, sql: str) -> bool | None:
        """What the user said of a text in this very step, which was interrupted to ask; None if it was not.

        It must be called for each text that a step wants to run, in the same order whenever the step runs.
        """

    def told(self, sql: str) -> bool:
        """Whether this step has told of a text before; from now on it has."""

    def approves(self, proposal: Proposal) -> bool:
        """Whether a query may run; the user is asked if the proposal calls for that."""


def tells(connector: Connector) -> bool:
    """Whether an unknown number of bytes is the exception with a database, not the rule."""
    return connector.live and (connector.estimates or connector.bills)


async def estimated(connector: Connector, sql: str, limits: Limits) -> Estimate | QueryError:
    """What a query that the guard has passed would read; without bytes where that cannot be told.

    Raises:
        DatabaseUnavailable: The connector is not open.
    """
    found = await connector.estimate(sql, limits) if connector.estimates else None
    return Estimate(unknown=UNTOLD) if found is None else found


async def fits(connector: Connector, sql: str, limits: Limits) -> bool:
    """Whether a query that nobody asked for may run: never where reading is paid for, else within the limits.

    Raises:
        DatabaseUnavailable: The connector is not open.
    """
    if connector.bills or limits.scan is None:
        return not connector.bills
    estimate = await estimated(connector, sql, limits)
    return isinstance(estimate, Estimate) and refusal(estimate, limits, Ledger(), connector) is None


def refusal(estimate: Estimate, limits: Limits, ledger: Ledger, connector: Connector) -> QueryError | None:
    """Why a query reads too much; None where it may run, as far as its own limit goes.

    Where a database tells what most queries would read, one of which it cannot be told is refused. A database
    that tells of none (SQLite, DuckDB) can keep no limit, which ``unkept`` says.
    """
    allowed = f"at most {size_text(limits.scan or 0)} may be read"
    if estimate.bytes is None:
        left = ledger.remaining_bytes()
        if not tells(connector) or (limits.scan is None and left is None):
            return None
        if limits.scan is None:
            allowed = f"the run may read {size_text(left or 0)} more"
        why = f" ({estimate.unknown})" if estimate.unknown else ""
        message = f"What the query would read cannot be told before it runs{why}, and {allowed}."
        hint = "Ask for the tables themselves, without what hides how much is read."
        return QueryError(ErrorKind.RESOURCES, f"{message} {hint}", by="limit")
    if limits.scan is None or estimate.bytes <= limits.scan:
        return None
    message = f"The query would read {size_text(estimate.bytes)}; {allowed}. It was not run."
    hint = "Read less: fewer large tables, or filter by what they are partitioned, clustered or indexed by"
    columns = ", and fewer columns; LIMIT does not lessen it." if connector.bills else "."
    return QueryError(ErrorKind.RESOURCES, f"{message} {hint}{columns}", by="limit")


def server_limits(limits: Limits, ledger: Ledger, reserved: int) -> Limits:
    """The limits with what the run may still read, ``reserved`` for this query included."""
    left = ledger.remaining_bytes()
    given = [each for each in (limits.scan, None if left is None else left + reserved) if each is not None]
    return replace(limits, scan=min(given, default=None))
