"""How the lower floors report what they did, without knowing who keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol


class Recorder(Protocol):
    """Takes one event: its kind and JSON-ready fields. Must be quick and must not raise.

    Large texts are passed whole; the recorder decides how to store them. Secrets are never passed.
    """

    def __call__(self, kind: str, **fields: Any) -> None: ...


class Recall(Protocol):
    """Finds the event that an interrupted process recorded of a request (``request_of``), None without one.

    What it tells of was charged when it was recorded.
    """

    def __call__(self, request: str) -> Mapping[str, Any] | None: ...


def request_of(*asked: Any) -> str:
    """What was asked for, as a hash (hex) by which its event is found again."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def no_record(kind: str, **fields: Any) -> None:
    """The recorder of someone who keeps no trace."""


def no_recall(request: str) -> None:
    """Of someone who goes on with nothing."""
