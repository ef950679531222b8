"""Spider 1.0's execution match, as the official test-suite evaluation judges it.

Source: taoyds/test-suite-sql-eval (Zhong et al., 2020), ``exec_eval.py`` and ``parse.py``, as of 2024:
``evaluation.py --etype exec`` without ``--plug_value``. Gold and prediction are executed, DISTINCT taken out
of both, and the results compared (``difference``). What differs from the official program:

- It compares on every SQLite file in the database's folder; here it is the benchmark's own database only.
  Scores on the distilled test suite are lower.
- It puts 1 for the word ``value`` between spaces, for systems that predict no values. Ours do.
- A prediction that the guard or the lint refuses is wrong; the official program executes whatever it gets.
- Text that is not UTF-8, and rare mixtures of types in one column: see ``evals/scorers/rows.py``.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import EX, Metric, RunSql, Verdict
from quorum.evals.scorers.rows import Given, NoRows, Rows, RowsScorer

KEEP_DISTINCT = "ex_keep_distinct"
"""Name of the metric that judges the results as they are."""


class Spider1Scorer(RowsScorer):
    """Judges by execution match.

    A result without SQL is compared with the gold's with DISTINCT kept. Where the gold holds DISTINCT that
    is not the official default, and the reason says so.
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

    async def judged(self, question: EvalQuestion, given: Given, run: RunSql) -> Verdict:
        """Judge with DISTINCT kept and, where it makes a difference, as the official default does."""
        kept = await _nearest(question, given, run, keep_distinct=True)
        distinct = any(map(_holds_distinct, (*question.gold_sql, given.sql)))
        as_given = distinct and isinstance(given.rows, list)
        if distinct and not as_given:
            official = await _nearest(question, given, run, keep_distinct=False)
        else:
            official = kept
        if official.match is None:
            return self.unscorable(official.reason, "fails")
        return Verdict(
            {EX: official.metrics[EX], KEEP_DISTINCT: kept.metrics[EX]},
            _reason(official, kept, as_given=as_given),
            "ok" if official.gold_rows else "empty",
            kept.gold_rows,
        )

    def executed(self, sql: str) -> str:
        return executed_text(sql, keep_distinct=True)


async def _nearest(question: EvalQuestion, given: Given, run: RunSql, *, keep_distinct: bool) -> Verdict:
    """Judge by the first gold query that is met, else by the first that runs."""
    found = []
    for gold in question.gold_sql:
        found.append(await _judged(gold, given, run, keep_distinct))
        if found[-1].match:
            return found[-1]
    return next((each for each in found if each.match is not None), found[0])


async def _judged(gold: str, given: Given, run: RunSql, keep_distinct: bool) -> Verdict:
    """Judge by one gold query; without a match if that does not run."""
    text = partial(executed_text, keep_distinct=keep_distinct)
    pair = await given.against(gold, run, text)
    if isinstance(pair, NoRows):
        return Verdict({EX: None}, pair.reason)
    if isinstance(pair.found, NoRows):
        return Verdict({EX: 0.0}, pair.found.reason, gold_rows=len(pair.gold))
    reason = await asyncio.to_thread(difference, pair.gold, pair.found, ordered=order_counts(text(gold)))
    return Verdict({EX: float(not reason)}, reason, gold_rows=len(pair.gold))


def _holds_distinct(sql: str) -> bool:
    """Return True if the official default executes another text, trailing white space apart."""
    return executed_text(sql, keep_distinct=True).strip() != executed_text(sql, keep_distinct=False).strip()


def _reason(official: Verdict, kept: Verdict, *, as_given: bool) -> str:
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


TYPED_APART = (("> =", ">="), ("< =", "<="), ("! =", "!="))
"""Operators that tokenised predictions write in two, mended wherever they stand (``postprocess``)."""

CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def executed_text(sql: str, *, keep_distinct: bool) -> str:
    """The text that the official program executes for a query.

    Args:
        keep_distinct: Its flag of that name. Without it every DISTINCT is taken out, and what follows
            the first statement is left away.
    """
    for apart, joined in TYPED_APART:
        sql = sql.replace(apart, joined)
    text = sql if keep_distinct else _without_distinct(sql)
    return CURRENT_YEAR.sub("2020", text)


def order_counts(gold: str) -> bool:
    """Return True if the rows' order counts: the gold's text says ``order by`` somewhere."""
    return "order by" in gold.lower()


