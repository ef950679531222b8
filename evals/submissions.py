"""Submissions as benchmarks want them, from the folder of an evaluation.

What their evaluation programs read:

- Spider 2.0 (``evaluate.py`` of 2025-11, ``--result_dir``): ``<id>.csv`` with ``--mode exec_result``, read
  by pandas, or ``<id>.sql`` with ``--mode sql``. A question without a file scores 0.
- BIRD (``evaluation.py`` of 2023 and mini-dev's ``evaluation_utils.py``): one JSON object,
  ``predict_dev.json``, ``{"0": "SELECT …\\t----- bird -----\\tschool", …}``. Entries are paired with the gold
  by their place, not by their key, so every question must have one.

Both judge whole results, so one that the run's limits cut is not written; its query is, because they run that
themselves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from quorum.evals.paths import check_folder
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened
from quorum.evals.scorers.base import Prediction
from quorum.evals.tables import pandas_csv
from quorum.knowledge.errors import ConfigurationError, QuorumError, read_errors
from quorum.tools.results.files import read_result

Format: TypeAlias = Literal["spider2-csv", "spider2-sql", "bird"]
BIRD_FILE = "predict_dev.json"
NO_ANSWER = "SELECT no_answer"
"""BIRD's entry for a question without SQL: it fails on every database. An empty text would run, return
nothing, and so meet a gold result without rows."""


@dataclass(frozen=True)
class Exported:
    """The submission that was written.

    Attributes:
        written: Ids of the questions that have an answer there.
        left_out: Why the other questions have none, by id.
        best_efforts: Ids of those written whose run ended without an answer that it stood by.
    """

    written: tuple[str, ...]
    left_out: dict[str, str]
    best_efforts: tuple[str, ...]


def export(found: Opened, kind: Format, out: Path) -> Exported:
    """Write the answers of an evaluation as a submission.

    Raises:
        ConfigurationError: ``out`` is not empty or cannot be written to, or shards are missing where BIRD
            needs every question in its place.
    """
    if kind == "bird" and found.lacks:
        raise ConfigurationError(
            f"The evaluation is not whole: {found.lacks}.",
            hint="BIRD's program pairs entries by their place: put all shards into one folder and name that.",
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ConfigurationError(
                f"{out} is not empty: what is there could count as a part of the submission.",
                hint="Empty it, or give another --out.",
            )
        return _write(found, out, kind)
    except OSError as error:
        raise ConfigurationError(f"Cannot write to {out}: {error.strerror}.") from error


def _write(found: Opened, out: Path, kind: Format) -> Exported:
    written, left_out, entries = [], {}, {}
    for place, asked in enumerate(found.manifest.asked):
        record = found.records.get(asked.id)
        sql = record.sql if record and record.sql else NO_ANSWER
        entries[str(place)] = f"{sql}{BIRD_MARK}{asked.database}"
        text, why = _text(found, record, results=kind == "spider2-csv")
        if why:
            left_out[asked.id] = why
            continue
        written.append(asked.id)
        if kind != "bird":
            file = out / f"{asked.id}.{kind.removeprefix('spider2-')}"
            file.write_text(text, encoding="utf-8", newline="")
    if kind == "bird":
        text = json.dumps(entries, ensure_ascii=False, indent=4)
        (out / BIRD_FILE).write_text(text + "\n", encoding="utf-8")
    efforts = tuple(id for id in written if found.records[id].status != "answered")
    return Exported(tuple(written), left_out, efforts)


def _text(found: Opened, record: Record | None, *, results: bool) -> tuple[str, str]:
    """Return what a question's file holds, its result or its query; or why it has none."""
    if record is None:
        return "", "it has not been asked yet"
    why = "it has no result" if results else "it has no SQL"
    if not results and record.sql:
        return f"{record.sql}\n", ""
    if results and record.result and record.truncated:
        why = f"the run's limits cut its result after {record.rows} rows"
    elif results and record.result:
        try:
            return pandas_csv(read_result(found.places[record.id] / record.result)), ""
        except QuorumError as error:
            why = str(error)
    return "", why + (f" ({record.error})" if record.error else "")


