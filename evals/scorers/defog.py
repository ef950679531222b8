"""defog's match of results (sql-eval, ``eval/eval.py`` as of 2025), without pandas.

The rules, as that program applies them to the result of each accepted query:

1. *Exact*: both results are the same cell by cell; or they are after duplicate rows are taken away, the
   columns are sorted by name and the rows by all columns. No tolerance. NULL equals NULL, but in a column
   of numbers only at that second look, for it is NaN at first.
2. *Subset*: the gold has rows, and each of its columns, sorted by itself, equals a column of the prediction
   that no gold column before took (the first one that fits, no other is tried); and the columns so paired
   are the same table after duplicate rows are taken away and the rows are sorted. Names do not count.
   Numbers may differ by 1e-5 relative or 1e-8 absolute, but for columns of whole numbers without NULL.
3. Order counts where the question's category is ``order_by`` or its text has the word "order", "sort" or
   "arrange": rows are not sorted then. In the exact comparison they are sorted even so where the SQL has an
   ORDER BY: by the columns that the text after its first ORDER BY names, up to a comma, bracket or
   semicolon, then by all others, all in one direction: ascending if that text says ASC, else descending.
4. NULL comes last in either direction. Text is compared by code points; numbers come before text.

Integers in a column with NULL or fractions are doubles, as in pandas. Compared with the program on
pandas 2.2; with pandas 3 that fails on columns of texts and NULL. Verdicts differ on purpose

- where the program ends with an error and so counts the answer as wrong: at sorting by one of several
  columns of the same name (here their places are added to the names, as the program does later on), at
  sorting values of several kinds, and at an accepted query that fails (left out here);
- where it compares results of different shapes at first look: numpy stretches the one to the shape of the
  other, so that an empty result is "exactly" any single row of as many columns, and one column is two
  columns of the same values. Here they are not the same;
- where a query takes more than 10 s, after which the program stops it: here it has the limits of
  ``quorum.evals.running.databases.GOLD_LIMITS``, an answer's no more seconds than in its run;
- where the guard or the lint refuses a prediction, which the program would execute: it is wrong here.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import EX, GoldState, Metric, Prediction, RunSql, Scorer, Verdict, best_of
from quorum.evals.scorers.rows import NoRows, given_rows, run_rows, whole
from quorum.evals.tables import NULLS, TypedTable, cells, frame_of, read_frame
from quorum.tools.results.files import csv_lines

EXACT = "exact"
"""Name of the metric that wants the same result, without a column more."""


class DefogScorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    Both are executed at the same time, because many gold queries ask for the current date. The questions
    bring in ``extra`` their ``category``, and as ``query`` all that is accepted as it is published. A CSV
    file does not tell 1 from '1': the gold is written and read in the same way then.
    """

    metrics = (
        Metric(
            EX,
            "EX",
            "The result is the gold's, or has all its columns and perhaps more; of several accepted "
            "queries, any may be met (defog-ai/sql-eval, reported as `correct`).",
        ),
        Metric(
            EXACT, "Exact match", "The result is the gold's (defog-ai/sql-eval, reported as `exact_match`)."
        ),
    )
    rules = "defog's exact and subset match (defog-ai/sql-eval, eval/eval.py of 2025)"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        unusable = self.without_gold(question, run)
        if unusable or not run:
            return unusable or self.unscorable("the database is not here", "not_live")
        as_read = isinstance(prediction.result, Path) and not prediction.sql
        every = [await _executed(sql, run, as_read=as_read) for sql in question.gold_sql]
        golds = [gold for gold in every if isinstance(gold, Grid)]
        if not golds:
            reason = next(gold.reason for gold in every if isinstance(gold, NoRows))
            return self.unscorable(f"the gold SQL does not run: {reason}", "fails")
        found = await _found(prediction, run)
        if isinstance(found, NoRows):
            return self.wrong(found.reason, _state(golds), golds[0].rows)
        return await asyncio.to_thread(self._judged, question, found, prediction.sql, golds)

    def _judged(self, question: EvalQuestion, found: Grid, sql: str, golds: Sequence[Grid]) -> Verdict:
        """Judge by the accepted query that is met best, exactly rather than as a subset."""
        category, query = question.extra.get("category", ""), question.extra.get("query", "")
        ordered = asks_for_order(category, question.question)

        def grade(gold: Grid) -> int:
            if exact(gold, found, ordered=ordered, gold_sql=query, found_sql=sql):
                return 2
            return int(subset(gold, found, ordered=ordered))

        best, gold = best_of(golds, grade, lambda gold: abs(gold.rows - found.rows))
        reasons = {2: "", 1: "has the gold's columns, not exactly"}
        reason = reasons[best] if best else _difference(found, gold)
        return Verdict({EX: float(best > 0), EXACT: float(best == 2)}, reason, _state(golds), gold.rows)


