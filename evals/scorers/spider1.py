"""Spider 1.0's execution match, as the official test-suite evaluation judges it.

Source: taoyds/test-suite-sql-eval (Zhong et al., 2020), ``evaluation.py --etype exec`` without
``--plug_value``. Gold and prediction are executed, DISTINCT taken out of both, and the results compared as
``spider1_rules.difference`` says. What differs from the official program:

- It compares on every SQLite file in the database's folder; here it is the benchmark's own database only.
  Scores on the distilled test suite are lower.
- It puts 1 for the word ``value`` between spaces, for systems that predict no values. Ours do.
- A prediction that the guard or the lint refuses is wrong; the official program executes whatever it gets.
- Text that is not UTF-8, and rare mixtures of types in one column: see ``evals/scorers/rows.py``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import EX, GoldCheck, Metric, Prediction, RunSql, Scorer, Verdict, unscorable
from quorum.evals.scorers.reproduction import check_queries
from quorum.evals.scorers.rows import Given, NoRows, given_by
from quorum.evals.scorers.spider1_rules import difference, executed_text, order_counts

KEEP_DISTINCT = "ex_keep_distinct"
"""Name of the metric that judges the results as they are."""


class Spider1Scorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    A result without SQL is held against the gold's with DISTINCT kept. Where the gold holds DISTINCT that
    is not the official default, and the reason says so. A CSV file is compared loosely: numbers by their
    value, the empty text as NULL.
    """

    metrics = (
        Metric(
            EX,
            "EX",
            "Execution match by the official default: DISTINCT is taken out of gold and prediction, and "
            "what they return then agrees (taoyds/test-suite-sql-eval).",
        ),
        Metric(
            KEEP_DISTINCT,
            "EX, DISTINCT kept",
            "Execution match on the results as they are (the official program with --keep_distinct).",
        ),
    )
    rules = "Spider 1.0's execution match (taoyds/test-suite-sql-eval), on one database per question"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        if run is None:
            return unscorable(self.metrics, "the database is not here", "not_live")
        given = await given_by(self, prediction, question)
        if isinstance(given, Verdict):
            return given
        kept = await _nearest(question, given, run, keep_distinct=True)
        distinct = any(map(_holds_distinct, (*question.gold_sql, given.sql)))
        as_given = distinct and isinstance(given.rows, list)
        if distinct and not as_given:
            official = await _nearest(question, given, run, keep_distinct=False)
        else:
            official = kept
        if official.match is None:
            return unscorable(self.metrics, official.reason, "fails")
        return Verdict(
            {EX: float(official.match), KEEP_DISTINCT: None if kept.match is None else float(kept.match)},
            _reason(official, kept, as_given=as_given),
            "ok" if official.gold_rows else "empty",
            kept.gold_rows,
        )

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await check_queries(self, question, run, partial(executed_text, keep_distinct=True))


@dataclass(frozen=True)
class _Judged:
    """A prediction against a gold query.

    Attributes:
        match: None if the gold does not run.
        gold_rows: Of the gold's result; None if it does not run.
    """

    match: bool | None
    reason: str
    gold_rows: int | None = None


async def _nearest(question: EvalQuestion, given: Given, run: RunSql, *, keep_distinct: bool) -> _Judged:
    """The judgement by the first gold query that is met, else by the first that runs."""
    found = []
    for gold in question.gold_sql:
        found.append(await _judged(gold, given, run, keep_distinct))
        if found[-1].match:
            return found[-1]
    return next((each for each in found if each.match is not None), found[0])


async def _judged(gold: str, given: Given, run: RunSql, keep_distinct: bool) -> _Judged:
    text = partial(executed_text, keep_distinct=keep_distinct)
    pair = await given.against(gold, run, text)
    if isinstance(pair, NoRows):
        return _Judged(None, pair.reason)
    if isinstance(pair.found, NoRows):
        return _Judged(False, pair.found.reason, len(pair.gold))
    reason = await asyncio.to_thread(difference, pair.gold, pair.found, ordered=order_counts(text(gold)))
    return _Judged(not reason, reason, len(pair.gold))


def _holds_distinct(sql: str) -> bool:
    """Whether the official default executes another text, white space after it aside."""
    return executed_text(sql, keep_distinct=True).strip() != executed_text(sql, keep_distinct=False).strip()


def _reason(official: _Judged, kept: _Judged, *, as_given: bool) -> str:
    """The official reason, and what DISTINCT has to do with it."""
    reason = official.reason
    if as_given:
        note = "judged with DISTINCT kept, because taking it out needs the SQL"
    elif official.match != kept.match:
        note = "without DISTINCT; with it, it " + (
            "matches" if kept.match else f"does not match: {kept.reason}"
        )
    else:
        return reason
    return f"{reason} ({note})" if reason else f"a match, {note}"
