"""Calls whose constants ask for more memory or rows than any question needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.guard.verdict import Refused

if TYPE_CHECKING:
    from sqlglot import exp

MAX_TEXT = 10_000_000
"""Longest text, in characters, that one call may build."""

MAX_ROWS = 100_000_000
"""Most rows or elements that one call may generate."""

# the argument that says how long the text or list becomes, by lower-case name
_LENGTH_ARGUMENT = {
    "zeroblob": 0,
    "randomblob": 0,
    "randstr": 0,
    "space": 0,
    "repeat": 1,
    "repeat_row": -1,
    "lpad": 1,
    "rpad": 1,
    "list_resize": 1,
    "array_resize": 1,
    "bar": 3,
}
_SERIES = frozenset({"range", "generate_series", "generate_array", "array_generate_range"})
_WIDTH = re.compile(r"%[-+ 0#,]*(\d+)?(?:\.(\d+))?")


def too_big(node: exp.Func) -> Refused | None:
    """A refusal if the call's own constants make it huge; what columns make of it is not known here."""
    from sqlglot import exp

    if isinstance(node, exp.Repeat | exp.Space | exp.Pad | exp.Randstr):
        return _text(node.sql_name(), _length(node))
    if isinstance(node, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        return _series(node.sql_name(), [node.args.get(key) for key in ("start", "end", "step")])
    if isinstance(node, exp.Generator):
        return _generator(node)
    if isinstance(node, exp.Format):
        return _format([node.this, *node.expressions])
    if isinstance(node, exp.Anonymous):
        return _anonymous(node.name.lower(), node.expressions)
    return None


def _anonymous(name: str, arguments: list[exp.Expr]) -> Refused | None:
    if name in ("printf", "format"):
        return _format(arguments)
    if name in _SERIES:
        return _series(name, list(arguments) if len(arguments) > 1 else [None, *arguments])
    position = _LENGTH_ARGUMENT.get(name)
    if position is not None and len(arguments) > max(position, 0):
        return _text(name, constant(arguments[position]))
    return None


def _length(node: exp.Expr) -> float | None:
    """Characters that nested REPEAT, SPACE and LPAD calls build, as far as constants tell."""
    from sqlglot import exp

    if isinstance(node, exp.Repeat):
        times, inner = constant(node.args["times"]), node.this.find(exp.Repeat)
        return None if times is None else times * max(1.0, (_length(inner) or 1.0) if inner else 1.0)
    argument = node.args.get("expression") if isinstance(node, exp.Pad) else node.this
    return None if argument is None else constant(argument)


def _text(name: str, length: float | None) -> Refused | None:
    if length is None or length <= MAX_TEXT:
        return None
    return Refused(f"{name.upper()} would build a text of {length:,.0f} characters.", "resources")


def _series(name: str, arguments: list[exp.Expr | None]) -> Refused | None:
    start, end, step = ([constant(a) if a is not None else None for a in arguments] + [None] * 3)[:3]
    if end is None:
        return None
    rows = abs(end - (start or 0)) / (abs(step) if step else 1)
    if rows <= MAX_ROWS:
        return None
    return Refused(f"{name.upper()} would generate {rows:,.0f} rows.", "resources")


def _generator(node: exp.Generator) -> Refused | None:
    if node.args.get("timelimit") is not None:
        return Refused("GENERATOR with a TIMELIMIT keeps the warehouse busy; give a ROWCOUNT.", "resources")
    rows = constant(node.args["rowcount"]) if node.args.get("rowcount") is not None else None
    if rows is None:
        return Refused("GENERATOR needs a constant ROWCOUNT, or it may never end.", "resources")
    return _series("GENERATOR", [None, node.args["rowcount"]])


def _format(arguments: list[exp.Expr]) -> Refused | None:
    """printf-style widths: written in the pattern, or ``*`` with a constant argument."""
    pattern = arguments[0] if arguments else None
    text = pattern.name if pattern is not None and pattern.is_string else ""
    widths = [float(width) for pair in _WIDTH.findall(text) for width in pair if width]
    if "*" in text:
        widths += [value for a in arguments[1:] if (value := constant(a)) is not None]
    return _text("format", max(widths, default=None))


def constant(node: exp.Expr) -> float | None:
    """The value of an expression made of numbers alone; None for anything else."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        try:
            return float(node.name)
        except ValueError:
            return None
    if isinstance(node, exp.Paren | exp.Cast | exp.Kwarg):
        return constant(node.expression if isinstance(node, exp.Kwarg) else node.this)
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Pow):
        return _arithmetic(node)
    return None


def _arithmetic(node: exp.Expr) -> float | None:
    from sqlglot import exp

    left, right = constant(node.this), constant(node.expression)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add):
        return left + right
    if isinstance(node, exp.Sub):
        return left - right
    try:
        return left * right if isinstance(node, exp.Mul) else float(left**right)
    except (OverflowError, ZeroDivisionError):
        return float("inf")
