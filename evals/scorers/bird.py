"""BIRD's execution accuracy and soft F1, on the rows of two results.

Source: bird-bench/mini_dev (Li et al., 2024), ``evaluation_ex.py`` and ``evaluation_f1.py`` of commit
2932a2b, which pairs rows by their place; an earlier one took the order of Python's sets, which is chance. Set
match is that of BIRD's first program (2023) as well. What differs from the official programs:

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
from quorum.evals.scorers.base import EX, GoldState, Metric, RunSql, Verdict
from quorum.evals.scorers.rows import Given, NoRows, Rows, RowsScorer

SOFT_F1 = "soft_f1"


class BirdScorer(RowsScorer):
    """Judges by set match and soft F1."""

    metrics = (
        Metric(EX, "EX", "Execution accuracy: the set of rows is the gold's (bird-bench)."),
        Metric(
            SOFT_F1,
            "Soft F1",
            "F1 of cells over rows paired by their place (bird-bench/mini_dev, evaluation_f1.py).",
        ),
    )
    rules = "BIRD's set match and soft F1 (bird-bench/mini_dev)"

    async def judged(self, question: EvalQuestion, given: Given, run: RunSql) -> Verdict:
        """Judge by the gold query that is met best."""
        return max([await self._against(gold, given, run) for gold in question.gold_sql], key=_rank)

    async def _against(self, gold: str, given: Given, run: RunSql) -> Verdict:
        """Judge by one gold query."""
        pair = await given.against(gold, run)
        if isinstance(pair, NoRows):
            return self.unscorable(pair.reason, "fails")
        state: GoldState = "ok" if pair.gold else "empty"
        if isinstance(pair.found, NoRows):
            return self.wrong(pair.found.reason, state, len(pair.gold))
        reason = await asyncio.to_thread(set_difference, pair.gold, pair.found)
        likeness = await asyncio.to_thread(soft_f1, pair.gold, pair.found)
        return Verdict({EX: float(not reason), SOFT_F1: likeness}, reason, state, len(pair.gold))


def _rank(verdict: Verdict) -> tuple[float, ...]:
    """Return a key by which better verdicts are larger; those that are not defined are the least."""
    values = (verdict.metrics[name] for name in (EX, SOFT_F1))
    return tuple(-1.0 if value is None else value for value in values)


def set_difference(gold: Rows, found: Rows) -> str:
    """Return how the set of rows differs from the gold's, in words; "" if they are the same.

    Order and repetition of rows do not count; order of columns does, their names do not.
    """
    expected, given = set(gold), set(found)
    if expected == given:
        return ""
    missing, surplus = len(expected - given), len(given - expected)
    return f"{missing} of the gold's {len(expected)} different rows are missing, {surplus} are surplus"


def soft_f1(gold: Rows, found: Rows) -> float:
    """Return the F1 of the cells, rows paired by their place once repeated ones are left out, 0 to 1.

    Within a pair, each value of one row is looked for anywhere in the other, and weighs one part in the
    number of the gold's columns; a row without a partner weighs 1. Two empty results score 1.
    """
    if not gold and not found:
        return 1.0
    expected, given = list(dict.fromkeys(gold)), list(dict.fromkeys(found))
    hits = surplus = missing = 0.0
    for right, row in zip(expected, given, strict=False):
        hit = sum(value in right for value in row)
        hits += hit / len(right)
        surplus += (len(row) - hit) / len(right)
        missing += sum(value not in row for value in right) / len(right)
    surplus += max(0, len(given) - len(expected))
    missing += max(0, len(expected) - len(given))
    precision = hits / (hits + surplus) if hits else 0.0
    recall = hits / (hits + missing) if hits else 0.0
    return 2 * precision * recall / (precision + recall) if hits else 0.0