def _state(golds: Sequence[Grid]) -> GoldState:
    return "ok" if any(gold.rows for gold in golds) else "empty"


async def _found(prediction: Prediction, run: RunSql) -> Grid | NoRows:
    """Return what is judged of a prediction."""
    result = prediction.result
    if prediction.sql:
        return await _executed(prediction.sql, run.predicted)
    if isinstance(result, Path) and not prediction.truncated:
        return Grid.of_frame(await asyncio.to_thread(read_frame, result, nulls=NULLS))
    rows = await given_rows(prediction)
    names = result.column_names if isinstance(result, pa.Table) else ()
    return rows if isinstance(rows, NoRows) else Grid.of_rows(names, rows)


async def _executed(sql: str, run: RunSql, *, as_read: bool = False) -> Grid | NoRows:
    """Return the result of a query; ``as_read``: as it would be read from a CSV file."""
    outcome = whole(await run(sql))
    if isinstance(outcome, NoRows):
        return outcome
    rows = await run_rows(run, sql)
    if isinstance(rows, NoRows):
        return rows
    if not as_read:
        return await asyncio.to_thread(Grid.of_rows, outcome.columns, rows)
    frame = await asyncio.to_thread(lambda: frame_of("".join(csv_lines(outcome.table)), nulls=NULLS))
    return Grid.of_frame(frame)


def _difference(found: Grid, gold: Grid) -> str:
    if gold.rows != found.rows:
        return f"{count(found.rows, 'row')}, the gold has {gold.rows}"
    if len(gold.names) > len(found.names):
        return f"{count(len(found.names), 'column')}, the gold has {len(gold.names)}"
    return "other values, or another order of rows"


ColumnCells: TypeAlias = list[Any]
"""A column: int, float, bool, str, bytes, and None for NULL."""

RELATIVE, ABSOLUTE = 1e-5, 1e-8  # pandas' assert_series_equal
ORDER_WORDS = re.compile(r"\b(order|sort|arrange)\b", re.IGNORECASE)
ORDER_BY = re.compile(r"ORDER BY", re.IGNORECASE)
ORDER_KEY = re.compile(r"(?<=ORDER BY)(.*?)(?=[;,)]|$)", re.IGNORECASE)
NO_NAMES = frozenset({"desc", "asc", "nulls", "last", "first", "limit"})


def accepted_queries(text: str) -> list[str]:
    """Return the queries that a question's ``query`` stands for, in the order in which they are tried.

    They are separated by semicolons. Of the columns in the first pair of braces any subset but the empty
    one may be shown, smaller ones first, and ``GROUP BY {}`` behind it stands for the same columns.
    """
    found: list[str] = []
    for query in filter(None, map(str.strip, text.split(";"))):
        start = query.find("{")
        end = query.find("}", start + 1)
        if start < 0 or end < 0:
            found.append(query)
            continue
        options = query[start + 1 : end].split(",")
        for size in range(1, len(options) + 1):
            for chosen in combinations(options, size):
                columns = ", ".join(chosen)
                rest = query[end + 1 :].replace("GROUP BY {}", f"GROUP BY {columns}")
                found.append(query[:start] + columns + rest)
    return found


def asks_for_order(category: str, question: str) -> bool:
    """Return True if the order of rows counts (rule 3)."""
    return category == "order_by" or bool(ORDER_WORDS.search(question))


@dataclass(frozen=True)
class Grid:
    """A result as plain values.

    Attributes:
        names: Unique.
        columns: Of equal length.
    """

    names: tuple[str, ...]
    columns: tuple[ColumnCells, ...]

    @classmethod
    def of(cls, names: Sequence[str], columns: Iterable[Sequence[Any]]) -> Grid:
        """Make a grid of columns as they come; names may repeat."""
        return cls(_unique(names), tuple(_as_held(list(column)) for column in columns))

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Grid:
        """Make a grid of rows as a database gives them."""
        return cls.of(names, zip(*rows, strict=True) if rows else [() for _ in names])

    @classmethod
    def of_frame(cls, frame: TypedTable) -> Grid:
        """Make a grid of what was read from a CSV file."""
        return cls.of(frame.names, map(cells, frame.columns))

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def exact(gold: Grid, found: Grid, *, ordered: bool, gold_sql: str = "", found_sql: str = "") -> bool:
    """Return True if two results are the same (rule 1).

    Args:
        ordered: See ``asks_for_order``.
        gold_sql: The question's ``query``, all that is accepted; its first ORDER BY counts.
        found_sql: Of the prediction.
    """
    if _shape(gold) == _shape(found) and gold.columns == found.columns and not _has_nan(gold):
        return True
    first, second = _normalised(gold, ordered, gold_sql), _normalised(found, ordered, found_sql)
    return _shape(first) == _shape(second) and first.columns == second.columns


