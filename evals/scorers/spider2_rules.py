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
6. Both sides are read from CSV as pandas reads them (``quorum.evals.tabular.frames``).
7. What the program fails on scores 0. So does a result that is missing, and one without rows: where the
   program runs the SQL itself it takes that for a failure, where it reads CSV it would let an empty result
   meet an empty gold. Here the first counts for both, so that a question's score does not depend on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quorum.evals.reports.format import count
from quorum.evals.tabular.frames import Frame, UnreadableCsv, frame_of, pandas_csv, read_frame
from quorum.evals.tabular.vectors import Vector, match, vectors
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

Edition = Literal["lite", "snow"]
RESULTS = "exec_result"
STANDARDS = "*_eval.jsonl"


@dataclass(frozen=True)
class Score:
    """A verdict.

    Attributes:
        match: Whether the prediction meets a gold result.
        reason: The gold file that is met, or why none is, for people.
    """

    match: bool
    reason: str


@dataclass(frozen=True)
class Standard:
    """How a question is to be compared: one line of the ``*_eval.jsonl``.

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
    _latest: dict[str, list[Frame]] = field(default_factory=dict, repr=False)

    @property
    def ids(self) -> list[str]:
        """All questions of the edition, sorted."""
        return sorted(self.standards)

    def score(self, question: str, prediction: Path | pa.Table | None) -> Score:
        """Compare a question's result with its gold.

        Args:
            question: The question's id.
            prediction: A CSV file with a header; a table, which is compared as if it had been saved
                as CSV; or None where there is no result.

        Raises:
            ConfigurationError: There is no such question.
        """
        self._check_known(question)
        if prediction is None or (isinstance(prediction, Path) and not prediction.is_file()):
            return Score(False, "there is no result")
        try:
            predicted = (
                read_frame(prediction) if isinstance(prediction, Path) else frame_of(pandas_csv(prediction))
            )
        except UnreadableCsv as error:
            return Score(False, f"the result cannot be read: {error}")
        return self.compare(question, predicted)

    def compare(self, question: str, predicted: Frame) -> Score:
        """Compare a result that was read already.

        The gold files are tried in turn; the first that the program fails on ends the comparison.

        Raises:
            ConfigurationError: There is no such question.
        """
        self._check_known(question)
        if predicted.rows == 0:
            return Score(False, "the result is empty")
        files = self.files.get(question, ())
        if not files:
            return Score(False, "the question has no gold result")
        standard, reasons = self.standards[question], []
        single = files[0].stem == question
        try:
            golds = self._golds(question)
            found = vectors(predicted.columns, ignore_order=standard.ignore_order)
            for place, (path, gold) in enumerate(zip(files, golds, strict=True)):
                count = None if single else len(files)
                columns = required(standard.condition_cols, place, count, len(gold.columns), self.edition)
                reason = _missing(gold, columns, found, standard.ignore_order)
                if not reason:
                    return Score(True, path.name)
                reasons.append(f"{path.name}: {reason}")
        except (NoColumns, OverflowError, UnreadableCsv) as error:
            reasons.append(f"the official program fails: {error}")
        return Score(False, "; ".join(reasons))

    def _check_known(self, question: str) -> None:
        if question not in self.standards:
            raise ConfigurationError(
                f"The gold in {self.folder} has no question {question!r}.",
                hint=f"Its {len(self.standards)} questions are like {', '.join(self.ids[:3])}.",
            )

    def _golds(self, question: str) -> list[Frame]:
        """The question's gold results; the latest question's stay in memory for its other candidates."""
        golds = self._latest.get(question)
        if golds is None:
            golds = [read_frame(path) for path in self.files[question]]
            self._latest.clear()
            self._latest[question] = golds
        return golds


def _missing(gold: Frame, columns: Sequence[int], found: Sequence[Vector], ignore_order: bool) -> str:
    """Which required column has no match, in words; empty if each has one."""
    wanted = vectors([gold.columns[column] for column in columns], ignore_order=ignore_order)
    for column, vector in zip(columns, wanted, strict=True):
        if not any(match(vector, other) for other in found):
            rows = len(found[0]) if found else 0
            if rows != gold.rows:
                return f"{count(gold.rows, 'row')} wanted, {rows:,} came"
            return f"no column matches column {column} ({gold.names[column]})"
    return ""


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
    names = sorted(path.name for path in results.iterdir())
    return Spider2Gold(folder, edition, standards, _files(results, names, standards))


def _standards(path: Path) -> Iterator[tuple[str, Standard]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            standard = Standard(entry.get("condition_cols"), bool(entry.get("ignore_order", False)))
            yield entry["instance_id"], standard
        except (ValueError, KeyError, AttributeError) as error:
            raise ConfigurationError(
                f"Line {number} of {path} is no entry with an instance_id.",
                hint="Get the evaluation suite again.",
            ) from error


def _files(results: Path, names: Sequence[str], questions: Iterable[str]) -> dict[str, tuple[Path, ...]]:
    """``<id>.csv`` alone where it exists, else the variants by their letters."""
    variants: dict[str, list[str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.+)_[a-z]\.csv", name):
            variants.setdefault(found[1], []).append(name)
    present = set(names)
    chosen = {
        question: [f"{question}.csv"] if f"{question}.csv" in present else variants.get(question, [])
        for question in questions
    }
    return {question: tuple(results / name for name in own) for question, own in chosen.items() if own}


class NoColumns(ValueError):
    """``condition_cols`` that the official program fails on."""


def required(
    condition_cols: Any, place: int, count: int | None, width: int, edition: Edition
) -> Sequence[int]:
    """The columns of a gold file that a prediction must have.

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
