"""A network that fails: a proxy on loopback before any server that talks TCP.

async with Proxy(port) as proxy:
    url = f"postgresql://me@127.0.0.1:{proxy.port}/shop"
    proxy.freeze()      # nothing arrives any more, either way, and nobody is told
    proxy.thaw()        # new bytes pass again; what was swallowed is lost
    proxy.slow(64)      # answers come 64 bytes at a time
    proxy.drop()        # every connection ends, with a reset
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self

CHUNK = 65536
PAUSE = 0.05
"""Seconds between the pieces of a slow answer."""
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
        self._frozen, self._most = False, 0
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = self.accepted = self.swallowed = 0

    def freeze(self) -> None:
        """Swallow all bytes from now on, ends of connections as well."""
        self._frozen = True

    def thaw(self) -> None:
        """Pass bytes again."""
        self._frozen = False

    def slow(self, most: int) -> None:
        """Pass answers ``most`` bytes at a time, with pauses; 0 for as they come."""
        self._most = most

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
        for source, sink, answers in ((reader, server, False), (behind, writer, True)):
            task = asyncio.create_task(self._pump(source, sink, answers=answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool) -> None:
        try:
            while data := await source.read(CHUNK):
                most = self._most if answers and self._most else len(data)
                for start in range(0, len(data), most):
                    await self._pass(data[start : start + most], sink)
                    if most < len(data):
                        await asyncio.sleep(PAUSE)
        except ConnectionError:
            pass
        if not self._frozen:
            sink.close()

    async def _pass(self, data: bytes, sink: asyncio.StreamWriter) -> None:
        if self._frozen:
            self.swallowed += len(data)
            return
        sink.write(data)
        await sink.drain()
