"""What a call of a model takes and gives, and what every provider offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from quorum.tools.ledger import Usage
from quorum.tools.models.capabilities import Capabilities
from quorum.tools.models.failures import Failure, FailureKind, shorten
from quorum.tools.models.prices import FREE, Price
from quorum.tools.models.structured import Method, Problem

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig

Message = Mapping[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``."""

Output = type[BaseModel] | None
"""The form of a structured reply; None for plain text."""


@dataclass(frozen=True)
class ModelSettings:
    """How a model is reached and how it is asked; all in seconds and tokens.

    Attributes:
        base_url: Root of an OpenAI-compatible endpoint, usually ending in ``/v1``; empty for OpenAI.
            It and ``api_key`` are for ``openai:…`` only: other providers read their own variables.
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


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        text: As the model wrote it; a function call's arguments as JSON.
        parsed: The validated object; None without ``output`` or with a ``problem``.
        problem: Why the reply is unusable; None if it is fine.
        usage: Of this call, price included; ``model_seconds`` is the wall clock of the successful try.
        finish_reason: The provider's own word; empty where it sent none.
    """

    text: str
    parsed: BaseModel | None
    problem: Problem | None
    usage: Usage
    finish_reason: str
    method: Method | None


class Backend:
    """One model of one provider, shared by all runs and candidates that use it.

    This base class serves the models in this process (offline, scripted, replay), which cost nothing and know
    every role's reply form. Sampling reaches the chat model as the arguments ``temperature`` and ``seed``;
    the role and the candidate as LangChain metadata.

    Attributes:
        name: As the user named it, ``provider:model``.
        endpoint: What a rate limit applies to; empty for models in this process.
        price: None where unknown.
        demonstration: Rules answer, not a language model; every answer says so.
        errors: The exceptions that ``failure`` understands.
    """

    endpoint = ""
    price: Price | None = FREE
    demonstration = False
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, name: str, chat: BaseChatModel, settings: ModelSettings) -> None:
        self.name, self._chat, self.settings = name, chat, settings
        self.learned = Capabilities((Method.BUILT_IN,))

    def chat(self) -> BaseChatModel:
        """The LangChain chat model for the running event loop."""
        return self._chat

    def arguments(
        self,
        temperature: float | None,
        seed: int | None,
        output: Output,  # noqa: ARG002 - of interest where a form has to be asked for
        method: Method | None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """What a request holds beside its messages, by the names in which an endpoint would refuse it."""
        given = {"temperature": temperature, "seed": seed}
        return {name: value for name, value in given.items() if value is not None}

    async def ask(
        self, messages: list[dict[str, str]], config: RunnableConfig, arguments: dict[str, Any]
    ) -> AIMessage:
        """Send one request."""
        return await self.chat().ainvoke(messages, config, **arguments)

    def failure(self, error: Exception) -> Failure:
        """What an exception means."""
        return Failure(FailureKind.BROKEN, shorten(f"{type(error).__name__}: {error}"))

    async def aclose(self) -> None:
        """Close what the running event loop opened."""
