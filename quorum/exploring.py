"""Explore a database from a script or the command line: ``await explore(db="sqlite:///shop.db", …)``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.exploring import Exploration
    from quorum.graph.nodes.tree_search import Search
    from quorum.graph.runs import Event


async def explore(
    *,
    db: str | list[str] | None = None,
    models: str | list[str] | None = None,
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
    flags: dict[str, Any] = {"database": [db] if isinstance(db, str) else db, **options}
    flags["models"] = [models] if isinstance(models, str) else models or list(chat_models or ()) or None
    settings = settings.changed(**flags) if settings else Settings(**flags)
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
    return asyncio.run(explore(**arguments))
