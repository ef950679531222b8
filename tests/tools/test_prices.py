"""What a call costs, and that an unknown price is not a free one."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.prices import PRICES, Price, price_of


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
        {},
        {"input": 1},
        {"input": "x", "output": 1},
        {"input": -1, "output": 1},
        {"input": float("nan"), "output": 1},
        {"input": 1, "output": 1, "cahced": 1},
    ],
)
def test_a_price_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="mine"):
        price_of("mine", {"mine": given})


def test_the_table_makes_sense() -> None:
    for name, price in PRICES.items():
        assert 0 < price.cached <= price.input <= price.output, name
