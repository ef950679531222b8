"""What Snowflake says of a query that failed, as a ``QueryError``."""

from __future__ import annotations

import re
from typing import Final

from quorum.tools.databases.base import GROUPING, by_code
from quorum.tools.databases.server import Gone, Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

REFUSED: Final = "quorumRefused"
"""Our own code beside Snowflake's: never sent."""
COSTLY: Final = "quorumCostly"
"""Our own: more than ``Limits.scan`` would be read."""
KINDS: Final = {
    ErrorKind.SYNTAX: "000002 000008 000900 001003",
    ErrorKind.TABLE_NOT_FOUND: "002003 002043 090105 090106",
    ErrorKind.COLUMN_NOT_FOUND: "000904",
    ErrorKind.AMBIGUOUS_COLUMN: "002028",
    ErrorKind.GROUPING: "000979 002035 002061",
    ErrorKind.FUNCTION: "000938 000939 002140 002141 002142",
    ErrorKind.TYPE_MISMATCH: """
        001007 001044 002001 002010 002012 002016 002023 100035 100036 100037 100038 100039 100040 100041
        100042 100043 100046 100048 100049 100058 100065 100069 100071 100078 100080 100097 100132
    """,
    ErrorKind.PERMISSION: f"003001 003011 003041 {REFUSED}",
    ErrorKind.TIMEOUT: "000630 000631",
    ErrorKind.RESOURCES: f"000625 090073 100384 100388 {COSTLY}",
    ErrorKind.UNAVAILABLE: """
        000603 000604 000605 000606 000607 000608 000707 090109 300002 300005 300010 370001
    """,
}
BY_CODE: Final = by_code(KINDS)
"""By Snowflake's error code, six digits."""
ENDED: Final = frozenset(
    {390103, 390104, 390110, 390111, 390112, 390113, 390114, 390115, 390195, 390318, 390400}
)
"""Codes that say that a session, or who asks in it, is not known any more."""
_PREFIX = re.compile(r"^(?:SQL (?:compilation|execution) error:\s*)+(?:error line \d+ at position \d+\s*)?")
_PLACE = re.compile(r"(?:^|\s)(?:syntax )?error line (\d+) at position (\d+)")


def query_error(refusal: Refusal) -> QueryError:
    """The kind, a sentence and the place."""
    kind = BY_CODE.get(refusal.state)
    if kind is None:
        kind = ErrorKind.GROUPING if re.search(GROUPING, refusal.message) else ErrorKind.OTHER
    place = _PLACE.search(refusal.message)
    line, column = (int(place[1]), int(place[2]) + 1) if place else (None, None)
    return QueryError(kind, sentence(_PREFIX.sub("", refusal.message)), line=line, column=column)


def driver_errors() -> tuple[type[Exception], ...]:
    """Return what the driver raises: Snowflake's answers, lost connections, key files that cannot be read."""
    from snowflake.connector import Error

    return Error, OSError, ValueError, TypeError


def reason(retried: BaseException | None) -> str:
    """Return in few words why a request failed that the driver wants to send again."""
    from snowflake.connector import Error

    cause = next(iter(retried.args), retried) if retried is not None else None
    if isinstance(cause, Error):
        return str(cause.raw_msg or cause.msg)
    told = re.search(r"\[Errno -?\d+\] ([^'\")]+)", str(cause))
    return told[1] if told else type(cause).__name__


def failure(error: Exception) -> Gone | Refusal:
    """The driver's error as one of ours; what is no answer of Snowflake's means that it is out of reach."""
    from snowflake.connector import Error

    if not isinstance(error, Error):
        return Gone(f"{error}" or type(error).__name__)
    message, number = str(error.raw_msg or error.msg or ""), error.errno
    if number in ENDED:
        return Gone(f"the session has ended: {message}")
    if not 0 < number < 250_000 and not 300_000 <= number < 380_000:
        return Gone(message)
    return Refusal(f"{number:06d}", message)
