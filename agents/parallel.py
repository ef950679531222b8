"""Many calls at once, several at a time, and none left behind when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

AT_ONCE = 8
"""Calls under way at a time; the model's own pace may allow fewer."""


async def each(
    items: Iterable[Item], call: Callable[[Item], Awaitable[Found]], *, at_once: int = AT_ONCE
) -> list[Found]:
    """``await call(item)`` for every item, in the items' order.

    Raises:
        Exception: The first that a call raised; the other calls are cancelled.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(item: Item) -> Found:
        async with gate:
            return await call(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
