"""The parts of a session: its open handles, its caller's models, and the checks and options of a question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quorum.answer import Answer
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings, resumed_options

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.answering import OnApprove, OnClarify
    from quorum.graph.options import RunOptions
    from quorum.graph.recipes.recipe import Recipe
    from quorum.graph.resources import OnOpen, Resources


class SessionHandles:
    """The handles of a session, being opened or open."""

    def __init__(self, settings: Settings, own: Mapping[str, BaseChatModel]) -> None:
        from quorum.graph.resources import open_resources

        self.loop = asyncio.get_running_loop()
        self._database_open: asyncio.Future[Resources] = self.loop.create_future()
        opening = open_resources(
            settings.run_options(), api_key=settings.key, chat_models=own, on_open=self._note_open
        )
        self._all_open = asyncio.ensure_future(opening)
        self._current: Resources | None = None

    @property
    def failed(self) -> bool:
        return self._all_open.done() and (
            self._all_open.cancelled() or self._all_open.exception() is not None
        )

    async def resources(self, on_open: OnOpen | None) -> Resources:
        """Return the handles, verified answers as of now; await ``on_open`` once the database is open."""
        if self._current is None:
            await asyncio.wait([self._database_open, self._all_open], return_when=asyncio.FIRST_COMPLETED)
            found = self._database_open.result() if self._database_open.done() else None
        else:
            found = self._current = await self._current.renewed()
        if on_open and found:
            await on_open(found)
        if self._current is None:
            self._current = await asyncio.shield(self._all_open)
        return self._current

    async def aclose(self) -> None:
        await ended([self._all_open])
        if not self.failed:
            await self._all_open.result().aclose()

    async def _note_open(self, found: Resources) -> None:
        self._database_open.set_result(found)


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


def resumed(run: str, settings: Settings, question: str) -> tuple[RunFolder, Answer | None, str, RunOptions]:
    """Return a run's folder, its answer if it has ended, its question and its options.

    Raises:
        ConfigurationError: There is no such run, or it cannot go on as asked.
    """
    if question.strip():
        raise ConfigurationError("A run that goes on has its own question.", hint="Leave yours out.")
    folder = RunFolder.open(settings.home, run)
    meta = folder.meta()
    home = folder.folder.absolute().parents[1]  # a batch's, where its run was named by the path
    options = resumed_options(meta, settings).model_copy(update={"home": home})
    answer = folder.answer()
    return folder, Answer.of(answer) if answer else None, str(meta["question"]), options


def load_graph(options: RunOptions) -> Recipe:
    """Import the graph, which takes as long as all else that a run opens; return its recipe."""
    from quorum.graph.recipes import recipe_of
    from quorum.graph.resources import IMPORTING

    with IMPORTING:
        import quorum.graph.answering  # noqa: F401

        return recipe_of(options)


def check_askable(
    question: str,
    options: RunOptions,
    own: Mapping[str, BaseChatModel],
    on_clarify: OnClarify | None,
    on_approve: OnApprove | None,
) -> None:
    """Check what a question is asked with.

    Raises:
        ConfigurationError: It is no text, a model of the caller's is unknown, or there is nobody to ask back.
    """
    if not isinstance(question, str):
        raise ConfigurationError(f"The question is {type(question).__name__}, not text.")
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The question is not UTF-8 text, from character {error.start + 1} on.",
            hint="Convert it, e.g. with iconv, or set the terminal to UTF-8.",
        ) from error
    if not question.strip():
        raise ConfigurationError("The question is empty.")
    if strangers := set(own) - set(options.specs):
        raise ConfigurationError(
            f"chat_models has {', '.join(sorted(strangers))}, which is not among the models.",
            hint=f"The models are: {', '.join(options.specs)}.",
        )
    if options.clarify != "off" and on_clarify is None:
        raise ConfigurationError(
            "The run may ask back which answer is meant, and there is nobody to ask.",
            hint="Pass on_clarify, ask on a terminal, or leave clarify out.",
        )
    if options.approve != "never" and on_approve is None:
        raise ConfigurationError(
            f"The run asks before queries run (approve={options.approve}), and there is nobody to ask.",
            hint="Pass on_approve, ask on a terminal, or set approve to never.",
        )
