"""Rates, cool-downs and back-off, without waiting for them."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.models.pace import Pace, backoff, retry_after
from tests.servers.clock import FakeClock


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0.25", 0.25),
        ("-5", 0.0),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("soon", None),
        ("nan", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_in_all_its_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, lambda: 1_000_000.0) == seconds


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_backoff_grows_and_stays_within_bounds(tries: int, chance: float) -> None:
    wait = backoff(tries, chance)
    assert 0.25 <= wait <= 20.0
    assert wait <= backoff(tries + 1, 1.0)


async def test_a_rate_keeps_calls_apart() -> None:
    clock = FakeClock()
    pace, times = Pace(10.0, clock.timing()), []
    for _ in range(5):
        await pace.enter()
        times.append(clock.now())
        pace.leave(succeeded=True)
    assert times == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


async def _through(tasks: list[asyncio.Task[None]]) -> int:
    """How many tasks are through once all have had their chance."""
    for _ in range(100):
        await asyncio.sleep(0)
    return sum(task.done() for task in tasks)


async def test_the_way_widens_to_what_the_endpoint_served_beside_its_refusals() -> None:
    pace = Pace(None, FakeClock().timing())
    for _ in range(24):
        await pace.enter()
    pace.leave()
    pace.cool_down(2.0)
    for _ in range(3):  # sent before the refusal, answered after it
        pace.leave(succeeded=True)
    for _ in range(20):
        pace.leave()
        pace.cool_down(2.0)
    tasks = [asyncio.create_task(pace.enter()) for _ in range(40)]
    assert await _through(tasks) == 1
    running = []
    for left in range(1, 13):
        pace.leave(succeeded=True)
        running.append(await _through(tasks) - left)
    assert running == [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4]  # by half of 24 it would have gone to 12
    for task in tasks:
        task.cancel()


async def test_a_caller_that_gives_up_while_waiting_takes_no_place() -> None:
    clock = FakeClock()
    pace = Pace(None, clock.timing())
    await pace.enter()
    pace.cool_down(0.0)
    waiting = asyncio.create_task(pace.enter())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    pace.leave(succeeded=True)
    await asyncio.wait_for(pace.enter(), 1)
