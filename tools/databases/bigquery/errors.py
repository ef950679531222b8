"""What BigQuery says of a query that failed, as a ``QueryError``."""

from __future__ import annotations

import re
from typing import Any

from quorum.tools.databases.base import GROUPING, by_code
from quorum.tools.databases.server import Gone, Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

KINDS = {
    ErrorKind.TABLE_NOT_FOUND: "notFound",
    ErrorKind.PERMISSION: "accessDenied",
    ErrorKind.RESOURCES: "bytesBilledLimitExceeded resourcesExceeded responseTooLarge quotaExceeded",
    ErrorKind.UNAVAILABLE: "rateLimitExceeded backendError internalError authError",
    ErrorKind.TIMEOUT: "stopped timeout",
}
REASONS = by_code(KINDS)
"""By BigQuery's reason ("Error messages" of its documentation)."""
WORDS = (
    (
        r"(?i)unrecognized name|name \w+ not found inside|field name .* does not exist",
        ErrorKind.COLUMN_NOT_FOUND,
    ),
    (r"(?i)is ambiguous", ErrorKind.AMBIGUOUS_COLUMN),
    (
        r"(?i)must be qualified with a dataset|does not match any table|not found: table",
        ErrorKind.TABLE_NOT_FOUND,
    ),
    (r"(?i)function not found|no matching signature for function", ErrorKind.FUNCTION),
    (GROUPING, ErrorKind.GROUPING),
    (
        r"(?i)no matching signature|could not cast|bad \w+ value|invalid (date|timestamp|cast)",
        ErrorKind.TYPE_MISMATCH,
    ),
    (r"(?i)syntax error|unexpected|expected", ErrorKind.SYNTAX),
    (r"(?i)without a filter over column", ErrorKind.OTHER),
)
_PLACE = re.compile(r" at \[(\d+):(\d+)\]")
_NEAR = re.compile(r"Did you mean `?([\w.]+)`?\?")


def query_error(refusal: Refusal) -> QueryError:
    """The kind, a sentence, the place and the server's own suggestion."""
    message = refusal.message
    kind = REASONS.get(refusal.state)
    if kind is None:
        kind = next((kind for words, kind in WORDS if re.search(words, message)), ErrorKind.OTHER)
    place, near = _PLACE.search(message), _NEAR.search(message)
    line, column = (int(place[1]), int(place[2])) if place else (None, None)
    text = re.sub(r";? Did you mean .*?\?", "", _PLACE.sub("", message))
    return QueryError(kind, sentence(text), line=line, column=column, suggestions=(near[1],) if near else ())


def client_errors() -> tuple[type[Exception], ...]:
    """Return what the client raises: BigQuery's answers, missing credentials, lost connections, time-outs."""
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from requests import RequestException

    return GoogleAPIError, GoogleAuthError, RequestException, OSError, TimeoutError


def failure(error: Exception) -> Gone | Refusal:
    """The client's error as one of ours; what is no answer of BigQuery's means that it is out of reach."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    if isinstance(error, GoogleAuthError):
        return Refusal("authError", f"The credentials are not accepted: {error}")
    if not isinstance(error, GoogleAPICallError):
        return Gone(str(error) or type(error).__name__)
    first: Any = next(iter(error.errors or ()), None)
    told = first if isinstance(first, dict) else {}
    reason, message = str(told.get("reason", "")), str(told.get("message") or error.message or "")
    if error.code == 401 or reason in ("authError", "required"):
        return Refusal("authError", f"The credentials are not accepted: {message}")
    return Refusal(reason, message)
