"""Embedded engines in this process: the same sessions, answering as their processes do, without starting any.

For tests of what lies above the connectors; a process takes longer to start than such a test to run.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
from typing_extensions import override

from quorum.tools.databases import worker
from quorum.tools.databases.process import Child, EngineFailed, Opening, Reply
from quorum.tools.databases.worker import HEAD, Session


class Inside(Child):
    """A session that is asked directly, and blocks the event loop while it answers."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self._session: Session | None = None
        self._open = True

    @classmethod
    @override
    async def spawn(cls, opening: Opening) -> Inside:
        return cls(opening)

    @property
    @override
    def ready(self) -> bool:
        return True

    @property
    @override
    def alive(self) -> bool:
        return self._open

    @override
    async def open(self) -> None:
        try:
            self._session = worker.open_session(asdict(self.opening))
        except Exception as error:
            raise EngineFailed(**worker._failure(error)["error"]) from error

    @override
    async def run(self, sql: str, *, rows: int, size: int, seconds: float) -> Reply:
        return self._answer({"sql": sql, "rows": rows, "bytes": size, "seconds": seconds})

    @override
    async def load(self, what: Mapping[str, Any], payload: bytes | memoryview, seconds: float) -> None:
        self._answer({"load": what}, bytes(payload))

    def _answer(self, request: dict[str, Any], payload: bytes = b"") -> Reply:
        assert self._session is not None
        answer = io.BytesIO()
        worker._answer(self._session, request, payload, answer)
        answer.seek(0)
        length, _ = HEAD.unpack(answer.read(HEAD.size))
        header = json.loads(answer.read(length))
        if "error" in header:
            raise EngineFailed(**header["error"])
        return header, answer.read()

    @override
    def kill(self) -> None:
        self._open = False
        if connection := getattr(self._session, "_connection", None):  # a file that stays open is locked
            connection.close()
        self._session = None

    @override
    async def close(self) -> None:
        self.kill()


def start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are opened from now on have their engine in this process."""
    monkeypatch.setattr("quorum.tools.databases.process.Child", Inside)
