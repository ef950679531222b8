"""Kinds of mistakes: each question that was asked and is known not to be right belongs to exactly one."""

from __future__ import annotations

from quorum.evals.records import Record

WRONG = {
    "no rows": "The result is empty.",
    "tables missed": "The SQL leaves out a table that the nearest gold SQL uses.",
    "columns missed": "It uses those tables, but leaves out a column that the nearest gold SQL uses.",
    "row count differs": "It uses those tables and columns, as far as known; the gold result has another "
    "number of rows.",
    "values differ": "As many rows as the gold result, but other values, columns or order.",
    "result differs": "The result is not the gold's; how many rows that has was not recorded.",
}
"""Kinds of wrong answers. The first that holds is the category, so each means "and none of those before".
Tables and columns come from ``Record.linking``, which is not known without gold SQL."""

UNKNOWN = "unknown"

UNANSWERED = {
    "endpoint": "The model's endpoint could not be reached; asked again when the run is started again.",
    "database": "The database could not be reached; asked again when the run is started again.",
    "request": "The model's endpoint refused the request for what it contains, or as too long.",
    "fault": "A fault of Quorum itself; the record's message is its traceback.",
    "malformed_reply": "The model's reply did not have the form asked for, repairs included.",
    "model_unavailable": "The model's endpoint failed the first failed candidate; no other had a result.",
    "no_answer": "The run ended without an answer.",
    "unanswerable": "The model said that the data cannot answer.",
    "no_sql": "No candidate wrote SQL.",
    "abstained": "There was a result, but its confidence was below the option abstain_below.",
    "max_calls": "The limit on model calls ended the run.",
    "max_usd": "The limit on dollars ended the run.",
    "max_run_bytes": "The limit on bytes that queries read ended the run.",
    "deadline": "The limit on seconds ended the run.",
    "refused": "The guard refused the SQL: not a pure read.",
    "syntax": "The SQL has an error of syntax.",
    "table_not_found": "The SQL names a table that is not there.",
    "column_not_found": "The SQL names a column that is not there.",
    "ambiguous_column": "The SQL names a column that several tables have.",
    "grouping": "The SQL groups or aggregates what it may not.",
    "type_mismatch": "The SQL uses a value of the wrong type.",
    "function": "The SQL uses a function that is not there, or uses it wrongly.",
    "permission": "The database did not allow the query.",
    "timeout": "The query took longer than query_timeout.",
    "resources": "The query needed more memory or bytes than allowed.",
    "not_approved": "The user did not approve the query.",
    "empty_result": "The query returned nothing, which the recipe takes for a failure.",
    "unavailable": "The connection to the database was lost, or there is none to run on.",
    "other": "The database refused the query for another reason.",
    UNKNOWN: "The record does not say why.",
}
"""Values of ``Record.error``: why a question has no answer. If all candidates failed, that of the first."""


def category(record: Record) -> str:
    """Return a key of ``WRONG`` or a kind of error; empty if the question is right, or that is not known."""
    if record.status != "answered":
        return record.error or UNKNOWN
    if record.match is not False:
        return ""
    linking = record.linking
    if record.rows == 0:
        return "no rows"
    if linking and linking.table_recall is not None and linking.table_recall < 1:
        return "tables missed"
    if linking and linking.column_recall is not None and linking.column_recall < 1:
        return "columns missed"
    if record.rows is None or record.gold_rows is None:
        return "result differs"
    return "values differ" if record.rows == record.gold_rows else "row count differs"
