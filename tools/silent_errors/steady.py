"""A query whose LIMITs always keep the same rows."""

from __future__ import annotations

from sqlglot import exp

from quorum.tools.silent_errors.evidence import by, number


def steadied(tree: exp.Expr, dialect: str) -> exp.Expr | None:
    """A copy in which rows that share a place under a LIMIT are sorted by all columns; the tree itself if it
    has no LIMIT, and None if the number of columns is not known."""
    cutting = [node for node in tree.find_all(exp.Query) if node.args.get("limit") or node.args.get("fetch")]
    if not cutting:
        return tree
    copy = tree.copy()
    for node in copy.find_all(exp.Query):
        if not (node.args.get("limit") or node.args.get("fetch")):
            continue
        if not isinstance(node, exp.Select | exp.SetOperation) or any(each.is_star for each in node.selects):
            return None
        order = node.args.get("order")
        keys = list(order.expressions) if order else []
        places = [by(number(place), dialect) for place in range(1, len(node.selects) + 1)]
        node.set("order", exp.Order(expressions=[*keys, *places]))
    return copy
