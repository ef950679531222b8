"""Queries that do not give the same tomorrow: those that ask for the time or draw at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.tools.sql import SyntaxProblem, parse_one_statement

if TYPE_CHECKING:
    from sqlglot import exp

NOW, CHANCE = "the current date or time", "chance"

READERS = frozenset({"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"})
"""SQLite's functions of a moment: of the current one if none is named, or if it is the text ``now``."""
CLOCKS = frozenset(
    {"now", "sysdate", "today", "getdate", "clock_timestamp", "statement_timestamp", "unix_timestamp"}
    | {"transaction_timestamp", "timeofday", "get_current_time", "get_current_timestamp"}
    | {"date", "time", "datetime", "julianday", "unixepoch"}
)
"""Functions that tell the current moment where they have no argument."""
DRAWS = frozenset({"random", "rand", "randomblob", "gen_random_bytes", "uniform", "newid", "setseed"})
MOMENTS = frozenset(
    {"currentdate", "currenttime", "currentdatetime", "currenttimestamp", "currenttimestampltz"}
    | {"localtime", "localtimestamp", "utcdate", "utctime", "utctimestamp"}
)
"""The same as sqlglot's nodes, by their keys."""
WORDS = frozenset({"now", "today", "tomorrow", "yesterday"})


def volatile(sql: str, dialect: str) -> str:
    """What a query's result depends on besides the data: ``NOW``, ``CHANCE`` or nothing, the empty text.

    Told from the functions that it calls; what a view hides is not seen, and SQL that cannot be read
    depends on nothing.
    """
    try:
        tree = parse_one_statement(sql, dialect)
    except SyntaxProblem:
        return ""
    nodes = list(tree.walk())
    if any(map(_tells_now, nodes)):
        return NOW
    return CHANCE if any(map(_draws, nodes)) else ""


def _tells_now(node: exp.Expr) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Literal) and node.is_string and node.name.lower() in WORDS:
        return _takes_moment(node.parent)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return (name in CLOCKS and not node.expressions) or (name == "age" and len(node.expressions) == 1)
    if isinstance(node, exp.Date):
        return node.this is None and not node.expressions
    return node.key in MOMENTS


def _takes_moment(node: exp.Expr | None) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return node.name.lower() in READERS
    return isinstance(node, exp.Cast | exp.Date | exp.Time | exp.TsOrDsToTimestamp)


def _draws(node: exp.Expr) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return node.name.lower() in DRAWS
    return isinstance(node, exp.Rand | exp.Randn | exp.Uuid | exp.TableSample)
