"""BIRD's execution accuracy, soft F1 and R-VES.

Source: bird-bench/mini_dev (Li et al., 2024), on the rules of ``bird_rules``. What differs from the
official programs:

- They stop gold and prediction after 30 s together, and then score 0; here a query has the limits of
  ``quorum.evals.running.databases.GOLD_LIMITS``, an answer's no more seconds than in its run, and one that is
  cut by them does not match.
- They execute an empty text, which returns nothing and meets an empty gold; here it is no prediction.
- A prediction that the guard or the lint refuses is wrong; the official programs execute whatever they get.
- Text that is not UTF-8 fails there: see ``evals/scorers/rows.py``.
- Seconds are measured in the process that holds the database, from its getting the query to its having
  the rows as Arrow; there it is a fresh connection each time, until the rows are Python's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import (
    EX,
    GoldCheck,
    Metric,
    Prediction,
    Rerun,
    RunSql,
    Scorer,
    Verdict,
    predicted_by,
    unscorable,
)
from quorum.evals.scorers.bird_rules import reward, set_difference, soft_f1
from quorum.evals.scorers.reproduction import check_queries
from quorum.evals.scorers.rows import Given, NoRows, Pair, given_by
from quorum.tools.query import QueryError

SOFT_F1 = "soft_f1"
R_VES = "r_ves"

REPETITIONS = 100
"""Runs of each query that are timed for R-VES, as in the official program."""

REWARD = (
    "Reward for the time of right answers beside the gold's, 0 to 111.8, 100 for the same; wrong ones have 0"
)
SOURCE = "(bird-bench/mini_dev, evaluation_ves.py)"


@dataclass(frozen=True)
class BirdScorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    A CSV file is compared loosely: numbers by their value, the empty text as NULL.

    Attributes:
        timings: Whether R-VES is measured. It runs gold and prediction of every match ``repetitions`` times
            each, so it is off by default and R-VES not defined; questions that are judged at the same time
            disturb one another's seconds.
        repetitions: Runs of each query that are timed.
    """

    timings: bool = False
    repetitions: int = REPETITIONS

    metrics = (
        Metric(EX, "EX", "Execution accuracy: the set of rows is the gold's (bird-bench)."),
        Metric(
            SOFT_F1,
            "Soft F1",
            "F1 of cells over rows paired by their place (bird-bench/mini_dev, evaluation_f1.py).",
        ),
        Metric(
            R_VES,
            "R-VES",
            f"{REWARD}; not measured unless asked for {SOURCE}.",
            unit="points",
        ),
    )
    rules = "BIRD's set match, soft F1 and R-VES (bird-bench/mini_dev)"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        if run is None:
            return unscorable(self.metrics, "the database is not here", "not_live")
        given = await given_by(self, prediction, question)
        if isinstance(given, Verdict):
            return given
        verdicts = [await self._against(gold, given, run) for gold in question.gold_sql]
        return max(verdicts, key=_rank)

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await check_queries(replace(self, timings=False), question, run)

    async def _against(self, gold: str, given: Given, run: RunSql) -> Verdict:
        """The verdict by one gold query."""
        pair = await given.against(gold, run, str)
        if isinstance(pair, NoRows):
            return unscorable(self.metrics, pair.reason, "fails")
        match, likeness, reason = await asyncio.to_thread(_compared, pair)
        speed: float | None = 0.0
        if match and self.timings:
            speed, reason = await self._speed(gold, given.sql, run)
        values = {EX: match, SOFT_F1: likeness, R_VES: speed if self.timings else None}
        return Verdict(values, reason, "ok" if pair.gold else "empty", len(pair.gold))

    async def _speed(self, gold: str, sql: str, run: RunSql) -> tuple[float | None, str]:
        """R-VES of a right answer; None, and why, where there are no timings."""
        if not sql:
            return None, "R-VES needs the SQL"
        judged = predicted_by(run)
        if not isinstance(run, Rerun) or not isinstance(judged, Rerun):
            return None, "R-VES needs a database that runs a query more than once"
        own: list[float] = []
        right: list[float] = []
        for _ in range(self.repetitions):
            for text, seconds, runs in ((sql, own, judged), (gold, right, run)):
                outcome = await runs.anew(text)
                if isinstance(outcome, QueryError) or outcome.truncated or outcome.seconds <= 0:
                    return None, "R-VES is not measured: a query that ran before did not run again"
                seconds.append(outcome.seconds)
        return reward(right, own), ""


@dataclass(frozen=True)
class TimedBirdScorer(BirdScorer):
    """A ``BirdScorer`` that measures R-VES; its declared metrics tell evaluations with and without apart."""

    timings: bool = True

    metrics = (
        *BirdScorer.metrics[:2],
        Metric(R_VES, "R-VES", f"{REWARD}; over {REPETITIONS} runs of each query {SOURCE}.", unit="points"),
    )


def _compared(pair: Pair) -> tuple[float, float, str]:
    """EX, soft F1, and how the results differ."""
    if isinstance(pair.found, NoRows):
        return 0.0, 0.0, pair.found.reason
    reason = set_difference(pair.gold, pair.found)
    return float(not reason), soft_f1(pair.gold, pair.found), reason


def _rank(verdict: Verdict) -> tuple[float, ...]:
    """Better verdicts are larger; those that are not defined are the least."""
    values = (verdict.metrics[name] for name in (EX, SOFT_F1, R_VES))
    return tuple(-1.0 if value is None else value for value in values)
