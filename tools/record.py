"""How the lower floors report what they did, without knowing who keeps it."""

from __future__ import annotations

from typing import Any, Protocol


class Recorder(Protocol):
    """Takes one event: its kind and JSON-ready fields. Must be quick and must not raise.

    Large texts are passed whole; the recorder decides how to store them. Secrets are never passed.
    """

    def __call__(self, kind: str, **fields: Any) -> None: ...


def no_record(kind: str, **fields: Any) -> None:
    """The recorder of someone who keeps no trace."""
