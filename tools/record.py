"""The interface by which the lower floors record what they did."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from quorum.knowledge.errors import QuorumError

BLOB = "$blob"
"""Key of the object that stands for a long text in ``events.jsonl``: its SHA-256, ``chars`` and ``head``."""

_SHA = re.compile(r"[0-9a-f]{64}")


class Recorder(Protocol):
    """Takes one event: its kind and JSON-ready fields. Must be quick and must not raise.

    Large texts are passed whole; the recorder decides how to store them. Secrets are never passed.
    """

    def __call__(self, kind: str, **fields: Any) -> None: ...


class Recall(Protocol):
    """Finds the event that an interrupted process recorded of a request (``request_of``), None without one.

    Its cost was charged when it was recorded.
    """

    def __call__(self, request: str) -> Mapping[str, Any] | None: ...


def request_of(*asked: Any) -> str:
    """Return a hash (hex) of a request, by which its event is found again."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def stored_text(folder: Path, sha: str) -> str:
    """Return the text that a run's folder has under that hash.

    Raises:
        QuorumError: There is none, or it is damaged.
    """
    path = folder / "blobs" / f"{sha}.txt"
    if not _SHA.fullmatch(sha) or not path.is_file():
        raise QuorumError(f"The trace holds no text {sha[:12]}.")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha:
        raise QuorumError(
            f"The text {path} is damaged: it does not fit its name.", hint="Ask the question again."
        )
    return data.decode()  # from bytes: line ends stay as they are


def with_texts(value: Any, text: Callable[[str], str]) -> Any:
    """Return an event, or a part of one, with its stored texts; of a lost text the first characters.

    Args:
        text: Gives the text of a hash, as ``stored_text``.
    """
    if isinstance(value, dict):
        if isinstance(value.get(BLOB), str):
            with contextlib.suppress(QuorumError):
                return text(value[BLOB])
            return str(value.get("head", ""))
        return {key: with_texts(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [with_texts(item, text) for item in value]
    return value


def no_record(kind: str, **fields: Any) -> None:
    """Record nothing."""


def no_recall(request: str) -> None:
    """Find nothing: the recall of a run that resumes nothing."""
