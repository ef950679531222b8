"""OpenAI and every endpoint that speaks its chat completions: Azure, vLLM, Ollama, Together, …"""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakKeyDictionary

import openai
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.base import Backend, ModelSettings, Output
from quorum.tools.models.capabilities import LADDER, Capabilities
from quorum.tools.models.chat import LATER, ChatBackend
from quorum.tools.models.endpoint import OPENAI_URL, address_of, key_of
from quorum.tools.models.failures import Failure, FailureKind, causes, sentence
from quorum.tools.models.prices import price_of
from quorum.tools.models.structured import Method, function_of

if TYPE_CHECKING:
    from langchain_core.outputs import ChatResult
    from langchain_core.runnables import RunnableConfig

# LangChain's advice to its own callers; here the next method is tried, and the trace says so.
warnings.filterwarnings("ignore", "Invalid schema for OpenAI|This model does not support OpenAI", UserWarning)

_httpx: Any = import_module(type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0])
"""The library that the client is built on by its version, httpx or httpx2."""

CONNECT_SECONDS = 4.0
IDLE_SECONDS = 30.0
"""Seconds that an idle connection is kept."""
REPLY_BYTES = 16 * 2**20  # far longer than any chat completion

_BODY = ("max_tokens", "max_completion_tokens", "response_format")
"""Parameters that the LangChain class would rewrite, or handle by another code path: with a
``response_format`` its client raises over replies that are cut off or filtered, and their tokens are lost.
They go into ``extra_body``, which is merged into the request unchanged."""


@cache
def _certificates() -> ssl.SSLContext:
    """The authorities that are trusted; all clients share them, for reading them takes some 20 ms."""
    return cast("ssl.SSLContext", _httpx.create_ssl_context())


class OpenAIBackend(ChatBackend):
    """One model behind one endpoint.

    Each request under way has an HTTP client of its own, the one used last or a new one: httpx's pool looks
    at all of its connections for every request, which at a hundred requests at once costs 17 % of the CPU
    of an evaluation (``recap``). A client outlives no event loop: its connections belong to the loop.
    """

    errors: tuple[type[Exception], ...] = (
        openai.OpenAIError,
        # What the client and LangChain raise over an answer that is no chat completion:
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
    )
    _chat: ChatOpenAI
    key_hint = "Is the API key right (OPENAI_API_KEY), and may it use this model?"
    address_hint = "Is base_url right? It usually ends in /v1."

    def __init__(self, model: str, settings: ModelSettings) -> None:
        if not model:
            raise ConfigurationError("The model has no name.", hint="Write openai:NAME, e.g. openai:gpt-4.1.")
        self.name, self.model, self.settings = f"openai:{model}", model, settings
        url = settings.base_url or OPENAI_URL
        self.endpoint = address_of(url)
        self.price = price_of(model, settings.prices)
        limits = ["max_tokens", "max_completion_tokens"]  # either name, tried in this order
        if self.endpoint.startswith(OPENAI_URL):
            limits.reverse()
        self.learned = Capabilities((settings.method,) if settings.method else LADDER, limits)
        silence = settings.timeout
        self._timeouts = openai.Timeout(silence, connect=min(CONNECT_SECONDS, silence))
        certificates = _certificates()  # reads files: here, and not inside the loop
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[ChatOpenAI]] = WeakKeyDictionary()
        self._chat = _Chat(
            model=model,
            base_url=urlsplit(url)._replace(query="", fragment="").geturl(),
            default_query=dict(parse_qsl(urlsplit(url).query)),
            api_key=key_of(self.name, settings, self.endpoint),
            timeout=self._timeouts,
            max_retries=0,  # the one retry layer is Model.complete
            use_responses_api=False,
            stream_chunk_timeout=silence,
            # never used, see ``_connected``; LangChain's own would read the certificates twice more
            http_client=openai.DefaultHttpxClient(verify=certificates),
            http_async_client=openai.DefaultAsyncHttpxClient(verify=certificates),
        )

    def _connected(self) -> ChatOpenAI:
        """A copy of the chat model on an HTTP client of its own."""
        client = self._chat.root_async_client.with_options(
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=self._timeouts,
                limits=_httpx.Limits(keepalive_expiry=IDLE_SECONDS),
                verify=_certificates(),
                event_hooks={"response": [_stay, _cap]},
            )
        )
        return self._chat.model_copy(
            update={"root_async_client": client, "async_client": client.chat.completions}
        )

    @override
    async def aclose(self) -> None:
        """Close the running loop's clients."""
        for chat in self._idle.pop(asyncio.get_running_loop(), []):
            await chat.root_async_client.close()

    @override
    def arguments(
        self, temperature: float | None, seed: int | None, output: Output, method: Method | None
    ) -> dict[str, Any]:
        asked = Backend.arguments(self, temperature, seed, output, method)
        if self.learned.token_limits and self.settings.max_output_tokens is not None:
            asked[self.learned.token_limits[0]] = self.settings.max_output_tokens
        if method is Method.JSON_MODE:
            asked["response_format"] = {"type": "json_object"}
        elif output is not None and method is Method.JSON_SCHEMA:
            function = function_of(output)
            form = {name: function[name] for name in ("name", "strict")} | {"schema": function["parameters"]}
            asked["response_format"] = {"type": "json_schema", "json_schema": form}
        elif output is not None and method is Method.FUNCTION_CALLING:
            function = dict(function_of(output))
            asked["strict"] = function.pop("strict")  # an argument by itself, for it may be refused alone
            asked["tools"] = [{"type": "function", "function": function}]
            asked["tool_choice"] = {"type": "function", "function": {"name": function["name"]}}
        return self.learned.kept(asked)

    @override
    async def ask(
        self, messages: list[dict[str, str]], config: RunnableConfig, arguments: dict[str, Any]
    ) -> AIMessage:
        given = dict(arguments)
        if given.pop("strict", False):
            given["tools"] = [
                tool | {"function": tool["function"] | {"strict": True}} for tool in given["tools"]
            ]
        if body := {name: given.pop(name) for name in _BODY if name in given}:
            given["extra_body"] = body
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        chat = idle.pop() if idle else self._connected()
        chat.stream_usage = "stream_options" not in self.learned.dropped
        try:
            reply = await chat.ainvoke(messages, config, **given)
        finally:
            idle.append(chat)
        if not isinstance(reply, AIMessage):
            raise TypeError(f"its role is {getattr(reply, 'role', reply.type)!r}, not 'assistant'")
        return reply

    @override
    def _no_completion(self, error: Exception) -> Failure:
        if any(isinstance(cause, ReplyTooLong) for cause in causes(error)):
            text = f"The reply exceeded {REPLY_BYTES // 2**20} MB."
            return Failure(FailureKind.ENDLESS, text, self.address_hint)
        if moved := next((cause for cause in causes(error) if isinstance(cause, Moved)), None):
            hint = "If that is meant, give the new address as base_url."
            return Failure(FailureKind.DENIED, f"{self.endpoint} {moved}", hint)
        if isinstance(error, openai.APIError):  # an error inside a stream
            return Failure(FailureKind.SERVER, sentence("The endpoint broke off", error.message), LATER)
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}, {error}"
        text = sentence(f"{self.endpoint} sent something that is no chat completion", what)
        return Failure(FailureKind.BROKEN, text, self.address_hint)


