"""Ask and explore from a script: ``answer = await ask("…", db="sqlite:///shop.db", models=["openai:…"])``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.graph.answer import Answer
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings, resumed_options

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.answering import OnApprove, OnClarify
    from quorum.graph.exploring import Exploration
    from quorum.graph.nodes.tree_search import Search
    from quorum.graph.options import RunOptions
    from quorum.graph.recipes.recipe import Recipe
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
        run_id: Id of a new run (letters, digits, ``-_.``); without it the run gets one that sorts by time.
        settings: Used instead of what environment and ``quorum.toml`` say.
        chat_models: LangChain chat models of your own, by the spec that ``models`` or ``model_for`` names;
            without ``models``, these are the models.
        on_event: Hears each step of the run as it happens.
        on_clarify: Asked which answer is meant, as the option ``clarify`` says; sets it to ``on`` where it is
            ``off``. It (or what it returns, if that is awaitable) gives a label, an addition to the question,
            or None to keep the vote; a reply that is of no use is asked for again, twice at most. Another
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
    settings = _settings(settings, db, models, chat_models if resume is None else None, flags)
    if on_clarify is not None and resume is None and settings.clarify == "off":
        settings = settings.changed(clarify="on")
    if on_approve is not None and resume is None and settings.approve == "never":
        settings = settings.changed(approve="costly")
    if resume is None:
        run = settings.run_options()
    else:
        folder, answer, question, run = await asyncio.to_thread(_resumed, resume, settings, question)
        if answer is not None:
            return answer
        run_id = folder.run_id
    _check_askable(question, run, chat_models or {}, on_clarify, on_approve)
    from quorum.graph.context import open_context

    context = await open_context(
        run,
        partial(_load_graph, run),
        question,
        resume=run_id if resume is not None else "",
        run_id=run_id,
        api_key=settings.key,
        listener=on_event,
        chat_models=chat_models,
    )
    from quorum.graph.answering import answer_question

    made = await answer_question(
        context, question, resumed=resume is not None, on_clarify=on_clarify, on_approve=on_approve
    )
    if made.meant:
        await asyncio.to_thread(_keep_convention, made, settings)
    return made


def ask_sync(question: str = "", **arguments: Any) -> Answer:
    """``ask`` for code without an event loop; same arguments.

    Raises:
        RuntimeError: Called from a running event loop; use ``await ask(…)`` there.
    """
    _check_no_loop("ask")
    return asyncio.run(ask(question, **arguments))


async def explore(
    *,
    db: str | Sequence[str] | None = None,
    models: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    resume: bool = False,
    coverage: float = 0.9,
    attempts: int = 300,
    branches: int = 4,
    groups: bool = True,
    execution: bool = True,
    personal: bool = False,
    chat_models: Mapping[str, BaseChatModel] | None = None,
    told: Callable[[Search], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    **options: Any,
) -> Exploration:
    """Learn a database: fill its knowledge base of triplets (SQLAgent, paper 001, section 3.2).

    Args:
        db, models, settings, chat_models, on_event: As ``quorum.ask``.
        resume: Go on with what was explored before; without it there must be nothing.
        coverage: Share of the fields at which it ends.
        attempts: Queries that are tried at most, those of earlier explorations included.
        branches: Queries that are tried at a time.
        groups: Tables of the same columns are explored as one.
        execution: Queries are run; else they are only checked, and kept apart.
        personal: What looks like personal data may be kept and shown to models.
        told: Called at the beginning and after each round.
        options: Any other field of ``quorum.settings.Settings``, e.g. ``max_calls=200``.

    Raises:
        ConfigurationError: An option is wrong, the database was explored before or is being explored, or
            nothing can run on it.
        DatabaseUnavailable, ModelUnavailable: As ``quorum.ask``.
    """
    settings = _settings(settings, db, models, chat_models, options)
    for name, fits in (
        ("coverage must be above 0 and at most 1", 0 < coverage <= 1),
        ("attempts must be 1 at least", attempts >= 1),
        ("branches must be from 1 to 16", 1 <= branches <= 16),
    ):
        if not fits:
            raise ConfigurationError(f"{name.capitalize()}.", hint="By default 0.9, 300 and 4.")
    run = settings.run_options()
    if run.approve != "never":
        raise ConfigurationError(
            f"An exploration asks nobody before its many queries run (approve={run.approve}).",
            hint="Say --approve never; max_bytes and max_run_bytes limit what is read.",
        )
    from quorum.graph import exploring
    from quorum.graph.resources import open_resources

    resources = await open_resources(run, api_key=settings.key, chat_models=chat_models)
    try:
        return await exploring.explore(
            run,
            resources,
            root=settings.explored_root.absolute(),
            resume=resume,
            groups=groups,
            told=told,
            listener=on_event,
            coverage=coverage,
            attempts=attempts,
            branches=branches,
            execution=execution,
            personal=personal,
        )
    finally:
        await resources.aclose()


def explore_sync(**arguments: Any) -> Exploration:
    """``explore`` for code without an event loop; same arguments."""
    _check_no_loop("explore")
    return asyncio.run(explore(**arguments))


def _check_no_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{name}_sync was called from a running event loop; use `await {name}(…)` there.")


def _settings(
    settings: Settings | None,
    db: str | Sequence[str] | None,
    models: str | Sequence[str] | None,
    chat_models: Mapping[str, BaseChatModel] | None,
    options: Mapping[str, Any],
) -> Settings:
    """Return the settings with what a caller gives; the caller's own models are the models by default."""
    given = dict(options)
    if db is not None:
        given["database"] = [db] if isinstance(db, str) else db
    given["models"] = [models] if isinstance(models, str) else models or list(chat_models or ()) or None
    return settings.changed(**given) if settings else Settings(**given)


def _resumed(run: str, settings: Settings, question: str) -> tuple[RunFolder, Answer | None, str, RunOptions]:
    """Return a run's folder, its answer if it has ended, its question and its options.

    Raises:
        ConfigurationError: There is no such run, or it cannot go on as asked.
    """
    if question.strip():
        raise ConfigurationError("A run that goes on has its own question.", hint="Leave yours out.")
    folder = RunFolder.open(settings.home, run)
    meta = folder.meta()
    options = resumed_options(meta, settings)
    return folder, folder.answer(), str(meta["question"]), options


def _load_graph(options: RunOptions) -> Recipe:
    """Import the graph, which takes as long as all else that a run opens; return its recipe."""
    from quorum.graph.recipes import recipe_of
    from quorum.graph.resources import IMPORTING

    with IMPORTING:
        import quorum.graph.answering  # noqa: F401

        return recipe_of(options)


def _keep_convention(answer: Answer, settings: Settings) -> None:
    from quorum.teaching import keep_convention

    try:
        answer.convention = str(keep_convention(answer, settings))
    except ConfigurationError as error:
        answer.warnings.append(f"The reading that you chose was not kept: {error}")


def _check_askable(
    question: str,
    options: RunOptions,
    own: Mapping[str, BaseChatModel],
    on_clarify: OnClarify | None,
    on_approve: OnApprove | None,
) -> None:
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
