"""What the checks share: a query under suspicion, what they find and want to know, and how they put it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.silent_errors.cores import Core
from quorum.tools.sql import parse_one_statement, sqlglot_dialect

if TYPE_CHECKING:
    from quorum.tools.results.differences import Differences

LONGEST = 60
"""Characters of a value that are shown."""
_MARK = "suspected"

Rows: TypeAlias = list[list[Any]]
"""What evidence returned, as ``quorum.tools.results.values.plain_rows`` gives it."""


class Kind(StrEnum):
    """An error that no engine reports: the query runs, and its rows are wrong."""

    FAN_OUT = "fan_out"  # a join repeats rows that are added up, averaged or counted
    CUT_TIES = "cut_ties"  # LIMIT or row_number() keeps some of the rows that share a place
    CUT_DAY = "cut_day"  # a day as a bound ends at its midnight, or begins there
    ABSENT_VALUE = "absent_value"  # a value that a filter names does not occur, or in other spellings too


@dataclass(frozen=True)
class Suspicion:
    """A doubt about a query that ran, with what shows it.

    Attributes:
        says: What the data shows, with figures and examples: one sentence for a model and for the person who
            asked. Each figure and each value in it stands in the rows of ``sql``.
        sql: The query that shows it; it returns a few rows.
        mended: The query without the doubt.
        matters: What that changes in the result: one sentence.
    """

    kind: Kind
    says: str
    sql: str
    mended: str
    matters: str


@dataclass(frozen=True)
class Trial:
    """A doubt that the database has not been asked about.

    Attributes:
        evidence: The query that shows it.
        tell: The sentence that its rows allow; empty where they show nothing.
        mend: The query without the doubt, a copy of the one in doubt.
    """

    kind: Kind
    evidence: exp.Query
    tell: Callable[[Rows], str]
    mend: Callable[[], exp.Expr]


@dataclass(frozen=True)
class Look:
    """A query whose rows tell what there is to doubt."""

    query: exp.Query
    follow: Callable[[Rows], Look | Trial | None]


class Query:
    """A query that ran, read for its checks.

    Attributes:
        question: What it answers, in words; empty where nobody says. It tells what a convention settles.

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

    def copy(self, *nodes: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
        """A copy of the tree to be changed, and where these of its nodes stand in it, in the same order."""
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


def present(column: exp.Expr) -> exp.Expr:
    """Whether a column has a value."""
    return exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))


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


def effect(found: Differences) -> str:
    """How the answer changes if the second result is the right one."""
    before, after = found.rows
    if found.relation == "equal":
        return ""
    if found.cell is not None and found.only == (0, 0):
        key, old, new = found.cell
        where = "" if key is None else f" for {value(key)}"
        return f"The answer{where} would be {value(new)} instead of {value(old)}."
    if before != after:
        return f"The answer would have {many(after, 'row', 'rows')} instead of {before:,}.{_example(found)}"
    return f"The answer would have other values in its {many(after, 'row', 'rows')}.{_example(found)}"


def _example(found: Differences) -> str:
    for verb, examples in (("more", found.examples[1]), ("less", found.examples[0])):
        if examples:
            return f" One {verb}: {_shown(examples[0])}."
    return ""


def _shown(example: Any) -> str:
    return ", ".join(map(value, example)) if isinstance(example, tuple | list) else value(example)


def steadied(tree: exp.Expr, dialect: str) -> exp.Expr | None:
    """A copy in which rows that share a place under a LIMIT are sorted by all columns; the tree itself if it
    has no LIMIT, and None if the number of columns is not known."""
    cutting = [node for node in tree.find_all(exp.Query) if node.args.get("limit") or node.args.get("fetch")]
    if not cutting:
        return tree
    copy = tree.copy()
    for node in copy.find_all(exp.Query):
        if not (node.args.get("limit") or node.args.get("fetch")):
            continue
        if not isinstance(node, exp.Select | exp.SetOperation) or any(each.is_star for each in node.selects):
            return None
        order = node.args.get("order")
        keys = list(order.expressions) if order else []
        places = [by(number(place), dialect) for place in range(1, len(node.selects) + 1)]
        node.set("order", exp.Order(expressions=[*keys, *places]))
    return copy
