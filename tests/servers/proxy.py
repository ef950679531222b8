"""A network that fails: a proxy on loopback before any server that talks TCP.

async with Proxy(port) as proxy:
    url = f"postgresql://me@127.0.0.1:{proxy.port}/shop"
    proxy.freeze()      # nothing arrives any more, either way, and nobody is told
    proxy.thaw()        # new bytes pass again; what was swallowed is lost
    proxy.drop()        # every connection ends, with a reset
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self

CHUNK = 65536
RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Passes bytes between its clients and 127.0.0.1:``target``; an async context manager.

    Attributes:
        port: Where it listens.
        accepted: Connections that it has taken so far.
        swallowed: Bytes that it has taken and not passed on.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._frozen = False
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = self.accepted = self.swallowed = 0

    def freeze(self) -> None:
        """Swallow all bytes from now on, ends of connections as well."""
        self._frozen = True

    def thaw(self) -> None:
        """Pass bytes again."""
        self._frozen = False

    def drop(self) -> None:
        """Reset all connections."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for writer in pair:
                line = writer.get_extra_info("socket")
                if line.fileno() >= 0:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        behind, server = await asyncio.open_connection("127.0.0.1", self._target)
        self._pairs.append((writer, server))
        for source, sink in ((reader, server), (behind, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(CHUNK):
                if self._frozen:
                    self.swallowed += len(data)
                else:
                    sink.write(data)
                    await sink.drain()
        except ConnectionError:
            pass
        if not self._frozen:
            sink.close()
