"""OpenAI and every endpoint that speaks its chat completions: Azure, vLLM, Ollama, Together, …"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import openai
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.base import Backend, ModelSettings, Output
from quorum.tools.models.capabilities import LADDER, Capabilities
from quorum.tools.models.chat import LATER, ChatBackend
from quorum.tools.models.failures import Failure, FailureKind, causes, sentence
from quorum.tools.models.prices import price_of
from quorum.tools.models.structured import Method, function_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig

# LangChain's advice to its own callers; here the next method is tried, and the trace says so.
warnings.filterwarnings("ignore", "Invalid schema for OpenAI|This model does not support OpenAI", UserWarning)

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 4.0
IDLE_SECONDS = 30.0
"""How long a connection is kept that nobody needs."""
REPLY_BYTES = 16 * 2**20  # far longer than any chat completion

_BODY = ("max_tokens", "max_completion_tokens", "response_format")
"""Parameters that the LangChain class would rewrite, or handle by another code path: with a
``response_format`` its client raises over replies that are cut off or filtered, and their tokens are lost.
They travel in ``extra_body``, which is merged into the request as it is."""


class OpenAIBackend(ChatBackend):
    """One model behind one endpoint; makes a client for each event loop that uses it.

    A client outlives no loop, because its connections belong to the loop that opened them.
    """

    errors: tuple[type[Exception], ...] = (
        openai.OpenAIError,
        # What the client and LangChain raise over an answer that is no chat completion:
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
    )
    key_hint = "Is the API key right (OPENAI_API_KEY), and may it use this model?"
    address_hint = "Is base_url right? It usually ends in /v1."

    def __init__(self, model: str, settings: ModelSettings) -> None:
        if not model:
            raise ConfigurationError("The model has no name.", hint="Write openai:NAME, e.g. openai:gpt-4.1.")
        self.name, self.model, self.settings = f"openai:{model}", model, settings
        self._url = settings.base_url or OPENAI_URL
        self.endpoint = _address(self._url)
        self.price = price_of(model, settings.prices)
        self._key = _key(self.name, settings, self.endpoint)
        limits = ["max_tokens", "max_completion_tokens"]  # either name, tried in this order
        if self.endpoint.startswith(OPENAI_URL):
            limits.reverse()
        self.learned = Capabilities((settings.method,) if settings.method else LADDER, limits)
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, ChatOpenAI] = WeakKeyDictionary()
        self._unused: ChatOpenAI | None = self._connect()  # reads certificates: not inside the loop

    @override
    def chat(self) -> ChatOpenAI:
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            self._open[loop] = self._unused or self._connect()
            self._unused = None
        chat = self._open[loop]
        chat.stream_usage = "stream_options" not in self.learned.dropped
        return chat

    def _connect(self) -> ChatOpenAI:
        return ChatOpenAI(
            model=self.model,
            base_url=self._url,
            api_key=self._key,
            http_async_client=_client(self.settings.timeout),
            timeout=_timeouts(self.settings.timeout),
            max_retries=0,  # the one retry layer is Model.complete
            use_responses_api=False,
            stream_chunk_timeout=self.settings.timeout,
        )

    @override
    async def aclose(self) -> None:
        """Close the running loop's client."""
        chat = self._open.pop(asyncio.get_running_loop(), None)
        if chat is not None:
            await chat.http_async_client.aclose()  # type: ignore[union-attr]

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
        return await self.chat().ainvoke(messages, config, **given)

    @override
    def _no_completion(self, error: Exception) -> Failure:
        if any(isinstance(cause, ReplyTooLong) for cause in causes(error)):
            text = f"The reply exceeded {REPLY_BYTES // 2**20} MB."
            return Failure(FailureKind.ENDLESS, text, self.address_hint)
        if isinstance(error, openai.APIError):  # an error inside a stream
            return Failure(FailureKind.SERVER, sentence("The endpoint broke off", error.message), LATER)
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}, {error}"
        text = sentence(f"{self.endpoint} sent something that is no chat completion", what)
        return Failure(FailureKind.BROKEN, text, self.address_hint)


class ReplyTooLong(openai.OpenAIError):
    """The endpoint sends bytes without end."""


def _timeouts(silence: float) -> openai.Timeout:
    """Timeouts that give up early on a missing server and after ``silence`` seconds on a mute one."""
    return openai.Timeout(silence, connect=min(CONNECT_SECONDS, silence))


def _client(silence: float) -> openai.DefaultAsyncHttpxClient:
    """A client for one event loop; how many requests go out at once is the pace's to say, not the pool's."""
    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(keepalive_expiry=IDLE_SECONDS)  # httpx's or httpx2's
    return openai.DefaultAsyncHttpxClient(
        timeout=_timeouts(silence), limits=limits, event_hooks={"response": [_cap]}
    )


async def _cap(response: Any) -> None:
    """Have the reply end in an error when it grows too long."""
    read = response.aiter_bytes

    async def capped(*given: Any) -> AsyncIterator[bytes]:
        size = 0
        async for part in read(*given):
            size += len(part)
            if size > REPLY_BYTES:
                raise ReplyTooLong(f"The reply exceeds {REPLY_BYTES} bytes.")
            yield part

    response.aiter_bytes = capped


def _address(url: str) -> str:
    """The endpoint's address for people: without a password that the URL may hold."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"base_url {url!r} is no address.", hint="Write https://host/v1.")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _key(name: str, settings: ModelSettings, endpoint: str) -> SecretStr:
    if settings.api_key is not None and settings.api_key.get_secret_value():
        return settings.api_key
    if endpoint.startswith(OPENAI_URL):
        raise ConfigurationError(
            f"{name} needs an API key.",
            hint="Set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none.",
        )
    return SecretStr("none")  # local servers ask for no key, but the client insists on one
