"""A clock that moves only when somebody sleeps, and chance that is always the same."""

from __future__ import annotations

import asyncio

from tools.models.pace import Paces, Timing


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

    def timing(self, chance: float = 1.0) -> Timing:
        return Timing(now=self.now, sleep=self.sleep, chance=lambda: chance)

    def paces(self) -> Paces:
        return Paces(self.timing())
