"""Waiting for what happens instead of for a while.

The limit is no part of what is tested: it says only that something hangs, and is long enough for a machine
that is busy with other things.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds."""
STEP = 0.005


async def until(happened: Callable[[], object]) -> None:
    """Let others work until ``happened`` is true."""
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await asyncio.sleep(STEP)


def wait_until(happened: Callable[[], object], told: Callable[[], str] = lambda: "") -> None:
    """``until`` without an event loop; ``told`` says what there is to say where it never happens."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit, f"nothing happened for {PATIENCE:g} s. {told()}"
        time.sleep(STEP)
