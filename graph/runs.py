"""Run folders: name them, find them, list them, replay their events.

The layout of a run folder is described in ``quorum.graph.trace``, which writes it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError, read_errors
from quorum.tools.ledger import Ledger, Usage
from quorum.tools.record import stored_text, with_texts

_REMOVE = "Without that file the run goes on from its checkpoint, if it has one."

_RECENT = re.compile(r"last(?:~([0-9]{1,6}))?")
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: they are misread

Event = dict[str, Any]

ENDED = ("failed", "waiting", "cancelled")
"""Kinds of events that end a run which has no answer; ``waiting``: for a reply."""


class RunIds:
    """Makes run ids that sort by time: UTC to the millisecond, then four random letters.

    Two ids of one process never share a millisecond, so the last that is made is the last listed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = datetime.min.replace(tzinfo=UTC)

    def __call__(self, now: datetime | None = None) -> str:
        """A fresh id, e.g. ``20261120-134501-123-x7f3``."""
        moment = (now or datetime.now(UTC)).astimezone(UTC)
        with self._lock:
            moment = max(moment, self._latest + timedelta(milliseconds=1))
            self._latest = moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        tail = "".join(secrets.choice(_ALPHABET) for _ in range(4))
        return f"{moment:%Y%m%d-%H%M%S}-{moment.microsecond // 1000:03d}-{tail}"


new_run_id = RunIds()


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """One line of a list of runs. ``status`` is the answer's, else one of ``ENDED`` or ``unfinished``.

    Attributes:
        by, session: Who asked it of a service, and in which conversation there (``quorum.serve``).
    """

    id: str
    question: str
    status: str
    started: str
    databases: list[str] = dataclasses.field(default_factory=list)
    demonstration: bool = False
    by: str = ""
    session: str = ""


class RunFolder:
    """A run on disk, for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, home: Path, run: str) -> Self:
        """Find a run by its id, a part of it or its folder (``find_run``).

        Raises:
            ConfigurationError: No run, or more than one, has that name.
        """
        return cls(find_run(home, run))

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def results(self) -> Path:
        """The folder of finished results; made with the run."""
        return self.folder / "results"

    @property
    def checkpoint(self) -> Path:
        """The file for LangGraph's checkpoints."""
        return self.folder / "checkpoint.sqlite"

    def meta(self) -> dict[str, Any]:
        """Return ``run.json``: ``question``, ``started`` and the ``options`` of the run.

        Raises:
            QuorumError: The file is damaged.
        """
        meta = _read_object(self.folder / "run.json")
        if not isinstance(meta.get("options", {}), dict):
            raise QuorumError(f"{self.folder / 'run.json'} is damaged: its options are none.")
        return meta

    def answer(self) -> Answer | None:
        """Return the answer, or None while there is none.

        Raises:
            QuorumError: The file is damaged.
        """
        path = self.folder / "answer.json"
        if not path.is_file():
            return None
        try:
            return Answer.model_validate(_read_object(path))
        except ValidationError as error:
            wrong = ".".join(map(str, error.errors()[0]["loc"]))
            raise QuorumError(f"{path} is no answer: its {wrong} does not fit.", hint=_REMOVE) from error

    def events(self, *, whole: bool = True) -> Iterator[Event]:
        """Yield the steps in order; a last line that a crash cut short is left out.

        Args:
            whole: With their long texts, which are files of their own.

        Raises:
            QuorumError: Another line is no event.
        """
        path = self.folder / "events.jsonl"
        if not path.is_file():
            return
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    continue
                try:
                    event = json.loads(line)
                    wrong = _wrong_in(event)
                except (ValueError, RecursionError) as error:
                    wrong = f"{error}."
                if wrong:
                    hint = "Take the line out: the run can be read, and goes on, without what it says."
                    raise QuorumError(f"Line {number} of {path} is no event: {wrong}", hint=hint)
                yield with_texts(event, self.get) if whole else event

    def ended(self) -> Event | None:
        """The event that ended the run without an answer (``ENDED``); None if it was resumed since."""
        last = None
        for event in self.events(whole=False):
            if event["kind"] in (*ENDED, "begun"):
                last = event
        return None if last is None or last["kind"] == "begun" else with_texts(last, self.get)

    def error(self) -> str:
        """The error that ended the run, unless it was resumed since; else empty."""
        ended = self.ended()
        return str(ended.get("message", "")) if ended and ended["kind"] == "failed" else ""

    def get(self, sha: str) -> str:
        """The stored text of that hash.

        Raises:
            QuorumError: There is none, or it is damaged.
        """
        return stored_text(self.folder, sha)

    def ledger(self) -> Ledger:
        """Return a ledger without limits that has the ``usage`` of all events, and goes on from the last.

        Raises:
            QuorumError: A line is no event.
        """
        ledger, known = Ledger(), {item.name for item in dataclasses.fields(Usage)}
        for event in self.events(whole=False):
            ledger.spent_seconds = max(ledger.spent_seconds, event["t"])
            if isinstance(used := event.get("usage"), dict):
                usage = Usage(**{key: value for key, value in used.items() if key in known})
                ledger.charge(str(event.get("agent") or "run"), usage, model=str(event.get("model") or ""))
        return ledger

    def usage(self) -> dict[str, Any]:
        """Return the usage so far in the ledger's form; empty if the events cannot be read."""
        try:
            return self.ledger().as_dict()
        except (QuorumError, OSError):
            return {}


