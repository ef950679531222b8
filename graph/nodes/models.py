"""The first model whose endpoint answers, for roles that all candidates share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quorum.graph.context import Context
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.models import Model

Reply = TypeVar("Reply")


async def first_available(context: Context, call: Callable[[Model], Awaitable[Reply]]) -> Reply:
    """``await call(model)`` with the first of the run's models whose endpoint answers.

    That another one stood in is recorded.

    Raises:
        ModelUnavailable: None does; the last one's reason.
    """
    *others, last = context.models.values()
    for model in others:
        try:
            return await call(model)
        except ModelUnavailable as error:
            context.trace.record("model_replaced", agent="run", model=model.name, message=str(error))
    return await call(last)
