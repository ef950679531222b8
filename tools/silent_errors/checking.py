"""The checks of a query that ran: which doubts the data bears out, and what they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quorum.tools.query import QueryError
from quorum.tools.silent_errors import days, fan_out, literals, rewrites, ties
from quorum.tools.silent_errors.doubts import Look, Query, Rows, Suspicion, Trial, by, many, number, value
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from quorum.knowledge.catalog import Catalog
    from quorum.tools.execute import Database
    from quorum.tools.results.differences import Differences

SECONDS = 2.0
"""Wall clock for all checks of a query."""
TRIALS = 16
"""Doubts that are looked at in one query."""
MAX_CHARACTERS = 20_000
"""Of a query that is checked."""
SHORT = 1_000
"""A query of fewer characters is read within some milliseconds, for which no thread is worth its while."""
MAX_ROWS = 20_000
"""Of a result that is compared with that of another query."""


async def suspicions(
    database: Database,
    sql: str,
    result: Callable[[], pa.Table],
    *,
    agent: str,
    candidate: str = "",
    question: str = "",
    only: Collection[ModuleType] = (),
    seconds: float = SECONDS,
) -> list[Suspicion]:
    """Return what is doubtful about a query that ran: what the data shows, and what changes the result.

    No model is asked. Each doubt costs one short query or two, and two more where it is borne out, all by
    ``execute``. A result that is longer than ``MAX_ROWS`` is not checked, and none is where what is read is
    paid for, limited or approved.

    Args:
        result: Reads the whole of what the query returned; called, in a thread, if there is a doubt.
        agent, candidate: As for ``quorum.tools.execute.execute``.
        question: What the query answers; it tells which ties a convention settles.
        only: Checks to make, where not all.
        seconds: Wall clock for all checks.

    Raises:
        BudgetExceeded, DatabaseUnavailable: As ``execute``.
    """
    free = not (database.connector.bills or database.estimates_first)
    if len(sql) > MAX_CHARACTERS or not free or not database.connector.live:
        return []
    end = time.monotonic() + seconds
    about = sql, database.catalog, question, only
    planned = plan(*about) if len(sql) < SHORT else await asyncio.to_thread(plan, *about)
    if planned is None or not planned[1]:
        return []
    table = await asyncio.to_thread(result)
    if len(table) > MAX_ROWS:
        return []
    asked = _Suspect(database, planned[0], table, agent, candidate, end)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asked.suspicion(doubt)) for doubt in planned[1]]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [found for task in tasks if (found := task.result()) is not None]


def plan(
    sql: str, catalog: Catalog, question: str = "", only: Collection[ModuleType] = ()
) -> tuple[Query, list[Look | Trial]] | None:
    """Return the query as it is read, and what is doubtful about its text; None if it cannot be read."""
    from sqlglot.errors import SqlglotError

    try:
        query = Query(sql, catalog, question)
        # the most reliable first: of a long query not all are made
        checks = (rewrites, fan_out, days, ties, literals)
        return query, list(islice((each for check in only or checks for each in check.trials(query)), TRIALS))
    except (SyntaxProblem, SqlglotError, RecursionError):
        return None


@dataclass(frozen=True)
class _Suspect:
    """A query under suspicion and the database that is asked about it, until ``end`` (monotonic seconds)."""

    database: Database
    query: Query
    result: pa.Table
    agent: str
    candidate: str
    end: float

    async def suspicion(self, doubt: Look | Trial | None) -> Suspicion | None:
        """Return the doubt with its evidence; None if nothing shows it, or it changes nothing."""
        from quorum.tools.results.differences import differences

        while isinstance(doubt, Look):
            rows = await self._rows(doubt.query)
            doubt = doubt.follow(rows) if rows else None
        rows = await self._rows(doubt.evidence) if doubt else []
        says = doubt.tell(rows) if doubt and rows else ""
        if doubt is None or not says:
            return None
        pair = await self._changed(doubt)
        if pair is None:
            return None
        shown, mended = (write(tree, self.query.dialect) for tree in (doubt.evidence, doubt.mend()))
        matters = "The answer changes." if doubt.partly else _effect(differences(*pair))
        return Suspicion(doubt.kind, says, shown, mended, matters)

    async def _changed(self, doubt: Trial) -> list[pa.Table] | None:
        """Return the results of the query and of the mended one, if they differ.

        Of rows that share a place LIMIT keeps any, so both are asked with ties broken alike. The query is
        asked once more in any case, for what it is compared with is written from a tree.
        """
        from quorum.tools.results.compare import equal

        tree = doubt.own() if doubt.own else self.query.tree
        before, after = (_steadied(each, self.query.dialect) for each in (tree, doubt.mend()))
        if before is None or after is None:
            return None
        whole = before is tree  # without LIMIT
        other = await self._ask(write(after, self.query.dialect))
        if other is None or (whole and equal(self.result, other)):
            return None
        own = await self._ask(write(before, self.query.dialect))
        if own is None or equal(own, other) or (doubt.own and whole and not equal(own, self.result)):
            return None
        if doubt.cell and equal(*(_read(each, doubt.cell) for each in (own, other))):
            return None
        return [own, other]

    async def _rows(self, query: exp.Query) -> Rows:
        from quorum.tools.results.values import plain_rows

        table = await self._ask(write(query, self.query.dialect))
        return [] if table is None else plain_rows(table)

    async def _ask(self, sql: str) -> pa.Table | None:
        """Return the whole result of a query; None where there is none in time."""
        from quorum.tools.execute import execute

        left = self.end - time.monotonic()
        if left <= 0:
            return None
        limits = replace(self.database.limits.within(left), rows=MAX_ROWS)
        limited = replace(self.database, limits=limits)
        outcome = await execute(limited, sql, agent=self.agent, candidate=self.candidate)
        return None if isinstance(outcome, QueryError) or outcome.truncated else outcome.table


def _read(table: pa.Table, cell: Callable[[Any], str | None]) -> pa.Table:
    import pyarrow as pa

    columns = [pa.array(map(cell, column.to_pylist()), pa.string()) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _effect(found: Differences) -> str:
    """Return how the answer changes if the second result is the right one."""
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


def _steadied(tree: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return a copy in which rows that share a place under a LIMIT are sorted by all columns.

    It is the tree itself if it has no LIMIT, and None if the number of columns is not known.
    """
    from sqlglot import exp

    copy, changed = tree.copy(), False
    for node in copy.find_all(exp.Query):
        if not (node.args.get("limit") or node.args.get("fetch")):
            continue
        changed = True
        if not isinstance(node, exp.Select | exp.SetOperation) or any(each.is_star for each in node.selects):
            return None
        order = node.args.get("order")
        keys = list(order.expressions) if order else []
        places = [by(number(place), dialect) for place in range(1, len(node.selects) + 1)]
        node.set("order", exp.Order(expressions=[*keys, *places]))
    return copy if changed else tree
