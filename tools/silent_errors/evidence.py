"""Parts of the queries that show a suspicion, and of the sentences that tell it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from quorum.tools.sql import sqlglot_dialect

LONGEST = 60
"""Characters of a value that are shown."""


def counted() -> exp.Expr:
    """How many rows, or groups, a query has before its LIMIT."""
    return exp.Window(this=exp.Count(this=exp.Star()))


def by(node: exp.Expr, dialect: str, *, down: bool = False) -> exp.Expr:
    """A key to sort by, with NULLs where the engine puts them by itself."""
    small = sqlglot_dialect(dialect).NULL_ORDERING == "nulls_are_small"
    large = sqlglot_dialect(dialect).NULL_ORDERING == "nulls_are_large"
    return exp.Ordered(this=node, desc=down, nulls_first=large if down else small)


def number(digits: int) -> exp.Expr:
    """A whole number."""
    return exp.Literal.number(digits)


def scalar(shown: exp.Expr, table: exp.Expr) -> exp.Expr:
    """One value of all of a table's rows."""
    plain = table.copy()
    plain.set("alias", None)
    return exp.Subquery(this=exp.select(shown).from_(plain))


def null(column: exp.Expr) -> exp.Expr:
    """Whether a column has no value."""
    return exp.Is(this=column.copy(), expression=exp.Null())


def present(column: exp.Expr) -> exp.Expr:
    """Whether a column has a value."""
    return exp.Not(this=null(column))


def value(content: Any) -> str:
    """A figure or a value as sentences show it: figures with commas, texts whole between backticks."""
    if isinstance(content, bool) or content is None:
        return "NULL" if content is None else str(content).lower()
    if isinstance(content, int):
        return f"{content:,}"
    if isinstance(content, float):
        return f"{content:,.12g}"
    text = re.sub(r"[\n\r\t]", " ", str(content))
    return f"`{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}`"


def listed(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(part for part in (", ".join(texts[:-1]), *texts[-1:]) if part)


def many(amount: int, one: str, more: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{amount:,} {one if amount == 1 else more}"


def named(columns: Sequence[exp.Expr]) -> str:
    """Columns as sentences name them."""
    return listed([f"{column.name}" for column in columns])
