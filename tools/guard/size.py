"""Calls whose constants ask for more memory or rows than any question needs."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import prod

from sqlglot import exp

from quorum.tools.guard.text import Refused

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
    "bitstring": 1,
}
_SERIES = frozenset({"range", "generate_series", "generate_array", "array_generate_range"})
_PRINTF = re.compile(r"%[-+ 0#,]*(\d+)?(?:\.(\d+))?")
_GIVEN_WIDTH = re.compile(r"%[^%a-zA-Z]*\*|\{[^}]*\{")
_FIELD = re.compile(r"\{([^{}]+)\}")
_DIGITS = re.compile(r"\d+")
_SECONDS = {"NANOSECOND": 1e-9, "MICROSECOND": 1e-6, "MILLISECOND": 1e-3, "SECOND": 1.0, "MINUTE": 60.0}
_SECONDS |= {
    "HOUR": 3600.0,
    "DAY": 86_400.0,
    "WEEK": 604_800.0,
    "MONTH": 2.4e6,
    "QUARTER": 7.2e6,
    "YEAR": 3.1e7,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "IntDiv": operator.floordiv,
    "Pow": operator.pow,
    "BitwiseLeftShift": lambda value, bits: value * 2**bits,
}


def too_big(node: exp.Func) -> Refused | None:
    """A refusal if the call's own constants make it huge; what columns make of it is not known here."""
    if isinstance(node, exp.Repeat | exp.Space | exp.Pad | exp.Randstr):
        return _text(node.sql_name(), _length(node))
    if isinstance(node, exp.Generator):
        problem = _generator(node)
        if problem:
            return problem
    series = series_arguments(node)
    if series is not None:
        return _series(node.name if isinstance(node, exp.Anonymous) else node.sql_name(), series)
    if isinstance(node, exp.Format):
        return _format([node.this, *node.expressions])
    if isinstance(node, exp.Anonymous):
        return _anonymous(node.name.lower(), _arguments(node))
    return None


def series_arguments(node: exp.Func) -> list[exp.Expr | None] | None:
    """Start, end and step; None if the function makes no series."""
    if isinstance(node, exp.GenerateDateArray) and node.args.get("step") is None:
        return [node.args["start"], node.args["end"], exp.Interval(unit=exp.Var(this="DAY"))]
    kinds = (
        exp.GenerateSeries,
        exp.ExplodingGenerateSeries,
        exp.GenerateTimestampArray,
        exp.GenerateDateArray,
    )
    if isinstance(node, kinds):
        return [node.args.get(key) for key in ("start", "end", "step")]
    if isinstance(node, exp.Generator):
        return [None, node.args.get("rowcount")]
    if isinstance(node, exp.Anonymous) and node.name.lower() in _SERIES:
        arguments = _arguments(node)
        return list(arguments) if len(arguments) > 1 else [None, *arguments]
    return None


def _arguments(node: exp.Anonymous) -> list[exp.Expr]:
    """What the function is given: in ``x.f(y)`` x as well, unless it is a schema's name."""
    parent = node.parent
    method = isinstance(parent, exp.Dot) and parent.expression is node
    return (
        [parent.this, *node.expressions]
        if parent is not None and method and _is_value(parent.this)
        else node.expressions
    )


def _is_value(node: exp.Expr) -> bool:
    return not isinstance(node, exp.Identifier | exp.Dot)


def _anonymous(name: str, arguments: list[exp.Expr]) -> Refused | None:
    if name in ("printf", "format", "sformat"):
        return _format(arguments)
    if name == "array_fill" and len(arguments) > 1:
        written = arguments[1].find(exp.Literal) if isinstance(arguments[1], exp.Cast) else None
        numbers = _DIGITS.findall(written.name) if written else []
        sizes = [constant(size) or 1 for size in arguments[1].expressions] + [float(n) for n in numbers]
        return _rows(name, prod(sizes))
    position = _LENGTH_ARGUMENT.get(name)
    if position is not None and len(arguments) > max(position, 0):
        return _text(name, constant(arguments[position]))
    return None


def _length(node: exp.Expr) -> float | None:
    """Characters that nested REPEAT, SPACE and LPAD calls build, as far as constants tell."""
    if isinstance(node, exp.Repeat):
        times, inner = constant(node.args["times"]), node.this.find(exp.Repeat, exp.Space, exp.Pad)
        return None if times is None else times * max(1.0, (_length(inner) or 1.0) if inner else 1.0)
    argument = node.args.get("expression") if isinstance(node, exp.Pad) else node.this
    return None if argument is None else constant(argument)


