"""The rule for people's own questions: equality of results (``quorum.tools.results.compare.equal``).

Names and order of columns do not count. Rows are a multiset, unless the accepted query sorts its result (an
ORDER BY outside of all brackets): then their order counts, that of rows that tie as well. Numbers agree
within a hundredth, and within 0.5 % where that is less; whole numbers only if equal
(``quorum.tools.results.cells.agree``). An empty result equals an empty gold of as many columns.

The gold of a question is its result file; without one, the result of any of its accepted queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

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
    best_of,
)
from quorum.evals.scorers.rows import NoRows, whole
from quorum.evals.tables import read_csv, read_table
from quorum.knowledge.errors import QuorumError
from quorum.tools.results.canonical import canonical
from quorum.tools.results.compare import equal, relation
from quorum.tools.sql import SyntaxProblem, parse_statements

CONTAINS = "contains"
"""Name of the metric that allows further columns."""
GRADES = {"equal": 2, "contains": 1}


@dataclass(frozen=True)
class _Gold:
    """A result that is accepted; ``ordered``: its rows' order counts."""

    table: pa.Table
    ordered: bool


class OwnScorer(Scorer):
    """Judges a result by the gold's; only gold is run on the database.

    A question names in ``extra`` its ``result``, a CSV or Parquet file. A result that was cut by the limits
    of an answer is got again by its SQL.
    """

    metrics = (
        Metric(EX, "EX", "The result equals the gold's (tools.results: names and order of columns ignored)."),
        Metric(CONTAINS, "Contains", "The result has the gold's columns, row by row, and perhaps more."),
    )
    rules = "Quorum's own equality of results"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        """Judge a result.

        Raises:
            UnreadableCsv: The prediction's file is no CSV.
        """
        golds = await self._golds(question, run)
        if isinstance(golds, Verdict):
            return golds
        found = await _result(prediction, run)
        if isinstance(found, str):
            return self.wrong(found, _state(golds), golds[0].table.num_rows)
        return await asyncio.to_thread(_judged, found, golds)

    def gold_files(self, question: EvalQuestion) -> tuple[Path, ...]:
        file = question.extra.get("result")
        return (Path(file),) if file else ()

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        """Check too that the queries give what is in the result file, if there is one.

        ``missing`` is also the state of a result file without SQL: nothing could reproduce it.
        """
        if question.extra.get("result"):
            golds = await self._golds(question, run)
            if isinstance(golds, Verdict):
                return GoldCheck(golds.gold, golds.reason)
            if not question.gold_sql:
                rows = golds[0].table.num_rows
                return GoldCheck("missing", "there is a result file, but no SQL that could give it", rows)
        return await super().verify(question, run)

    async def _golds(self, question: EvalQuestion, run: RunSql | None) -> list[_Gold] | Verdict:
        """The accepted results, or the verdict if there are none."""
        file = question.extra.get("result")
        if file:
            try:
                table = await asyncio.to_thread(read_table, Path(file))
            except QuorumError as error:
                return self.unscorable(f"the gold cannot be read: {error}", "fails")
            sorts = [_sorts(sql, question.dialect) for sql in question.gold_sql]
            return [_Gold(table, bool(sorts) and all(sorts))]
        if not question.gold_sql:
            return self.unscorable("the question has neither SQL nor a result", "missing")
        if run is None:
            return self.unscorable("the database is not here", "not_live")
        golds, failed = [], ""
        for sql in question.gold_sql:
            outcome = whole(await run(sql))
            if isinstance(outcome, NoRows):
                failed = failed or outcome.reason
            else:
                golds.append(_Gold(outcome.table, _sorts(sql, question.dialect)))
        return golds or self.unscorable(f"the gold SQL does not run: {failed}", "fails")


async def _result(prediction: Prediction, run: RunSql | None) -> pa.Table | str:
    """The whole result of a prediction, or why there is none."""
    if prediction.result is None:
        return "there is no result"
    if not prediction.truncated:
        given = prediction.result
        return await asyncio.to_thread(read_csv, given) if isinstance(given, Path) else given
    if not run or not prediction.sql:
        return "the result was cut by limits"
    outcome = whole(await run.predicted(prediction.sql))
    return outcome.reason if isinstance(outcome, NoRows) else outcome.table


def _state(golds: Sequence[_Gold]) -> GoldState:
    return "ok" if any(gold.table.num_rows for gold in golds) else "empty"


def _judged(found: pa.Table, golds: Sequence[_Gold]) -> Verdict:
    """Judge by the accepted result that is met best."""
    if same := next((gold for gold in golds if found.columns == gold.table.columns), None):  # most are
        return Verdict({EX: 1.0, CONTAINS: 1.0}, "", _state(golds), same.table.num_rows)
    form = canonical(found)
    grade, gold = best_of(
        golds,
        lambda gold: GRADES.get(relation(form, gold.table, ordered=gold.ordered), 0),
        lambda gold: abs(gold.table.num_rows - found.num_rows),
    )
    reasons = {2: "", 1: "has the gold's columns, and more"}
    reason = reasons[grade] if grade else _difference(found, gold)
    metrics = {EX: float(grade == 2), CONTAINS: float(grade > 0)}
    return Verdict(metrics, reason, _state(golds), gold.table.num_rows)


def _difference(found: pa.Table, gold: _Gold) -> str:
    if found.num_rows != gold.table.num_rows:
        return f"{count(found.num_rows, 'row')}, the gold has {gold.table.num_rows}"
    if found.num_columns < gold.table.num_columns:
        return f"{count(found.num_columns, 'column')}, the gold has {gold.table.num_columns}"
    if gold.ordered and equal(found, gold.table):
        return "another order of rows"
    return "other values"


def _sorts(sql: str, dialect: str) -> bool:
    """Return True if a query sorts its result."""
    try:
        trees = parse_statements(sql, dialect)
    except SyntaxProblem:
        return False
    tree = trees[-1] if trees else None
    while isinstance(tree, exp.Subquery) and not tree.args.get("order"):
        tree = tree.this
    return tree is not None and bool(tree.args.get("order"))
