"""Databases in files, and embedded engines in this process: the same sessions, but no process is started.

For tests of what lies above the connectors; a process takes longer to start than such a test to run.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from quorum.tools.databases import worker
from quorum.tools.databases.base import Connector
from quorum.tools.databases.process import Child, EngineFailed, OpenRequest, Response
from quorum.tools.databases.worker import HEAD, Session
from quorum.tools.execute import Database
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import Limits


def build(engine: str, path: Path, script: str) -> str:
    """Write a database file by the engine's own driver; its URL. No statement waits for the disk."""
    if engine == "sqlite":
        with closing(sqlite3.connect(path)) as lite:
            lite.executescript(f"PRAGMA synchronous = OFF; {script}")
    else:
        import duckdb

        with duckdb.connect(str(path)) as duck:
            duck.execute(f"BEGIN; {script}; COMMIT")
    return f"{engine}:///{path}"


class Events(list[dict[str, Any]]):
    """A recorder that keeps what it is told."""

    def __call__(self, kind: str, **fields: Any) -> None:
        self.append({"kind": kind, **fields})


async def opened(connector: Connector, **more: Any) -> Database:
    """Return an open connector's database for queries; ``more`` are fields of it."""
    catalog = await connector.catalog()
    return Database(connector, catalog, Linter(catalog), **{"limits": Limits(), "ledger": Ledger()} | more)


class Inside(Child):
    """A session that is asked directly, and blocks the event loop while it answers."""

    def __init__(self, opening: OpenRequest) -> None:
        self.opening = opening
        self._session: Session | None = None
        self._open = True

    @classmethod
    @override
    async def spawn(cls, opening: OpenRequest) -> Inside:
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
    async def run(self, sql: str, *, rows: int, size: int, seconds: float) -> Response:
        return self._answer({"sql": sql, "rows": rows, "bytes": size, "seconds": seconds})

    @override
    async def load(self, what: Mapping[str, Any], payload: bytes | memoryview, seconds: float) -> None:
        self._answer({"load": what}, bytes(payload))

    def _answer(self, request: dict[str, Any], payload: bytes = b"") -> Response:
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