def _text(name: str, length: float | None) -> Refused | None:
    if length is None or length <= MAX_TEXT:
        return None
    return Refused(f"{name.upper()} would build a text of {length:,.0f} characters.", "resources")


def _series(name: str, arguments: list[exp.Expr | None]) -> Refused | None:
    return _rows(name, count(arguments))


def _rows(name: str, rows: float | None) -> Refused | None:
    if rows is None or rows <= MAX_ROWS:
        return None
    return Refused(f"{name.upper()} would generate {rows:,.0f} rows.", "resources")


def count(arguments: Sequence[exp.Expr | None]) -> float | None:
    """Rows from start to end by step, as far as numbers and points in time are constants."""
    read = _seconds if any(_is_interval(argument) for argument in arguments[2:3]) else constant
    start, end, step = ([read(a) if a is not None else None for a in arguments] + [None] * 3)[:3]
    if end is None or (read is _seconds and start is None):
        return None
    return abs(end - (start or 0)) / (abs(step) if step else 1)


def _is_interval(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Interval)


def _seconds(node: exp.Expr) -> float | None:
    """A point in time since 1970, or the length of an interval; one of other units counts as a minute."""
    if isinstance(node, exp.Interval):
        length = constant(node.this) if node.this is not None else None
        return (length or 1) * _SECONDS.get(node.text("unit").upper().removesuffix("S"), 60.0)
    literal = node.find(exp.Literal)
    text = literal.name if literal is not None else ""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf") if "infinity" in text else None


def _generator(node: exp.Generator) -> Refused | None:
    if node.args.get("timelimit") is not None:
        return Refused("GENERATOR with a TIMELIMIT keeps the warehouse busy; give a ROWCOUNT.", "resources")
    rows = constant(node.args["rowcount"]) if node.args.get("rowcount") is not None else None
    if rows is None:
        return Refused("GENERATOR needs a constant ROWCOUNT, or it may never end.", "resources")
    return None


def _format(arguments: list[exp.Expr]) -> Refused | None:
    """Widths of printf and Python style: written in the pattern, or in it ``*`` or ``{}`` and a constant."""
    pattern = arguments[0] if arguments else None
    text = pattern.name if pattern is not None and pattern.is_string else ""
    numbers = [number for pair in _PRINTF.findall(text) for number in pair if number]
    numbers += [number for field in _FIELD.findall(text) for number in _DIGITS.findall(field)]
    widths = [float(number) for number in numbers]
    if _GIVEN_WIDTH.search(text.replace("%%", "")):
        given = [constant(argument) for argument in arguments[1:] if not argument.is_string]
        if None in given:  # it may be the width
            return Refused("FORMAT takes a width from a value: write the width in the pattern.", "resources")
        widths += [width for width in given if width is not None]
    return _text("format", max(widths, default=None))


def constant(node: exp.Expr) -> float | None:
    """The value of an expression made of numbers alone; None for anything else."""
    if isinstance(node, exp.Literal):
        try:
            return float(node.name)
        except ValueError:
            return None
    if isinstance(node, exp.Paren | exp.Cast | exp.Subquery):
        return constant(node.this)
    if isinstance(node, exp.Select):
        return constant(node.expressions[0].unalias()) if len(node.expressions) == 1 else None
    if isinstance(node, exp.Greatest):
        return max(filter(None, map(constant, [node.this, *node.expressions])), default=None)
    if isinstance(node, exp.Abs):
        return abs(constant(node.this) or 0)
    if isinstance(node, exp.Kwarg | exp.EQ | exp.PropertyEQ):  # name => value, name = value, name := value
        return constant(node.expression)
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return None if value is None else -value
    return _arithmetic(node) if type(node).__name__ in _ARITHMETIC else None


def _arithmetic(node: exp.Expr) -> float | None:
    left, right = constant(node.args["this"]), constant(node.args["expression"])
    if left is None or right is None:
        return None
    try:
        return float(_ARITHMETIC[type(node).__name__](left, right))
    except (OverflowError, ZeroDivisionError, TypeError):  # -1 ** 0.5 is complex
        return float("inf")
