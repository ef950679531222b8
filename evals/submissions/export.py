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

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from quorum.evals.records import Asked, Manifest, Record
from quorum.evals.reports.compare import open_evaluation
from quorum.evals.submissions.predictions import BIRD_MARK
from quorum.evals.tabular.frames import pandas_csv
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.tools.results import read_result

Format: TypeAlias = Literal["spider2-csv", "spider2-sql", "bird"]
NOTE = ".quorum-export"
"""Marks a folder as an export and lists its files, which the next one replaces; nobody else reads it."""

SHOWN = 5
"""Files that an error names."""

BIRD_FILE = "predict_dev.json"
NO_ANSWER = "SELECT no_answer"
"""BIRD's entry for a question without SQL: it fails on every database. An empty text would run, return
nothing, and so meet a gold result without rows."""


@dataclass(frozen=True)
class Answers:
    """The answers of an evaluation, its shards put together.

    Attributes:
        manifest: Its questions are in the suite's order.
        records: By id.
        homes: The folder of the evaluation, or shard, that holds a question's run, by id.
    """

    manifest: Manifest
    records: Mapping[str, Record]
    homes: Mapping[str, Path]

    @property
    def asked(self) -> tuple[Asked, ...]:
        return self.manifest.asked


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        written: Ids of the questions that have an answer there.
        left_out: Why the other questions have none, by id.
        best_efforts: Ids of those written whose run ended without an answer that it stood by.
    """

    written: tuple[str, ...]
    left_out: dict[str, str]
    best_efforts: tuple[str, ...]


def read_answers(folder: Path) -> Answers:
    """The answers in the folder of an evaluation, or in one whose subfolders are its shards.

    Raises:
        ConfigurationError: The folder holds no evaluation, a damaged one, or several.
    """
    found = open_evaluation(folder)
    return Answers(found.manifest, found.records, found.places)


def export(answers: Answers, kind: Format, out: Path, *, force: bool = False) -> Exported:
    """Write a submission.

    Args:
        force: Write into ``out`` even if it holds something else; that stays.

    Raises:
        ConfigurationError: ``out`` is not empty and no export, holds files that would be taken for a part of
            the submission, or cannot be written to; or shards are missing where BIRD needs every question in
            its place.
    """
    if kind == "bird":
        _check_whole(answers.manifest)
    suffix, write = WRITERS[kind]
    files = [f"{item.id}{suffix}" for item in answers.asked] if suffix else [BIRD_FILE]
    try:
        _make_room(out, f"*{suffix}" if suffix else BIRD_FILE, force=force)
        note = {"format": kind, "suite": answers.manifest.suite, "files": files}
        _write_note(out, note)  # first: a crash leaves an export
        exported = write(answers, out)
        _write_note(out, note | {"files": [name for name in files if (out / name).is_file()]})
        return exported
    except OSError as error:
        raise ConfigurationError(f"Cannot write to {out}: {error.strerror}.") from error


def _check_whole(manifest: Manifest) -> None:
    shards = manifest.shard.split(", ")
    count = int(shards[0].partition("/")[2])
    if len(shards) < count:
        raise ConfigurationError(
            f"Only {len(shards)} of {count} shards are here: {manifest.shard}.",
            hint="BIRD's program pairs entries by their place: put all shards into one folder and name that.",
        )


def _make_room(out: Path, own: str, *, force: bool) -> None:
    """Take away the files of an earlier export; nothing else is deleted, and nothing mixed with.

    Args:
        own: Pattern of the files of a submission.

    Raises:
        ConfigurationError: There is something else, see ``export``; nothing was taken away.
    """
    if out.is_dir() and any(out.iterdir()):
        earlier = _earlier(out)
        if not force and not earlier:
            raise ConfigurationError(
                f"{out} is not empty, and no export.",
                hint="Give another --out, or --force to write among what is there.",
            )
        _check_strays(out, {path.name for path in out.glob(own)}.difference(earlier))
        for name in earlier:
            (out / name).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)


def _check_strays(out: Path, strays: Collection[str]) -> None:
    if strays:
        named = ", ".join(sorted(strays)[:SHOWN])
        more = f" and {len(strays) - SHOWN} more" if len(strays) > SHOWN else ""
        raise ConfigurationError(
            f"{out} holds files that no export left there: {named}{more}. They would count as a part of the "
            "submission.",
            hint="Move or delete them, or give another --out.",
        )


def _write_note(out: Path, note: Mapping[str, object]) -> None:
    (out / NOTE).write_text(json.dumps(note) + "\n", encoding="utf-8")


def _earlier(out: Path) -> list[str]:
    """The files of the export that ``out`` holds, its note last; none if it is no export."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        files = json.loads((out / NOTE).read_text(encoding="utf-8"))["files"]
        return [*(name for name in files if Path(name).name == name), NOTE]
    return []


def _write_results(answers: Answers, out: Path) -> Exported:
    def write(record: Record) -> str:
        if not record.result:
            return "it has no result"
        if record.truncated:
            return f"the run's limits cut its result after {record.rows} rows"
        try:
            table = read_result(answers.homes[record.id] / record.result)
        except QuorumError as error:
            return str(error)
        with (out / f"{record.id}.csv").open("w", encoding="utf-8", newline="") as file:
            file.write(pandas_csv(table))
        return ""

    return _each(answers, write)


def _write_queries(answers: Answers, out: Path) -> Exported:
    def write(record: Record) -> str:
        if not record.sql:
            return "it has no SQL"
        (out / f"{record.id}.sql").write_text(record.sql + "\n", encoding="utf-8", newline="")
        return ""

    return _each(answers, write)


def _write_bird(answers: Answers, out: Path) -> Exported:
    entries = {}
    for place, asked in enumerate(answers.asked):
        record = answers.records.get(asked.id)
        sql = record.sql if record and record.sql else NO_ANSWER
        entries[str(place)] = f"{sql}{BIRD_MARK}{asked.database}"
    text = json.dumps(entries, ensure_ascii=False, indent=4)
    (out / BIRD_FILE).write_text(text + "\n", encoding="utf-8")
    return _each(answers, lambda record: "" if record.sql else "it has no SQL")


WRITERS: dict[Format, tuple[str, Callable[[Answers, Path], Exported]]] = {
    "spider2-csv": (".csv", _write_results),
    "spider2-sql": (".sql", _write_queries),
    "bird": ("", _write_bird),
}
"""By format: the suffix of a question's file, none where all are in one; and what writes."""


def _each(answers: Answers, write: Callable[[Record], str]) -> Exported:
    """Write each answer; ``write`` says why it cannot."""
    written, left_out = [], {}
    for asked in answers.asked:
        record = answers.records.get(asked.id)
        reason = write(record) if record else "it has not been asked yet"
        if reason:
            left_out[asked.id] = f"{reason} ({record.error})" if record and record.error else reason
        else:
            written.append(asked.id)
    efforts = tuple(id for id in written if answers.records[id].status != "answered")
    return Exported(tuple(written), left_out, efforts)
