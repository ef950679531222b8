"""Why a question has no answer: kinds of errors (``quorum.evals.records.Record.error``)."""

from __future__ import annotations

import traceback
from collections.abc import Collection

from quorum.graph.answer import Answer
from quorum.knowledge.errors import (
    BudgetExceeded,
    DatabaseUnavailable,
    MalformedReply,
    ModelUnavailable,
    QuorumError,
)

ENDPOINT, DATABASE = "endpoint", "database"
FAULT = "fault"
"""Quorum itself is at fault; the message is the traceback."""

REQUEST = "request"
"""The endpoint refused the request because of its content (400, 413, 422) or length; it is available."""

REFUSALS = {"request", "too_long"}
"""Values of ``quorum.tools.models.failures.FailureKind`` that say so."""

OUTSIDE = (ModelUnavailable, DatabaseUnavailable, MalformedReply, BudgetExceeded)
"""Errors outside of Quorum: starting the run over would not help."""


def kind_of(error: Exception, refusals: Collection[str] = ()) -> str:
    """The kind of an error that ended a run without an answer.

    Args:
        refusals: Why model calls of the run failed (``quorum.tools.models.failures.FailureKind``).
    """
    match error:
        case ModelUnavailable():
            return REQUEST if refusals and REFUSALS.issuperset(refusals) else ENDPOINT
        case DatabaseUnavailable():
            return DATABASE
        case MalformedReply():
            return "malformed_reply"
        case BudgetExceeded():
            return error.limit
        case QuorumError():
            return "no_answer"
    return FAULT


def message_of(error: Exception) -> str:
    """The error in words; of a fault of ours its traceback."""
    return str(error) if isinstance(error, QuorumError) else "".join(traceback.format_exception(error))


def wanted(answer: Answer, refusals: Collection[str] = (), *, live: bool = True) -> str:
    """What was unavailable, so that there is no answer: ``endpoint``, ``database``, or empty.

    Set if a candidate got no reply or no connection and no other candidate has a result.

    Args:
        refusals: As in ``kind_of``.
        live: Whether queries can run at all.
    """
    if answer.status != "no_answer" or answer.result_file:
        return ""
    kinds = {candidate.error_kind for candidate in answer.candidates}
    if "model_unavailable" in kinds:
        return "" if refusals and REFUSALS.issuperset(refusals) else ENDPOINT
    return DATABASE if live and "unavailable" in kinds else ""


def why(answer: Answer, refusals: Collection[str] = (), *, live: bool = True) -> tuple[str, str]:
    """Why there is no answer, by kind and in words; both empty if there is one."""
    if answer.status == "stopped":
        return answer.stopped_by, f"The run was stopped by {answer.stopped_by}."
    if answer.status == "answered":
        return "", ""
    if answer.status == "unanswerable":
        return "unanswerable", answer.missing
    if answer.result_file:
        return "abstained", "Its confidence is too low."
    failed = [candidate for candidate in answer.candidates if candidate.error_kind]
    if not failed:
        return _nothing_to_show(answer)
    if kind := wanted(answer, refusals, live=live):
        lost = {ENDPOINT: "model_unavailable", DATABASE: "unavailable"}[kind]
        return kind, next(each.error for each in failed if each.error_kind == lost)
    refused = bool(REFUSALS.intersection(refusals)) and failed[0].error_kind == "model_unavailable"
    return REQUEST if refused else failed[0].error_kind, failed[0].error


def _nothing_to_show(answer: Answer) -> tuple[str, str]:
    if any(candidate.sql for candidate in answer.candidates):
        return "empty_result", "The queries ran, and none of their results says anything."
    return "no_sql", "No candidate wrote SQL."
