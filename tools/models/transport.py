"""The HTTP client below a chat model: short connect timeout, bounded replies, readable causes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.request import getproxies

import openai

CONNECT_SECONDS = 4.0
IDLE_SECONDS = 30.0
"""How long a connection is kept that nobody needs."""
REPLY_BYTES = 16 * 2**20  # far longer than any chat completion


class ReplyTooLong(openai.OpenAIError):
    """The endpoint sends bytes without end."""


def timeouts(silence: float) -> openai.Timeout:
    """Timeouts that give up early on a missing server and after ``silence`` seconds on a mute one."""
    return openai.Timeout(silence, connect=min(CONNECT_SECONDS, silence))


def make_client(silence: float) -> openai.DefaultAsyncHttpxClient:
    """A client for one event loop. Proxies from the environment apply, as usual.

    The cap is a response hook because a transport of our own would switch those proxies off; where
    there is none, connections are kept in ``Lanes``.
    """
    family = _family(openai.DefaultAsyncHttpxClient.__bases__[0])
    context = family.create_ssl_context()
    one = family.Limits(max_connections=1, keepalive_expiry=IDLE_SECONDS)
    lanes = _lanes(family)(lambda: family.AsyncHTTPTransport(verify=context, limits=one))
    return openai.DefaultAsyncHttpxClient(
        timeout=timeouts(silence),
        verify=context,
        mounts={} if "all" in getproxies() else {"all://": lanes},
        event_hooks={"response": [_cap]},
    )


def _family(kind: type) -> Any:
    """The library that the client is built on by its version, httpx or httpx2; all must be of the same."""
    return import_module(kind.__module__.partition(".")[0])


@lru_cache(maxsize=2)
def _lanes(family: Any) -> Any:
    """The transport that keeps each connection in a pool of its own, on the given library's classes."""

    class Lanes(family.AsyncBaseTransport):  # type: ignore[misc]
        """A request takes the connection that was used last, or a new one.

        The library's pool looks at all of its connections for every request, twice, and probes the
        sockets of those that are idle: with a hundred of them that takes longer than the request.
        """

        def __init__(self, make: Callable[[], Any]) -> None:
            self.make = make
            self.idle: list[tuple[Any, float]] = []  # with the time since when; the latest last
            self.closed = False

        async def handle_async_request(self, request: Any) -> Any:
            lane = self.idle.pop()[0] if self.idle else self.make()
            try:
                response = await lane.handle_async_request(request)
            except BaseException:
                await lane.aclose()
                raise
            response.stream = Held(response.stream, lane, self)
            return response

        async def free(self, lane: Any) -> None:
            """Take a connection back; close those that nobody has needed for a while."""
            now = time.monotonic()
            self.idle.append((lane, now))
            while self.idle and (self.closed or now - self.idle[0][1] > IDLE_SECONDS):
                await self.idle.pop(0)[0].aclose()

        async def aclose(self) -> None:
            self.closed = True
            while self.idle:
                await self.idle.pop()[0].aclose()

    class Held(family.AsyncByteStream):  # type: ignore[misc]
        """A reply's bytes; once they are closed, their connection is free."""

        def __init__(self, stream: Any, lane: Any, lanes: Lanes) -> None:
            self.stream, self.lane, self.lanes = stream, lane, lanes

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self.stream:
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()
            lane, self.lane = self.lane, None
            if lane is not None:
                await self.lanes.free(lane)

    return Lanes


async def _cap(response: Any) -> None:
    response.stream = _capped(_family(type(response)).AsyncByteStream)(response.stream)


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
