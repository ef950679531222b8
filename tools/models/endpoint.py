"""An OpenAI-compatible endpoint, of chat or embedding models: its address, its key, its HTTP client."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Self, cast
from urllib.parse import parse_qsl, urlsplit

import openai
from pydantic import SecretStr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.backend import ModelSettings
from quorum.tools.models.failures import LATER, Explainer, FailureKind, NoReply, causes, sentence
from quorum.tools.urls import mask_url, url_secrets

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 4.0

httpx: Any = import_module(type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0])
"""The library on which this version of the client is built: httpx or httpx2."""


@dataclass(frozen=True)
class Endpoint(Explainer):
    """One model at one endpoint; explains what the openai client raises.

    Attributes:
        options: Arguments of the openai client.
        reply: The name of what it sends.
        reply_bytes: A longer reply is an error.
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    reply: str = "chat completion"
    reply_bytes: int = 16 * 2**20  # far longer than any chat completion

    @classmethod
    def of(cls, model: str, settings: ModelSettings, **more: Any) -> Self:
        """Return the endpoint that the settings name.

        Raises:
            ConfigurationError: The model has no name, the URL is no address, or OpenAI has no key.
        """
        if not model:
            raise ConfigurationError("The model has no name.", hint="Write openai:NAME, e.g. openai:gpt-4.1.")
        url = settings.base_url or OPENAI_URL
        address = _address_of(url)
        key = settings.api_key
        if key is None or not key.get_secret_value():
            if address.startswith(OPENAI_URL):
                raise ConfigurationError(
                    f"openai:{model} needs an API key.",
                    hint="Set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none.",
                )
            key = SecretStr("none")  # local servers ask for no key, but the client insists on one
        silence = settings.timeout
        parts = urlsplit(url)
        return cls(
            endpoint=address,
            model=model,
            timeout=silence,
            secrets=(key.get_secret_value(), *url_secrets(settings.base_url)),
            key_hint="Is the API key right (OPENAI_API_KEY), and may it use this model?",
            address_hint="Is base_url right? It usually ends in /v1.",
            options={
                "api_key": key,
                "base_url": parts._replace(query="", fragment="").geturl(),
                "default_query": dict(parse_qsl(parts.query)),
                "timeout": openai.Timeout(silence, connect=min(CONNECT_SECONDS, silence)),
            },
            **more,
        )

    def client(self) -> Any:
        """Return an HTTP client for threads. Its replies are limited, and no redirect is followed."""
        return openai.DefaultHttpxClient(
            verify=certificates(), follow_redirects=False, event_hooks={"response": [self._limit]}
        )

    def async_client(self, **options: Any) -> Any:
        """Return an HTTP client for one event loop, with the same limits."""

        async def limit(response: Any) -> None:
            self._limit(response)

        return openai.DefaultAsyncHttpxClient(
            verify=certificates(), follow_redirects=False, event_hooks={"response": [limit]}, **options
        )

    def _limit(self, response: Any) -> None:
        """Have ``ReplyTooLong`` raised once too much has been read."""
        read, read_async, size = response.iter_bytes, response.aiter_bytes, 0

        def counted(part: bytes) -> bytes:
            nonlocal size
            size += len(part)
            if size > self.reply_bytes:
                raise ReplyTooLong
            return part

        async def counted_async(*given: Any) -> AsyncIterator[bytes]:
            async for part in read_async(*given):
                yield counted(part)

        response.iter_bytes = lambda *given: map(counted, read(*given))
        response.aiter_bytes = counted_async

    @override
    def _no_completion(self, error: Exception) -> NoReply:
        if any(isinstance(cause, ReplyTooLong) for cause in causes(error)):
            text = f"The reply exceeded {self.reply_bytes // 2**20} MB."
            return NoReply(FailureKind.ENDLESS, text, self.address_hint)
        if isinstance(error, openai.APIError):  # an error inside a stream
            return NoReply(FailureKind.SERVER, sentence("The endpoint broke off", error.message), LATER)
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}, {error}"
        text = sentence(f"{self.endpoint} sent something that is no {self.reply}", what)
        return NoReply(FailureKind.BROKEN, text, self.address_hint)


class ReplyTooLong(openai.OpenAIError):
    """The reply exceeds the size limit."""


@cache
def certificates() -> ssl.SSLContext:
    """Return the trusted authorities. All clients share them, for reading them takes some 20 ms."""
    return cast("ssl.SSLContext", httpx.create_ssl_context())


def _address_of(url: str) -> str:
    """Return the endpoint's address for people, without password, key and options.

    Raises:
        ConfigurationError: The URL is no address.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no such port, or half an IPv6 address
        known = False
    if not known:
        raise ConfigurationError(f"base_url {mask_url(url)!r} is no address.", hint="Write https://host/v1.")
    netloc = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=netloc, query="", fragment="").geturl().rstrip("/")
