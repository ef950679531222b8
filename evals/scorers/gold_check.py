"""Checks that gold queries still run, give the same twice, and match themselves by a scorer's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import GoldCheck, GoldState, Prediction, RunSql, Scorer
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results.canonical import blank_reason
from quorum.tools.results.compare import equal

NOW, CHANCE = "the current date or time", "chance"
CAUSES = {
    NOW: re.compile(
        r"""\b(current_?(date|time|timestamp|datetime)|local_?time(stamp)?|utc_(date|time|timestamp))\b
        | \b(now|sysdate|today|getdate|curdate|curtime|timeofday|date|time|datetime|julianday|unixepoch
            |unix_timestamp|(clock|statement|transaction)_timestamp)\s*\(\s*\)
        | \bage\s*\([^(),]*\) | \bstrftime\s*\([^(),]*\)
        | \b(date|time|datetime|julianday|unixepoch|strftime|timediff)\s*\([^()]*'now'
        | '(now|today)'\s*::""",
        re.IGNORECASE | re.VERBOSE,
    ),
    CHANCE: re.compile(r"\b(rand(om|omblob)?|gen_random_\w+|uniform|newid|uuid\w*)\s*\(|\bsample\s*\(", re.I),
}
"""What a query's result may depend on besides the data, and the functions that say so."""


async def check_queries(scorer: Scorer, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
    """Return the state of a question whose gold is accepted queries, one or several.

    ``fails``: none runs. ``differs``: the result of one that runs is no match by the scorer's rules, or the
    first that runs gives something else when it is run again. ``empty``: all that run return no row. Else
    it is ``ok``, and the reason says which queries fail and what the results depend on besides the data.
    """
    if not question.gold_sql:
        return GoldCheck("missing", "the question has no gold SQL")
    if run is None:
        return GoldCheck("not_live", "the database is not here")
    outcomes = [(sql, await run(scorer.executed(sql))) for sql in question.gold_sql]
    ran = [(sql, outcome) for sql, outcome in outcomes if isinstance(outcome, QueryResult)]
    notes = list(_failures([outcome for _, outcome in outcomes]))
    notes += _dependence(question.gold_sql, [outcome for _, outcome in ran])
    if not ran:
        return GoldCheck("fails", "; ".join(notes))
    state, reason = await _matched(scorer, question, run, ran)
    if state == "ok" and not any(outcome.row_count for _, outcome in ran):
        state = "empty"
    return GoldCheck(state, "; ".join(filter(None, [reason, *notes])), ran[0][1].row_count)


async def _matched(
    scorer: Scorer, question: EvalQuestion, run: RunSql, ran: Sequence[tuple[str, QueryResult]]
) -> tuple[GoldState, str]:
    """Return ``ok``, or why the results cannot be trusted."""
    sql, first = ran[0]
    again = await run.again(scorer.executed(sql))
    if isinstance(again, QueryError):
        return "differs", f"a second run fails: {again.describe()}"
    if not equal(first.table, again.table):
        return "differs", "a second run gives another result"
    for sql, outcome in ran:
        prediction = Prediction(sql, outcome.table, bool(outcome.truncated))
        verdict = await scorer.score(question, prediction, run)
        if not verdict.match:
            state: GoldState = "differs" if verdict.match is False else "fails"
            return state, f"its result is no match: {verdict.reason}"
    return "ok", ""


def _failures(outcomes: Sequence[QueryResult | QueryError]) -> Iterator[str]:
    for place, outcome in enumerate(outcomes, start=1):
        if isinstance(outcome, QueryError):
            which = f"query {place} of {len(outcomes)} fails: " if len(outcomes) > 1 else ""
            yield f"{which}{outcome.describe()}"


def _dependence(queries: Sequence[str], results: Sequence[QueryResult]) -> Iterator[str]:
    """Say what the results depend on besides the data, and whether they are without content now."""
    if causes := [cause for cause in CAUSES if any(cause == volatile(sql) for sql in queries)]:
        blank = {blank_reason(result.table) for result in results}
        now = f", and is {blank.pop()} now" if len(blank) == 1 and "" not in blank else ""
        yield f"the result depends on {' and '.join(causes)}{now}"


def volatile(sql: str) -> str:
    """Return what a query's result depends on besides the data: ``NOW``, ``CHANCE`` or "".

    The functions that its text names decide; what a view hides is not seen.
    """
    return next((cause for cause, pattern in CAUSES.items() if pattern.search(sql)), "")
