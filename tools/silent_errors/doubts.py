"""What the checks share: a query under suspicion, what they find, and how they put it in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.silent_errors.cores import Core
from quorum.tools.sql import parse_one_statement, sqlglot_dialect

LONGEST = 60
"""Characters of a value that are shown."""
_MARK = "suspected"

Rows: TypeAlias = list[list[Any]]
"""What evidence returned, as ``quorum.tools.results.values.plain_rows`` gives it."""


class Doubt(StrEnum):
    """An error that no engine reports: the query runs, and its rows are wrong."""

    FAN_OUT = "fan_out"  # a join repeats rows that are added up, averaged or counted
    CUT_TIES = "cut_ties"  # LIMIT keeps some of the rows that share a place
    CUT_DAY = "cut_day"  # a day as a bound ends at its midnight, or begins there
    STAND_IN = "stand_in"  # -1 or 9999-12-31 is taken for a value
    TOTALS = "totals"  # rows that add up others are taken with them
    REPEATS = "repeats"  # exact repeats of rows are counted or added up
    UNITS = "units"  # a number is used without its unit
    KEYS = "keys"  # a join loses rows whose keys are spelt otherwise
    MISREAD = "misread"  # an expression reads one form of a column's values, and not another
    ABSENT_VALUE = "absent_value"  # a value that a filter names does not occur, or in other spellings too


@dataclass(frozen=True)
class Suspicion:
    """A doubt about a query that ran, with what shows it.

    Attributes:
        says: What the data shows, with figures and examples: one sentence for a model and for the person who
            asked. Each value in it stands in the rows of ``sql`` or in the query. So does each figure, or it
            is a sum over some of those rows.
        sql: The query that shows it; it returns a few rows.
        mended: The query without the doubt.
        matters: What that changes in the result: one sentence.
    """

    kind: Doubt
    says: str
    sql: str
    mended: str = ""
    matters: str = ""


@dataclass(frozen=True)
class Trial:
    """A doubt that the database has not been asked about.

    Attributes:
        evidence: The query that shows it.
        tell: The sentence that its rows allow; empty where they show nothing.
        mend: The query without the doubt, a copy of the one in doubt.
        own: The query in doubt as it is compared with that; None if it is the query itself.
        cell: What a cell of a result says, where the values behind it are written otherwise.
        partly: True if the query without the doubt shows only that the result changes, not how far.
    """

    kind: Doubt
    evidence: exp.Query
    tell: Callable[[Rows], str]
    mend: Callable[[], exp.Expr]
    own: Callable[[], exp.Expr] | None = None
    cell: Callable[[Any], str | None] | None = None
    partly: bool = False


@dataclass(frozen=True)
class Look:
    """A query whose rows decide what to doubt."""

    query: exp.Query
    follow: Callable[[Rows], Look | Trial | None]


class Query:
    """A query that ran, read for its checks.

    Attributes:
        question: The question it answers, "" if unknown; its words decide which ties and rows are wanted.

    Raises:
        SyntaxProblem: It cannot be read.
    """

    def __init__(self, sql: str, catalog: Catalog, question: str = "") -> None:
        self.tree = parse_one_statement(sql, catalog.dialect)
        if catalog.dialect == "sqlite":
            _spell_texts(self.tree, catalog)
        self.catalog = catalog
        self.dialect = catalog.dialect
        self.question = question

    @cached_property
    def cores(self) -> list[Core]:
        """Its SELECTs that can be asked by themselves."""
        found = (Core(select, self.catalog) for select in self.tree.find_all(exp.Select))
        return [core for core in found if core.known]

    @cached_property
    def words(self) -> frozenset[str]:
        """The names of tables and columns in it, in small letters."""
        return frozenset(each.name.casefold() for each in self.tree.find_all(exp.Identifier))

    @cached_property
    def named(self) -> frozenset[str]:
        """The texts and numbers in it."""
        literals = self.tree.find_all(exp.Literal)
        return frozenset("-" * isinstance(each.parent, exp.Neg) + each.name for each in literals)

    def copy(self, *nodes: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
        """Return a copy of the tree to be changed, and the copies of these nodes, in the same order."""
        for place, node in enumerate(nodes):
            node.meta[_MARK] = place
        tree = self.tree.copy()
        for node in nodes:
            del node.meta[_MARK]
        found = sorted(
            (node for node in tree.walk() if _MARK in node.meta), key=lambda node: node.meta[_MARK]
        )
        for node in found:
            del node.meta[_MARK]
        return tree, found


def _spell_texts(tree: exp.Expr, catalog: Catalog) -> None:
    """Write in single quotes what SQLite takes for a text: a name in double quotes that nothing has."""
    quoted = [each for each in tree.find_all(exp.Column) if not each.table and each.this.args.get("quoted")]
    if quoted:
        known = {column.name.casefold() for _, column in catalog.columns()}
        known |= {each.alias.casefold() for each in tree.find_all(exp.Alias)}
        for column in quoted:
            if column.name.casefold() not in known:
                column.replace(exp.Literal.string(column.name))


def by(node: exp.Expr, dialect: str, *, down: bool = False) -> exp.Expr:
    """Return a key to sort by, with NULLs where the engine puts them by default."""
    small = sqlglot_dialect(dialect).NULL_ORDERING == "nulls_are_small"
    large = sqlglot_dialect(dialect).NULL_ORDERING == "nulls_are_large"
    return exp.Ordered(this=node, desc=down, nulls_first=large if down else small)


def number(digits: int) -> exp.Expr:
    """Return a whole number."""
    return exp.Literal.number(digits)


def present(column: exp.Expr) -> exp.Expr:
    """Return the condition that a column has a value."""
    return exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))


def value(content: Any) -> str:
    """Return a figure or a value as sentences show it: figures with commas, texts between backticks."""
    if isinstance(content, bool) or content is None:
        return "NULL" if content is None else str(content).lower()
    if isinstance(content, int):
        return f"{content:,}"
    if isinstance(content, float):
        return f"{content:,.12g}"
    text = re.sub(r"[\n\r\t]", " ", str(content))
    return f"`{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}`"


def listed(texts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(part for part in (", ".join(texts[:-1]), *texts[-1:]) if part)


def many(amount: int, one: str, more: str) -> str:
    """Return ``1 row``, ``2,000 rows``."""
    return f"{amount:,} {one if amount == 1 else more}"
