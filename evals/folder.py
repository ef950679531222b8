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
from typing import Any

from quorum.evals.records import Asked, Manifest, Record
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


def merged(folders: list[Path]) -> Iterator[tuple[Manifest, dict[str, Record], list[Path]]]:
    """The evaluations in ``folders``, shards of the same one put together, in the order in which they come.

    Shards belong together if they are of one division of the same questions, asked with the same options by
    the same version, and judged by the same rules. Their questions come in the suite's order.

    Raises:
        ConfigurationError: A folder holds no evaluation, one shard was given twice, or shards were cut
            from lists of questions that are not the same.
    """
    groups: dict[str, list[Path]] = {}
    manifests = {folder: EvalFolder(folder).manifest() for folder in _distinct(folders)}
    for folder, manifest in manifests.items():
        whole = manifest.shard.endswith("/1")
        groups.setdefault(f"{folder}" if whole else _identity(manifest), []).append(folder)
    for members in groups.values():
        yield _merge(sorted(members, key=lambda folder: _number(manifests[folder])), manifests)


def _distinct(folders: list[Path]) -> list[Path]:
    """A folder that was named twice counts once."""
    found: dict[Path, Path] = {}
    for folder in folders:
        found.setdefault(folder.resolve(), folder)
    return list(found.values())


def _merge(
    members: list[Path], manifests: dict[Path, Manifest]
) -> tuple[Manifest, dict[str, Record], list[Path]]:
    _check_division(members, manifests)
    records = {id: record for folder in members for id, record in EvalFolder(folder).records().items()}
    parts = [manifests[folder] for folder in members]
    manifest = dataclasses.replace(
        parts[0],
        asked=tuple(_in_order(parts)),
        shard=", ".join(part.shard for part in parts),
        missing=tuple(dict.fromkeys(text for part in parts for text in part.missing)),
        started=min(part.started for part in parts),
    )
    return manifest, records, members


def _check_division(members: list[Path], manifests: dict[Path, Manifest]) -> None:
    """Raise ConfigurationError unless every shard occurs once and all are of the same number of questions."""
    shards = [manifests[folder].shard for folder in members]
    if twice := next((shard for shard in shards if shards.count(shard) > 1), ""):
        places = [str(folder) for folder in members if manifests[folder].shard == twice]
        raise ConfigurationError(
            f"Shard {twice} was given more than once: {' and '.join(places)}.",
            hint="Give each shard once; report repeated evaluations one at a time.",
        )
    ids = [item.id for folder in members for item in manifests[folder].asked]
    sizes = [_whole(manifests[folder]) for folder in members]
    unlike = len(members) > 1 and max(least for least, _ in sizes) > min(most for _, most in sizes)
    if unlike or len(set(ids)) < len(ids):
        asked = ", ".join(
            f"{manifests[folder].shard} asks {len(manifests[folder].asked)}" for folder in members
        )
        raise ConfigurationError(
            f"The shards were not cut from the same questions: {asked}.",
            hint="Run all shards with the same --limit and --ids, or report them one at a time.",
        )


def _whole(shard: Manifest) -> tuple[int, int]:
    """Return the least and most questions that the list had from which the shard was cut."""
    number, count = _number(shard), int(shard.shard.partition("/")[2])
    return number + count * (len(shard.asked) - 1), number + count * len(shard.asked) - 1


def _in_order(parts: list[Manifest]) -> list[Asked]:
    """The questions of shards as the suite has them: shard 2 of 8 holds every eighth, from the second."""
    placed = [(place, _number(part), asked) for part in parts for place, asked in enumerate(part.asked)]
    return [asked for _, _, asked in sorted(placed, key=lambda item: item[:2])]


def _number(manifest: Manifest) -> int:
    return int(manifest.shard.partition("/")[0])


def _identity(manifest: Manifest) -> str:
    """Return a key that the shards of one evaluation share."""
    count = manifest.shard.partition("/")[2]
    parts = [manifest.suite, manifest.rules, manifest.metrics, manifest.options, manifest.version, count]
    return json.dumps(parts, default=str)


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
            replace_file(self.folder / MANIFEST, _line(manifest.as_dict(), indent=2))

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
