"""Whether gold queries still run, give the same twice, and match themselves by a scorer's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import GoldCheck, GoldState, Prediction, RunSql, Scorer
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results.canonical import blank_reason
from quorum.tools.results.compare import equal
from quorum.tools.sql import SyntaxProblem, parse_one_statement

NOW, CHANCE = "the current date or time", "chance"

READERS = frozenset({"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"})
"""SQLite's functions of a moment: of the current one if none is named, or if it is the text ``now``."""
CLOCKS = frozenset(
    {"now", "sysdate", "today", "getdate", "clock_timestamp", "statement_timestamp", "unix_timestamp"}
    | {"transaction_timestamp", "timeofday", "get_current_time", "get_current_timestamp"}
    | {"date", "time", "datetime", "julianday", "unixepoch"}
)
"""Functions that tell the current moment where they have no argument."""
DRAWS = frozenset({"random", "rand", "randomblob", "gen_random_bytes", "uniform", "newid", "setseed"})
MOMENTS = frozenset(
    {"currentdate", "currenttime", "currentdatetime", "currenttimestamp", "currenttimestampltz"}
    | {"localtime", "localtimestamp", "utcdate", "utctime", "utctimestamp"}
)
"""The same as sqlglot's nodes, by their keys."""
WORDS = frozenset({"now", "today", "tomorrow", "yesterday"})


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
    notes += _dependence(
        map(scorer.executed, question.gold_sql), question.dialect, [outcome for _, outcome in ran]
    )
    if not ran:
        return GoldCheck("fails", "; ".join(notes))
    state, reason = await _matched(scorer, question, run, ran)
    if state == "ok" and not any(outcome.row_count for _, outcome in ran):
        state = "empty"
    return GoldCheck(state, "; ".join(filter(None, [reason, *notes])), ran[0][1].row_count)


async def _matched(
    scorer: Scorer,
    question: EvalQuestion,
    run: RunSql,
    ran: Sequence[tuple[str, QueryResult]],
) -> tuple[GoldState, str]:
    """``ok``, or why the results cannot be trusted."""
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


def _dependence(queries: Iterable[str], dialect: str, results: Sequence[QueryResult]) -> Iterator[str]:
    """What the results depend on besides the data, and whether they are without content now."""
    causes = {cause for sql in queries if (cause := volatile(sql, dialect))}
    if causes:
        blank = {blank_reason(result.table) for result in results}
        now = f", and is {blank.pop()} now" if len(blank) == 1 and "" not in blank else ""
        yield f"the result depends on {' and '.join(sorted(causes, reverse=True))}{now}"


def volatile(sql: str, dialect: str) -> str:
    """What a query's result depends on besides the data: ``NOW``, ``CHANCE`` or nothing, the empty text.

    Told from the functions that it calls; what a view hides is not seen, and SQL that cannot be read
    depends on nothing.
    """
    try:
        tree = parse_one_statement(sql, dialect)
    except SyntaxProblem:
        return ""
    nodes = list(tree.walk())
    if any(map(_tells_now, nodes)):
        return NOW
    return CHANCE if any(map(_draws, nodes)) else ""


def _tells_now(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal) and node.is_string and node.name.lower() in WORDS:
        return _takes_moment(node.parent)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return (name in CLOCKS and not node.expressions) or (name == "age" and len(node.expressions) == 1)
    if isinstance(node, exp.Date):
        return node.this is None and not node.expressions
    return node.key in MOMENTS


def _takes_moment(node: exp.Expr | None) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in READERS
    return isinstance(node, exp.Cast | exp.Date | exp.Time | exp.TsOrDsToTimestamp)


def _draws(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in DRAWS
    return isinstance(node, exp.Rand | exp.Randn | exp.Uuid | exp.TableSample)
