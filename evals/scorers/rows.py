"""Results as rows of Python values, as SQLite's driver for Python hands them to the official programs.

Those programs compare values with ``==``: 1 equals 1.0, and neither equals the text '1'. An Arrow column
has one type, so a column of several storage classes arrives as doubles or as text
(``tools/databases/sqlite/values.py``); for such columns the database is asked once more, with ``typeof``.
What cannot be mended:

- Text that is not UTF-8: its bytes come escaped, where Spider's program leaves them out and BIRD's fails.
- A result without SQL whose column held several storage classes: its values are what they arrived as.
- A query that returns something else when it is run again, if it has such columns: likewise.
"""

from __future__ import annotations

import asyncio
import csv
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import Prediction, RunSql, Scorer, Verdict
from quorum.evals.tables import UnreadableCsv
from quorum.knowledge.errors import read_errors
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results.values import plain_column

Rows: TypeAlias = list[tuple[Any, ...]]

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
REAL = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)
JUDGED = "quorum_judged"
"""Name of the query that is asked for its storage classes, like no table's."""


@dataclass(frozen=True)
class NoRows:
    """There are no rows to judge, for this reason."""

    reason: str


async def run_rows(run: RunSql, sql: str) -> Rows | NoRows:
    """The rows of a query; a result that the limits cut is none, because it cannot be compared."""
    outcome = whole(await run(sql))
    if isinstance(outcome, NoRows):
        return outcome
    mixed = [place for place, types in enumerate(outcome.column_types) if "|" in types]
    classes = await _storage_classes(run, outcome, mixed) if mixed else {}
    return await asyncio.to_thread(_rows, outcome.table, classes)


def whole(outcome: QueryResult | QueryError) -> QueryResult | NoRows:
    """Return a result that can be compared: neither failed nor cut."""
    if isinstance(outcome, QueryError):
        return NoRows(outcome.describe())
    if outcome.truncated:
        return NoRows(f"its result exceeds the limit of {outcome.truncated} of a comparison")
    return outcome


async def _storage_classes(run: RunSql, result: QueryResult, mixed: list[int]) -> dict[int, list[str]]:
    """The storage class of each value in the columns ``mixed``; nothing if the rows came otherwise."""
    names = ", ".join(f"c{place}" for place in range(result.table.num_columns))
    asked = ", ".join(f"c{place}, typeof(c{place})" for place in mixed)
    again = await run(f"WITH {JUDGED}({names}) AS (\n{result.sql}\n) SELECT {asked} FROM {JUDGED}")
    if isinstance(again, QueryError) or again.truncated:
        return {}
    columns = again.table.columns
    if any(columns[2 * i] != result.table.columns[place] for i, place in enumerate(mixed)):
        return {}
    return {place: columns[2 * i + 1].to_pylist() for i, place in enumerate(mixed)}


async def given_rows(prediction: Prediction) -> Rows | NoRows:
    """The rows of a prediction that is a result without SQL.

    Raises:
        UnreadableCsv: Its file is no CSV.
    """
    if prediction.result is None:
        return NoRows("there is neither SQL nor a result")
    if prediction.truncated:
        return NoRows("the result was cut by limits")
    read = rows_of_csv if isinstance(prediction.result, Path) else _rows_of_table
    return await asyncio.to_thread(read, prediction.result)


def _rows(table: pa.Table, classes: Mapping[int, Sequence[str]]) -> Rows:
    """Rows with the values that SQLite's driver returns; ``classes``: by place, where they are mixed."""
    columns = [
        [_stored(value, kind) for value, kind in zip(values, classes[place], strict=True)]
        if place in classes
        else values
        for place, values in enumerate(column.to_pylist() for column in table.columns)
    ]
    return list(zip(*columns, strict=True))


def _stored(value: Any, kind: str) -> Any:
    """A value of a storage class, from the double or the text that it arrived as."""
    if kind == "integer":
        return int(value)
    if kind == "real":
        return float(value)
    return bytes.fromhex(value[2:-1]) if kind == "blob" else value  # X'…'


def _rows_of_table(table: pa.Table) -> Rows:
    columns = [
        column.to_pylist() if pa.types.is_binary(column.type) else plain_column(column)
        for column in table.columns
    ]
    return [  # nested values as text: SQLite has none, and rows are put into sets
        tuple(str(value) if isinstance(value, list | dict) else value for value in row)
        for row in zip(*columns, strict=True)
    ]


def rows_of_csv(path: Path) -> Rows:
    """The rows of a CSV file with a header, read loosely (see ``loosely``); blank lines are skipped.

    Raises:
        UnreadableCsv: It cannot be read, or its records differ in length.
    """
    with read_errors(path, kind=UnreadableCsv), path.open(newline="", encoding="utf-8-sig") as file:
        records = [record for record in csv.reader(file, strict=True) if record]
    if not records:
        raise UnreadableCsv(f"{path} is empty, it lacks even a header.")
    if len({len(record) for record in records}) > 1:
        raise UnreadableCsv(f"The records of {path} differ in length.")
    return [tuple(map(loosely, record)) for record in records[1:]]


def loosely(value: Any) -> Any:
    """Return a value as a CSV file would give it back: a number if it reads like one, NULL if empty.

    A CSV file does not tell 1 from '1', nor NULL from the empty text; a gold result that is compared with
    one is read the same way.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if not isinstance(value, str):
        return value
    if INTEGER.fullmatch(value):
        return int(value)
    if REAL.fullmatch(value) and math.isfinite(number := float(value)):
        return number
    return value or None


@dataclass(frozen=True)
class Given:
    """The prediction that is judged: SQL to execute, or rows where there is none.

    Attributes:
        rows: Of a prediction without SQL, or why it has none.
        loose: They were read from a CSV file, and the gold's are to be read alike.
    """

    sql: str
    rows: Rows | NoRows | None = None
    loose: bool = False

    async def against(self, gold: str, run: RunSql, text: Callable[[str], str] = str) -> RowsPair | NoRows:
        """Return the rows of gold and prediction; ``NoRows`` if the gold has none, so nothing can be judged.

        Args:
            text: Makes of a query the text that is executed.
        """
        expected = await run_rows(run, text(gold))
        if isinstance(expected, NoRows):
            return NoRows(f"the gold SQL does not run: {expected.reason}")
        if self.rows is None:
            return RowsPair(expected, await run_rows(run.predicted, text(self.sql)))
        if self.loose:
            expected = [tuple(map(loosely, row)) for row in expected]
        return RowsPair(expected, self.rows)


@dataclass(frozen=True)
class RowsPair:
    """The rows of a gold query, and those of a prediction or why it has none."""

    gold: Rows
    found: Rows | NoRows


class RowsScorer(Scorer):
    """Judges the SQL of a prediction by executing it, whatever result comes with it; else its result.

    A CSV file is compared loosely: numbers by their value, the empty text as NULL. Where there is neither,
    the gold is run all the same: its state is its own.
    """

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        """Judge a prediction.

        Raises:
            UnreadableCsv: Its file is no CSV.
        """
        unusable = self.without_gold(question, run)
        if unusable or not run:
            return unusable or self.unscorable("the database is not here", "not_live")
        rows = None if prediction.sql else await given_rows(prediction)
        given = Given(prediction.sql, rows, rows is not None and isinstance(prediction.result, Path))
        return await self.judged(question, given, run)

    @abstractmethod
    async def judged(self, question: EvalQuestion, given: Given, run: RunSql) -> Verdict:
        """Judge what was given for a question that has gold SQL."""
