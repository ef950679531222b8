"""Spider 2.0's official comparison with published results, as a scorer; ``spider2_rules`` has the rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import (
    EX,
    GoldCheck,
    Metric,
    Prediction,
    RunSql,
    Scorer,
    Verdict,
    unscorable,
    wrong,
)
from quorum.evals.scorers.spider2_rules import STANDARDS, Score, Spider2Gold
from quorum.evals.tabular.frames import UnreadableCsv, read_frame
from quorum.tools.query import QueryError, QueryResult

NO_GOLD = "no gold result is published"
NOT_LIVE = "its database is not here, so no query of it can run"
EMPTY = "the result is empty"


@dataclass(frozen=True)
class Spider2Scorer(Scorer):
    """Compares a result with the gold results; the database is not asked.

    Attributes:
        gold: Of the edition.
    """

    gold: Spider2Gold

    metrics = (Metric(EX, "EX", "The result has the required columns of a gold result."),)
    rules = "Spider 2.0's evaluation suite of 2025-11"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:  # noqa: ARG002
        """Judge a result. One that was cut matches nothing: the whole one has more rows than it shows.

        ``gold_rows`` is known for tables, and for files where all gold results have as many rows.
        """
        files = self.gold.files.get(question.id, ())
        if not files:
            return unscorable(self.metrics, NO_GOLD, "missing")
        if prediction.result is None and not question.live:
            return unscorable(self.metrics, NOT_LIVE, "not_live")
        if prediction.result is None:
            return wrong(self.metrics, "there is no result")
        rows = None if isinstance(prediction.result, Path) else prediction.result.num_rows
        nearest = await asyncio.to_thread(_nearest, files, rows)
        if prediction.truncated:
            return Verdict({EX: 0.0}, "the result was cut, so it is not the whole one", gold_rows=nearest)
        score = await asyncio.to_thread(self.gold.score, question.id, prediction.result)
        return Verdict({EX: float(score.match)}, score.reason, gold_rows=nearest)

    def gold_files(self, question: EvalQuestion) -> tuple[Path, ...]:
        """The gold results, and the file that says how they are to be compared."""
        files = self.gold.files.get(question.id, ())
        return (*files, *sorted(self.gold.folder.glob(STANDARDS))) if files else ()

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        """Whether the gold results match themselves, and the gold SQL reproduces one of them.

        ``differs``: either does not. Without gold SQL nothing can be reproduced: ``missing``, as without a
        gold result; the reason tells which.
        """
        files = self.gold.files.get(question.id, ())
        if not files:
            return GoldCheck("missing", NO_GOLD)
        unequal = await asyncio.to_thread(lambda: tuple(self._unequal(question.id, files)))
        rows = await asyncio.to_thread(_rows, files[0])
        if unequal:
            return _of_itself(unequal, len(files), rows)
        if run is None:
            return GoldCheck("not_live", f"{NOT_LIVE}; its gold results match themselves", rows)
        if not question.gold_sql:
            return GoldCheck("missing", "no gold SQL is published; its gold results match themselves", rows)
        return await self._reproduced(question, run)

    def _unequal(self, id: str, files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
        """The gold results that would score 0 as predictions, and why."""
        for path in files:
            score = self.gold.score(id, path)
            if not score.match:
                yield path, score.reason

    async def _reproduced(self, question: EvalQuestion, run: RunSql) -> GoldCheck:
        """Run the gold queries in turn until the result of one is published."""
        started, failures = time.monotonic(), []
        outcomes: list[QueryResult] = []
        for sql in question.gold_sql:
            outcome = await run(sql)
            if isinstance(outcome, QueryError):
                failures.append(outcome.describe())
                continue
            outcomes.append(outcome)
            score = await asyncio.to_thread(self._of, question.id, outcome)
            if score.match:
                return GoldCheck("ok", "", outcome.row_count, time.monotonic() - started)
            failures.append(score.reason)
        seconds = time.monotonic() - started
        if not outcomes:
            return GoldCheck("fails", "; ".join(failures), None, seconds)
        rows = outcomes[0].row_count
        some = any(outcome.row_count for outcome in outcomes)
        return GoldCheck("differs" if some else "empty", "; ".join(failures), rows, seconds)

    def _of(self, id: str, outcome: QueryResult) -> Score:
        if outcome.truncated:
            return Score(False, f"the result was cut at {count(outcome.row_count, 'row')}")
        return self.gold.score(id, outcome.table)


def _of_itself(unequal: Sequence[tuple[Path, str]], count: int, rows: int | None) -> GoldCheck:
    """The state of a gold of which some results do not match themselves."""
    all_empty = len(unequal) == count and all(reason == EMPTY for _, reason in unequal)
    names = ", ".join(path.name for path, _ in unequal)
    verb = "does not match itself" if len(unequal) == 1 else "do not match themselves"
    return GoldCheck("empty" if all_empty else "differs", f"{names} {verb}: {unequal[0][1]}", rows)


def _nearest(files: Sequence[Path], rows: int | None) -> int | None:
    """The number of rows of the gold result that comes nearest to ``rows``; None if unknown."""
    counts = {count for path in files if (count := _rows(path)) is not None}
    if rows is None:
        return counts.pop() if len(counts) == 1 else None
    return min(counts, key=lambda count: (abs(count - rows), count), default=None)


@lru_cache(maxsize=1024)
def _rows(path: Path) -> int | None:
    try:
        return read_frame(path).rows
    except UnreadableCsv:
        return None
