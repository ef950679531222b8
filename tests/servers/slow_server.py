"""A chat-completions server in a process of its own, for hundreds of requests at once.

    with SlowServer(latency=1.0) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))
        ...
        print(server.counts().served)

It is a ``ChatServer`` that does not share the interpreter with the client that is measured. Its replies are
those of ``tests.servers.replies``.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

from tests.servers.chat_server import Answer, ChatServer, Request, say, status, tokens
from tests.servers.replies import reply_to


@dataclass
class Counts:
    """The server's work so far; ``most`` is the largest number of requests served at once."""

    served: int = 0
    refused: int = 0
    most: int = 0


class SlowServer:
    """The server's process; a context manager. ``url`` is its base URL.

    Args:
        latency: Seconds to each reply.
        capacity: Requests served at once; more are answered with a 429. None for no limit.
        retry_after: Seconds that a 429 asks to wait; None where it does not say.
        away: Seconds after the first request from which, and until which, it answers nothing but 503.
    """

    def __init__(self, **conduct: Any) -> None:
        self._mine, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_main, args=(theirs, conduct), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self.url = self._mine.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def counts(self) -> Counts:
        """The work so far."""
        self._mine.send("counts")
        found: Counts = self._mine.recv()
        return found


def _main(pipe: Connection, conduct: dict[str, Any]) -> None:
    with _Slow(**conduct) as server:
        pipe.send(server.url)
        while pipe.recv():
            pipe.send(Counts(server.done, server.refused, server.most))


class _Slow(ChatServer):
    def __init__(
        self,
        latency: float = 1.0,
        capacity: int | None = None,
        retry_after: float | None = None,
        away: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        wait = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(self._reply, capacity=capacity, refusal=status(429, "too many", headers=wait))
        self._server.socket.listen(1000)
        self.latency, self.away = latency, away
        self.began = self.done = self.most = 0

    def _reply(self, request: Request) -> Answer:
        self.began = self.began or time.monotonic()
        if self.away[0] <= time.monotonic() - self.began < self.away[1]:
            self.refused += 1
            return status(503, "away")
        self.most = max(self.most, self._serving)
        return say(reply_to(request.text), usage=tokens(900, 60), delay=self.latency)

    def served(self, answer: Answer) -> None:
        super().served(answer)
        self.done += answer.status == 200
