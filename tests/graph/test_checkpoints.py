"""Checkpoints of a run that is cancelled."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from quorum.graph.checkpoints import RunSaver, open_checkpoints


async def test_a_cancelled_opening_closes_nothing_that_a_thread_still_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would crash the process."""
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(self: RunSaver) -> None:
        begun.set()
        go_on.wait(60)
        self.conn.execute("SELECT 1")
        order.append("set up")

    monkeypatch.setattr(RunSaver, "setup", slow)

    async def opened() -> None:
        async with open_checkpoints(tmp_path / "checkpoint.sqlite"):
            raise AssertionError("it was cancelled before")

    task = asyncio.ensure_future(opened())
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    await asyncio.wait([task], timeout=0.01)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert order == ["set up"]