BIRD_MARK = "\t----- bird -----\t"
"""Stands between a query and the name of its database."""


@dataclass(frozen=True)
class Predictions:
    """The predictions in a folder or a file.

    Attributes:
        found: By question id; of one with both a query and a result's file, the query counts.
        unknown: Names of files, or keys of BIRD's JSON, that belong to no question; sorted.
        unread: Names of files that are no predictions of these kinds; sorted.
        remarks: What else there is to know, for people.
    """

    found: dict[str, Prediction]
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def find_predictions(folder: Path, ids: Collection[str], *, sql: bool = False) -> Predictions:
    """The predictions in a folder; its subfolders and hidden files do not count.

    Args:
        ids: Of all questions that there are.
        sql: ``<id>.sql`` is read as well.

    Raises:
        ConfigurationError: There is no such folder, or a query cannot be read.
    """
    check_folder(folder, hint="Name the folder of predictions with --pred.")
    kinds = {".csv", ".sql"} if sql else {".csv"}
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    own = [path for path in files if path.suffix in kinds]
    results = {path.stem: path for path in own if path.suffix == ".csv" and path.stem in ids}
    queries = {path.stem: read_sql(path) for path in own if path.suffix == ".sql" and path.stem in ids}
    both = sum(bool(text) for id, text in queries.items() if id in results)
    return Predictions(
        {id: Prediction(queries.get(id, ""), results.get(id)) for id in [*results, *queries]},
        tuple(path.name for path in own if path.stem not in ids),
        tuple(path.name for path in files if path.suffix not in kinds),
        (f"{both} questions have both a query and a result: the query counts.",) if both else (),
    )


def read_sql(path: Path) -> str:
    """The query in a file.

    Raises:
        ConfigurationError: It cannot be read, or is no UTF-8 text.
    """
    with read_errors(f"The query {path}", hint="It must be UTF-8 text."):
        return path.read_text(encoding="utf-8-sig").strip()


def bird_file(pred: Path) -> Path | None:
    """BIRD's JSON file, if ``pred`` is one or a folder that holds one and no other predictions.

    Raises:
        ConfigurationError: The folder holds several.
    """
    if pred.is_file():
        return pred
    if not pred.is_dir() or any(path.suffix in (".csv", ".sql") for path in pred.iterdir()):
        return None
    files = sorted(pred.glob("*.json"))
    if len(files) > 1:
        raise ConfigurationError(
            f"{pred} holds several JSON files: {', '.join(path.name for path in files)}.",
            hint="Name one of them with --pred.",
        )
    return files[0] if files else None


def read_bird(path: Path, questions: Sequence[EvalQuestion]) -> Predictions:
    """The predictions of BIRD's JSON file.

    An entry without a database is taken for a query, and one that is no text for no prediction, as BIRD's
    program does; that also runs every query on its question's database, whatever the entry names.

    Args:
        questions: All of the suite, in its order: ``"0"`` is the first.

    Raises:
        ConfigurationError: The file is no JSON object.
    """
    entries = _entries(path)
    found, unknown, elsewhere = {}, [], []
    for key, entry in entries.items():
        place = int(key) if key.isascii() and key.isdigit() else -1
        if not 0 <= place < len(questions):
            unknown.append(key)
            continue
        question = questions[place]
        sql, _, database = entry.partition(BIRD_MARK) if isinstance(entry, str) else ("", "", "")
        found[question.id] = Prediction(sql.strip())
        if database.strip() not in ("", question.database):
            elsewhere.append(f"{key} ({database.strip()}, not {question.database})")
    remark = (
        f"{len(elsewhere)} entries of {path.name} name another database than their question has, and ran on "
        f"the question's: {', '.join(elsewhere)}. Is the file one of these questions?"
    )
    return Predictions(found, tuple(unknown), remarks=(remark,) if elsewhere else ())


def _entries(path: Path) -> dict[str, object]:
    with read_errors(path, hint="Give BIRD's predict_dev.json."):
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(entries, dict):
        raise ConfigurationError(
            f"{path} is no JSON object.",
            hint='BIRD\'s file is {"0": "SQL\\t----- bird -----\\tdatabase", …}.',
        )
    return entries
