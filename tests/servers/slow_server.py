"""A chat-completions server in a process of its own, for hundreds of requests at once.

    with SlowServer(latency=1.0) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))
        ...
        print(server.served())

It is a ``ChatServer`` that does not share the interpreter with the client that is measured. Its replies are
those of ``tests.servers.replies``.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Self

from tests.servers.chat_server import ChatServer, say, tokens
from tests.servers.replies import reply_to


class SlowServer:
    """The server's process; a context manager. ``url`` is its base URL.

    Args:
        latency: Seconds to each reply.
    """

    def __init__(self, latency: float) -> None:
        self._mine, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_main, args=(theirs, latency), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self.url = self._mine.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def served(self) -> int:
        """How many requests have come so far."""
        self._mine.send(True)
        return int(self._mine.recv())


def _main(pipe: Connection, latency: float) -> None:
    with ChatServer(lambda asked: say(reply_to(asked.text), usage=tokens(900, 60), delay=latency)) as server:
        server._server.socket.listen(1000)
        pipe.send(server.url)
        while pipe.recv():
            pipe.send(len(server.requests))
