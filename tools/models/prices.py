"""What models cost. A price that is not known is None, never zero."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from quorum.knowledge.errors import ConfigurationError

PRICES_AS_OF = "2026-03"


Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Price:
    """US dollars per million tokens; ``cached`` is for input tokens read from the provider's cache."""

    input: Dollars
    cached: Dollars
    output: Dollars

    def usd(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Return the cost of one call; cached tokens are part of the input tokens."""
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * self.cached + output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0, 0.0)

# The providers' public list prices as of PRICES_AS_OF; settings override them.
PRICES: Mapping[str, Price] = {
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-5.1": Price(1.25, 0.125, 10.0),
    "gpt-5.4": Price(2.5, 0.25, 15.0),
    "gpt-5.4-mini": Price(0.75, 0.075, 4.5),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o1": Price(15.0, 7.5, 60.0),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o4-mini": Price(1.1, 0.275, 4.4),
}

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def price_of(name: str, overrides: Mapping[str, Price | Mapping[str, float]]) -> Price | None:
    """Return the price of a model by its name; None if unknown.

    A dated snapshot (``gpt-4.1-2025-04-14``) costs what its family costs, and a vendor's prefix
    (``openai/gpt-4.1``) is ignored, unless the overrides name it in full.

    Raises:
        ConfigurationError: The override is not ``{"input": …, "cached": …, "output": …}``.
    """
    family = _SNAPSHOT.sub("", name.rsplit("/", 1)[-1])
    for known in (name, family):
        if known in overrides:
            return as_price(known, overrides[known])
    return PRICES.get(family)


def as_price(name: str, given: Price | Mapping[str, float]) -> Price:
    """Return the price of ``name`` that a setting gives; ``cached`` may be left out.

    Raises:
        ConfigurationError: It is not ``{"input": …, "cached": …, "output": …}``, each at least 0.
    """
    if isinstance(given, Price):
        return given
    try:
        return Price(**{"cached": given.get("input", -1.0), **given})
    except ValidationError as error:
        raise ConfigurationError(
            f"The price of {name} is not understood: {dict(given)!r}.",
            hint='Give USD per million tokens, 0 or more: {"input": 2.0, "cached": 0.5, "output": 8.0}.',
        ) from error
