"""Dollars for all questions together: which calls may begin, whatever other processes spend or spent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.evals.running.runner import run_evaluation
from quorum.evals.running.total_budget import TotalBudget, TotalUsedUp
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.ledger import Budget, Ledger, Usage
from quorum.tools.models.backend import Backend
from tests.evals.running import Knowing, evaluation, questions


def called(ledger: Ledger, usd: float) -> None:
    ledger.reserve_call()
    ledger.release_call()
    ledger.charge("writer", Usage(usd=usd, model_calls=1))


def test_a_call_is_refused_once_the_total_cannot_pay_one_like_the_dearest(tmp_path: Path) -> None:
    total, other = TotalBudget(10.0, tmp_path), TotalBudget(10.0, tmp_path)
    run = Ledger(Budget(), shared=total)
    called(run, 1.0)
    called(run, 3.0)
    called(other, 2.0)
    run.reserve_call()
    with pytest.raises(TotalUsedUp, match=r"The total of \$10 cannot pay what is open"):
        other.reserve_call()
    assert run.reserved_calls == 1
    run.release_call()
    other.reserve_call(3.9)
    with pytest.raises(TotalUsedUp):
        run.reserve_call(0.5)
    assert run.reserved_calls == 0, "what the total refuses is not reserved"
    later = TotalBudget(14.0, tmp_path)  # the other process was killed: its reply may have been billed
    later.reserve_call()
    assert later.used == pytest.approx(1 + 3 + 2 + 3.9)


async def test_a_cancelled_call_counts_and_a_failed_one_does_not(tmp_path: Path) -> None:
    total = TotalBudget(10.0, tmp_path)
    called(total, 2.0)

    async def fail(error: BaseException) -> None:
        total.reserve_call()
        try:
            raise error
        finally:
            total.release_call()

    await asyncio.gather(fail(OSError()), fail(asyncio.CancelledError()), return_exceptions=True)
    total.reserve_call()
    assert total.used == 2.0 + 2.0


@pytest.mark.usefixtures("shops")
async def test_a_total_needs_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backend, "price", None)
    asked = replace(evaluation(tmp_path, Knowing(), questions(1)), max_usd_total=5.0)
    with pytest.raises(ConfigurationError, match=r"A limit of \$5 cannot be kept: the price of"):
        await run_evaluation(asked)
    assert not list(tmp_path.iterdir())