def subset(gold: Grid, found: Grid, *, ordered: bool) -> bool:
    """Return True if the gold's columns are all in a result (rule 2)."""
    if not gold.rows:
        return False
    free = {index: _sorted(column) for index, column in enumerate(found.columns)}
    taken: list[ColumnCells] = []
    for column in gold.columns:
        wanted = _sorted(column)
        match = next((index for index, other in free.items() if _agree(wanted, other)), None)
        if match is None:
            return False
        del free[match]
        taken.append(found.columns[match])
    first = _normalised(gold, ordered)
    second = _normalised(Grid(gold.names, tuple(taken)), ordered)
    return all(_agree(a, b) for a, b in zip(first.columns, second.columns, strict=True))


def _shape(grid: Grid) -> tuple[int, int]:
    return grid.rows, len(grid.columns)


def _has_nan(grid: Grid) -> bool:
    """Return True if pandas would hold a NULL as NaN: in a column of numbers."""
    types = ({type(value) for value in column} for column in grid.columns)
    return any(type(None) in kinds and float in kinds and str not in kinds for kinds in types)


def _as_held(column: ColumnCells) -> ColumnCells:
    """Return whole numbers as doubles where NULL or a double stands among them."""
    kinds = {type(value) for value in column}
    if int in kinds and kinds <= {int, float, type(None)} and len(kinds) > 1:
        return [None if value is None else float(value) for value in column]
    return column


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return names, those that repeat with their places added."""
    counts = Counter(names)
    return tuple(f"{name}_{place}" if counts[name] > 1 else name for place, name in enumerate(names))


def _rank(value: Any) -> tuple[int, Any]:
    kind = 2 if isinstance(value, bytes) else 1 if isinstance(value, str) else 0
    return kind, value


def _sorted(column: ColumnCells) -> ColumnCells:
    known = sorted((value for value in column if value is not None), key=_rank)
    return known + [None] * (len(column) - len(known))


def _agree(first: ColumnCells, second: ColumnCells) -> bool:
    """Return True if two columns are the same cell by cell, numbers within the tolerance."""
    if len(first) != len(second):
        return False
    if first == second:
        return True
    if _whole(first) or _whole(second):
        return False
    return all(a == b or _close(a, b) for a, b in zip(first, second, strict=True))


def _whole(column: ColumnCells) -> bool:
    return all(isinstance(value, int) for value in column)


def _close(a: Any, b: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return numbers and math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _normalised(grid: Grid, ordered: bool, sql: str = "") -> Grid:
    """Return the grid without duplicate rows, its columns and rows arranged as rules 1 and 3 say."""
    rows = list(dict.fromkeys(zip(*grid.columns, strict=True)))
    place = {name: index for index, name in enumerate(grid.names)}
    by = shown = sorted(grid.names)
    ascending = True
    if ordered:
        words = _order_words(sql)
        leading = [word for word in words if word in place and word.lower() not in NO_NAMES]
        others = [name for name in shown if name not in leading]
        by, shown = (leading + others, others + leading) if ORDER_BY.search(sql) else ([], shown)
        kinds = {word.upper() for word in words}
        ascending = "ASC" in kinds and "DESC" not in kinds
    for name in reversed(by):
        rows = _arranged(rows, place[name], ascending)
    return Grid(tuple(shown), tuple([row[place[name]] for row in rows] for name in shown))


def _order_words(sql: str) -> list[str]:
    """Return the words after the first ORDER BY that something ends, without tables' names."""
    found = ORDER_KEY.search(sql)
    return [word.rsplit(".", 1)[-1].replace("(", "") for word in found[1].split()] if found else []


def _arranged(rows: list[tuple[Any, ...]], place: int, ascending: bool) -> list[tuple[Any, ...]]:
    """Return rows sorted by one column; those that tie keep their order, NULL comes last."""
    known = [row for row in rows if row[place] is not None]
    known.sort(key=lambda row: _rank(row[place]), reverse=not ascending)
    return known + [row for row in rows if row[place] is None]
