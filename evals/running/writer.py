"""Writing the folder of an evaluation (``quorum.evals.folder``): one process at a time, line by line."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quorum.evals.folder import MANIFEST, RESULTS, EvalFolder
from quorum.evals.records import Manifest, Record
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

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
        except OSError as error:
            raise ConfigurationError(f"Cannot write to {self.folder}: {error.strerror}.") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise ConfigurationError(
                f"Another process is writing {self.folder}.", hint="Wait for it, or give another --out."
            ) from error
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
        path = self.folder / MANIFEST
        fresh = path.with_suffix(".new")
        with self._writing():
            fresh.write_bytes(_line(manifest.as_dict(), indent=2))
            fresh.replace(path)

    def add(self, record: Record) -> None:
        """Append a record, all of it or nothing; it is with the operating system when this returns.

        Raises:
            ConfigurationError: The disk is full, or the file cannot be written for another reason.
        """
        assert self._file is not None
        data = _line(record.as_dict())
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


def _line(value: dict[str, Any], indent: int | None = None) -> bytes:
    """JSON and a line end; a lone surrogate becomes an escape, which JSON reads back."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return (text + "\n").encode("utf-8", "backslashreplace")
