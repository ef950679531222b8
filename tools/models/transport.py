"""The HTTP client below a chat model: short connect timeout, bounded replies, readable causes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

import openai

CONNECT_SECONDS = 4.0
REPLY_BYTES = 16 * 2**20  # far longer than any chat completion


class ReplyTooLong(openai.OpenAIError):
    """The endpoint sends bytes without end."""


def timeouts(silence: float) -> openai.Timeout:
    """Timeouts that give up early on a missing server and after ``silence`` seconds on a mute one."""
    return openai.Timeout(silence, connect=min(CONNECT_SECONDS, silence))


def make_client(silence: float) -> openai.DefaultAsyncHttpxClient:
    """A client for one event loop. Proxies from the environment apply, as usual.

    The cap is a response hook because a transport of our own would switch those proxies off.
    """
    return openai.DefaultAsyncHttpxClient(timeout=timeouts(silence), event_hooks={"response": [_cap]})


async def _cap(response: Any) -> None:
    # The client is built on httpx or httpx2, by its version; the stream must be of the same family.
    family = import_module(type(response).__module__.partition(".")[0])
    response.stream = _capped(family.AsyncByteStream)(response.stream)


@lru_cache(maxsize=2)
def _capped(base: Any) -> Any:
    """The stream class that counts bytes, on the given library's stream class."""

    class Capped(base):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self.stream:
                size += len(part)
                if size > REPLY_BYTES:
                    raise ReplyTooLong(f"The reply exceeds {REPLY_BYTES} bytes.")
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()

    return Capped


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, outermost first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def no_connection(error: BaseException) -> bool:
    """True if no connection came about: refused, no route, no such name, no answer in time.

    Judged by class names, because the HTTP library differs by the client's version.
    """
    names = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol"}
    return any(type(cause).__name__ in names for cause in causes(error))
