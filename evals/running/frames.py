"""How two processes of an evaluation talk: four bytes of length, then a pickled tuple."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

HEAD = 4
"""Bytes of a frame's length, which does not count them."""


def pack(message: tuple[Any, ...]) -> bytes:
    """The frame that carries ``message``."""
    data = pickle.dumps(message)
    return len(data).to_bytes(HEAD, "big") + data


async def unpack(stream: asyncio.StreamReader) -> tuple[Any, ...]:
    """The next frame's message.

    Raises:
        EOFError: The other side is gone.
    """
    try:
        size = int.from_bytes(await stream.readexactly(HEAD), "big")
        message: tuple[Any, ...] = pickle.loads(await stream.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        raise EOFError from None
    return message
