"""Checkpoints of a run that is cancelled."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from quorum.graph.checkpoints import RunSaver, open_checkpoints


async def test_a_cancelled_opening_closes_nothing_that_a_thread_still_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would crash the process."""
    order: list[str] = []

    def slow(self: RunSaver) -> None:
        time.sleep(0.2)
        self.conn.execute("SELECT 1")
        order.append("set up")

    monkeypatch.setattr(RunSaver, "setup", slow)

    async def opened() -> None:
        async with open_checkpoints(tmp_path / "checkpoint.sqlite"):
            raise AssertionError("it was cancelled before")

    task = asyncio.ensure_future(opened())
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert order == ["set up"]
