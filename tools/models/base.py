"""What every model provider must offer, and what a call takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from quorum.tools.ledger import Usage
from quorum.tools.models.prices import Price
from quorum.tools.models.structured import Method, Problem, Schema

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Message = Mapping[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``."""


@dataclass(frozen=True)
class ModelSettings:
    """How a model is reached and how it is asked; all in seconds and tokens.

    Attributes:
        base_url: Root of an OpenAI-compatible endpoint, usually ending in ``/v1``; empty for OpenAI.
        temperature: None leaves the provider's default.
        timeout: Longest silence of the endpoint during a call.
        total_timeout: Longest whole reply; None for three times ``timeout``.
        max_retries: Further tries after a refusal or a failure that may pass.
        requests_per_second: Rate shared by all models of the endpoint; None for no limit.
        max_output_tokens: Longest reply; None leaves the provider's default.
        prices: USD per million tokens by model name, over the built-in table.
        method: Ask for structured replies this way and no other; None finds out what works.
    """

    base_url: str = ""
    api_key: SecretStr | None = None
    temperature: float | None = None
    timeout: float = 120.0
    total_timeout: float | None = None
    max_retries: int = 5
    requests_per_second: float | None = None
    max_output_tokens: int | None = 16_000
    prices: Mapping[str, Price | Mapping[str, float]] = field(default_factory=dict)
    method: Method | None = None

    @property
    def longest_reply(self) -> float:
        """Wall clock that one try may take, in seconds."""
        return 3 * self.timeout if self.total_timeout is None else self.total_timeout


class FailureKind(StrEnum):
    """Why a try gave no reply."""

    RATE = "rate"  # 429
    SERVER = "server"  # 5xx, or the connection broke
    UNREACHABLE = "unreachable"  # no connection at all
    TIMEOUT = "timeout"  # silence
    ENDLESS = "endless"  # bytes without end
    BROKEN = "broken"  # an answer that is no chat completion
    REQUEST = "request"  # 400, 413, 422: what was asked for
    TOO_LONG = "too_long"  # the prompt, for this model
    DENIED = "denied"  # the key, the model's name, the address, the quota


@dataclass(frozen=True)
class Failure:
    """A try that gave no reply, as a value.

    Attributes:
        message: What happened, for people; never holds a key.
        hint: What to do about it.
        retry_after: Seconds that the endpoint asks to wait; None where it does not say.
        parameter: The request's parameter that was refused, where the endpoint names it.
    """

    kind: FailureKind
    message: str
    hint: str = ""
    retry_after: float | None = None
    parameter: str = ""

    def tries(self, max_retries: int, *, answered: bool = False) -> int:
        """Further tries that make sense: what never was there or is too slow will hardly change.

        Args:
            answered: The endpoint has answered before, so that it may only be away.
        """
        match self.kind:
            case FailureKind.RATE | FailureKind.SERVER:
                return max_retries
            case FailureKind.UNREACHABLE if answered:
                return max_retries
            case FailureKind.UNREACHABLE | FailureKind.TIMEOUT:
                return min(1, max_retries)
            case FailureKind.BROKEN:
                return min(2, max_retries)
            case _:
                return 0


@dataclass(frozen=True)
class Sampling:
    """What may differ between calls of one model."""

    temperature: float | None = None
    seed: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        text: As the model wrote it; a function call's arguments as JSON.
        parsed: The validated object; None without ``output`` or with a ``problem``.
        problem: Why the reply is of no use; None where it is fine.
        usage: Of this call, price included.
        estimated: True where the endpoint sent no token counts and they were estimated.
        seconds: Wall clock of the successful try, waiting excluded.
        finish_reason: The provider's own word; empty where it sent none.
    """

    text: str
    parsed: BaseModel | None
    problem: Problem | None
    usage: Usage
    estimated: bool
    seconds: float
    finish_reason: str
    method: Method | None


class Backend(ABC):
    """One model of one provider; shared by all runs and candidates that use it."""

    name: str
    """As the user named it, ``provider:model``."""

    endpoint: str
    """What a rate limit applies to; empty for models in this process."""

    demonstration: bool = False
    """Whether rules answer, and no language model; every answer then says so."""

    price: Price | None
    settings: ModelSettings

    errors: tuple[type[Exception], ...]
    """The exceptions that ``failure`` understands."""

    @abstractmethod
    def chat(self) -> BaseChatModel:
        """The LangChain chat model for the running event loop."""

    @abstractmethod
    def method(self, schema: Schema) -> Method:
        """How to ask for this output now, after all that was learned."""

    @abstractmethod
    def arguments(self, sampling: Sampling, schema: Schema | None, method: Method | None) -> dict[str, Any]:
        """Keyword arguments of ``chat().ainvoke``."""

    @abstractmethod
    def failure(self, error: Exception) -> Failure:
        """What an exception means."""

    @abstractmethod
    def adapt(self, failure: Failure, sent: Mapping[str, Any], schema: Schema | None) -> str:
        """Stop asking for what was refused; says what changed, or is empty if nothing can.

        Args:
            sent: The arguments of the refused call: what another call already changed is not
                changed again.
        """

    @abstractmethod
    def distrust(self, method: Method) -> str:
        """Stop using a method that the endpoint accepts but does not obey; says what changed."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what the running event loop opened."""


def shorten(text: str, most: int = 300) -> str:
    """One line of at most ``most`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"
