"""The usage of a run and the limits on it; the price of a call, which is never free if unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.errors import BudgetExceeded, ConfigurationError
from quorum.tools.ledger import Budget, Ledger, Usage
from quorum.tools.models.prices import PRICES, Price, price_of


def test_accounts_add_up_per_agent_and_in_all() -> None:
    ledger = Ledger()
    ledger.charge("writer", Usage(model_calls=1, input_tokens=10, usd=0.5, model_seconds=1.5))
    ledger.charge("writer", Usage(model_calls=1, input_tokens=5, usd=0.25))
    ledger.charge("database", Usage(queries=1, rows=7, bytes=100, usd=None))
    assert ledger.by_agent["writer"] == Usage(model_calls=2, input_tokens=15, usd=0.75, model_seconds=1.5)
    assert ledger.total.as_dict() == {
        **Usage().as_dict(),
        "model_calls": 2,
        "input_tokens": 15,
        "usd": None,  # one unknown price makes the sum unknown
        "model_seconds": 1.5,
        "queries": 1,
        "rows": 7,
        "bytes": 100,
    }


@given(st.lists(st.sampled_from(["reserve", "done", "failed"]), max_size=60), st.integers(0, 10))
def test_calls_never_overshoot_whatever_the_order(steps: list[str], limit: int) -> None:
    ledger, under_way = Ledger(Budget(max_calls=limit)), 0
    for step in steps:
        if step == "reserve":
            if under_way + ledger.total.model_calls < limit:
                ledger.reserve_call()
                under_way += 1
            else:
                with pytest.raises(BudgetExceeded, match="model calls of the budget"):
                    ledger.reserve_call()
        elif under_way:
            ledger.release_call()
            under_way -= 1
            if step == "done":
                ledger.charge("a", Usage(model_calls=1))
        assert under_way + ledger.total.model_calls <= limit
        assert ledger.reserved_calls == under_way


def test_dollars_under_way_count_as_far_as_they_are_known() -> None:
    ledger = Ledger(Budget(max_usd=1.0))
    ledger.reserve_call(0.6)
    with pytest.raises(BudgetExceeded) as error:
        ledger.reserve_call(0.6)
    assert error.value.limit == "max_usd"
    ledger.reserve_call(0.3)
    ledger.release_call(0.6)
    ledger.reserve_call(0.6)
    ledger.release_call(0.6)
    ledger.release_call(0.3)
    ledger.charge("a", Usage(usd=1.0))
    with pytest.raises(BudgetExceeded, match="spent"):
        ledger.reserve_call()


def test_the_deadline_counts_what_an_earlier_process_spent() -> None:
    now = [100.0]
    ledger = Ledger(Budget(seconds=10), spent_seconds=6, clock=lambda: now[0])
    assert ledger.remaining_seconds() == 4
    now[0] += 3
    assert ledger.seconds() == 9
    ledger.reserve_call()
    now[0] += 3
    assert ledger.remaining_seconds() == 0.0
    with pytest.raises(BudgetExceeded) as error:
        ledger.reserve_call()
    assert error.value.limit == "deadline"


def test_cached_tokens_are_part_of_the_input() -> None:
    assert Price(2.0, 0.5, 8.0).usd(1_000_000, 400_000, 100_000) == pytest.approx(1.2 + 0.2 + 0.8)
    assert Price(2.0, 0.5, 8.0).usd(10, 20, 0) == pytest.approx(20 * 0.5 / 1e6)  # a provider's slip


def test_a_snapshot_and_a_vendor_cost_what_the_family_costs_and_an_unknown_model_has_no_price() -> None:
    for name in ("gpt-4.1", "gpt-4.1-2025-04-14", "openai/gpt-4.1"):
        assert price_of(name, {}) == PRICES["gpt-4.1"]
    for name in ("", "my-model", "gpt-4.1-turbo", "not-gpt-4.1"):
        assert price_of(name, {}) is None


def test_settings_override_the_table() -> None:
    own: dict[str, Any] = {
        "gpt-4.1": {"input": 1, "output": 2},
        "free": Price(0, 0, 0),
        "gpt-4.1-2025-04-14": Price(9, 9, 9),
    }
    assert price_of("gpt-4.1", own) == Price(1.0, 1.0, 2.0)  # no word on the cache: no discount
    assert price_of("openai/gpt-4.1", own) == Price(1.0, 1.0, 2.0)
    assert price_of("gpt-4.1-2025-04-14", own) == Price(9, 9, 9)
    assert price_of("free", own) == Price(0, 0, 0)


@pytest.mark.parametrize(
    "given",
    [
        {"input": "x", "output": 1},
        {"input": -1, "output": 1},
        {"input": 1, "output": 1, "cahced": 1},
    ],
)
def test_a_price_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="mine"):
        price_of("mine", {"mine": given})
