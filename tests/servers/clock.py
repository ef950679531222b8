"""Clocks that move only when somebody sleeps, and chance that is always the same."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quorum.tools.models.pace import Paces, Timing


class FakeClock:
    """``sleep`` returns at once and moves ``now``; ``waits`` keeps every sleep, in seconds."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.waits.append(seconds)
        await asyncio.sleep(0)

    def timing(self) -> Timing:
        return Timing(now=self.now, sleep=self.sleep, chance=lambda: 1.0)

    def paces(self) -> Paces:
        return Paces(self.timing())


def skip_waits(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Whoever waits before another request, in models that are made from now on, does so on this clock."""
    clock = FakeClock()
    monkeypatch.setattr("quorum.tools.models.providers.Timing", clock.timing)
    return clock


class VirtualClock(FakeClock):
    """For many who sleep at once: when all do, it moves to the moment at which the first one wakes.

    Only for work that waits for nothing but this clock: ``async with clock.running(): ...``.
    """

    ROUNDS = 100  # of the event loop, until all who were woken sleep again

    def __init__(self) -> None:
        super().__init__()
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        wake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._asleep, (self.time + seconds, len(self.waits), wake))
        await wake

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()

    async def _run(self) -> None:
        while True:
            for _ in range(self.ROUNDS):
                await asyncio.sleep(0)
            if self._asleep:
                self.time, _, wake = heapq.heappop(self._asleep)
                if not wake.done():
                    wake.set_result(None)
