"""A model of a provider as a call needs it: the settings, the request, the failures of its client."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr
from typing_extensions import override

from quorum.tools.models.capabilities import Capabilities
from quorum.tools.models.failures import Explainer, NoReply, NotSupported
from quorum.tools.models.prices import FREE, Price, price_of
from quorum.tools.models.structured import Method
from quorum.tools.urls import url_secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

Message = Mapping[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``."""

Output = type[BaseModel] | None
"""The form of a structured reply; None for plain text."""

_LADDER = (Method.FUNCTION_CALLING, Method.JSON_SCHEMA, Method.TEXT)
"""Function calling first: several clients raise over a reply to JSON schema that is cut off or filtered,
and its tokens are lost."""


@dataclass(frozen=True)
class ModelSettings:
    """The address, sampling and limits of a model's calls, in seconds and tokens.

    Attributes:
        base_url: Root of an OpenAI-compatible endpoint, usually ending in ``/v1``; empty for OpenAI.
            It and ``api_key`` are for ``openai:…`` only: other providers read their own variables.
        temperature: None leaves the provider's default.
        timeout: Longest silence of the endpoint during a call; a whole reply may take three times as long.
        max_retries: Further tries after a refusal or a failure that may pass.
        requests_per_second: Rate shared by all models of the endpoint; None for no limit.
        max_output_tokens: Longest reply; None leaves the provider's default.
        prices: USD per million tokens by model name, over the built-in table.
    """

    base_url: str = ""
    api_key: SecretStr | None = None
    temperature: float | None = None
    timeout: float = 120.0
    max_retries: int = 5
    requests_per_second: float | None = None
    max_output_tokens: int | None = 16_000
    prices: Mapping[str, Price | Mapping[str, float]] = field(default_factory=dict)

    @property
    def longest_reply(self) -> float:
        """Return the wall clock that one try may take, in seconds."""
        return 3 * self.timeout


class Backend:
    """One model of one provider, shared by all runs and candidates that use it.

    This base class serves the models in this process (offline, scripted, replay), which cost nothing and know
    every role's reply form. Sampling reaches the chat model as the arguments ``temperature`` and ``seed``;
    the role and the candidate as LangChain metadata.

    Attributes:
        name: As the user named it, ``provider:model``.
        endpoint: What a rate limit applies to; empty for models in this process.
        price: None if unknown.
        demonstration: Rules answer, not a language model; every answer says so.
        errors: The exceptions that ``failure`` explains.
    """

    endpoint = ""
    price: Price | None = FREE
    demonstration = False
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, name: str, chat: BaseChatModel, settings: ModelSettings) -> None:
        self.name, self._chat, self.settings = name, chat, settings
        self.learned = Capabilities((Method.BUILT_IN,))
        self.explainer = Explainer(name, name, settings.timeout)

    def chat(self) -> BaseChatModel:
        """Return the LangChain chat model."""
        return self._chat

    def arguments(
        self,
        temperature: float | None,
        seed: int | None,
        output: Output,  # noqa: ARG002 - needed where a form has to be asked for
        method: Method | None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return what a request holds besides its messages, by the names that an endpoint would refuse."""
        given = {"temperature": temperature, "seed": seed}
        return {name: value for name, value in given.items() if value is not None}

    @contextmanager
    def asking(self, arguments: dict[str, Any]) -> Iterator[tuple[Runnable[Any, Any], dict[str, Any]]]:
        """Give the chat model for one request, and what it is invoked with beside messages and config.

        Args:
            arguments: As ``arguments`` returned them.
        """
        yield self.chat(), arguments

    def failure(self, error: Exception) -> NoReply:
        """Explain an exception."""
        return self.explainer.failure(error)

    async def aclose(self) -> None:
        """Close what the running event loop opened."""


def name_of(chat: BaseChatModel) -> str:
    """Return ``type:model`` of a LangChain chat model, such as ``openai-chat:gpt-4.1``."""
    return f"{chat._llm_type}:{getattr(chat, 'model_name', '') or getattr(chat, 'model', '') or 'custom'}"


class ChatBackend(Backend):
    """A LangChain chat model; structured replies by its ``with_structured_output``.

    Args:
        sampled: Names of the model's fields (``temperature``, ``seed``) that may be set for a call; a
            model that a caller brings is sampled as it is set up.
    """

    # Each provider's package raises its own classes, with no common root below Exception.
    errors: tuple[type[Exception], ...] = (Exception,)

    def __init__(
        self, chat: BaseChatModel, settings: ModelSettings, name: str = "", sampled: Collection[str] = ()
    ) -> None:
        super().__init__(name or name_of(chat), chat, settings)
        model = name_of(chat).partition(":")[2]
        self.price = price_of(name.partition(":")[2] or model, settings.prices)
        self.endpoint = name.partition(":")[0] or self.name
        keys = [value.get_secret_value() for value in vars(chat).values() if isinstance(value, SecretStr)]
        secrets = (*keys, *url_secrets(settings.base_url))
        self.explainer = Explainer(self.endpoint, model, settings.timeout, secrets)
        self.learned = Capabilities(_LADDER)
        self._sampled = sampled

    @override
    def arguments(
        self, temperature: float | None, seed: int | None, output: Output, method: Method | None
    ) -> dict[str, Any]:
        given = super().arguments(temperature, seed, output, method)
        asked = {name: value for name, value in given.items() if name in self._sampled}
        if method in (Method.JSON_SCHEMA, Method.JSON_MODE):
            asked["response_format"] = output, method
        elif method is Method.FUNCTION_CALLING:
            asked["tools"] = output, method
        return self.learned.kept(asked)

    @override
    @contextmanager
    def asking(self, arguments: dict[str, Any]) -> Iterator[tuple[Runnable[Any, Any], dict[str, Any]]]:
        form = next((name for name in ("response_format", "tools") if name in arguments), "")
        sampling = {name: value for name, value in arguments.items() if name != form}
        chat = self.chat().model_copy(update=sampling) if sampling else self.chat()
        if not form:
            yield chat, {}
            return
        output, method = arguments[form]
        try:
            structured = chat.with_structured_output(output, method=method.value, include_raw=True)
        except (NotImplementedError, TypeError, ValueError) as error:
            raise NotSupported(form, str(error)) from error
        yield structured, {}
