"""Recursive common table expressions that nothing ends."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from quorum.tools.guard.size import MAX_ROWS, constant
from quorum.tools.guard.text import Refused

_IMPLICIT = frozenset({"sqlite", "snowflake", "oracle", "tsql"})
"""Engines that recurse without the word RECURSIVE."""


def endless_recursion(tree: exp.Expr, dialect: str) -> Refused | None:
    """A refusal if a recursive step has no condition, no join to other data and no LIMIT.

    This finds the plain forms; a condition that never becomes false is left to the time limit.
    """
    for clause in tree.find_all(exp.With):
        if not (clause.args.get("recursive") or dialect in _IMPLICIT):
            continue
        for cte in clause.expressions:
            if _endless(cte, clause):
                name = cte.alias
                reason = f"The recursion of {name} has no end: give its recursive part a WHERE or a LIMIT."
                return Refused(reason, "recursion")
    return None


def _endless(cte: exp.Expr, clause: exp.Expr) -> bool:
    body = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
    if not isinstance(body, exp.SetOperation) or _limited(body):
        return False
    steps = [step for step in _branches(body) if _reads(step, cte.alias)]
    return any(not _bounded(step, cte.alias) for step in steps) and not _lazily_limited(clause.parent)


def _branches(body: exp.Expr) -> Iterator[exp.Expr]:
    todo = [body]
    while todo:
        node = todo.pop()
        if isinstance(node, exp.Subquery):
            todo.append(node.this)
        elif isinstance(node, exp.SetOperation):
            todo += [node.right, node.left]
        else:
            yield node


def _reads(node: exp.Expr, name: str) -> bool:
    wanted = name.casefold()
    return any(t.name.casefold() == wanted and not t.args.get("db") for t in node.find_all(exp.Table))


def _bounded(step: exp.Expr, name: str) -> bool:
    if _limited(step):
        return True
    rising, names = _rising(step), _names(step, name)
    conditions = [step.args.get(key) for key in ("where", "having", "qualify")]
    for join in step.args.get("joins") or ():
        other = not _is(join.this, name)
        if other and (join.args.get("using") or join.method == "NATURAL" or _unfolds(join.this)):
            return True
        conditions.append(join.args.get("on"))
    if any(_unfolds(lateral) for lateral in step.args.get("laterals") or ()):
        return True
    return any(
        condition is not None and _selective(condition, rising, names) for condition in conditions
    ) or any(
        isinstance(source, exp.Subquery) and _bounded(source.this, name)
        for source in [step.args["from_"].this]
        if step.args.get("from_")
    )


def _is(node: exp.Expr, name: str) -> bool:
    return node.name.casefold() == name.casefold()


def _unfolds(node: exp.Expr) -> bool:
    """True for a table function or LATERAL over columns: it runs out when the data does."""
    kinds = (exp.Lateral, exp.Unnest, exp.TableFromRows)
    function = isinstance(node, kinds) or isinstance(node.this, exp.Func)
    return function and node.find(exp.Column) is not None


def _limited(query: exp.Expr) -> bool:
    """True for a LIMIT that ends something, as far as it is a constant."""
    limit = query.args.get("limit")
    if limit is None:
        return False
    rows = constant(limit.args.get("expression") or limit.args.get("count") or limit)
    return rows is None or 0 <= rows <= MAX_ROWS


def _rising(step: exp.Expr) -> dict[str, float]:
    """Columns that each step adds a constant to, by lower-case name: ``SELECT n + 1``."""
    rising: dict[str, float] = {}
    for item in step.args.get("expressions") or ():
        value = item.unalias().unnest()
        if isinstance(value, exp.Add) and isinstance(value.this, exp.Column):
            by = constant(value.expression)
            if by is not None and by > 0:
                rising[value.this.name.lower()] = by
    return rising


def _names(step: exp.Expr, name: str) -> set[str]:
    """What the step calls the rows that it builds on, in lower case; empty if they come indirectly."""
    joins = [join.this for join in step.args.get("joins") or ()]
    sources = [step.args["from_"].this, *joins] if step.args.get("from_") else joins
    return {source.alias_or_name.lower() for source in sources if _is(source, name)}


def _selective(condition: exp.Expr, rising: dict[str, float], names: set[str]) -> bool:
    """True if the condition looks at what the step builds on: constants and ``x = x`` do not end anything."""
    columns = condition.find_all(exp.Column)
    own = (c for c in columns if not names or not c.table or c.table.lower() in names)
    return any(not _idle(column, rising) for column in own)


def _idle(column: exp.Expr, rising: dict[str, float]) -> bool:
    """True if what the column is compared with never ends the recursion, or not in reasonable time.

    ``x <= x`` always holds, and so do ``n > 0``, ``n IS NOT NULL`` and ``n < n + 1`` where n grows;
    ``n < 1e12`` holds for too long.
    """
    test = column.find_ancestor(exp.Predicate)
    if test is None or not isinstance(test, exp.Binary):
        return isinstance(test, exp.In) and test.this in test.expressions
    left, right = test.left, test.right
    if left == right:
        return not isinstance(test, exp.NEQ | exp.LT | exp.GT)
    by = rising.get(column.name.lower())
    if by is None:
        return False
    if isinstance(test, exp.Is):
        return isinstance(test.parent, exp.Not)
    if isinstance(test, exp.GT | exp.GTE):
        left, right = right, left
    if not isinstance(test, exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    if isinstance(left, exp.Column) and isinstance(right, exp.Add) and right.this == left:
        return True
    bound = constant(right if left.find(exp.Column) else left)
    return bound is not None and (left.find(exp.Column) is None or bound / by > MAX_ROWS)


def endless_hierarchy(tree: exp.Expr) -> Refused | None:
    """A refusal of CONNECT BY that neither follows the data (PRIOR) nor has an upper bound."""
    for clause in tree.find_all(exp.Connect):
        condition = clause.args["connect"]
        if condition.find(exp.Prior) is None and not any(map(_is_bound, condition.find_all(exp.Predicate))):
            reason = "CONNECT BY has no end: it needs PRIOR or an upper bound of LEVEL."
            return Refused(reason, "recursion")
    return None


def _is_bound(test: exp.Expr) -> bool:
    if test.find(exp.Column) is None or not isinstance(test, exp.LT | exp.LTE | exp.EQ | exp.Between):
        return False
    bound = constant(test.args["high"] if isinstance(test, exp.Between) else test.args["expression"])
    return bound is None or bound <= MAX_ROWS


def _lazily_limited(query: exp.Expr | None) -> bool:
    """True if the outer query only takes the first rows, so that the engine stops by itself."""
    if not isinstance(query, exp.Select) or not query.args.get("limit"):
        return False
    eager = any(query.args.get(key) for key in ("group", "order", "having", "distinct", "qualify", "joins"))
    return not eager and not any(e.find(exp.AggFunc, exp.Window) for e in query.expressions)
