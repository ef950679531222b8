"""Whether gold queries still run, give the same twice, and match themselves by a scorer's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import GoldCheck, Prediction, Rerun, RunSql, Scorer
from quorum.evals.scorers.volatile import volatile
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results import blank_reason, equal


async def check_queries(scorer: Scorer, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
    """The state of a question whose gold is accepted queries, one or several.

    ``fails``: none runs. ``differs``: the result of one that runs is no match by the scorer's rules, or the
    first that runs gives something else when it is run again. ``empty``: all that run return no row. Else
    it is ``ok``, and the reason says which queries fail and what the results depend on besides the data.
    """
    if not question.gold_sql:
        return GoldCheck("missing", "the question has no gold SQL")
    if run is None:
        return GoldCheck("not_live", "the database is not here")
    outcomes = [await run(sql) for sql in question.gold_sql]
    pairs = zip(question.gold_sql, outcomes, strict=True)
    ran = [(sql, outcome) for sql, outcome in pairs if isinstance(outcome, QueryResult)]
    seconds = sum(outcome.seconds for _, outcome in ran)
    notes = [*_failures(outcomes), *_dependence(question, [outcome for _, outcome in ran])]
    if not ran:
        return GoldCheck("fails", "; ".join(notes), seconds=seconds)
    rows = ran[0][1].row_count
    unlike = await _unlike(scorer, question, run, ran)
    if unlike:
        return GoldCheck("differs", "; ".join([unlike, *notes]), rows, seconds)
    empty = not any(outcome.row_count for _, outcome in ran)
    return GoldCheck("empty" if empty else "ok", "; ".join(notes), rows, seconds)


async def _unlike(
    scorer: Scorer, question: EvalQuestion, run: RunSql, ran: Sequence[tuple[str, QueryResult]]
) -> str:
    """Why the results cannot be trusted; empty if they can."""
    sql, first = ran[0]
    again = await (run.anew(sql) if isinstance(run, Rerun) else run(sql))
    if isinstance(again, QueryError):
        return f"a second run fails: {again.describe()}"
    if not equal(first.table, again.table):
        return "a second run gives another result"
    for sql, outcome in ran:
        prediction = Prediction(sql, outcome.table, bool(outcome.truncated))
        verdict = await scorer.score(question, prediction, run)
        if not verdict.match:
            return f"its result is no match: {verdict.reason}"
    return ""


def _failures(outcomes: Sequence[QueryResult | QueryError]) -> Iterator[str]:
    for place, outcome in enumerate(outcomes, start=1):
        if isinstance(outcome, QueryError):
            which = f"query {place} of {len(outcomes)} fails: " if len(outcomes) > 1 else ""
            yield f"{which}{outcome.describe()}"


def _dependence(question: EvalQuestion, results: Sequence[QueryResult]) -> Iterator[str]:
    """What the results depend on besides the data, and whether they say nothing as it stands now."""
    causes = {cause for sql in question.gold_sql if (cause := volatile(sql, question.dialect))}
    if causes:
        blank = {blank_reason(result.table) for result in results}
        now = f", and is {blank.pop()} now" if len(blank) == 1 and "" not in blank else ""
        yield f"the result depends on {' and '.join(sorted(causes, reverse=True))}{now}"