def _without_distinct(sql: str) -> str:
    """The first statement without the word DISTINCT, quoted names and texts untouched."""
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    from quorum.tools.sql import sqlglot_dialect

    try:
        tokens = sqlglot_dialect("sqlite").tokenize(sql)
    except SqlglotError:  # no query then, and refused when it is run
        return sql
    kept: list[str] = []
    start = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            return "".join([*kept, sql[start : token.end + 1]])
        if token.token_type == TokenType.DISTINCT:
            kept.append(sql[start : token.start])
            start = token.end + 1
    return "".join([*kept, sql[start:]])


def difference(gold: Rows, found: Rows, *, ordered: bool) -> str:
    """Return how a result differs from the gold, in words; "" if they are the same (``result_eq``).

    They are if some permutation of the columns makes the same rows, as often each, in the same order if
    that counts. Names do not count. Two empty results are the same whatever their columns.
    """
    if not gold and not found:
        return ""
    if len(gold) != len(found):
        return f"it has {count(len(found), 'row')}, the gold {len(gold)}"
    if len(gold[0]) != len(found[0]):
        return f"it has {count(len(found[0]), 'column')}, the gold {len(gold[0])}"
    if not _quickly_alike(gold, found, ordered):
        return "its values are not the gold's" + (", or their order is another" if ordered else "")
    columns, others = list(zip(*gold, strict=True)), list(zip(*found, strict=True))
    same = Counter(columns) == Counter(others) if ordered else _permuted(columns, others)
    return "" if same else "its rows pair the gold's values in another way"


def _quickly_alike(gold: Rows, found: Rows, ordered: bool) -> bool:
    """The official program's quick rejection, which decides: each row sorted by its values' text.

    It rejects more than it should where a row has 10 and 10.5 in one result, and 10.0 and 10.5 in the
    other: equal values whose texts sort another way.
    """
    left, right = [_by_text(row) for row in gold], [_by_text(row) for row in found]
    return left == right if ordered else set(left) == set(right)


def _by_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(row, key=lambda value: f"{value}{type(value)}"))


def _permuted(gold: Sequence[tuple[Any, ...]], found: Sequence[tuple[Any, ...]]) -> bool:
    """Return True if the columns can be paired so that the rows are the same multiset.

    Columns are paired one by one; each pairing splits the rows into finer classes, which must stay
    equally large in both results. Equal columns are tried once. Gold columns that few others can be are
    paired first.
    """
    places: dict[frozenset[tuple[Any, int]], list[int]] = {}
    for i, column in enumerate(found):
        places.setdefault(_values(column), []).append(i)
    like = [places.get(_values(column), []) for column in gold]
    order = sorted(range(len(gold)), key=lambda i: (len(like[i]), -len(set(gold[i]))))

    def choices(depth: int, before: _Classes) -> Iterator[tuple[int, _Classes]]:
        tried: set[tuple[Any, ...]] = set()
        for i in like[order[depth]]:
            if i not in taken and found[i] not in tried:
                tried.add(found[i])
                if (classes := _split(before, gold[order[depth]], found[i])) is not None:
                    yield i, classes

    taken: list[int] = []
    start = ([0] * len(gold[0]), [0] * len(gold[0]))
    levels = [choices(0, start)]
    while levels:  # a loop, because a result may have more columns than Python nests calls
        step = next(levels[-1], None)
        if step is None:
            levels.pop()
            if taken:
                taken.pop()
            continue
        taken.append(step[0])
        if len(taken) == len(gold):
            return True
        levels.append(choices(len(taken), step[1]))
    return False


def _values(column: tuple[Any, ...]) -> frozenset[tuple[Any, int]]:
    """Each value and how often it occurs."""
    return frozenset(Counter(column).items())


_Classes = tuple[list[int], list[int]]
"""The class of each row of the gold, and of each row of the other result."""


def _split(before: _Classes, gold: tuple[Any, ...], found: tuple[Any, ...]) -> _Classes | None:
    """The rows' classes with one more column; None if they are not equally large in both results."""
    numbers: dict[tuple[int, Any], int] = {}
    left = [numbers.setdefault(pair, len(numbers)) for pair in zip(before[0], gold, strict=True)]
    right = [numbers.get(pair, -1) for pair in zip(before[1], found, strict=True)]
    return (left, right) if Counter(left) == Counter(right) else None
