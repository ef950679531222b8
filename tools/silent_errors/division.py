"""Quotients of whole numbers, whose fraction is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from quorum.tools.silent_errors.cores import Core, own_nodes
from quorum.tools.silent_errors.evidence import counted, value
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind, Rows, Trial

CUTTING = ("sqlite", "postgres")
"""Dialects in which ``/`` of two whole numbers is a whole number."""


def trials(query: Query) -> Iterator[Trial]:
    """One for each quotient."""
    for core in query.cores if query.dialect in CUTTING else ():
        for node in own_nodes(core.select):
            if isinstance(node, exp.Div) and not _meant(core, node):
                yield _trial(query, core, node)


def _meant(core: Core, node: exp.Div) -> bool:
    """Whether the whole number is wanted: in steps (``year / 10 * 10``), as a group, in a remainder."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    steps = isinstance(parent, exp.Mul) and node.expression in (parent.this, parent.expression)
    grouped = any(node in own_nodes(group) for group in core.groups or ())
    return steps or grouped or isinstance(parent, exp.Mod)


def _make_exact(node: exp.Expr) -> exp.Expr:
    """The quotient with its fraction, in place."""
    left = exp.Mul(this=exp.Literal.number("1.0"), expression=exp.Paren(this=node.this.copy()))
    node.set("this", exp.Paren(this=left))
    return node


def _figure(cell: Any) -> Any:
    """A number of many digits, which comes as text, as one that is read at a glance."""
    return float(cell) if isinstance(cell, str) else cell


def _trial(query: Query, core: Core, node: exp.Div) -> Trial:
    exact = _make_exact(node.copy())
    parts = {"part": node.this, "whole": node.expression, "cut": node, "exact": exact}
    shown = [exp.alias_(core.spelled(part), name) for name, part in parts.items()]
    condition = next((each for each in core.parts if node in own_nodes(each)), None)
    inner = core.rows(shown, instead={id(condition): None}) if condition else core.grouped(shown)
    inner.set("with_", None)
    rows = exp.select("*", exp.alias_(counted(), "places")).from_(inner.subquery("quotients"))
    rows = rows.where(exp.NEQ(this=exp.column("cut"), expression=exp.column("exact")), copy=False)

    def tell(found: Rows) -> str:
        part, whole, cut, real, places = map(_figure, found[0])
        often = f" So {value(places)} quotients lose their fraction." if places > 1 else ""
        quotient = f"{value(part)} / {value(whole)}"
        return f"{quotient} is {value(cut)} here, not {value(real)}, for both are whole.{often}"

    def mend() -> exp.Expr:
        tree, (place,) = query.copy(node)
        _make_exact(place)
        return tree

    return Trial(Kind.INTEGER_DIVISION, core.within(rows.limit(1, copy=False)), tell, mend)
