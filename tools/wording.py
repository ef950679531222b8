"""SQL expressions in words that a reader understands who knows no SQL.

The words are also what two queries are compared by: expressions that mean the same and are written
differently (``5 < x`` and ``x > 5``, ``a = 1 OR a = 2`` and ``a IN (2, 1)``) have the same words. What the
words cannot say stands as SQL between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?([ T].*)?")
_COMPARISONS = {"EQ": "is", "NEQ": "is not"}
_NUMBERS = {"GT": "more than", "GTE": "at least", "LT": "less than", "LTE": "at most"}
_DATES = {"GT": "after {}", "GTE": "{} or later", "LT": "before {}", "LTE": "{} or earlier"}
_FLIPPED = {"EQ": "EQ", "NEQ": "NEQ", "GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
_OPPOSITE = {"EQ": "NEQ", "NEQ": "EQ", "GT": "LTE", "GTE": "LT", "LT": "GTE", "LTE": "GT"}
_AGGREGATES = {
    "Sum": "the sum of {}",
    "Avg": "the average of {}",
    "Min": "the least {}",
    "Max": "the greatest {}",
    "Median": "the median of {}",
}


def value_words(node: exp.Expr, dialect: str) -> str:
    """An expression as words: ``COUNT(DISTINCT city)`` is "the number of different `city`"."""
    from sqlglot import exp

    kind = type(node).__name__
    if isinstance(node, exp.Alias | exp.Paren):
        return value_words(node.this, dialect)
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return "all columns"
    if isinstance(node, exp.Column):
        return f"`{node.name.lower()}`"
    if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
        return node.sql(dialect)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return value_words(node.this, dialect)
    if isinstance(node, exp.Count):
        return _count_words(node, dialect)
    if kind in _AGGREGATES and not isinstance(node.parent, exp.Window):
        return _AGGREGATES[kind].format(_argument(node.this, dialect))
    if isinstance(node, exp.Subquery):
        return f"a value from {_tables(node)}"
    if isinstance(node, exp.Round):
        return f"{value_words(node.this, dialect)}, rounded"
    return _sql(node, dialect)


def _count_words(node: exp.Count, dialect: str) -> str:
    from sqlglot import exp

    inner = node.this
    if isinstance(inner, exp.Distinct):
        return f"the number of different {_listed(value_words(e, dialect) for e in inner.expressions)}"
    if inner is None or isinstance(inner, exp.Star | exp.Literal):
        return "the number of rows"
    return f"the number of rows with a value in {value_words(inner, dialect)}"


def _argument(node: exp.Expr, dialect: str) -> str:
    from sqlglot import exp

    if isinstance(node, exp.Distinct):
        return f"the different {_listed(value_words(e, dialect) for e in node.expressions)}"
    return value_words(node, dialect)


def _listed(words: Iterable[str]) -> str:
    return " and ".join(words)


def _sql(node: exp.Expr, dialect: str) -> str:
    return f"`{' '.join(plain(node).sql(dialect, comments=False).split())}`"


def plain(node: exp.Expr) -> exp.Expr:
    """A copy in which columns are bare lower-case names, whichever alias stands before them."""
    from sqlglot import exp

    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        if isinstance(column.this, exp.Identifier):
            for part in ("table", "db", "catalog"):
                column.set(part, None)
            column.this.set("this", column.this.name.lower())
            column.this.set("quoted", False)
    return copy


def conditions(node: exp.Expr, dialect: str, *, negated: bool = False) -> list[str]:
    """The parts of a condition that must all hold, as words.

    An equality of two columns joins tables and filters nothing, so it is left out.
    """
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return conditions(node.this, dialect, negated=negated)
    if isinstance(node, exp.Not):
        return conditions(node.this, dialect, negated=not negated)
    if isinstance(node, exp.Or if negated else exp.And) and not (negated and _as_choice(node)):
        parts = (conditions(part, dialect, negated=negated) for part in (node.this, node.expression))
        return [words for part in parts for words in part]
    if isinstance(node, exp.Between) and not negated:
        subject = value_words(node.this, dialect)
        bounds = (("GTE", node.args["low"]), ("LTE", node.args["high"]))
        return [_compared(subject, kind, bound, dialect) for kind, bound in bounds]
    if isinstance(node, exp.EQ) and all(isinstance(e, exp.Column) for e in (node.this, node.expression)):
        return []
    return [_condition(node, dialect, negated)]


def _condition(node: exp.Expr, dialect: str, negated: bool) -> str:
    from sqlglot import exp

    kind = type(node).__name__
    if kind in _FLIPPED:
        left, right = node.this, node.expression
        if _constant(left) and not _constant(right):
            left, right, kind = right, left, _FLIPPED[kind]
        return _compared(value_words(left, dialect), _OPPOSITE[kind] if negated else kind, right, dialect)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return f"{value_words(node.this, dialect)} {'has a value' if negated else 'is missing'}"
    if choice := _as_choice(node):
        return _choice_words(choice[0], choice[1], dialect, negated)
    if isinstance(node, exp.In) and node.args.get("query") is None and node.expressions:
        return _choice_words(node.this, node.expressions, dialect, negated)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        found = "is not found" if negated else "is found"
        return f"{value_words(node.this, dialect)} {found} in {_tables(node.args['query'])}"
    if isinstance(node, exp.Exists):
        return f"there is {'no' if negated else 'a'} matching row in {_tables(node.this)}"
    if isinstance(node, exp.Like | exp.ILike) and isinstance(node.expression, exp.Literal):
        against = negated != bool(node.args.get("negate"))
        return f"{value_words(node.this, dialect)} {_pattern_words(node.expression.name, against)}"
    return f"{'not ' if negated else ''}{_sql(node, dialect)}"


def _compared(subject: str, kind: str, other: exp.Expr, dialect: str) -> str:
    words = value_words(other, dialect)
    if kind in _COMPARISONS:
        return f"{subject} {_COMPARISONS[kind]} {words}"
    if _DATE.fullmatch(words.strip("'")):
        return f"{subject} is {_DATES[kind].format(words.strip(chr(39)))}"
    return f"{subject} is {_NUMBERS[kind]} {words}"


def _constant(node: exp.Expr) -> bool:
    from sqlglot import exp

    return node.find(exp.Column) is None


def _as_choice(node: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]] | None:
    """``a = 1 OR a = 2`` as its subject and values; None if it is anything else."""
    from sqlglot import exp

    if not isinstance(node, exp.Or):
        return None
    subject, values = None, list[exp.Expr]()
    for part in node.flatten():
        part = part.unnest()
        if not isinstance(part, exp.EQ) or not _constant(part.expression):
            return None
        if subject is not None and plain(part.this) != plain(subject):
            return None
        subject = part.this
        values.append(part.expression)
    return None if subject is None else (subject, values)


def _choice_words(subject: exp.Expr, values: list[exp.Expr], dialect: str, negated: bool) -> str:
    told = sorted({value_words(value, dialect) for value in values})
    if len(told) == 1:
        return f"{value_words(subject, dialect)} {'is not' if negated else 'is'} {told[0]}"
    return f"{value_words(subject, dialect)} is {'none' if negated else 'one'} of {', '.join(told)}"


def _tables(query: exp.Expr) -> str:
    from sqlglot import exp

    names = sorted({table.name.lower() for table in query.find_all(exp.Table)})
    return _listed(f"`{name}`" for name in names) or "a list"


def _pattern_words(pattern: str, negated: bool) -> str:
    inside = pattern.strip("%")
    starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
    verb = {(True, False): "begin with", (False, True): "end with", (False, False): "contain"}.get(
        (starts, ends)
    )
    if verb is None or "%" in inside or "_" in inside:
        return f"{'does not match' if negated else 'matches'} the pattern '{pattern}'"
    first, _, rest = verb.partition(" ")
    said = f"does not {verb}" if negated else f"{first}s {rest}".strip()
    return f"{said} '{inside}'"
