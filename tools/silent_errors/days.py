"""Days as bounds of times: a day ends at its midnight there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from quorum.knowledge.catalog import Column
from quorum.tools.silent_errors.cores import Core, own_nodes
from quorum.tools.silent_errors.doubts import Doubt, Query, Rows, Trial, many, number, value
from quorum.tools.sql.writing import write

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY_FUNCTIONS = ("date", "current_date", "curdate", "to_date", "last_day", "ts_or_ds_to_date")
_COMPARED = (exp.LTE, exp.GT, exp.EQ, exp.Between)
_TIMES = re.compile(r"(?i)time|text|char|string")


def trials(query: Query) -> Iterator[Trial]:
    """Yield one for each comparison of a column that may have times with a day."""
    for core in query.cores:
        for node in own_nodes(core.select):
            if isinstance(node, _COMPARED) and isinstance(node.this, exp.Column):
                bound, stored = node.args.get("high") or node.expression, core.stored(node.this)
                if stored and _is_day(bound) and _may_hold_times(stored[1], query.dialect):
                    kind = stored[1].type
                    text = _TIMES.search(kind) is not None and "time" not in kind.lower()
                    yield _trial(query, core, node, bound, text)


def _is_day(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return node.is_string and _DAY.fullmatch(node.name) is not None
    if isinstance(node, exp.Cast):
        return node.is_type("date")
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _DAY_FUNCTIONS
    return isinstance(node, exp.Func) and node.sql_name().lower() in _DAY_FUNCTIONS


def _may_hold_times(column: Column, dialect: str) -> bool:
    """True if a column may have times: any of SQLite's may, unless samples show other values."""
    if dialect != "sqlite":
        return _TIMES.search(column.type) is not None
    return not column.samples or any(re.match(r"\d{4}-\d{2}-\d{2}", each) for each in column.samples)


def day_of(column: exp.Expr, dialect: str, text: bool) -> exp.Expr:
    """Return the day of a time, as the engine compares it with a day."""
    if dialect == "sqlite" or text:
        return exp.func("SUBSTR", column.copy(), number(1), number(10), dialect=dialect)
    return exp.cast(column.copy(), "date", dialect=dialect)


def _trial(query: Query, core: Core, node: exp.Expr, bound: exp.Expr, text: bool) -> Trial:
    column, dialect = node.this, query.dialect
    that_day = exp.EQ(this=day_of(column, dialect, text), expression=bound.copy())
    after = exp.GT(this=column.copy(), expression=bound.copy())
    wanted = {"later": exp.Count(this=exp.Star()), "latest": exp.Max(this=column.copy())}
    wanted["day"] = exp.Max(this=bound.copy())
    shown = [exp.alias_(each, name) for name, each in wanted.items()]
    rows = core.rows(shown, where=[that_day, after], without=[node])
    passes = "lets them pass" if isinstance(node, exp.GT) else "leaves them out"

    def tell(found: Rows) -> str:
        later, latest, day = found[0]
        if not later:
            return ""
        fall, at = ("falls", "at") if later == 1 else ("fall", "the last at")
        where = f"{many(later, 'row', 'rows')} {fall} on the day {value(day)} itself, {at} {value(latest)}"
        return f"{where}: `{write(node, dialect)}` {passes}."

    def mend() -> exp.Expr:
        tree, (place,) = query.copy(node)
        place.set("this", day_of(column, dialect, text))
        return tree

    return Trial(Doubt.CUT_DAY, rows, tell, mend)
