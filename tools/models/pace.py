"""When the next request may go out: one rate, one cool-down, few at a time after a refusal."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from weakref import WeakKeyDictionary


@dataclass(frozen=True)
class Timing:
    """Sources of time and randomness, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


class Pace:
    """Paces the requests to one endpoint on one event loop.

    A 429 stops all requests until the cool-down ends; then one is let through. Successes double the number of
    simultaneous requests, up to half of what was too many and no more than the endpoint served when it
    refused; then it grows by one at a time (TCP's slow start; RFC 5681, 3.1).

    Args:
        per_second: Requests per second; None for no limit.
    """

    def __init__(self, per_second: float | None, timing: Timing) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._timing = timing
        self._next = self._resume = timing.now()
        self._width: int | None = None  # requests allowed at once; None before the first refusal
        self._half = 1  # where slow start ends
        self._served = 0  # requests of the refused burst that were answered all the same
        self._good = 0  # successes at this width
        self._running = 0
        self.successes = 0
        self._changed = asyncio.Event()

    async def enter(self) -> None:
        """Wait for this request's turn; pair with ``leave``."""
        while True:
            wait = max(self._next, self._resume) - self._timing.now()
            if wait > 0:
                await self._timing.sleep(wait)
            elif self._width is not None and self._running >= self._width:
                await self._changed.wait()
            else:
                break
        self._next = self._timing.now() + self._gap
        self._running += 1

    def leave(self, *, succeeded: bool = False) -> None:
        """Give the turn back."""
        self._running -= 1
        if succeeded:
            self.successes += 1
            self._widen()
        self._changed.set()  # all that wait look again
        self._changed = asyncio.Event()

    def cool_down(self, seconds: float) -> None:
        """Stop all requests for ``seconds``, then let one through at a time."""
        now = self._timing.now()
        if now >= self._resume:  # else it is one more refusal of the same burst
            self._half, self._served = max(1, (self._running + 1) // 2), 0
        self._resume = max(self._resume, now + seconds)
        self._width, self._good = 1, 0

    def _widen(self) -> None:
        if self._width is None:
            return
        if self._timing.now() < self._resume:  # it was sent before the refusal: what the endpoint takes
            self._served += 1
            return
        if self._served:
            self._half, self._served = min(self._half, self._served), 0
        self._good += 1
        if self._width < self._half:
            self._width, self._good = min(self._half, 2 * self._width), 0
        elif self._good >= 3 * self._width:
            self._width, self._good = self._width + 1, 0


class Paces:
    """One ``Pace`` per endpoint and event loop, shared by all models of that endpoint."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self._paces: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pace]] = WeakKeyDictionary()

    def of(self, endpoint: str, per_second: float | None) -> Pace:
        """Return the endpoint's pace on the running loop; the first caller's rate counts."""
        mine = self._paces.setdefault(asyncio.get_running_loop(), {})
        if endpoint not in mine:
            mine[endpoint] = Pace(per_second, self.timing)
        return mine[endpoint]


def backoff(tries: int, chance: float) -> float:
    """Return the seconds before the next try: 0.5, then doubled up to 20, the upper half random."""
    return min(20.0, 0.5 * 2.0 ** min(tries, 32)) * (0.5 + 0.5 * chance)


def retry_after(value: str | None, wall_clock: Callable[[], float] = time.time) -> float | None:
    """Return the seconds of a Retry-After header, in seconds or as an HTTP date (RFC 9110, 10.2.3)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - wall_clock()
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds else None  # "nan" is a float as well
