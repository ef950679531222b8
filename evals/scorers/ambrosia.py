"""AMBROSIA's match of results (saparina/ambrosia, ``src/evaluation/metrics.py``), as a scorer.

Two results are the same if their cells are, each as often: neither rows nor columns are held together. Where
the gold's text says ``order by``, the rows have to be as many, as wide and in the same order, and within a
row the order of the cells does not count. 1 equals 1.0, NULL equals NULL. An empty result meets no gold.

What differs from the official program:

- It judges the distinct queries that a model lists. Here these are the answer's query and those of the other
  readings that the answer shows, for which Quorum vouches that they ran and return something else.
- It leaves a question out of all means where a model's reply holds no query; here nothing is found then.
- A prediction that the guard or the lint refuses is wrong; the official program executes whatever it gets.
- A result that the limits of judging cut matches nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import EX, GoldCheck, Metric, RunSql, Verdict
from quorum.evals.scorers.rows import Given, NoRows, Rows, RowsPair, RowsScorer, run_rows
from quorum.evals.scorers.spider1 import order_counts

AMBIGUOUS, PLAIN = "ambiguous", "plain"
"""Whether a question has several right readings: its group ``ambiguity``."""

RECALL, ALL_FOUND, PRECISION, FALSE_ALARM = "recall", "all_found", "precision", "false_alarm"


class AmbrosiaScorer(RowsScorer):
    """Judges by the cells, and what an answer shows by the readings that it meets."""

    metrics = (
        Metric(EX, "EX", "The answer itself has the result of some gold query."),
        Metric(
            RECALL,
            "Recall",
            "Share of the gold readings among the results shown: the answer's and its other readings'.",
            only=AMBIGUOUS,
        ),
        Metric(ALL_FOUND, "All found", "Every gold reading is among the results shown.", only=AMBIGUOUS),
        Metric(
            PRECISION, "Precision", "Share of the results shown that are a gold reading's.", only=AMBIGUOUS
        ),
        Metric(
            FALSE_ALARM,
            "False alarm",
            "A question with one right reading is shown another one with another result; lower is better "
            "(not of the official program).",
            only=PLAIN,
        ),
    )
    rules = "AMBROSIA's match of results (saparina/ambrosia, src/evaluation/metrics.py of 2024)"
    by_reading = True

    async def judged(self, question: EvalQuestion, given: Given, run: RunSql) -> Verdict:
        """Judge by all gold queries."""
        pairs = []
        for gold in question.gold_sql:
            pair = await given.against(gold, run)
            if isinstance(pair, NoRows):  # the official program stops there, too
                return self.unscorable(pair.reason, "fails")
            pairs.append(pair)
        met = await asyncio.to_thread(_met, question.gold_sql, pairs)
        verdict = Verdict(
            {EX: float(bool(met))},
            "" if met else _reason(pairs),
            "ok" if any(pair.gold for pair in pairs) else "empty",
            _nearest(pairs),
            met,
        )
        return replace(verdict, metrics={**verdict.metrics, **self.of_shown(question, [verdict])})

    def of_shown(self, question: EvalQuestion, shown: Sequence[Verdict]) -> Mapping[str, float | None]:
        """Return the metrics over the answer and its readings; ``met`` has the places of gold queries."""
        answer, *readings = shown
        gold_met = {place for verdict in shown for place in verdict.met}
        recall = len(gold_met) / len(question.gold_sql)
        right = sum(bool(verdict.met) for verdict in shown) / len(shown)
        false_alarm = any(not verdict.met or verdict.met != answer.met for verdict in readings)
        ambiguous = question.groups.get("ambiguity") == AMBIGUOUS
        return {
            RECALL: recall if ambiguous else None,
            ALL_FOUND: float(recall == 1) if ambiguous else None,
            PRECISION: right if ambiguous else None,
            FALSE_ALARM: None if ambiguous else float(false_alarm),
        }

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        """Check too that each gold query runs and gives another result than the others."""
        check = await super().verify(question, run)
        if check.state != "ok" or run is None:
            return check
        rows = [await run_rows(run, sql) for sql in question.gold_sql]
        ordered = [order_counts(sql) for sql in question.gold_sql]
        for place, one in enumerate(rows):
            for other in range(place):
                if isinstance(one, NoRows) or isinstance(found := rows[other], NoRows):
                    continue  # the check has named it
                if same(found, one, ordered=ordered[place]):
                    reason = f"queries {other + 1} and {place + 1} give the same result"
                    return replace(check, state="differs", reason=reason)
        return check


def same(found: Rows, gold: Rows, *, ordered: bool) -> bool:
    """Return True if a result is the gold's, as the official program has it.

    Args:
        ordered: The gold says in which order its rows come.
    """
    if not found:
        return False
    if not ordered:
        return Counter(chain.from_iterable(found)) == Counter(chain.from_iterable(gold))
    if len(found) != len(gold) or len({len(row) for row in (*found, *gold)}) > 1:
        return False
    return all(
        sorted(one, key=_rank) == sorted(other, key=_rank) for one, other in zip(found, gold, strict=True)
    )


def _rank(value: Any) -> tuple[int, float, str]:
    """Sort NULL first, then numbers, then all others by their text."""
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def _met(golds: Sequence[str], pairs: Sequence[RowsPair]) -> tuple[int, ...]:
    """Return the places of the gold queries whose result was found."""
    return tuple(
        place
        for place, (sql, pair) in enumerate(zip(golds, pairs, strict=True))
        if isinstance(pair.found, list) and same(pair.found, pair.gold, ordered=order_counts(sql))
    )


def _nearest(pairs: Sequence[RowsPair]) -> int:
    """Return the rows of the gold result that is nearest to the prediction's in their number."""
    found = pairs[0].found
    rows = len(found) if isinstance(found, list) else 0
    return min((len(pair.gold) for pair in pairs), key=lambda gold: abs(gold - rows))


def _reason(pairs: Sequence[RowsPair]) -> str:
    found = pairs[0].found
    if isinstance(found, NoRows):
        return found.reason
    if not found:
        return "the result has no row"
    sizes = [sum(map(len, pair.gold)) for pair in pairs]
    cells = sum(map(len, found))
    if cells in sizes:
        return "other values than the gold, or another order of rows"
    return f"{count(cells, 'cell')}, the gold has {' or '.join(map(str, sizes))}"
