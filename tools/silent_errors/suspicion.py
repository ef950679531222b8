"""What the checks of silent errors find, and what they want to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp

Rows: TypeAlias = list[list[Any]]
"""What evidence returned, as ``quorum.tools.values.plain_rows`` gives it."""


class Kind(StrEnum):
    """An error that no engine reports: the query runs, and its rows are wrong."""

    FAN_OUT = "fan_out"  # a join repeats rows that are added up, averaged or counted
    LOST_ROWS = "lost_rows"  # an inner join drops rows that the answer is about
    CUT_TIES = "cut_ties"  # LIMIT or row_number() keeps some of the rows that share a place
    NULLS = "nulls"  # NULLs empty a NOT IN, or leave comparisons, averages, counts without a word
    INTEGER_DIVISION = "integer_division"  # the fraction of a quotient is cut off
    TEXT_VALUES = "text_values"  # numbers or dates that are text, and compared or sorted as such
    SHARED_NAME = "shared_name"  # things that share a name fall into one group
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
        mend: The query without the doubt, a copy of the one in doubt; None where there is none.
        ordered: Whether the order of the result's rows is what the doubt is about.
    """

    kind: Kind
    evidence: exp.Query
    tell: Callable[[Rows], str]
    mend: Callable[[], exp.Expr | None]
    ordered: bool = False


@dataclass(frozen=True)
class Look:
    """A query whose rows tell what there is to doubt."""

    query: exp.Query
    follow: Callable[[Rows], Look | Trial | None]
