"""A chat-completions server in a process of its own, for hundreds of requests at once.

    with SlowServer(latency=1.0) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))
        ...
        print(server.served, server.refused)

``tests.servers.chat_server`` has a thread per request and shares the interpreter with the client that is
measured; this one has an event loop to itself. Its replies are those of ``tests.servers.replies``.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Self

from tests.servers.chat_server import say, tokens
from tests.servers.replies import reply_to


@dataclass(frozen=True)
class Conduct:
    """The server's behaviour.

    Attributes:
        latency: Seconds to each reply.
        capacity: Requests served at once; more are answered with a 429. None for no limit.
        retry_after: Seconds that a 429 asks to wait; None where it does not say.
        away: Seconds after the first request from which, and until which, it answers nothing but 503.
    """

    latency: float = 1.0
    capacity: int | None = None
    retry_after: float | None = None
    away: tuple[float, float] | None = None


@dataclass
class Counts:
    """The server's work so far; ``most`` is the largest number of requests served at once."""

    served: int = 0
    refused: int = 0
    serving: int = 0
    most: int = 0
    began: float = field(default=0.0)


class SlowServer:
    """The server's process; a context manager. ``url`` is its base URL."""

    def __init__(self, **conduct: Any) -> None:
        self._mine, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_main, args=(theirs, Conduct(**conduct)), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self.url = f"http://127.0.0.1:{self._mine.recv()}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def counts(self) -> Counts:
        """The work so far."""
        self._mine.send("counts")
        found: Counts = self._mine.recv()
        return found


def _main(pipe: Connection, conduct: Conduct) -> None:
    asyncio.run(_Serving(conduct).serve(pipe))


class _Serving:
    def __init__(self, conduct: Conduct) -> None:
        self.conduct, self.counts = conduct, Counts()

    async def serve(self, pipe: Connection) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=1000)
        pipe.send(server.sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe.fileno(), lambda: pipe.send(self.counts) if pipe.recv() else None)
        async with server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, one after the other (HTTP/1.1, RFC 9112)."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").lower().split("\r\n")
                size = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
                body = json.loads(await reader.readexactly(size))
                writer.write(await self._answer(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, body: dict[str, Any]) -> bytes:
        if problem := self._refusal():
            self.counts.refused += 1
            return problem
        self.counts.serving += 1
        self.counts.most = max(self.counts.most, self.counts.serving)
        await asyncio.sleep(self.conduct.latency)
        self.counts.serving -= 1
        self.counts.served += 1
        return _response("200 OK", _completion(body))

    def _refusal(self) -> bytes | None:
        now, conduct = time.monotonic(), self.conduct
        self.counts.began = self.counts.began or now
        if conduct.away and conduct.away[0] <= now - self.counts.began < conduct.away[1]:
            return _response("503 Service Unavailable", {"error": {"message": "away"}})
        if conduct.capacity is not None and self.counts.serving >= conduct.capacity:
            wait = "" if conduct.retry_after is None else f"Retry-After: {conduct.retry_after}\r\n"
            return _response("429 Too Many Requests", {"error": {"message": "too many"}}, wait)
        return None


def _response(status: str, body: dict[str, Any], headers: str = "") -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    said = reply_to("\n".join(message["content"] or "" for message in body["messages"]))
    return say(said, usage=tokens(900, 60)).body | {"model": body["model"]}
