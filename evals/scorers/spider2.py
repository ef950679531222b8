"""Spider 2.0's official comparison of results (evaluation suite of 2025-11), for Lite and Snow.

The rules, as the suite's program applies them:

1. A question's gold is ``exec_result/<id>.csv``; if there is none, any of ``<id>_a.csv``,
   ``<id>_b.csv``, ... may be met.
2. Every required gold column must match some column of the prediction. Names, the order of columns and
   what else the prediction has do not count; one predicted column may serve several gold columns.
3. Required are the columns that ``condition_cols`` numbers (from 0), else all (``required``).
4. With ``ignore_order`` each column is sorted by itself, so which cells share a row is not checked.
5. Columns must be equally long. Numbers match within 0.01 absolute or 1e-9 relative, NULL is the number
   0, booleans are 0 and 1; all else must be equal as text.
6. Both sides are read from CSV as pandas reads them (``quorum.evals.tables``).
7. What the program fails on scores 0. So does a result that is missing, and one without rows: where the
   program runs the SQL itself it takes that for a failure, where it reads CSV it would let an empty result
   meet an empty gold. Here the first counts for both, so that a question's score does not depend on the way.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count
from quorum.evals.scorers.base import EX, GoldCheck, Metric, Prediction, RunSql, Scorer, Verdict
from quorum.evals.tables import CellArray, TypedTable, UnreadableCsv, cells, frame_of, pandas_csv, read_frame
from quorum.knowledge.errors import ConfigurationError, read_errors
from quorum.tools.query import QueryError, QueryResult

if TYPE_CHECKING:
    import pyarrow as pa

Edition = Literal["lite", "snow"]
RESULTS = "exec_result"
STANDARDS = "*_eval.jsonl"
TOLERANCE = 1e-2  # absolute, as in the official evaluation; relative: what math.isclose allows

NO_GOLD = "no gold result is published"
NOT_LIVE = "its database is not here, so no query of it can run"
EMPTY = "the result is empty"


@dataclass(frozen=True)
class Standard:
    """The rule by which a question is compared: one line of the ``*_eval.jsonl``.

    Attributes:
        condition_cols: The required gold columns, in a form that ``required`` knows.
        ignore_order: Whether the order of rows does not count.
    """

    condition_cols: Any
    ignore_order: bool


@dataclass(frozen=True, eq=False)
class Spider2Gold:
    """The gold results of a Spider 2.0 edition.

    Attributes:
        folder: Holds ``exec_result/``.
        edition: Lite and Snow differ in one point, see ``required``.
        standards: By question id.
        files: The gold files of each question that has any, in the order in which they are tried.
    """

    folder: Path
    edition: Edition
    standards: dict[str, Standard]
    files: dict[str, tuple[Path, ...]]
    _latest: dict[str, list[TypedTable]] = field(default_factory=dict, repr=False)

    @property
    def ids(self) -> list[str]:
        """All questions of the edition, sorted."""
        return sorted(self.standards)

    def score(self, question: str, prediction: Path | pa.Table | None) -> Verdict:
        """Compare a question's result with its gold; the reason of a match is the gold file's name.

        Args:
            prediction: A CSV file with a header; a table, which is compared as if it had been saved
                as CSV; or None where there is no result.

        Raises:
            ConfigurationError: There is no such question.
        """
        self._check_known(question)
        if prediction is None or (isinstance(prediction, Path) and not prediction.is_file()):
            return _wrong("there is no result")
        try:
            predicted = (
                read_frame(prediction) if isinstance(prediction, Path) else frame_of(pandas_csv(prediction))
            )
        except UnreadableCsv as error:
            return _wrong(f"the result cannot be read: {error}")
        return self.compare(question, predicted)

    def compare(self, question: str, predicted: TypedTable) -> Verdict:
        """Compare a result that was read already.

        The gold files are tried in turn; the first that the program fails on ends the comparison.

        Raises:
            ConfigurationError: There is no such question.
        """
        self._check_known(question)
        if predicted.rows == 0:
            return _wrong(EMPTY)
        files = self.files.get(question, ())
        if not files:
            return _wrong("the question has no gold result")
        standard, reasons = self.standards[question], []
        lettered = None if files[0].stem == question else len(files)
        try:
            found = _cells(predicted.columns, ignore_order=standard.ignore_order)
            for place, (path, gold) in enumerate(zip(files, self._golds(question), strict=True)):
                columns = required(standard.condition_cols, place, lettered, len(gold.columns), self.edition)
                reason = _missing(gold, columns, found, standard.ignore_order)
                if not reason:
                    return Verdict({EX: 1.0}, path.name)
                reasons.append(f"{path.name}: {reason}")
        except (NoColumns, OverflowError, UnreadableCsv) as error:
            reasons.append(f"the official program fails: {error}")
        return _wrong("; ".join(reasons))

    def _check_known(self, question: str) -> None:
        if question not in self.standards:
            raise ConfigurationError(
                f"The gold in {self.folder} has no question {question!r}.",
                hint=f"Its {len(self.standards)} questions are like {', '.join(self.ids[:3])}.",
            )

    def _golds(self, question: str) -> list[TypedTable]:
        """Return the gold results. The latest question's stay in memory for its other candidates."""
        golds = self._latest.get(question)
        if golds is None:
            golds = [read_frame(path) for path in self.files[question]]
            self._latest.clear()
            self._latest[question] = golds
        return golds