class _Chat(ChatOpenAI):
    """The client's chat model, which a ``usage`` of an odd form does not keep from the reply beside it."""

    @override
    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        answer: Any = response
        usage = getattr(answer, "usage", None)
        try:
            if usage is None or isinstance(usage, openai.BaseModel):
                return super()._create_chat_result(answer, generation_info)
        except (TypeError, AttributeError):
            if usage is None:
                raise
        answer.usage = None
        return super()._create_chat_result(answer, generation_info)

    @override
    def _convert_chunk_to_generation_chunk(self, chunk: dict[str, Any], *more: Any) -> Any:
        try:
            return super()._convert_chunk_to_generation_chunk(chunk, *more)
        except (TypeError, AttributeError):
            if not chunk.get("usage"):
                raise
            return super()._convert_chunk_to_generation_chunk(chunk | {"usage": None}, *more)


class ReplyTooLong(openai.OpenAIError):
    """The reply exceeds the size limit."""


class Moved(openai.OpenAIError):
    """The endpoint redirects to somebody else, who shall see neither prompt nor key."""


async def _stay(response: Any) -> None:
    """Raise where a redirect leads to another host, or from HTTPS to HTTP."""
    if response.has_redirect_location:
        here, there = response.url, response.url.join(response.headers["location"])
        upgraded = (here.scheme, there.scheme) == ("http", "https") and here.host == there.host
        if not upgraded and (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise Moved(f"redirects to {there.scheme}://{there.host}, which was not asked and got nothing.")


async def _cap(response: Any) -> None:
    """Raise when the reply grows too long."""
    read = response.aiter_bytes

    async def capped(*given: Any) -> AsyncIterator[bytes]:
        size = 0
        async for part in read(*given):
            size += len(part)
            if size > REPLY_BYTES:
                raise ReplyTooLong(f"The reply exceeds {REPLY_BYTES} bytes.")
            yield part

    response.aiter_bytes = capped
