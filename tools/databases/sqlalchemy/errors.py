"""What engines behind SQLAlchemy say of a query that failed, as far as SQLSTATE or the words tell."""

from __future__ import annotations

import re
from typing import Any

from quorum.tools.databases.base import GROUPING
from quorum.tools.databases.postgres import errors as postgres_errors
from quorum.tools.databases.server import Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

_ABSENT = r".{0,120}\b(not found|not exist|cannot be resolved)"
WORDS = {
    ErrorKind.TIMEOUT: r"timed? ?out|time limit|EXCEEDED_TIME_LIMIT|cancel(l?ed|ing statement)|interrupted"
    r"|DPY-4024|ORA-01013",
    ErrorKind.TABLE_NOT_FOUND: r"ORA-00942|\(208\)|Invalid object name|no such table|TABLE_NOT_FOUND"
    r"|TABLE_OR_VIEW_NOT_FOUND|UNKNOWN_TABLE|Code: (60|81)\b|SCHEMA_NOT_FOUND"
    rf"|\b(table|view|object|relation|schema)\b{_ABSENT}",
    ErrorKind.AMBIGUOUS_COLUMN: r"ambiguous|ORA-00918|\(209\)",
    ErrorKind.COLUMN_NOT_FOUND: r"ORA-00904: .{0,80}: invalid identifier|\(207\)|Invalid column name"
    r"|no such column|COLUMN_NOT_FOUND|UNRESOLVED_COLUMN|Code: (16|47)\b|UNKNOWN_IDENTIFIER"
    rf"|\bcolumn\b{_ABSENT}",
    ErrorKind.GROUPING: GROUPING + r"|ORA-00979|ORA-00937|ORA-00934|\(8120\)|EXPRESSION_NOT_AGGREGATE"
    r"|MISSING_AGGREGATION|NOT_AN_AGGREGATE|Code: 215\b|must be an aggregate expression",
    ErrorKind.FUNCTION: r"no such function|FUNCTION_NOT_FOUND|UNRESOLVED_ROUTINE|UNKNOWN_FUNCTION|\(195\)"
    r"|is not a recognized|Code: 46\b|wrong number of arguments"
    rf"|\bfunction\b.{{0,120}}\bnot registered|\bfunction\b{_ABSENT}",
    ErrorKind.PERMISSION: r"read.?only|permission|denied|not authorized|insufficient privileges|ORA-01031"
    r"|Code: 497\b",
    ErrorKind.TYPE_MISMATCH: r"TYPE_MISMATCH|CAST_INVALID_INPUT|ORA-0(0932|1722|1843|1858|1861)"
    r"|Conversion failed|Code: (6|43|53|386)\b|invalid (input|number|date)|cannot be cast|INVALID_CAST"
    r"|datatype mismatch|malformed JSON",
    ErrorKind.RESOURCES: r"memory|EXCEEDED_|resources|too (large|big|many|complex)|ORA-04030|Code: 241\b",
    ErrorKind.SYNTAX: r"syntax|unrecognized token|incomplete input|ORA-009(00|05|06|07|23|33|36)"
    r"|Code: 62\b|mismatched input|one statement at a time",
}
"""The kind by the words of a message, the first that fits."""
STATES = {
    "42S02": ErrorKind.TABLE_NOT_FOUND,
    "42S22": ErrorKind.COLUMN_NOT_FOUND,
    "42000": None,  # of any error of syntax or access, in ODBC: the words tell more
    "HYT00": ErrorKind.TIMEOUT,
    "HYT01": ErrorKind.TIMEOUT,
    "HY008": ErrorKind.TIMEOUT,
}
_STATE = re.compile(r"[0-9A-Z]{5}")
_ODBC = re.compile(r"\[(?:[0-9A-Z]{5}|[^\]]*(?:Microsoft|ODBC|SQL Server|FreeTDS)[^\]]*)\]\s*")
_CODE = re.compile(r"\x1b\[[0-9;]*m")


def refusal_of(error: Any) -> Refusal:
    """A driver's error with its SQLSTATE or number, where it has one."""
    args = error.args if isinstance(error.args, tuple) else ()
    state, message, hint = "", str(error), ""
    if args and (isinstance(args[0], int) or _STATE.fullmatch(str(args[0]))):  # pyodbc and others
        state, message = str(args[0]), str(args[1]) if len(args) > 1 else message
    elif found := getattr(error, "sqlstate", None) or getattr(error, "pgcode", None):
        state, told = str(found), getattr(error, "diag", None)  # PostgreSQL's
        message = getattr(told, "message_primary", None) or message
        hint = getattr(told, "message_hint", None) or ""
    elif isinstance(name := getattr(error, "error_name", None), str):  # Trino's
        message = f"{getattr(error, 'message', message)} ({name})"
    message = _ODBC.sub("", _CODE.sub("", message)).strip() or type(error).__name__
    return Refusal(state, message, hint)


def query_error(refusal: Refusal, sql: str, dialect: str) -> QueryError:
    """The kind and a sentence."""
    if dialect == "postgres" and refusal.state:
        return postgres_errors.query_error(refusal, sql)
    found = STATES.get(refusal.state)
    words = (kind for kind, pattern in WORDS.items() if re.search(f"(?is){pattern}", refusal.message))
    return QueryError(found or next(words, ErrorKind.OTHER), sentence(refusal.message))
