"""BIRD's execution accuracy and soft F1.

Source: bird-bench/mini_dev (Li et al., 2024), on the rules of ``bird_rules``. What differs from the
official programs:

- They stop gold and prediction after 30 s together, and then score 0; here a query has the limits of
  ``quorum.evals.running.databases.GOLD_LIMITS``, an answer's no more seconds than in its run, and one that is
  cut by them does not match.
- They execute an empty text, which returns nothing and meets an empty gold; here it is no prediction.
- A prediction that the guard or the lint refuses is wrong; the official programs execute whatever they get.
- Text that is not UTF-8 fails there: see ``evals/scorers/rows.py``.
"""

from __future__ import annotations

import asyncio

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import (
    EX,
    GoldCheck,
    Metric,
    Prediction,
    RunSql,
    Scorer,
    Verdict,
    unscorable,
)
from quorum.evals.scorers.bird_rules import set_difference, soft_f1
from quorum.evals.scorers.reproduction import check_queries
from quorum.evals.scorers.rows import Given, NoRows, Pair, given_by

SOFT_F1 = "soft_f1"


class BirdScorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    A CSV file is compared loosely: numbers by their value, the empty text as NULL.
    """

    metrics = (
        Metric(EX, "EX", "Execution accuracy: the set of rows is the gold's (bird-bench)."),
        Metric(
            SOFT_F1,
            "Soft F1",
            "F1 of cells over rows paired by their place (bird-bench/mini_dev, evaluation_f1.py).",
        ),
    )
    rules = "BIRD's set match and soft F1 (bird-bench/mini_dev)"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        if run is None:
            return unscorable(self.metrics, "the database is not here", "not_live")
        given = await given_by(self, prediction, question)
        if isinstance(given, Verdict):
            return given
        verdicts = [await self._against(gold, given, run) for gold in question.gold_sql]
        return max(verdicts, key=_rank)

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await check_queries(self, question, run)

    async def _against(self, gold: str, given: Given, run: RunSql) -> Verdict:
        """The verdict by one gold query."""
        pair = await given.against(gold, run, str)
        if isinstance(pair, NoRows):
            return unscorable(self.metrics, pair.reason, "fails")
        match, likeness, reason = await asyncio.to_thread(_compared, pair)
        return Verdict({EX: match, SOFT_F1: likeness}, reason, "ok" if pair.gold else "empty", len(pair.gold))


def _compared(pair: Pair) -> tuple[float, float, str]:
    """EX, soft F1, and how the results differ."""
    if isinstance(pair.found, NoRows):
        return 0.0, 0.0, pair.found.reason
    reason = set_difference(pair.gold, pair.found)
    return float(not reason), soft_f1(pair.gold, pair.found), reason


def _rank(verdict: Verdict) -> tuple[float, ...]:
    """Better verdicts are larger; those that are not defined are the least."""
    values = (verdict.metrics[name] for name in (EX, SOFT_F1))
    return tuple(-1.0 if value is None else value for value in values)
