"""SQLite takes a double-quoted name that is no column for text; people use that for real text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


def maybe_text(node: exp.Expr) -> bool:
    """True if an unknown double-quoted name is plausibly meant as text.

    It is where a value is expected beside something else: one side of a comparison whose other side is
    no constant, an element of IN, a result of CASE, an argument of a function that is no aggregate.
    It is not where it stands for data itself: the SELECT list, GROUP BY, ORDER BY, an aggregate.
    """
    from sqlglot import exp

    if not isinstance(node, exp.Column) or node.args.get("table") or not node.this.args.get("quoted"):
        return False
    child: exp.Expr = node
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Collate | exp.Escape):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.In):
        return child is not parent.this
    if isinstance(parent, exp.Between):
        return child is not parent.this
    if isinstance(parent, exp.Predicate) and isinstance(parent, exp.Binary):
        other = parent.expression if child is parent.this else parent.this
        return not isinstance(other.unnest(), exp.Literal)
    if isinstance(parent, exp.If | exp.Case | exp.DPipe | exp.Tuple):
        return True
    return isinstance(parent, exp.Func) and not isinstance(parent, exp.AggFunc)
