"""Admission of queries: the bytes that one would read are estimated, limited, and shown to the user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from quorum.tools.databases.base import Connector
from quorum.tools.ledger import Ledger
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError
from quorum.tools.results.readable import size_text

UNKNOWN = "the engine does not tell"
NOT_APPROVED = QueryError(
    ErrorKind.NOT_APPROVED,
    "The user was asked whether this query may run, and did not approve it.",
    by="user",
)


@dataclass(frozen=True)
class Proposal:
    """A query that is about to run.

    Attributes:
        sql: The text that would run.
        estimate: The bytes that it would read; None in it if they are unknown.
        estimable: True if the database estimates the bytes of most queries, or charges for them.
        agent, candidate: The ones that want it to run.
    """

    sql: str
    estimate: Estimate
    estimable: bool
    agent: str
    candidate: str


class Approver(Protocol):
    """Asks the user before queries run; the same text is asked for once in a run."""

    def answered(self, sql: str) -> bool | None:
        """Return the user's answer if this very step was interrupted to ask for the query; else None.

        It must be called for each text that a step wants to run, in the same order whenever the step runs.
        """

    def was_recorded(self, sql: str) -> bool:
        """Return True if this step has recorded the text before, and note that it is recorded now."""

    def approves(self, proposal: Proposal) -> bool:
        """Return True if a query may run. The user is asked if the rule calls for it."""


def estimates_bytes(connector: Connector) -> bool:
    """Return True if the database estimates the bytes of most queries, or charges for them."""
    return connector.live and (connector.estimates or connector.bills)


async def estimate(connector: Connector, sql: str, limits: Limits) -> Estimate | QueryError:
    """Estimate a query that the guard has passed; ``bytes`` is None if they are unknown.

    Raises:
        DatabaseUnavailable: The connector is not open.
    """
    found = await connector.estimate(sql, limits) if connector.estimates else None
    return Estimate(unknown=UNKNOWN) if found is None else found


def refusal(estimate: Estimate, limits: Limits, ledger: Ledger, connector: Connector) -> QueryError | None:
    """Return why a query reads too much; None if it may run.

    A database that estimates most queries refuses one that it cannot estimate. A database that estimates none
    (SQLite, DuckDB) cannot keep a limit, and the user is warned of that when the run begins.
    """
    allowed = f"at most {size_text(limits.scan or 0)} may be read"
    if estimate.bytes is None:
        left = ledger.remaining_bytes()
        if not estimates_bytes(connector) or (limits.scan is None and left is None):
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
    """Return the limits with the bytes that the run may still read, ``reserved`` for this query included."""
    left = ledger.remaining_bytes()
    given = [each for each in (limits.scan, None if left is None else left + reserved) if each is not None]
    return replace(limits, scan=min(given, default=None))
