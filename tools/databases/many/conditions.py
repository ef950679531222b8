"""Conditions that another engine may check before rows are fetched: never fewer rows than DuckDB would keep.

A condition is handed down where DuckDB's answer "true" for a row as it arrives implies the owner's for the
row as it is kept; the query checks it again. So what is found may be weaker than what was asked, but not
stronger: texts are looked up and never put in an order of the owner's (collations differ); numbers have
digits that a double holds; moments name their zone. In SQLite any value may stand in any column: one that is
no number among numbers, no text among dates, is fetched whatever is asked. Whatever is not known to be the
same is not handed down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from sqlglot import exp

from quorum.tools.databases.many.types import Comparable, comparable
from quorum.tools.sql.writing import write

DIGITS = 15
"""Most digits of a number that is handed down: a double holds them all."""
CHARACTERS = 500
"""Longest text that is handed down."""
MOST_VALUES = 1_000
"""Of an IN."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_ORDERED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
PARTS = {"this", "expression", "expressions", "low", "high", "table"}
"""What conditions and columns are made of."""
_TYPED = {
    "timestamp": {"bigquery": "DATETIME"},
    "instant": {"bigquery": "TIMESTAMP", "duckdb": "TIMESTAMPTZ", "postgres": "TIMESTAMPTZ"},
}
"""What stands before a constant, where that is not the usual word."""


@dataclass(frozen=True)
class Comparison:
    """A column of the owner's, compared with constants: ``=``, ``<``, ``IN``, ``IS NULL``, …

    ``values`` are SQL in the owner's dialect, ``kind`` is what they are compared as.
    """

    column: str
    operator: str
    values: tuple[str, ...]
    kind: Comparable


@dataclass(frozen=True)
class Junction:
    """Conditions joined by ``AND`` or ``OR``."""

    word: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Junction


@dataclass(frozen=True)
class Found:
    """What can be handed down of a condition.

    Attributes:
        whole: It is the whole condition: a row that the owner keeps is a row that the query keeps.
        strict: A row whose columns are all NULL never fulfils it.
    """

    condition: Condition
    whole: bool
    strict: bool


def conjunction(found: Sequence[Found | None], word: str = "AND") -> Found | None:
    """Several as one. Of an AND what cannot be handed down is left out; an OR needs them all."""
    known = [each for each in found if each]
    if not known or (word == "OR" and len(known) < len(found)):
        return None
    whole = len(known) == len(found) and all(each.whole for each in known)
    strict = (any if word == "AND" else all)(each.strict for each in known)
    if len(known) == 1:
        return Found(known[0].condition, whole, strict)
    return Found(Junction(word, tuple(each.condition for each in known)), whole, strict)


@dataclass(frozen=True)
class Reader:
    """Reads conditions on one table.

    Attributes:
        column: The owner's name and type of the column that an expression names; None if it names none.
        dialect: The owner's.
    """

    column: Callable[[exp.Expr], tuple[str, str] | None]
    dialect: str

    def read(self, node: exp.Expr) -> Found | None:
        """What can be handed down of a condition."""
        node = node.unnest()
        if not _is_known(node):
            return None
        if isinstance(node, exp.And | exp.Or):
            word = "AND" if isinstance(node, exp.And) else "OR"
            return conjunction([self.read(part) for part in node.flatten()], word)
        if isinstance(node, exp.Between):
            ends = [("low", ">="), ("high", "<=")]
            return conjunction([self._compared(node.this, sign, [node.args[end]]) for end, sign in ends])
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self._null(node.this)
        operator, subject, values = _parts(node)
        return self._compared(subject, operator, values) if operator else None

    def _null(self, node: exp.Expr) -> Found | None:
        column = self.column(node.unnest())
        kind = comparable(column[1], self.dialect) if column else ""
        if column is None or kind in ("", "text"):
            return None
        return Found(Comparison(column[0], "IS NULL", (), kind), whole=True, strict=False)

    def _compared(self, node: exp.Expr, operator: str, values: Sequence[exp.Expr]) -> Found | None:
        column = self.column(node.unnest())
        if column is None or not 0 < len(values) <= MOST_VALUES:
            return None
        kind = comparable(column[1], self.dialect)
        if kind == "text" and operator not in ("=", "IN"):
            return None
        written = [_constant(value, kind, self.dialect) for value in values]
        if not kind or any(not each for each in written):
            return None
        whole = self.dialect != "sqlite" and kind != "text"
        return Found(Comparison(column[0], operator, tuple(written), kind), whole, strict=True)


