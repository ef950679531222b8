"""The columns that a SELECT gives to the query around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.tools.lint.scope import Columns, Scope

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.tools.lint.names import Names


def output_columns(names: Names, node: exp.Select, scope: Scope) -> Columns:
    """The columns of a SELECT, in order; None where an engine may name one in its own way."""
    from sqlglot import exp

    outputs: dict[str, str] = {}
    for item in node.expressions:
        alias = item.args.get("alias")
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            columns = _expanded(names, item, star, scope)
            if columns is None:
                return None
            outputs |= columns
        elif isinstance(alias, exp.Identifier):
            outputs[names.key(alias)] = alias.name
        elif isinstance(item, exp.Column):
            outputs[names.key(item.this)] = item.name
        else:
            return None  # engines name an expression in their own ways
    return outputs


def _expanded(names: Names, item: exp.Expr, star: exp.Star, scope: Scope) -> Columns:
    """The columns of ``*`` or ``t.*``, with EXCEPT and REPLACE applied; None if RENAME changes them."""
    if star.args.get("rename"):
        return None
    qualifier = item.args.get("table") if item is not star else None
    columns = star_columns(scope, names.key(qualifier) if qualifier is not None else None)
    if columns is None:
        return None
    left_out = {
        names.key(c.this if c.key == "column" else c)
        for c in star.args.get("except_") or ()
        if hasattr(c, "this")
    }
    return {key: name for key, name in columns.items() if key not in left_out}


def star_columns(scope: Scope, key: str | None = None) -> Columns:
    """What ``*`` stands for, or ``t.*`` if ``key`` is the source's; None if it cannot be known."""
    sources = scope.sources if key is None else scope.named(key)
    if not sources or any(source.columns is None for source in sources):
        return None
    return {k: name for source in sources for k, name in (source.columns or {}).items()}
