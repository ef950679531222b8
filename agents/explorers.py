"""Roles that learn what a database holds by small queries.

ColumnExplorer and ExplorationCorrector explore for one question (ReFoRCE, paper 000, 3.2.3, Algorithm 1).
Explorer, Simulator and Describer search a whole database as a tree (SQLAgent, paper 001, 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from quorum.agents.base import ask
from quorum.agents.prompting import PromptContext
from quorum.agents.role import Form, Role, SqlText, usable
from quorum.knowledge import syntax
from quorum.tools.models import Model
from quorum.tools.query import ErrorKind

MAX_QUERIES = 10  # ReFoRCE, Appendix C
ROW_LIMIT = 20  # rows a query asks for; ReFoRCE, Figure 4
MAX_TRIES = 3  # corrections of one query; the first version (paper 003), Appendix A

PLAIN_TOPICS = ("Identifiers and quoting", "Strings", "Dates and time")
NESTED_TOPICS = ("JSON", "Arrays")
"""Topics of the dialect's reference that stand for the hints of ReFoRCE's Listing 1 and Figure 4."""

ABOUT_SYNTAX = (ErrorKind.SYNTAX, ErrorKind.GROUPING, ErrorKind.FUNCTION, ErrorKind.TYPE_MISMATCH)
"""Errors that a look into the dialect's reference may mend."""


class ExplorationQuery(Form):
    """One small query and what it is to find out."""

    purpose: str = Field(default="", description="What it is to find out, in one sentence.")
    sql: SqlText = Field(description="The whole query.")


class Exploration(Form):
    """Queries from simple to nested."""

    queries: Annotated[list[ExplorationQuery], usable(ExplorationQuery)] = Field(
        default=[], description="From simple to nested."
    )


COLUMN_EXPLORER = Role(
    "column_explorer", "ColumnExplorer", "wants to run {queries:query|queries}", Exploration
)


async def write_queries(
    model: Model,
    context: PromptContext,
    *,
    max_queries: int = MAX_QUERIES,
    row_limit: int = ROW_LIMIT,
    **variables: Any,
) -> Exploration:
    """Ask for queries; at most ``max_queries`` are returned, of which no two are the same."""
    limits = {"max_queries": max_queries, "row_limit": row_limit}
    written = await ask(model, COLUMN_EXPLORER, context, **limits, **variables)
    distinct = {" ".join(query.sql.split()): query for query in reversed(written.queries)}
    return Exploration(queries=list(reversed(distinct.values()))[:max_queries])


def hints(dialect: str, *, nested: bool, plain: Sequence[str] = PLAIN_TOPICS) -> str:
    """Return the sections of the dialect's reference that exploration needs; reads files when first called.

    Args:
        nested: The catalog has columns with paths inside.
        plain: Topics other than those of nested columns.
    """
    topics = (*plain, *(NESTED_TOPICS if nested else ()))
    return "\n\n".join(section.text for section in syntax.lookup(dialect, topics, k=len(topics)))


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
        """Return the queries ``waiting``, each rewritten one in the place of its faulty form."""
        rewritten = {rewrite.number: rewrite.sql for rewrite in self.later}
        return [
            query.model_copy(update={"sql": rewritten[number]}) if number in rewritten else query
            for number, query in enumerate(waiting, 1)
        ]


class FailureCorrection(Correction):
    """The same of a query of which nothing can be a finding."""

    sql: SqlText = Field(description="The whole corrected query, different from every form shown.")


EXPLORATION_CORRECTOR = Role(
    "exploration_corrector", "ExplorationCorrector", "corrects it: {fault}", Correction
)
"""One call corrects a query, and the waiting queries that would fail likewise."""

FAILURE_CORRECTOR: Role[Correction] = replace(EXPLORATION_CORRECTOR, reply=FailureCorrection)


ActionName: TypeAlias = Literal[
    "select_column", "add_predicate", "join", "aggregate", "group_by", "order_by", "having"
]
"""Paper 001, appendix E: Select Unused Column, Add Predicate Constraint, Introduce Join, Apply Aggregation
Function, Add Group By Clause, Add Ordering Clause, Add Having Clause."""

WIDTH = 6
"""Columns of one action at most (the paper's takes one: a wide table would use up the attempts)."""


class SearchAction(Form):
    """One action on one query state."""

    state: int = Field(description="The number of the state that it is added to; 0 for a new query.")
    action: ActionName
    columns: list[str] = Field(
        min_length=1,
        max_length=WIDTH,
        description="`table.column` as the schema spells them. For join exactly two, that are equal: one of "
        "a table in the state, then one of the new table.",
    )
    detail: str = Field(
        default="",
        description="For add_predicate and having the comparison, for aggregate and having the function, for "
        "order_by the direction, in a few words; else empty.",
    )


class Choice(Form):
    """The actions to try next."""

    reasoning: str = Field(
        default="", description="What they will teach about the database; two sentences at most."
    )
    actions: list[SearchAction] = Field(min_length=1)


EXPLORER = Role(
    "explorer", "Explorer", "{actions:action|actions}: {reasoning}", Choice, sql=False, schema=False
)
"""Policy and evaluator of the tree search: it chooses which query states grow, and by which actions."""


@dataclass(frozen=True)
class StateText:
    """A query state as the Explorer sees it.

    Attributes:
        steps: Its actions in words.
        question: That its query answers.
        note: How many states below it worked, and how many were in vain.
    """

    number: int
    steps: Sequence[str]
    question: str = ""
    note: str = ""


class Simulation(Form):
    """A query that does what the steps say."""

    sql: SqlText = Field(description="The whole query.")


SIMULATOR = Role("simulator", "Simulator", "{sql}", Simulation, schema=False)


class Description(Form):
    """The question that a query answers, and a judgement of it."""

    description: str = Field(
        min_length=1,
        description="The question that the query answers, as somebody who knows the subject and no SQL would "
        "ask it: what it shows, every condition, and the order if there is one, in plain words.",
    )
    useful: bool = Field(
        description="True if somebody who works with this data may well ask it. False for a mere dump of "
        "columns, for ids that nobody knows by heart, for a join that changes nothing, or if the rows show "
        "that the query does not mean what it seems to (unrelated things joined, a sum of ids)."
    )
    objection: str = Field(default="", description="If not useful: why, in one sentence; else empty.")


DESCRIBER = Role("describer", "Describer", "{description}{objection}", Description, sql=False, schema=False)
"""Writes the description U of a query that ran, and rejects a query that answers no likely question."""