def find_run(home: Path, run: str) -> Path:
    """Return the folder of a run.

    Args:
        run: Its id or the first letters of it, ``last``, ``last~2`` (the third last), or its folder's path.

    Raises:
        ConfigurationError: No run, or more than one, has that name.
    """
    if "/" in run and (Path(run) / "run.json").is_file():
        return Path(run)
    ids = sorted(folder.name for folder in _run_folders(home))
    if not ids:
        raise ConfigurationError(f"There is no run in {home / 'runs'}.", hint="Ask something first.")
    place = 1 + int(recent[1] or 0) if (recent := _RECENT.fullmatch(run)) else 0
    matches = ids[-place:][:1] if 0 < place <= len(ids) else [i for i in ids if i.startswith(run)]
    matches = [run] if run in ids else matches
    if len(matches) == 1:
        return home / "runs" / matches[0]
    if matches:
        hint = f"Give more of the id, or last; the latest is {matches[-1]}."
        raise ConfigurationError(f"{len(matches)} runs begin with {run!r}.", hint=hint)
    hint = f"The latest is {ids[-1]}; `quorum history` shows all {len(ids)}."
    raise ConfigurationError(f"There is no run {run!r} in {home / 'runs'}.", hint=hint)


def list_runs(
    home: Path, wanted: Callable[[RunSummary], bool] = lambda _: True, limit: int | None = None
) -> list[RunSummary]:
    """Return the runs under ``home``, the latest first; a folder that cannot be read says so.

    Args:
        wanted: Chooses runs by what was known when they began: ``status`` is still empty.
        limit: Runs at most.
    """
    begun = map(_begun, sorted(_run_folders(home), reverse=True))
    return [_with_outcome(home, run) for run in islice(filter(wanted, begun), limit)]


def _run_folders(home: Path) -> list[Path]:
    return [path.parent for path in (home / "runs").glob("*/run.json")]


def _begun(folder: Path) -> RunSummary:
    try:
        meta = RunFolder(folder).meta()
    except QuorumError:
        return RunSummary(folder.name, "", "unreadable", "")
    databases = list(map(str, meta.get("options", {}).get("database") or []))
    return RunSummary(
        folder.name,
        str(meta.get("question", "")),
        "",
        str(meta.get("started", "")),
        databases,
        by=str(meta.get("by", "")),
        session=str(meta.get("session", "")),
    )


def _with_outcome(home: Path, begun: RunSummary) -> RunSummary:
    run = RunFolder(home / "runs" / begun.id)
    try:
        answer = run.answer()
        ended = None if answer else run.ended()
        status = answer.status if answer else str(ended["kind"]) if ended else "unfinished"
    except (QuorumError, KeyError):
        return dataclasses.replace(begun, status="unreadable")
    demonstration = answer is not None and answer.demonstration
    question = answer.question if answer else begun.question  # it may have been made precise
    return dataclasses.replace(
        begun, status=begun.status or status, question=question, demonstration=demonstration
    )


def _read_object(path: Path) -> dict[str, Any]:
    with read_errors(path, hint=_REMOVE, kind=QuorumError):
        value = json.loads(path.read_bytes())
    if not isinstance(value, dict):
        raise QuorumError(f"{path} cannot be read: it holds no JSON object.", hint=_REMOVE)
    return value


def _wrong_in(event: Any) -> str:
    """Return the reason why it cannot be an event; empty if it can."""
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        return "it has no kind."
    if not isinstance(event.get("t"), int | float):
        return "it has no time."
    used = event.get("usage")
    if isinstance(used, dict) and not all(isinstance(n, int | float | None) for n in used.values()):
        return "its usage is no number."
    return ""
