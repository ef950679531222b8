"""The folder of an evaluation: written line by line as questions end, read by reports.

DIR/
    eval.json          the manifest: suite, options, the questions asked for
    results.jsonl      one line per question as it ended; the last line of a question counts
    spent.txt          dollars, where there are any for all questions (``quorum.evals.running.total_budget``)
    runs/<question>/   each question's run folder, with trace and results (``quorum.graph.trace``)
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

from quorum.evals.records import Manifest, Record
from quorum.knowledge.atomic import lock, replace_file
from quorum.knowledge.errors import ConfigurationError

MANIFEST = "eval.json"
RESULTS = "results.jsonl"


class EvalFolder:
    """An evaluation on disk, for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            ConfigurationError: The folder holds none, or it is damaged.
        """
        path = self.folder / MANIFEST
        if not path.is_file():
            raise ConfigurationError(
                f"{self.folder} holds no evaluation: it has no {MANIFEST}.",
                hint="Name the folder that `quorum eval run` wrote (its --out).",
            )
        try:
            return Manifest.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ConfigurationError(
                f"{path} is damaged: {error}.", hint="Run the evaluation again."
            ) from error

    def records(self) -> dict[str, Record]:
        """The latest record of each question, by id, in the order in which they ended.

        A last line that a crash cut short is left out.

        Raises:
            ConfigurationError: Another line is no record.
        """
        found: dict[str, Record] = {}
        path = self.folder / RESULTS
        if not path.is_file():
            return found
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.endswith(b"\n"):
                    record = _record(path, number, line)
                    found.pop(record.id, None)
                    found[record.id] = record
        return found


def _record(path: Path, number: int, line: bytes) -> Record:
    with contextlib.suppress(ValueError):
        return Record.from_dict(json.loads(line))
    raise ConfigurationError(
        f"Line {number} of {path} is no record.", hint="Take the line out; its question is asked again."
    )


RUNS = "runs"


class EvalWriter(EvalFolder):
    """An evaluation that is being written; only one process may write it. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._file: io.FileIO | None = None

    def __enter__(self) -> EvalWriter:
        """Open for writing.

        Raises:
            ConfigurationError: The folder cannot be written, holds something else, or another process
                writes it.
        """
        if not (self.folder / MANIFEST).is_file() and (self.folder / RUNS).exists():
            raise ConfigurationError(
                f"{self.folder} holds runs that belong to no evaluation: it has no {MANIFEST}.",
                hint="Give another --out.",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = io.FileIO(self.folder / RESULTS, "a+")
            alone = lock(self._file)
        except OSError as error:
            raise ConfigurationError(f"Cannot write to {self.folder}: {error.strerror}.") from error
        if not alone:
            self._file.close()
            raise ConfigurationError(
                f"Another process is writing {self.folder}.", hint="Wait for it, or give another --out."
            )
        self._mend()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _mend(self) -> None:
        """Remove a last line that a crash cut short."""
        assert self._file is not None
        data = (self.folder / RESULTS).read_bytes()
        if not data.endswith(b"\n"):
            self._file.truncate(data.rfind(b"\n") + 1)

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest; it replaces that of an earlier process whole or not at all."""
        with self._writing():
            replace_file(self.folder / MANIFEST, _line(manifest, indent=2))

    def add(self, record: Record) -> None:
        """Append a record, all of it or nothing; it is with the operating system when this returns.

        Raises:
            ConfigurationError: The disk is full, or the file cannot be written for another reason.
        """
        assert self._file is not None
        data = _line(record)
        end = self._file.seek(0, os.SEEK_END)
        with self._writing():
            try:
                while data:
                    data = data[self._file.write(data) :]
            except OSError:
                self._file.truncate(end)
                raise

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigurationError(
                f"Cannot write to {self.folder}: {error.strerror}.",
                hint="What is finished is kept; the same command goes on once it can be written.",
            ) from error


def _line(value: Manifest | Record, indent: int | None = None) -> bytes:
    """JSON and a line end; a lone surrogate becomes an escape, which JSON reads back."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_fields)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _fields(value: object) -> object:
    """A dataclass as an object (``asdict`` copies it value for value), anything else as text."""
    return vars(value) if dataclasses.is_dataclass(value) else str(value)