def _is_known(node: exp.Expr) -> bool:
    """Whether nothing is said of a condition that is not known here: NOT LIKE is a LIKE with a mark."""
    return all(name in PARTS for name, value in node.args.items() if value)


def _parts(node: exp.Expr) -> tuple[str, exp.Expr, list[exp.Expr]]:
    """Operator, the side that may be a column, and what it is compared with."""
    if isinstance(node, exp.In) and node.expressions:
        return "IN", node.this, list(node.expressions)
    operator = _ORDERED.get(type(node), "")
    if operator and not isinstance(node.this.unnest(), exp.Column):
        return _TURNED[operator], node.expression, [node.this]
    return operator, node.this, [node.expression] if operator else []


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _constant(node: exp.Expr, kind: Comparable, dialect: str) -> str:
    """A constant in SQL of the owner's dialect; empty where it may mean something else there."""
    node = node.unnest()
    if kind in ("number", "whole"):
        return _number(node, fractions=kind == "number")
    if kind == "text":
        return _text(node, dialect)
    if kind == "date" and dialect == "sqlite":  # which keeps it as a text
        return _text(node, dialect) if _MOMENT.fullmatch(node.name) else ""
    return _moment(node, kind, dialect) if kind else ""


def _number(node: exp.Expr, *, fractions: bool) -> str:
    sign = "-" if isinstance(node, exp.Neg) else ""
    literal = node.this if sign else node
    if not isinstance(literal, exp.Literal) or literal.is_string or not _NUMBER.fullmatch(literal.name):
        return ""
    digits = literal.name.replace(".", "")
    return f"{sign}{literal.name}" if len(digits) <= DIGITS and (fractions or "." not in literal.name) else ""


def _text(node: exp.Expr, dialect: str) -> str:
    """A text that every dialect reads alike: no backslash, nothing that is not shown."""
    if not _is_text(node):
        return ""
    text = node.name
    if "\\" in text or not text.isprintable() or len(text) > CHARACTERS:
        return ""
    if dialect in ("postgres", "mysql") and not text.isascii():  # their own encoding may lack it
        return ""
    if dialect == "sqlite" and text.startswith("X'"):  # as a blob beside texts arrives
        return ""
    return write(exp.Literal.string(text), dialect)


def _moment(node: exp.Expr, kind: Comparable, dialect: str) -> str:
    """A date, or a moment to the microsecond; one without a zone is UTC's, as in DuckDB's session."""
    if isinstance(node, exp.Cast):
        allowed = {"DATE"} if kind == "date" else {"DATE", "TIMESTAMP", "TIMESTAMPNTZ"}
        if type(node) is not exp.Cast or str(node.to.this.value) not in allowed or not _is_text(node.this):
            return ""
        if str(node.to.this.value) == "DATE" and len(node.this.name) > len("2024-01-31"):
            return ""
        node = node.this
    if not _is_text(node) or not _MOMENT.fullmatch(node.name):
        return ""
    try:
        moment = datetime.fromisoformat(node.name)
    except ValueError:
        return ""
    if kind == "date":
        return f"DATE '{node.name}'" if len(node.name) == len("2024-01-31") else ""
    zone = "+00:00" if kind == "instant" else ""
    word = _TYPED[kind].get(dialect, "TIMESTAMP")
    return f"{word} '{moment.isoformat(sep=' ')}{zone}'"


def written(condition: Condition, alias: str, dialect: str) -> str:
    """A condition in SQL of the owner's dialect, on the table of that alias."""
    if isinstance(condition, Junction):
        parts = (written(part, alias, dialect) for part in condition.parts)
        return f"({f' {condition.word} '.join(parts)})"
    column = write(exp.column(condition.column, table=alias, quoted=True), dialect)
    if not condition.values:
        return f"{column} {condition.operator}"
    values = f"({', '.join(condition.values)})" if condition.operator == "IN" else condition.values[0]
    compared = f"{column} {condition.operator} {values}"
    if dialect == "sqlite" and condition.kind != "text":  # values of other classes are all kept
        own = "'text'" if condition.kind == "date" else "'integer', 'real'"
        collation = " COLLATE BINARY" if condition.kind == "date" else ""
        return f"({compared}{collation} OR typeof({column}) NOT IN ({own}, 'null'))"
    return compared
