"""Generated series that combine, row by row, to more rows than any question needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from sqlglot import exp

from quorum.tools.guard.size import constant, count, series_arguments
from quorum.tools.guard.text import Refused

MAX_COMBINED = 1_000_000_000
"""Most rows that generated series may give when every row of one meets every row of the other."""

_WRAPPERS = (exp.Table, exp.TableFromRows, exp.Lateral, exp.Unnest, exp.Explode, exp.Paren)
_SEQUENCE = re.compile(r"seq_(\d+)_to_(\d+)(?:_step_(\d+))?", re.IGNORECASE)  # MariaDB's tables


def too_many_rows(tree: exp.Expr) -> Refused | None:
    """A refusal if generated series are combined without a condition that joins them.

    Only series of constants count. How many rows real tables hold is not known here: the run's limits
    stop what they make too long.
    """
    series = _Series(tree)
    for query in tree.find_all(exp.Select):
        rows = series.of_select(query)
        if rows > MAX_COMBINED:
            return Refused(f"The series in one FROM would combine to {rows:,.0f} rows.", "resources")
    return None


class _Series:
    """Rows that queries make of series alone; whatever else they read counts as one row."""

    def __init__(self, tree: exp.Expr) -> None:
        self._ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        self._known: dict[int, float] = {}

    def of_query(self, query: exp.Expr) -> float:
        if isinstance(query, exp.SetOperation):
            return sum(self._once(branch) for branch in _branches(query))
        if isinstance(query, exp.Subquery):
            return self.of_source(query)
        if isinstance(query, exp.Values):
            return float(len(query.expressions))
        if not isinstance(query, exp.Select):
            return 1.0
        if not query.args.get("group") and any(item.find(exp.AggFunc) for item in query.expressions):
            return 1.0
        limit = query.args.get("limit")
        most = constant(limit.args.get("expression") or limit) if limit else None
        return min(self.of_select(query), float("inf") if most is None else most)

    def of_select(self, select: exp.Select) -> float:
        """Rows before grouping and LIMIT; a series in the SELECT list repeats every row."""
        sources = [source for source in [select.args.get("from_")] if source]
        combined = [self.of_source(source.this) for source in sources]
        combined += [self._of_join(join) for join in select.args.get("joins") or ()]
        combined += [self.of_source(lateral) for lateral in select.args.get("laterals") or ()]
        lists = [_length(item) or 1.0 for item in select.expressions]
        return prod(combined) * max(lists, default=1.0)

    def of_source(self, source: exp.Expr) -> float:
        joined = prod(self._of_join(join) for join in source.args.get("joins") or ())
        if isinstance(source, exp.Subquery | exp.Lateral) and isinstance(source.this, exp.Query | exp.Table):
            inner = source.this
            return joined * (self.of_source(inner) if isinstance(inner, exp.Table) else self._once(inner))
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            cte = None if source.args.get("db") else self._ctes.get(source.name.lower())
            return joined * (_sequence(source.name) if cte is None else self._once(cte))
        if isinstance(source, exp.Values):
            return joined * len(source.expressions)
        return joined * (_length(source) or 1.0)

    def _of_join(self, join: exp.Expr) -> float:
        return self.of_source(join.this) if _combines_all(join) else 1.0

    def _once(self, query: exp.Expr) -> float:
        """The rows of a query that may be met again, or from within itself."""
        if id(query) not in self._known:
            self._known[id(query)] = 1.0
            self._known[id(query)] = self.of_query(query)
        return self._known[id(query)]


def _branches(query: exp.Expr) -> Iterator[exp.Expr]:
    todo = [query]
    while todo:  # a loop: generated unions may be thousands long
        node = todo.pop()
        if isinstance(node, exp.SetOperation):
            todo += [node.right, node.left]
        else:
            yield node


def _combines_all(join: exp.Expr) -> bool:
    """True unless the join equates something of one side with something of the other."""
    condition = join.args.get("on")
    if join.args.get("using") or join.text("method").upper() not in (
        "",
        "NATURAL",
    ):  # NATURAL joins nothing by alias
        return False
    tests = condition.flatten() if isinstance(condition, exp.And) else [condition]
    return not any(_equates(test.unnest()) for test in tests if test is not None)


def _equates(test: exp.Expr) -> bool:
    if not isinstance(test, exp.EQ | exp.NullSafeEQ):
        return False
    left, right = ({c.sql() for c in side.find_all(exp.Column)} for side in (test.left, test.right))
    return bool(left and right and left != right)


def _length(source: exp.Expr) -> float | None:
    """Rows of a series of constants, or elements of a list of them; None for anything else."""
    node = source.unalias()
    while isinstance(node, _WRAPPERS):
        node = node.expressions[0] if isinstance(node, exp.Unnest) and node.expressions else node.this
    if not isinstance(node, exp.Func):
        return None
    arguments = series_arguments(node)
    return None if arguments is None else count(arguments)


def _sequence(name: str) -> float:
    found = _SEQUENCE.fullmatch(name)
    numbers = [exp.Literal.number(part) if part else None for part in found.groups()] if found else []
    return (count(numbers) or 1.0) if found else 1.0
