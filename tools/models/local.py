"""Chat models that run in this process, and LangChain chat models that a caller brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from quorum.tools.models.base import Backend, Failure, FailureKind, ModelSettings, Sampling, shorten
from quorum.tools.models.prices import FREE, Price, price_of
from quorum.tools.models.structured import Method, Schema

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class LocalBackend(Backend):
    """A model of ours (offline, scripted, replay): free, and it knows every role's form itself.

    Sampling reaches the chat model as the keyword arguments ``temperature`` and ``seed``; the role
    and the candidate as LangChain metadata.
    """

    errors: tuple[type[Exception], ...] = ()
    endpoint = ""
    price: Price | None = FREE

    def __init__(self, name: str, chat: BaseChatModel, settings: ModelSettings) -> None:
        self.name, self._chat, self.settings = name, chat, settings

    @override
    def chat(self) -> BaseChatModel:
        return self._chat

    @override
    def method(self, schema: Schema) -> Method:
        return Method.BUILT_IN

    @override
    def arguments(self, sampling: Sampling, schema: Schema | None, method: Method | None) -> dict[str, Any]:
        given = {"temperature": sampling.temperature, "seed": sampling.seed}
        return {name: value for name, value in given.items() if value is not None}

    @override
    def failure(self, error: Exception) -> Failure:
        return Failure(FailureKind.BROKEN, shorten(f"{type(error).__name__}: {error}"))

    @override
    def adapt(self, failure: Failure, sent: Mapping[str, Any], schema: Schema | None) -> str:
        return ""

    @override
    def distrust(self, method: Method) -> str:
        return ""

    @override
    async def aclose(self) -> None:
        """Nothing is open."""


class ForeignBackend(LocalBackend):
    """Any LangChain chat model; asked in plain text, the schema in the prompt, sampled as it is set up."""

    # Each provider's package raises its own classes, with no common root below Exception.
    errors: tuple[type[Exception], ...] = (Exception,)

    def __init__(self, chat: BaseChatModel, settings: ModelSettings) -> None:
        model = str(getattr(chat, "model_name", "") or getattr(chat, "model", "") or "custom")
        super().__init__(f"{chat._llm_type}:{model}", chat, settings)
        self.price = price_of(model, settings.prices)
        self.endpoint = self.name

    @override
    def method(self, schema: Schema) -> Method:
        return Method.TEXT

    @override
    def arguments(self, sampling: Sampling, schema: Schema | None, method: Method | None) -> dict[str, Any]:
        return {}
