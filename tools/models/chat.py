"""Any LangChain chat model: of a provider that ``init_chat_model`` knows, or one that a caller brings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from typing_extensions import override

from quorum.tools.models.base import Backend, ModelSettings, Output
from quorum.tools.models.capabilities import Capabilities
from quorum.tools.models.failures import (
    Failure,
    FailureKind,
    causes,
    said_in,
    sentence,
    shorten,
    status_of,
)
from quorum.tools.models.pace import retry_after
from quorum.tools.models.prices import price_of
from quorum.tools.models.structured import Method
from quorum.tools.urls import REDACTED, url_secrets, without_header_values

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig

_TOO_LONG = "Give the schema fewer tokens, or use a model with a longer context."
LATER = "Try again later, or ask for less at once (votes, requests_per_second)."
_LONGEST, _SHOWN = 4_000, 400
"""Characters of an endpoint's words that are looked through for secrets, and that are shown."""
_NOT_THERE = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol", "ConnectionError"}
_BROKEN_OFF = {"APIConnectionError", "ReadError", "WriteError", "RemoteProtocolError"}
_LADDER = (Method.FUNCTION_CALLING, Method.JSON_SCHEMA, Method.TEXT)
"""Function calling first: several clients raise over a reply to JSON schema that is cut off or filtered,
and its tokens are lost."""


class ChatBackend(Backend):
    """A LangChain chat model; structured replies by its ``with_structured_output``.

    Args:
        sampled: Names of the model's fields (``temperature``, ``seed``) that may be set for a call; a
            model that a caller brings is sampled as it is set up.
    """

    # Each provider's package raises its own classes, with no common root below Exception.
    errors: tuple[type[Exception], ...] = (Exception,)
    key_hint = "Is the API key right, and may it use this model?"
    address_hint = ""

    def __init__(
        self, chat: BaseChatModel, settings: ModelSettings, name: str = "", sampled: Collection[str] = ()
    ) -> None:
        self.model = str(getattr(chat, "model_name", "") or getattr(chat, "model", "") or "custom")
        super().__init__(name or f"{chat._llm_type}:{self.model}", chat, settings)
        self.price = price_of(name.partition(":")[2] or self.model, settings.prices)
        self.endpoint = name.partition(":")[0] or self.name
        self.learned = Capabilities((settings.method,) if settings.method else _LADDER)
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
    async def ask(
        self, messages: list[dict[str, str]], config: RunnableConfig, arguments: dict[str, Any]
    ) -> AIMessage:
        form = next((name for name in ("response_format", "tools") if name in arguments), "")
        sampling = {name: value for name, value in arguments.items() if name != form}
        chat = self.chat().model_copy(update=sampling) if sampling else self.chat()
        if not form:
            return await chat.ainvoke(messages, config)
        output, method = arguments[form]
        try:
            asking = chat.with_structured_output(output, method=method.value, include_raw=True)
        except (NotImplementedError, TypeError, ValueError) as error:
            raise NotSupported(form, str(error)) from error
        reply: Any = await asking.ainvoke(messages, config)
        message: AIMessage = reply["raw"]
        return message

    @override
    def failure(self, error: Exception) -> Failure:
        """What an exception of the client means; keys, and headers that an endpoint echoes, are masked.

        Judged by status and class name, which the exceptions of all providers' packages have in common.
        """
        found = self._meaning(error)
        text = shorten(found.message, _LONGEST)
        keys = [v.get_secret_value() for v in vars(self.chat()).values() if isinstance(v, SecretStr)]
        for key in (*keys, *url_secrets(self.settings.base_url)):
            text = text.replace(key, REDACTED) if len(key) > 4 else text
        return replace(found, message=shorten(without_header_values(text), _SHOWN))

    def _meaning(self, error: Exception) -> Failure:
        if isinstance(error, NotSupported):
            return Failure(FailureKind.REQUEST, str(error), parameter=error.parameter)
        for cause in causes(error):
            if status := status_of(cause):
                return self._refusal(cause, status)
        names, root = {type(cause).__name__ for cause in causes(error)}, [*causes(error)][-1]
        why = str(root) or type(root).__name__
        if names & _NOT_THERE:
            hint = "Is the address right, the server running, the network up?"
            return Failure(FailureKind.UNREACHABLE, sentence(f"No connection to {self.endpoint}", why), hint)
        if any("Timeout" in name for name in names):
            text = f"{self.endpoint} was silent for {self.settings.timeout:g} s."
            return Failure(FailureKind.TIMEOUT, text, "Allow more time (timeout) or try again later.")
        if names & _BROKEN_OFF:
            return Failure(
                FailureKind.SERVER, sentence(f"The connection to {self.endpoint} broke", why), LATER
            )
        return self._no_completion(error)

    def _no_completion(self, error: Exception) -> Failure:
        """What an exception means that is neither a refusal nor a connection error."""
        return Failure(FailureKind.BROKEN, f"{type(error).__name__}: {error}")

    def _refusal(self, error: BaseException, status: int) -> Failure:
        """What an HTTP status means, and the client's own word where it is clearer."""
        from langchain_core.exceptions import ContextOverflowError

        kind, what, hint, wait = FailureKind.REQUEST, "The request was refused", self.address_hint, None
        code, response = getattr(error, "code", ""), getattr(error, "response", None)
        if code == "insufficient_quota":  # comes as 429, but waiting does not help
            kind, what, hint = FailureKind.DENIED, "The account has no credit", "Check its plan and billing."
        elif status in (408, 409, 425, 429):
            kind, what, hint = FailureKind.RATE, "The endpoint refuses for now", LATER
        elif status >= 500:
            kind, what, hint = FailureKind.SERVER, "The endpoint failed", LATER
        elif status in (401, 403):
            kind, what, hint = FailureKind.DENIED, "The endpoint denies access", self.key_hint
        elif status == 404:
            kind, what = FailureKind.DENIED, f"Not found at {self.endpoint}"
            hint = f"Is the model called {self.model!r} there? {self.address_hint}".strip()
        elif isinstance(error, ContextOverflowError) or code == "context_length_exceeded":
            kind, what, hint = FailureKind.TOO_LONG, "The prompt is too long", _TOO_LONG
        elif status in (400, 422):
            hint = ""
        if kind in (FailureKind.RATE, FailureKind.SERVER):
            wait = retry_after((getattr(response, "headers", None) or {}).get("retry-after"))
        text, parameter = (
            sentence(f"{what} ({status})", said_in(error)),
            str(getattr(error, "param", "") or ""),
        )
        return Failure(kind, text, hint, wait, parameter)


class NotSupported(Exception):
    """The model's class has no such way to structured replies.

    Attributes:
        parameter: The parameter of OpenAI's requests that stands for it.
    """

    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(sentence("The model's class does not support it", why or "not implemented"))
        self.parameter = parameter