def _wrong(reason: str) -> Verdict:
    return Verdict({EX: 0.0}, reason)


def _missing(gold: TypedTable, columns: Sequence[int], found: Sequence[list[Any]], ignore_order: bool) -> str:
    """Return which required column has no match, in words; "" if each has one."""
    wanted = _cells([gold.columns[column] for column in columns], ignore_order=ignore_order)
    for column, values in zip(columns, wanted, strict=True):
        if not any(len(values) == len(other) and all(map(_agree, values, other)) for other in found):
            rows = len(found[0]) if found else 0
            if rows != gold.rows:
                return f"{count(gold.rows, 'row')} wanted, {rows:,} came"
            return f"no column matches column {column} ({gold.names[column]})"
    return ""


def _cells(columns: Sequence[CellArray], *, ignore_order: bool) -> list[list[Any]]:
    """Return the cells of columns in the order in which they are compared, NULL as 0.

    With ``ignore_order`` each column is sorted by itself, by its cells' texts: ``10`` comes before ``9``, and
    a whole number's text has a fraction (``10.0``) where the other columns make one common type of numbers.
    """
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1 and kinds <= {"i", "u", "f"}:
        columns = [column.astype("float64") for column in columns]
    found = [[0 if cell is None else cell for cell in cells(column)] for column in columns]
    if not ignore_order:
        return found
    return [sorted(column, key=lambda cell: (str(cell), not isinstance(cell, str))) for column in found]


