"""ExplorationCorrector: mends an exploration query (ReFoRCE, paper 000, 3.2.3, Algorithm 1).

A query that fails is corrected in one call a try, and the same reply mends the queries that follow and
would fail likewise. One that returns no row is either corrected too, or what it found is that there is
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quorum.agents.base import PromptContext, ask
from quorum.agents.role import Form, Role, SqlText, usable
from quorum.agents.turns import ExplorationQuery
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind

MAX_TRIES = 3  # corrections of one query; the first version (paper 003), Appendix A

ABOUT_SYNTAX = (ErrorKind.SYNTAX, ErrorKind.GROUPING, ErrorKind.FUNCTION, ErrorKind.TYPE_MISMATCH)
"""Errors that a look into the dialect's reference may mend."""


class Rewrite(Form):
    """A waiting query, mended before it is run."""

    number: int = Field(description="Its number.")
    sql: SqlText = Field(description="The whole mended query.")


class Correction(Form):
    """A failed query mended, and with it those that would fail likewise.

    ``sql`` is None where nothing is wrong: that there is no row is the finding.
    """

    fault: str = Field(default="", description="What was wrong, if anything, in one sentence.")
    sql: SqlText | None = Field(
        description="The whole corrected query, different from every form shown; null only if the lack of "
        "rows is the finding."
    )
    later: Annotated[list[Rewrite], usable(Rewrite)] = Field(
        default=[], description="Waiting queries with the same fault, mended; else empty."
    )

    def mended(self, waiting: Sequence[ExplorationQuery]) -> list[ExplorationQuery]:
        """The queries ``waiting``, each rewritten one in the place of its faulty form."""
        rewritten = {rewrite.number: rewrite.sql for rewrite in self.later}
        return [
            query.model_copy(update={"sql": rewritten[number]}) if number in rewritten else query
            for number, query in enumerate(waiting, 1)
        ]


ROLE = Role("exploration_corrector", "ExplorationCorrector", "corrects it: {fault}", Correction)


@dataclass(frozen=True)
class FailedTry:
    """A query and why it gave nothing."""

    sql: str
    error: str


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
        syntax: Of the dialect, from ``column_explorer.hints``; shown with errors that are ``ABOUT_SYNTAX``.
    """
    return await ask(
        model,
        ROLE,
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
