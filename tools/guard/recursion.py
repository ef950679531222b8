"""Recursive common table expressions that nothing ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.guard.verdict import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

_IMPLICIT = frozenset({"sqlite", "snowflake"})  # engines that recurse without the word RECURSIVE


def endless_recursion(tree: exp.Expr, dialect: str) -> Refused | None:
    """A refusal if a recursive step has no condition, no join to other data and no LIMIT.

    This finds the plain forms; a condition that never becomes false is left to the time limit.
    """
    from sqlglot import exp

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
    from sqlglot import exp

    body = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
    if not isinstance(body, exp.SetOperation) or body.args.get("limit"):
        return False
    steps = [step for step in _branches(body) if _reads(step, cte.alias)]
    return any(not _bounded(step, cte.alias) for step in steps) and not _lazily_limited(clause.parent)


def _branches(body: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

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
    from sqlglot import exp

    wanted = name.casefold()
    return any(t.name.casefold() == wanted and not t.args.get("db") for t in node.find_all(exp.Table))


def _bounded(step: exp.Expr, name: str) -> bool:
    from sqlglot import exp

    if step.args.get("limit"):
        return True
    conditions = [step.args.get(key) for key in ("where", "having", "qualify")]
    for join in step.args.get("joins") or ():
        other = not _is(join.this, name)
        if other and (join.args.get("using") or join.method == "NATURAL" or _unfolds(join.this)):
            return True
        conditions.append(join.args.get("on"))
    if any(_unfolds(lateral) for lateral in step.args.get("laterals") or ()):
        return True
    return any(condition is not None and _selective(condition) for condition in conditions) or any(
        isinstance(source, exp.Subquery) and _bounded(source.this, name)
        for source in [step.args["from_"].this]
        if step.args.get("from_")
    )


def _is(node: exp.Expr, name: str) -> bool:
    return node.name.casefold() == name.casefold()


def _unfolds(node: exp.Expr) -> bool:
    """True for a table function or LATERAL over columns: it runs out when the data does."""
    from sqlglot import exp

    kinds = (exp.Lateral, exp.Unnest, exp.TableFromRows)
    function = isinstance(node, kinds) or isinstance(node.this, exp.Func)
    return function and node.find(exp.Column) is not None


def _selective(condition: exp.Expr) -> bool:
    """True if the condition looks at data: constants and ``x = x`` do not end anything."""
    from sqlglot import exp

    for node in condition.find_all(exp.Column):
        comparison = node.parent
        if not (isinstance(comparison, exp.EQ) and comparison.left == comparison.right):
            return True
    return False


def _lazily_limited(query: exp.Expr | None) -> bool:
    """True if the outer query only takes the first rows, so that the engine stops by itself."""
    from sqlglot import exp

    if not isinstance(query, exp.Select) or not query.args.get("limit"):
        return False
    eager = any(query.args.get(key) for key in ("group", "order", "having", "distinct", "qualify", "joins"))
    return not eager and not any(e.find(exp.AggFunc, exp.Window) for e in query.expressions)
