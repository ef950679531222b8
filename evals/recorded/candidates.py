"""Recorded candidates: what other systems answered, so that voting can be judged without a model.

A folder holds ``<model>/<question id>/K.sql`` and ``K.csv`` (its result, missing if it failed) for the
candidates K = 0, 1, ... (some may be missing), and ``final.sql``, ``final.csv`` for the one that the
recorded pipeline chose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.evals.paths import check_folder
from quorum.evals.submissions.predictions import read_sql
from quorum.evals.tabular.frames import UnreadableCsv
from quorum.evals.tabular.tables import read_csv
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

FINAL = "final"
SHAPE = "<model>/<question>/<number>.sql and .csv"


@dataclass(frozen=True)
class RecordedCandidate:
    """One answer of a model to a question.

    Attributes:
        model: As the folder names it.
        question: The question's id.
        number: The candidate's; None for the one that the recorded pipeline chose.
        sql: As recorded; empty if only the result is.
        path: The result's CSV file; need not exist.
    """

    model: str
    question: str
    number: int | None
    sql: str
    path: Path

    @cached_property
    def table(self) -> pa.Table | None:
        """The result, read once; None if the candidate failed: no file, or one that is no CSV.

        Only empty fields are NULL (``quorum.evals.tabular.tables``).
        """
        if not self.path.is_file():
            return None
        try:
            return read_csv(self.path)
        except UnreadableCsv:
            return None


@dataclass(frozen=True)
class RecordedQuestion:
    """What a model answered to a question.

    Attributes:
        candidates: By number; may be empty, and numbers may be missing.
        final: What the recorded pipeline chose among them; None if it chose none.
    """

    model: str
    question: str
    candidates: tuple[RecordedCandidate, ...]
    final: RecordedCandidate | None


@dataclass(frozen=True)
class RecordedCandidates:
    """The recordings of a folder: by model, then by question id, both sorted."""

    folder: Path
    models: dict[str, dict[str, RecordedQuestion]]

    def __iter__(self) -> Iterator[RecordedQuestion]:
        """Every question of every model."""
        return (question for questions in self.models.values() for question in questions.values())

    @property
    def questions(self) -> list[str]:
        """The ids of all questions, those too that some models did not answer; sorted."""
        return sorted({asked.question for asked in self})


def load_candidates(folder: Path) -> RecordedCandidates:
    """Open a folder of recorded candidates. SQL is read now, a result when it is asked for.

    Files of other names are left alone.

    Raises:
        ConfigurationError: The folder is missing or has another shape, or holds no candidate.
    """
    check_folder(folder, hint=f"Give one that holds {SHAPE}.")
    models = {
        model.name: {question.name: _question(model.name, question) for question in _folders(model)}
        for model in _folders(folder)
    }
    recorded = RecordedCandidates(folder, {model: found for model, found in models.items() if found})
    if not any(question.final or question.candidates for question in recorded):
        nearer = any(_candidate_names(inner) for inner in _folders(folder))
        hint = f"Give its parent, {folder.parent}." if nearer else f"Give one that holds {SHAPE}."
        raise ConfigurationError(f"{folder} holds no recorded candidates.", hint=hint)
    return recorded


def _question(model: str, folder: Path) -> RecordedQuestion:
    found = {name: _candidate(model, folder, name) for name in _candidate_names(folder)}
    final = found.pop(FINAL, None)
    return RecordedQuestion(model, folder.name, tuple(found[name] for name in sorted(found, key=int)), final)


def _candidate(model: str, folder: Path, name: str) -> RecordedCandidate:
    file = folder / f"{name}.sql"
    sql = read_sql(file) if file.is_file() else ""
    number = None if name == FINAL else int(name)
    return RecordedCandidate(model, folder.name, number, sql, folder / f"{name}.csv")


def _candidate_names(folder: Path) -> list[str]:
    """``0``, ``1``, ..., ``final``: each once, with the SQL or the result or both there."""
    pattern = re.compile(rf"(0|[1-9][0-9]*|{FINAL})\.(?:sql|csv)")
    return sorted({found[1] for path in folder.iterdir() if (found := pattern.fullmatch(path.name))})


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
