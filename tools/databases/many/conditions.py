"""Conditions that another engine may check before rows are fetched.

A condition is handed down only if a row that fulfils it in DuckDB, as it arrives, also fulfils it at its
owner, as it is stored: the owner never returns fewer rows than DuckDB would keep, and the query checks the
condition again. So the owner's condition may be weaker than the query's, but not stronger:

- Numbers, dates and moments are compared by =, <, >, IN, BETWEEN and IS NULL. A number has digits that a
  double holds; a moment names its zone.
- Texts are compared by = and IN only, because collations order them differently.
- In SQLite a column may hold values of any type: a row whose value is no number among numbers, or no text
  among dates, is always fetched.
- Any other condition is left to DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from quorum.tools.databases.many.types import Comparable, comparable
from quorum.tools.sql.writing import write

ALIAS = "p"
"""The name of the owner's table in a part."""
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
"""The parts of conditions and columns that are understood here."""
_TYPED = {
    "timestamp": {"bigquery": "DATETIME"},
    "instant": {"bigquery": "TIMESTAMP", "duckdb": "TIMESTAMPTZ", "postgres": "TIMESTAMPTZ"},
}
"""The word before a constant, if it is not TIMESTAMP."""


@dataclass(frozen=True)
class Pushdown:
    """The part of a condition that can be handed down.

    Attributes:
        sql: In the owner's dialect, on the table ``ALIAS``.
        whole: It is the whole condition: a row that the owner keeps is a row that the query keeps.
        strict: A row whose columns are all NULL never fulfils it.
    """

    sql: str
    whole: bool
    strict: bool


def conjunction(found: Sequence[Pushdown | None], word: str = "AND") -> Pushdown | None:
    """Join conditions. An AND leaves out what cannot be handed down; an OR needs all of them."""
    known = [each for each in found if each]
    if not known or (word == "OR" and len(known) < len(found)):
        return None
    whole = len(known) == len(found) and all(each.whole for each in known)
    strict = (any if word == "AND" else all)(each.strict for each in known)
    return Pushdown(joined([each.sql for each in known], word), whole, strict)


def joined(conditions: Sequence[str], word: str) -> str:
    """Join conditions by AND or OR."""
    return conditions[0] if len(conditions) == 1 else f"({f' {word} '.join(conditions)})"


@dataclass(frozen=True)
class Reader:
    """Reads conditions on one table.

    Attributes:
        column: Returns the owner's name and type of the column that an expression names, or None.
        dialect: The owner's.
    """

    column: Callable[[exp.Expr], tuple[str, str] | None]
    dialect: str

    def read(self, node: exp.Expr) -> Pushdown | None:
        """Return the part of a condition that can be handed down."""
        node = node.unnest()
        if any(name not in PARTS for name, value in node.args.items() if value):
            return None  # NOT LIKE, say, is a LIKE with an argument of its own
        match node:
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                return conjunction([self.read(part) for part in node.flatten()], word)
            case exp.Between():
                ends = [("low", ">="), ("high", "<=")]
                return conjunction([self._compared(node.this, sign, [node.args[end]]) for end, sign in ends])
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._compared(node.this, "IS NULL", [])
            case exp.In() if 0 < len(node.expressions) <= MOST_VALUES:
                return self._compared(node.this, "IN", node.expressions)
        operator = _ORDERED.get(type(node), "")
        if operator and isinstance(node.this.unnest(), exp.Column):
            return self._compared(node.this, operator, [node.expression])
        return self._compared(node.expression, _TURNED[operator], [node.this]) if operator else None

    def _compared(self, node: exp.Expr, operator: str, values: Sequence[exp.Expr]) -> Pushdown | None:
        """Return a column's comparison with constants; without values it is IS NULL."""
        found = self.column(node.unnest())
        kind = comparable(found[1], self.dialect) if found else ""
        if found is None or not kind or (kind == "text" and operator not in ("=", "IN")):
            return None
        constants = [_constant(value, kind, self.dialect) for value in values]
        if not all(constants):
            return None
        column = write(exp.column(found[0], table=ALIAS, quoted=True), self.dialect)
        if operator == "IS NULL":
            return Pushdown(f"{column} IS NULL", whole=True, strict=False)
        right = f"({', '.join(constants)})" if operator == "IN" else constants[0]
        sql = f"{column} {operator} {right}"
        if self.dialect == "sqlite" and kind != "text":  # values of other classes are all kept
            own = "'text'" if kind == "date" else "'integer', 'real'"
            collation = " COLLATE BINARY" if kind == "date" else ""
            sql = f"({sql}{collation} OR typeof({column}) NOT IN ({own}, 'null'))"
        return Pushdown(sql, whole=self.dialect != "sqlite" and kind != "text", strict=True)


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _constant(node: exp.Expr, kind: Comparable, dialect: str) -> str:
    """Return a constant in SQL of the owner's dialect; empty if it may mean something else there."""
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
    """Return a text that every dialect reads alike: no backslash, no unprintable character."""
    if not _is_text(node):
        return ""
    text = node.name
    if "\\" in text or not text.isprintable() or len(text) > CHARACTERS:
        return ""
    if dialect in ("postgres", "mysql") and not text.isascii():  # their own encoding may lack it
        return ""
    if dialect == "sqlite" and text.startswith("X'"):  # a blob among texts arrives like that
        return ""
    return write(exp.Literal.string(text), dialect)


def _moment(node: exp.Expr, kind: Comparable, dialect: str) -> str:
    """Return a date, or a moment to the microsecond; one without a zone is in UTC, as in DuckDB's session."""
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
