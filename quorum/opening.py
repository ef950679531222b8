"""What a session has open: its handles, and the models that its caller brings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quorum.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.resources import Begun, Resources


class Opening:
    """The handles of a session, being opened or open."""

    def __init__(self, settings: Settings, own: Mapping[str, BaseChatModel]) -> None:
        from quorum.graph.resources import open_resources

        self.loop = asyncio.get_running_loop()
        self._early: asyncio.Future[Resources] = self.loop.create_future()
        opening = open_resources(
            settings.run_options(), api_key=settings.key, chat_models=own, begun=self._begun
        )
        self._whole = asyncio.ensure_future(opening)
        self._now: Resources | None = None

    @property
    def failed(self) -> bool:
        return self._whole.done() and (self._whole.cancelled() or self._whole.exception() is not None)

    async def resources(self, begun: Begun | None) -> Resources:
        """Return the handles with the verified answers of now; await ``begun`` once the database is open."""
        if self._now is None:
            await asyncio.wait([self._early, self._whole], return_when=asyncio.FIRST_COMPLETED)
            early = self._early.result() if self._early.done() else None
        else:
            early = self._now = await self._now.renewed()
        if begun and early:
            await begun(early)
        if self._now is None:
            self._now = await asyncio.shield(self._whole)
        return self._now

    async def aclose(self) -> None:
        await ended([self._whole])
        if not self.failed:
            await self._whole.result().aclose()

    async def _begun(self, found: Resources) -> None:
        self._early.set_result(found)


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they are over."""
    if tasks := set(tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def named_models(
    models: str | BaseChatModel | Sequence[str | BaseChatModel] | None, own: Mapping[str, BaseChatModel]
) -> tuple[list[str], dict[str, BaseChatModel]]:
    """Return specs and the callers' own models by spec: ``openai-chat:gpt-4.1``, a second with ``#2``."""
    specs, named = list[str](), dict(own)
    for model in models if isinstance(models, Sequence) and not isinstance(models, str) else [models]:
        if isinstance(model, str):
            specs.append(model)
        elif model is not None:
            from quorum.tools.models.backend import name_of

            name, number = name_of(model), 1
            while (spec := name if number == 1 else f"{name}#{number}") in {*named, *specs}:
                number += 1
            named[spec] = model
            specs.append(spec)
    return specs, named
