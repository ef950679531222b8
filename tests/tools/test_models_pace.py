"""Rates, cool-downs, back-off, and storms of calls at an endpoint that refuses; no test waits."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr
from typing_extensions import override

from quorum.tools.ledger import Ledger
from quorum.tools.models import Model, ModelSettings, backend, make_models
from quorum.tools.models.failures import FailureKind, NoReply
from quorum.tools.models.pace import Pace, backoff, retry_after
from quorum.tools.models.scripted import ScriptedChatModel
from quorum.tools.record import no_record
from tests.servers.clock import FakeClock, VirtualClock


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


ASK = [{"role": "user", "content": "How many?"}]
LATENCY = 1.0


class Refused(Exception):
    pass


class Endpoint(ScriptedChatModel):
    """Takes ``capacity`` calls at once, none before the second ``opens``; refuses the others."""

    clock: Any
    capacity: int
    opens: float = 0.0
    _serving: int = PrivateAttr(0)
    _served: int = PrivateAttr(0)
    _refused: int = PrivateAttr(0)

    @override
    async def _agenerate(self, *given: Any, **more: Any) -> ChatResult:
        if self.clock.now() < self.opens or self._serving >= self.capacity:
            self._refused += 1
            raise Refused
        self._serving += 1
        await self.clock.sleep(LATENCY)
        self._serving -= 1
        self._served += 1
        return await super()._agenerate(*given, **more)


class Backend(backend.Backend):
    errors = (Refused,)
    endpoint = "http://endpoint"
    retry_after: float | None = None

    @override
    def failure(self, error: Exception) -> NoReply:
        return NoReply(FailureKind.RATE, "Later.", "", self.retry_after)


@pytest.mark.parametrize(
    ("retry_after", "opens", "refused", "seconds"),
    [(None, 0, 50, 30), (1.0, 0, 50, 30), (None, 180, 80, 240)],
)
async def test_more_callers_than_the_endpoint_takes_lose_no_call_also_where_it_refuses_all_for_minutes(
    retry_after: float | None, opens: float, refused: int, seconds: float
) -> None:
    clock = VirtualClock()
    there = Endpoint(script=lambda _: "fine", clock=clock, capacity=8, opens=opens)
    backend = Backend("endpoint", there, ModelSettings())
    backend.retry_after = retry_after
    model = Model(backend, Ledger(), no_record, clock.paces())

    async def caller() -> None:
        for _ in range(3):
            assert (await model.complete(ASK, role="r")).text == "fine"

    async with clock.running():
        await asyncio.gather(*(caller() for _ in range(40)))
    assert there._served == 120
    assert there._refused <= refused, "32 of the first burst; 40 at once, then one look now and then"
    assert clock.now() < seconds * LATENCY, "twice what it must take, or a minute more"


async def test_models_of_one_endpoint_share_its_rate() -> None:
    first, second = make_models(["openai:a", "openai:b"], settings=ModelSettings(base_url="http://there/v1"))
    assert first.paces is second.paces
    assert first.backend.endpoint == second.backend.endpoint
    clock = VirtualClock()
    paces, settings = clock.paces(), ModelSettings(requests_per_second=20)
    there = Endpoint(script=lambda _: "fine", clock=clock, capacity=100)
    models = [Model(Backend(name, there, settings), Ledger(), no_record, paces) for name in "ab"]
    async with clock.running():
        await asyncio.gather(*(model.complete(ASK, role="r") for model in models for _ in range(6)))
    assert clock.now() == pytest.approx(11 / 20 + LATENCY)
