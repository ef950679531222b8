"""The service: questions that go on by themselves, ask back, and belong to those who asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorum import Settings
from quorum.serve.keys import Caller
from quorum.serve.service import Refused, Service

ME, OTHER = Caller("me"), Caller("other")


@pytest.fixture
async def service(workplace: Path) -> AsyncIterator[Service]:
    """A service of the sample database and the offline model."""
    made = Service(Settings(models=["offline"], home=workplace / "q"), {"sample": "sample"})
    yield made
    await made.aclose()


async def test_a_question_goes_on_by_itself_and_is_its_callers(service: Service) -> None:
    asked = await service.ask(ME, "How many orders did each channel bring?")
    kinds = [event["kind"] async for _, event in asked.events()]
    assert (kinds[0], kinds[-1]) == ("begun", "answer")
    answer = await asked.answer()
    assert (answer.status, asked.status) == ("answered", "answered")
    found = await service.question(ME, asked.id)
    assert (found.status, found.text, found.database) == ("answered", asked.text, "sample")
    assert [number async for number, _ in found.events(after=3)] == [*range(4, len(kinds) + 1)]
    assert [run.id for run, _ in await service.history(ME, "CHANNEL orders")] == [asked.id]
    assert await service.history(OTHER) == []
    for work in (service.question, service.cancel, service.rows, service.resume):
        with pytest.raises(Refused, match="There is no question"):
            await work(OTHER, asked.id)
