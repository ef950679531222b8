"""OpenAI and every endpoint that speaks its chat completions: Azure, vLLM, Ollama, Together, …"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import openai
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.base import Backend, Failure, FailureKind, ModelSettings, Sampling, shorten
from quorum.tools.models.capabilities import Capabilities
from quorum.tools.models.pace import retry_after
from quorum.tools.models.prices import price_of
from quorum.tools.models.structured import Method, Schema
from quorum.tools.models.transport import (
    REPLY_BYTES,
    ReplyTooLong,
    causes,
    make_client,
    no_connection,
    timeouts,
)

# LangChain's advice to its own callers; here the next method is tried, and the trace says so.
warnings.filterwarnings("ignore", "Invalid schema for OpenAI|This model does not support OpenAI", UserWarning)

OPENAI_URL = "https://api.openai.com/v1"

_ADDRESS = "Is base_url right? It usually ends in /v1."
_KEY = "Is the API key right (OPENAI_API_KEY), and may it use this model?"
_LATER = "Try again later, or ask for less at once (votes, requests_per_second)."
_TOO_LONG = "Give the schema fewer tokens, or use a model with a longer context."


class OpenAIBackend(Backend):
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

    def __init__(self, model: str, settings: ModelSettings) -> None:
        if not model:
            raise ConfigurationError("The model has no name.", hint="Write openai:NAME, e.g. openai:gpt-4.1.")
        self.name = f"openai:{model}"
        self.model = model
        self.settings = settings
        self._url = settings.base_url or OPENAI_URL
        self.endpoint = _address(self._url)
        self.price = price_of(model, settings.prices)
        self._key = _key(self.name, settings, self.endpoint)
        newer = self.endpoint.startswith(OPENAI_URL)
        self.learned = Capabilities(settings.method, "max_completion_tokens" if newer else "max_tokens")
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, ChatOpenAI] = WeakKeyDictionary()
        self._unused: ChatOpenAI | None = self._connect()  # reads certificates: not inside the loop

    @override
    def chat(self) -> ChatOpenAI:
        """The LangChain chat model for the running event loop."""
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
            http_async_client=make_client(self.settings.timeout),
            timeout=timeouts(self.settings.timeout),
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
    def method(self, schema: Schema) -> Method:
        return self.learned.method(schema)

    @override
    def arguments(self, sampling: Sampling, schema: Schema | None, method: Method | None) -> dict[str, Any]:
        return self.learned.arguments(sampling, schema, method)

    @override
    def adapt(self, failure: Failure, sent: Mapping[str, Any], schema: Schema | None) -> str:
        return self.learned.adapt(failure, sent, schema) if failure.kind is FailureKind.REQUEST else ""

    @override
    def distrust(self, method: Method) -> str:
        return self.learned.distrust(method)

    @override
    def failure(self, error: Exception) -> Failure:
        """What an exception of the client means; an endpoint that echoes the key is not quoted on it."""
        found, key = self._meaning(error), self._key.get_secret_value()
        return replace(found, message=found.message.replace(key, "***")) if len(key) > 4 else found

    def _meaning(self, error: Exception) -> Failure:
        if isinstance(error, openai.APIStatusError):
            return self._refusal(error)
        if any(isinstance(cause, ReplyTooLong) for cause in causes(error)):
            return Failure(FailureKind.ENDLESS, f"The reply exceeded {REPLY_BYTES // 2**20} MB.", _ADDRESS)
        if isinstance(error, openai.APIConnectionError | TimeoutError):
            return self._interruption(error)
        if isinstance(error, openai.APIError):  # an error inside a stream
            return Failure(FailureKind.SERVER, _sentence("The endpoint broke off", error.message), _LATER)
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}, {error}"
        text = _sentence(f"{self.endpoint} sent something that is no chat completion", what)
        return Failure(FailureKind.BROKEN, text, _ADDRESS)

    def _interruption(self, error: Exception) -> Failure:
        root = [*causes(error)][-1]
        why = str(root) or type(root).__name__
        if no_connection(error):
            hint = "Is the address right, the server running, the network up?"
            return Failure(FailureKind.UNREACHABLE, _sentence(f"No connection to {self.endpoint}", why), hint)
        if isinstance(error, openai.APITimeoutError | TimeoutError):
            text = f"{self.endpoint} was silent for {self.settings.timeout:g} s."
            return Failure(FailureKind.TIMEOUT, text, "Allow more time (timeout) or try again later.")
        return Failure(FailureKind.SERVER, _sentence(f"The connection to {self.endpoint} broke", why), _LATER)

    def _refusal(self, error: openai.APIStatusError) -> Failure:
        """What an HTTP status means."""
        status, wait = error.status_code, retry_after(error.response.headers.get("retry-after"))

        def failure(kind: FailureKind, what: str, hint: str = "", wait: float | None = None) -> Failure:
            text = _sentence(f"{what} ({status})", _said(error))
            return Failure(kind, text, hint, wait, parameter=str(error.param or ""))

        if error.code == "insufficient_quota":  # comes as 429, but waiting does not help
            return failure(FailureKind.DENIED, "The account has no credit", "Check its plan and billing.")
        if status in (408, 409, 425, 429):
            return failure(FailureKind.RATE, "The endpoint refuses for now", _LATER, wait)
        if status >= 500:
            return failure(FailureKind.SERVER, "The endpoint failed", _LATER, wait)
        if status in (401, 403):
            return failure(FailureKind.DENIED, "The endpoint denies access", _KEY)
        if status == 404:
            hint = f"Is the model called {self.model!r} there? {_ADDRESS}"
            return failure(FailureKind.DENIED, f"Not found at {self.endpoint}", hint)
        if isinstance(error, ContextOverflowError) or error.code == "context_length_exceeded":
            return failure(FailureKind.TOO_LONG, "The prompt is too long", _TOO_LONG)
        return failure(
            FailureKind.REQUEST, "The request was refused", "" if status in (400, 422) else _ADDRESS
        )


def _said(error: openai.APIStatusError) -> str:
    """The endpoint's own words."""
    said = error.body.get("message") if isinstance(error.body, dict) else error.body
    return str(said or error.message)


def _sentence(what: str, why: str) -> str:
    return f"{what}: {shorten(why).rstrip('.')}."


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
