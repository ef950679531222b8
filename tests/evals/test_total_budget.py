"""Dollars for all questions together: who may be asked, and what earlier processes spent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import Record
from quorum.evals.running.runner import run_evaluation
from quorum.evals.running.total_budget import ASIDE, TotalBudget, note_lost
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.ledger import Usage
from quorum.tools.models.backend import Backend
from tests.evals.evaluations import record, usage
from tests.evals.running import Knowing, evaluation, questions, shops

__all__ = ["shops"]


def ended(number: int, usd: float, **values: Any) -> Record:
    return record(f"q{number:02}", usage=usage(usd=usd, model_calls=1), **values)


async def limit(total: TotalBudget, number: int) -> float | None:
    """Return the limit of a question, None if the total cannot pay it; TimeoutError if it waits."""
    async with asyncio.timeout(0):
        asked = await total.claim(questions(number + 1)[number])
        return asked.max_usd if asked else None


async def test_the_first_is_asked_alone_and_then_as_many_as_the_total_can_pay() -> None:
    total = TotalBudget(15.0, at_once=4)
    assert await limit(total, 0) == 15 / ASIDE
    with pytest.raises(TimeoutError):
        await limit(total, 1)
    await total.settle(ended(0, 1.0))
    assert [await limit(total, n) for n in (1, 2, 3, 4)] == [3.5 / ASIDE] * 4, "a fourth of what is left"
    for number, usd in ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.5)):
        await total.settle(ended(number, usd))
    assert await limit(total, 5) == 3.0, "at least twice the dearest"
    assert await limit(total, 6) == 3.0
    with pytest.raises(TimeoutError):
        await limit(total, 7)
    await total.settle(ended(5, 1.5))
    await total.settle(ended(6, 3.0, error="max_usd"))
    assert await limit(total, 7) is None, "one that was stopped would have cost more"
    assert (total.closed, total.spent) == (True, 10.0)


async def test_what_waits_is_asked_when_another_ends_and_all_are_freed_at_the_end() -> None:
    total = TotalBudget(1.0)
    first, *rest = (asyncio.ensure_future(total.claim(question)) for question in questions(3))
    await first
    assert not any(each.done() for each in rest)
    await total.settle(ended(0, 0.9))
    assert await asyncio.gather(*rest) == [None, None]


def begin(folder: Path, name: str, usd: float, **failed: str) -> None:
    """Leave a run that was cut short after a call, or that failed."""
    trace = Trace.create(folder, name, {"question": "?"})
    trace.record("model_call", agent="writer", usage=Usage(usd=usd, model_calls=1).as_dict())
    if failed:
        trace.record("failed", agent="run", **failed)
    trace.close()


def test_earlier_processes_count_with_what_was_lost(tmp_path: Path) -> None:
    begin(tmp_path, "q00", 0.5)
    begin(tmp_path, "q01", 0.2)
    begin(tmp_path, "q02", 0.1, error="ModelUnavailable", message="It is gone.")
    note_lost(tmp_path, 0.05)
    for lost in (0.55, 1.05):  # the run that was cut short may have lost a reply each time
        total = TotalBudget(10.0)
        total.begin(tmp_path, [ended(0, 0.5)])
        assert total.spent == pytest.approx(0.5 + 0.2 + 0.1 + lost)
        assert total.dearest == 0.5


@pytest.mark.usefixtures("shops")
async def test_what_was_spent_on_a_discarded_run_stays_spent(tmp_path: Path) -> None:
    """Its question is another one; a model that is free answers."""
    await run_evaluation(evaluation(tmp_path, Knowing(), questions(2)[1:]))
    begin(tmp_path, "q00", 0.3)
    for _ in range(2):
        total = TotalBudget(5.0)
        records = await run_evaluation(evaluation(tmp_path, Knowing(), questions(2)), total=total)
        assert "another question" in records["q00"].discarded
        assert total.spent == pytest.approx(0.3 + 0.3), "and as much may have been lost with it"


@pytest.mark.usefixtures("shops")
async def test_a_total_needs_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backend, "price", None)
    with pytest.raises(ConfigurationError, match=r"A limit of \$5 cannot be kept: the price of"):
        await run_evaluation(evaluation(tmp_path, Knowing(), questions(1)), total=TotalBudget(5.0))
    assert not list(tmp_path.iterdir())
