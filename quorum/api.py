"""Ask and explore from a script: ``answer = await ask("…", db="sqlite:///shop.db", models=["openai:…"])``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quorum.answer import Answer
from quorum.knowledge.errors import ConfigurationError
from quorum.session import OneQuestion, Quorum
from quorum.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.exploring import ExplorationResult
    from quorum.graph.nodes.tree_search import Search
    from quorum.graph.runs import Event


def ask(
    question: str = "",
    *,
    resume: str | None = None,
    run_id: str = "",
    talk: str = "",
    **session: Any,
) -> Coroutine[Any, Any, Answer]:
    """Answer one question in a session of its own: ``answer = await ask("…", db="shop.db", models=[…])``.

    Args:
        talk: A run in whose conversation it is asked (``quorum.Quorum.chat``).
        question, resume, run_id: As ``quorum.Quorum.ask``.
        session: As ``quorum.Quorum``: ``db``, ``models``, ``votes``, ``on_clarify`` and the like.

    Raises:
        ConfigurationError, DatabaseUnavailable, ModelUnavailable: As ``quorum.Quorum.ask``.
    """
    quorum = OneQuestion(**session)
    if talk:
        return quorum.chat(run=talk).ask(question, run_id=run_id)
    return quorum.ask(question, resume=resume, run_id=run_id)


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
    models: str | BaseChatModel | Sequence[str | BaseChatModel] | None = None,
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
) -> ExplorationResult:
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
    session = Quorum(db=db, models=models, settings=settings, chat_models=chat_models, **options)
    settings = session.settings
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

    async with session:
        return await exploring.explore(
            run,
            await session.resources(),
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


def explore_sync(**arguments: Any) -> ExplorationResult:
    """``explore`` for code without an event loop; same arguments."""
    _check_no_loop("explore")
    return asyncio.run(explore(**arguments))


def _check_no_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{name}_sync was called from a running event loop; use `await {name}(…)` there.")
