"""Ask from a script: ``answer = await ask("…", db="sqlite:///shop.db", models=["openai:…"])``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError
from quorum.resume import resumed
from quorum.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.answering import OnApprove, OnClarify
    from quorum.graph.options import RunOptions
    from quorum.graph.runs import Event


async def ask(
    question: str = "",
    *,
    db: str | Sequence[str] | None = None,
    models: str | Sequence[str] | None = None,
    recipe: str | None = None,
    votes: int | None = None,
    docs: str | Path | None = None,
    resume: str | None = None,
    run_id: str = "",
    settings: Settings | None = None,
    chat_models: Mapping[str, BaseChatModel] | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_clarify: OnClarify | None = None,
    on_approve: OnApprove | None = None,
    **options: Any,
) -> Answer:
    """Answer a question about a database; the answer's ``status`` says whether it is one.

    Args:
        db: URL of the database (``sqlite:///shop.db``), its file, data files or their folder, or ``sample``;
            a list of several, whose tables one query may join.
        models: Specs ``provider:name``; several share the candidates as experts.
        docs: Folder of documents that define business terms.
        resume: Id of an interrupted run, a unique beginning of one, or ``last``: it goes on with its own
            question and options, and repeats no finished step. Leave the question out; limits and the way to
            the endpoint may be changed.
        run_id: Of a new run (letters, digits, ``-_.``); without it the run gets one that sorts by time.
        settings: Instead of what environment and ``quorum.toml`` say.
        chat_models: LangChain chat models of your own, by the spec that ``models`` or ``model_for`` names;
            without ``models``, these are the models.
        on_event: Hears each step of the run as it happens.
        on_clarify: Asked which answer is meant when strong ones disagree; sets ``clarify``. It (or
            what it returns, if that is awaitable) gives a label, an addition to the question, or
            None to keep the vote; a reply that is of no use is asked for again, twice at most. Another
            reading that is chosen is kept as a note of the knowledge base (``Answer.convention``).
        on_approve: Asked before queries run, as the option ``approve`` says; sets it to ``costly`` where
            it is ``never``. It gives ``yes``, ``no`` or ``all``, or True or False, at once or when awaited.
        options: Any other field of ``quorum.settings.Settings``, e.g. ``max_usd=0.5``.

    Raises:
        ConfigurationError: A setting is missing, wrong or unknown, the question is no text, or the
            run asks back and ``on_clarify`` or ``on_approve`` is missing.
        DatabaseUnavailable: The database cannot be opened or read.
        ModelUnavailable: No model answered.
    """
    flags: dict[str, Any] = {"recipe": recipe, "votes": votes, "documents": docs, **options}
    if db is not None:
        flags["database"] = [db] if isinstance(db, str) else db
    own = list(chat_models or ()) if resume is None else []
    flags["models"] = [models] if isinstance(models, str) else models or own or None
    flags |= {"clarify": True} if on_clarify is not None and resume is None else {}
    settings = settings.changed(**flags) if settings else Settings(**flags)
    if on_approve is not None and resume is None and settings.approve == "never":
        settings = settings.changed(approve="costly")
    if resume is None:
        run = settings.run_options()
    else:
        folder, question, run = await asyncio.to_thread(resumed, resume, settings, question)
        if (answer := await asyncio.to_thread(folder.answer)) is not None:
            return Answer.model_validate(answer)
        run_id = folder.run_id
    _check_askable(question, run, chat_models or {})
    _check_asking(run, on_clarify, on_approve)
    from quorum.graph.answering import answer_question
    from quorum.graph.context import open_context
    from quorum.graph.recipes import recipe_of

    handles: dict[str, Any] = {"api_key": settings.key, "listener": on_event, "chat_models": chat_models}
    handles |= {"resume": "" if resume is None else run_id, "run_id": run_id}
    context = await open_context(run, recipe_of(run), question, **handles)
    asked: dict[str, Any] = {"on_clarify": on_clarify, "on_approve": on_approve}
    made = await answer_question(context, question, resumed=resume is not None, **asked)
    if made.meant:
        await asyncio.to_thread(_keep_convention, made, settings)
    return made


def ask_sync(question: str = "", **arguments: Any) -> Answer:
    """``ask`` for code without an event loop; same arguments.

    Raises:
        RuntimeError: Called from a running event loop; use ``await ask(…)`` there.
    """
    try:
        running: object = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is not None:
        raise RuntimeError("ask_sync was called from a running event loop; use `await ask(…)` there.")
    return asyncio.run(ask(question, **arguments))


def _keep_convention(answer: Answer, settings: Settings) -> None:
    from quorum.teaching import keep_convention

    try:
        answer.convention = str(keep_convention(answer, settings))
    except ConfigurationError as error:
        answer.warnings.append(f"The reading that you chose was not kept: {error}")


def _check_text(question: str) -> None:
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The question is not UTF-8 text, from character {error.start + 1} on.",
            hint="Convert it, e.g. with iconv, or set the terminal to UTF-8.",
        ) from error


def _check_askable(question: str, options: RunOptions, own: Mapping[str, BaseChatModel]) -> None:
    _check_text(question)
    if not question.strip():
        raise ConfigurationError("The question is empty.")
    if strangers := set(own) - set(options.specs):
        raise ConfigurationError(
            f"chat_models has {', '.join(sorted(strangers))}, which is not among the models.",
            hint=f"The models are: {', '.join(options.specs)}.",
        )


def _check_asking(options: RunOptions, on_clarify: OnClarify | None, on_approve: OnApprove | None) -> None:
    if options.clarify and on_clarify is None:
        raise ConfigurationError(
            "The run may ask back which answer is meant, and there is nobody to ask.",
            hint="Pass on_clarify, ask on a terminal, or leave clarify out.",
        )
    if options.approve != "never" and on_approve is None:
        raise ConfigurationError(
            f"The run asks before queries run (approve={options.approve}), and there is nobody to ask.",
            hint="Pass on_approve, ask on a terminal, or set approve to never.",
        )