def _agree(one: Any, other: Any) -> bool:
    """Return True if two cells match; an OverflowError is raised where a whole number has no double."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return math.isclose(float(one), float(other), abs_tol=TOLERANCE)


def load_gold(folder: Path) -> Spider2Gold:
    """Open the gold of an edition: a folder with ``exec_result/`` and ``spider2lite_eval.jsonl`` or
    ``spider2snow_eval.jsonl``, as the evaluation suite has it.

    Raises:
        ConfigurationError: Either is missing, there are several ``*_eval.jsonl``, or one is damaged.
    """
    results, found = folder / RESULTS, sorted(folder.glob(STANDARDS))
    if not results.is_dir() or len(found) != 1:
        raise ConfigurationError(
            f"{folder} is no Spider 2.0 gold folder: it needs {RESULTS}/ and one {STANDARDS}.",
            hint="Give the folder evaluation_suite/gold of Spider 2.0-Lite or -Snow.",
        )
    standards = dict(_standards(found[0]))
    edition: Edition = "snow" if "snow" in found[0].stem else "lite"
    return Spider2Gold(folder, edition, standards, _files(results, standards))


def _standards(path: Path) -> Iterator[tuple[str, Standard]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        with read_errors(f"Line {number} of {path}", hint="Get the evaluation suite again."):
            entry = dict(json.loads(line))
            standard = Standard(entry.get("condition_cols"), bool(entry.get("ignore_order", False)))
            id = entry["instance_id"]
        yield id, standard


def _files(results: Path, questions: Iterable[str]) -> dict[str, tuple[Path, ...]]:
    """Return the gold files by question: ``<id>.csv`` alone where it exists, else the lettered ones."""
    present = {path.name for path in results.iterdir()}
    found = {}
    for question in questions:
        names = [f"{question}.csv"]
        if names[0] not in present:
            names = [f"{question}_{letter}.csv" for letter in ascii_lowercase]
        if own := tuple(results / name for name in names if name in present):
            found[question] = own
    return found


class NoColumns(ValueError):
    """``condition_cols`` that the official program fails on."""


def required(
    condition_cols: Any, place: int, count: int | None, width: int, edition: Edition
) -> Sequence[int]:
    """Return the columns of a gold file that a prediction must have.

    ``condition_cols`` is empty (all columns), a list of numbers (the same for every file), or a list of
    such lists, one per file. Where a question's only file is ``<id>_a.csv``, the program takes a list of
    numbers for a list per file: only the first number counts, and the program for Lite takes a 0
    for "all columns".

    Args:
        condition_cols: As in the ``*_eval.jsonl``.
        place: The file's place among the question's files.
        count: How many ``<id>_a.csv``, ... there are; None if the file is ``<id>.csv``.
        width: The file's number of columns.

    Raises:
        NoColumns: The program fails on it: too few lists, lists where numbers are needed, a number
            beyond the last column.
    """
    own = condition_cols
    if count is not None:
        own = _of_file(condition_cols, place, count)
    everything = own == [] or (edition == "lite" and not own)
    if everything:
        return range(width)
    numbers = own if isinstance(own, list) else [own]
    if not all(isinstance(number, int) and -width <= number < width for number in numbers):
        raise NoColumns(f"condition_cols {own} do not fit a gold result of {width} columns")
    return [number % width for number in numbers]


def _of_file(condition_cols: Any, place: int, count: int) -> Any:
    if condition_cols in (None, [], [[]], [None]):
        return []
    if not isinstance(condition_cols, list):
        raise NoColumns(f"condition_cols {condition_cols} are no list")
    if count > 1 and not all(isinstance(part, list) for part in condition_cols):
        return condition_cols
    if place >= len(condition_cols):
        raise NoColumns(f"condition_cols hold {len(condition_cols)} lists for {count} gold results")
    return condition_cols[place]


@dataclass(frozen=True)
class Spider2Scorer(Scorer):
    """Compares a result with the gold results; the database is not asked.

    Attributes:
        gold: Of the edition.
    """

    gold: Spider2Gold

    metrics = (Metric(EX, "EX", "The result has the required columns of a gold result."),)
    rules = "Spider 2.0's evaluation suite of 2025-11"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:  # noqa: ARG002
        """Judge a result. One that was cut matches nothing: the whole one has more rows than it shows.

        ``gold_rows`` is known for tables, and for files where all gold results have as many rows.
        """
        files = self.gold.files.get(question.id, ())
        if not files:
            return self.unscorable(NO_GOLD, "missing")
        if prediction.result is None and not question.live:
            return self.unscorable(NOT_LIVE, "not_live")
        if prediction.result is None:
            return _wrong("there is no result")
        rows = None if isinstance(prediction.result, Path) else prediction.result.num_rows
        nearest = await asyncio.to_thread(_nearest, files, rows)
        if prediction.truncated:
            verdict = _wrong("the result was cut, so it is not the whole one")
        else:
            verdict = await asyncio.to_thread(self.gold.score, question.id, prediction.result)
        return replace(verdict, gold_rows=nearest)

    def gold_files(self, question: EvalQuestion) -> tuple[Path, ...]:
        """Return the gold results, and the file that says how they are to be compared."""
        files = self.gold.files.get(question.id, ())
        return (*files, *sorted(self.gold.folder.glob(STANDARDS))) if files else ()

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        """Check that the gold results match themselves, and that the gold SQL reproduces one of them.

        ``differs``: either does not. Without gold SQL nothing can be reproduced: ``missing``, as without a
        gold result; the reason says which.
        """
        files = self.gold.files.get(question.id, ())
        if not files:
            return GoldCheck("missing", NO_GOLD)
        scores = await asyncio.to_thread(
            lambda: [(file, self.gold.score(question.id, file)) for file in files]
        )
        rows = await asyncio.to_thread(_rows, files[0])
        if unequal := [(file.name, score.reason) for file, score in scores if not score.match]:
            empty = len(unequal) == len(files) and all(reason == EMPTY for _, reason in unequal)
            verb = "does not match itself" if len(unequal) == 1 else "do not match themselves"
            names = ", ".join(name for name, _ in unequal)
            return GoldCheck("empty" if empty else "differs", f"{names} {verb}: {unequal[0][1]}", rows)
        if run is None:
            return GoldCheck("not_live", f"{NOT_LIVE}; its gold results match themselves", rows)
        if not question.gold_sql:
            return GoldCheck("missing", "no gold SQL is published; its gold results match themselves", rows)
        return await self._reproduced(question, run)

    async def _reproduced(self, question: EvalQuestion, run: RunSql) -> GoldCheck:
        """Run the gold queries in turn until the result of one is published."""
        failures: list[str] = []
        outcomes: list[QueryResult] = []
        for sql in question.gold_sql:
            outcome = await run(sql)
            if isinstance(outcome, QueryError):
                failures.append(outcome.describe())
                continue
            outcomes.append(outcome)
            if outcome.truncated:
                failures.append(f"the result was cut at {count(outcome.row_count, 'row')}")
                continue
            score = await asyncio.to_thread(self.gold.score, question.id, outcome.table)
            if score.match:
                return GoldCheck("ok", "", outcome.row_count)
            failures.append(score.reason)
        if not outcomes:
            return GoldCheck("fails", "; ".join(failures))
        some = any(outcome.row_count for outcome in outcomes)
        return GoldCheck("differs" if some else "empty", "; ".join(failures), outcomes[0].row_count)


def _nearest(files: Sequence[Path], rows: int | None) -> int | None:
    """Return the number of rows of the gold result that comes nearest to ``rows``; None if unknown."""
    counts = {count for path in files if (count := _rows(path)) is not None}
    if rows is None:
        return counts.pop() if len(counts) == 1 else None
    return min(counts, key=lambda count: (abs(count - rows), count), default=None)


@lru_cache(maxsize=1024)
def _rows(path: Path) -> int | None:
    try:
        return read_frame(path).rows
    except UnreadableCsv:
        return None
