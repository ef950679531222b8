"""ColumnExplorer: small queries that show what columns really hold (ReFoRCE, paper 000, 3.2.3, Algorithm 1).

The model writes up to ten queries in one call. One that fails is corrected in one call a try, and the
same reply mends the queries that follow and would fail likewise. One that returns no row is either
corrected too, or what it found is that there is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from pydantic import BaseModel, Field, field_validator

from quorum.agents.base import PromptContext, ask
from quorum.agents.reply import SqlText
from quorum.knowledge import syntax
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind

MAX_QUERIES = 10  # ReFoRCE, Appendix C
MAX_TRIES = 3  # corrections of one query; the first version (paper 003), Appendix A
ROW_LIMIT = 20  # rows a query asks for; ReFoRCE, Figure 4

PLAIN_TOPICS = ("Identifiers and quoting", "Strings", "Dates and time")
NESTED_TOPICS = ("JSON", "Arrays")
"""Topics of the dialect's reference that stand for the hints of ReFoRCE's Listing 1."""

ABOUT_SYNTAX = (ErrorKind.SYNTAX, ErrorKind.FUNCTION, ErrorKind.TYPE_MISMATCH)
"""Errors that a look into the dialect's reference may mend."""


class ExplorationQuery(BaseModel):
    """One small query and what it is to find out."""

    purpose: str = Field(description="What it is to find out, in one sentence.")
    sql: SqlText = Field(description="The whole query.")


class Exploration(BaseModel):
    """Queries from simple to nested."""

    queries: list[ExplorationQuery] = Field(description="From simple to nested.")


class Rewrite(BaseModel):
    """A later query, mended before it is run."""

    number: int = Field(description="Its number in the list of later queries.")
    sql: str = Field(description="The whole mended query.")


class Correction(BaseModel):
    """A failed query mended, and with it those that would fail likewise.

    ``sql`` is None where nothing is wrong: that there is no row is the finding.
    """

    fault: str = Field(description="What was wrong, if anything, in one sentence.")
    sql: str | None = Field(description="The whole corrected query; null if no row is what there is to find.")
    later: list[Rewrite] = Field(
        default=[], description="Later queries with the same fault, mended; else empty."
    )

    @field_validator("sql")
    @classmethod
    def _some_sql(cls, sql: str | None) -> str | None:
        if sql is not None and not sql.strip():
            raise ValueError("sql is empty")
        return sql.strip() if sql else None

    def mended(self, waiting: Sequence[ExplorationQuery]) -> list[ExplorationQuery]:
        """The queries ``waiting``, each rewritten one in the place of its faulty form."""
        said = {rewrite.number: rewrite.sql.strip() for rewrite in self.later if rewrite.sql.strip()}
        return [
            query.model_copy(update={"sql": said[number]}) if number in said else query
            for number, query in enumerate(waiting, 1)
        ]


@dataclass(frozen=True)
class FailedTry:
    """A query and why it gave nothing."""

    sql: str
    error: str


def hints(dialect: str, *, nested: bool) -> str:
    """The sections of the dialect's reference that exploration needs; reads files when first called.

    Args:
        nested: Whether the catalog has columns with paths inside.
    """
    topics = (*PLAIN_TOPICS, *(NESTED_TOPICS if nested else ()))
    return "\n\n".join(section.text for section in syntax.lookup(dialect, topics, k=len(topics)))


async def write_queries(
    model: Model,
    context: PromptContext,
    question: str,
    *,
    syntax: str = "",
    rivals: Sequence[str] = (),
    differences: Sequence[str] = (),
    max_queries: int = MAX_QUERIES,
) -> list[ExplorationQuery]:
    """Queries to learn what the question's columns hold; at most ``max_queries``, no two the same.

    Args:
        syntax: Of the dialect, from ``hints``.
        rivals: Queries that answer the question differently, called A, B, … in this order;
            exploration may tell which is right.
        differences: Sentences on how their answers differ, which use these labels.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    written = await ask(
        model,
        "column_explorer",
        Exploration,
        context=context,
        question=question,
        syntax=syntax,
        rivals=dict(zip(ascii_uppercase, rivals, strict=False)),
        differences=list(differences),
        max_queries=max_queries,
        row_limit=ROW_LIMIT,
    )
    distinct = {" ".join(query.sql.split()): query for query in reversed(written.queries)}
    return list(reversed(distinct.values()))[:max_queries]


async def correct_query(
    model: Model,
    context: PromptContext,
    question: str,
    query: ExplorationQuery,
    error: str,
    *,
    kind: ErrorKind = ErrorKind.OTHER,
    tried: Sequence[FailedTry] = (),
    waiting: Sequence[ExplorationQuery] = (),
    syntax: str = "",
) -> Correction:
    """Mend a query that failed, and those of ``waiting`` that would fail in the same way; one call.

    Args:
        error: Why ``query`` gave nothing.
        kind: The error's; ``EMPTY_RESULT`` where it ran and returned no row, which may be a finding.
        tried: Its earlier forms, oldest first.
        waiting: The queries that are still to run, in order.
        syntax: Of the dialect, from ``hints``; shown with errors that are ``ABOUT_SYNTAX``.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    return await ask(
        model,
        "exploration_corrector",
        Correction,
        context=context,
        question=question,
        purpose=query.purpose,
        sql=query.sql,
        error=error,
        tried=list(tried),
        empty=kind is ErrorKind.EMPTY_RESULT,
        waiting=list(waiting),
        syntax=syntax if kind in ABOUT_SYNTAX else "",
    )
