"""defog's match of results (sql-eval), as a scorer; ``quorum.evals.scorers.defog_rules`` has the rules.

What differs from the official program besides what is said there:

- It stops a query after 10 s; here a query has the limits of ``quorum.evals.running.databases.GOLD_LIMITS``,
  an answer's no more seconds than in its run, and one that is cut by them does not match.
- A prediction that the guard or the lint refuses is wrong; the official program executes whatever it gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import (
    EX,
    GoldCheck,
    GoldState,
    Metric,
    Prediction,
    RunSql,
    Scorer,
    Verdict,
    predicted_by,
    unscorable,
    wrong,
)
from quorum.evals.scorers.defog_rules import Grid, asks_for_order, exact, subset
from quorum.evals.scorers.reproduction import check_queries
from quorum.evals.scorers.rows import NoRows, given_rows, run_rows, whole
from quorum.evals.tabular.frames import frame_of, read_frame
from quorum.evals.tabular.tables import NULLS
from quorum.tools.results.files import csv_lines

EXACT = "exact"
"""Name of the metric that wants the same result, without a column more."""


@dataclass(frozen=True)
class _Found:
    """A prediction's SQL or result.

    Attributes:
        sql: Empty if only a result is there.
    """

    grid: Grid
    sql: str = ""


class DefogScorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    Both are executed at the same time, because many gold queries ask for the current date. The questions
    bring in ``extra`` their ``category``, and as ``query`` all that is accepted as it is published. A CSV
    file does not tell 1 from '1': the gold is written and read in the same way then.
    """

    metrics = (
        Metric(
            EX,
            "EX",
            "The result is the gold's, or has all its columns and perhaps more; of several accepted "
            "queries, any may be met (defog-ai/sql-eval, reported as `correct`).",
        ),
        Metric(
            EXACT, "Exact match", "The result is the gold's (defog-ai/sql-eval, reported as `exact_match`)."
        ),
    )
    rules = "defog's exact and subset match (defog-ai/sql-eval, eval/eval.py of 2025)"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        if not question.gold_sql:
            return unscorable(self.metrics, "the question has no gold SQL", "missing")
        if run is None:
            return unscorable(self.metrics, "the database is not here", "not_live")
        golds, failed = [], ""
        for sql in question.gold_sql:
            gold = await _executed(sql, run, read=_is_read(prediction))
            if isinstance(gold, NoRows):
                failed = failed or f"the gold SQL does not run: {gold.reason}"
            else:
                golds.append(gold)
        if not golds:
            return unscorable(self.metrics, failed, "fails")
        found = await _found(prediction, run)
        if isinstance(found, NoRows):
            return wrong(self.metrics, found.reason, _state(golds), golds[0].rows)
        return await asyncio.to_thread(self._judged, question, found, golds)

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await check_queries(self, question, run)

    def _judged(self, question: EvalQuestion, found: _Found, golds: Sequence[Grid]) -> Verdict:
        """The verdict by the accepted query that is met best, exactly rather than as a subset."""
        category, query = question.extra.get("category", ""), question.extra.get("query", "")
        ordered = asks_for_order(category, question.question)
        state = _state(golds)
        for gold in golds:
            if exact(gold, found.grid, ordered=ordered, gold_sql=query, found_sql=found.sql):
                return Verdict({EX: 1.0, EXACT: 1.0}, "", state, gold.rows)
        for gold in golds:
            if subset(gold, found.grid, ordered=ordered):
                return Verdict({EX: 1.0, EXACT: 0.0}, "has the gold's columns, not exactly", state, gold.rows)
        nearest = min(golds, key=lambda gold: abs(gold.rows - found.grid.rows))
        return Verdict({EX: 0.0, EXACT: 0.0}, _difference(found.grid, nearest), state, nearest.rows)


def _state(golds: Sequence[Grid]) -> GoldState:
    return "ok" if any(gold.rows for gold in golds) else "empty"


def _is_read(prediction: Prediction) -> bool:
    """Whether what is judged is read from a CSV file; the gold is read alike then."""
    return isinstance(prediction.result, Path) and not prediction.sql


async def _found(prediction: Prediction, run: RunSql) -> _Found | NoRows:
    """What is judged of a prediction."""
    result = prediction.result
    if prediction.sql:
        grid = await _executed(prediction.sql, predicted_by(run))
        return grid if isinstance(grid, NoRows) else _Found(grid, prediction.sql)
    if isinstance(result, Path) and not prediction.truncated:
        frame = await asyncio.to_thread(read_frame, result, nulls=NULLS)
        return _Found(Grid.of_frame(frame))
    rows = await given_rows(prediction)
    names = result.column_names if isinstance(result, pa.Table) else ()
    return rows if isinstance(rows, NoRows) else _Found(Grid.of_rows(names, rows))


async def _executed(sql: str, run: RunSql, *, read: bool = False) -> Grid | NoRows:
    """The result of a query; as a CSV file would give it if ``read``."""
    outcome = whole(await run(sql))
    if isinstance(outcome, NoRows):
        return outcome
    rows = await run_rows(run, sql)
    if isinstance(rows, NoRows):
        return rows
    if not read:
        return await asyncio.to_thread(Grid.of_rows, outcome.columns, rows)
    frame = await asyncio.to_thread(lambda: frame_of("".join(csv_lines(outcome.table)), nulls=NULLS))
    return Grid.of_frame(frame)


def _difference(found: Grid, gold: Grid) -> str:
    if gold.rows != found.rows:
        return f"{count(found.rows, 'row')}, the gold has {gold.rows}"
    if len(gold.names) > len(found.names):
        return f"{count(len(found.names), 'column')}, the gold has {len(gold.names)}"
    return "other values, or another order of rows"
