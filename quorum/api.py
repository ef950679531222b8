"""Ask from a script: ``answer = await ask("…", db="sqlite:///shop.db", models=["openai:…"])``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.answer import Answer
from knowledge.errors import ConfigurationError
from quorum.settings import Settings

if TYPE_CHECKING:
    from graph.options import RunOptions
    from graph.runs import Event

NO_MODEL = (
    "Name one with --model openai:gpt-4.1 (or models=[…]), QUORUM_MODELS, or `models` in quorum.toml; "
    "an OpenAI-compatible endpoint also needs OPENAI_BASE_URL and OPENAI_API_KEY. "
    "`--model offline` needs neither key nor network, but is a rule-based demonstration."
)
NO_DATABASE = (
    "Name one with --db sqlite:///shop.db (or db=…), QUORUM_DATABASE, or `database` in quorum.toml; "
    "`sample` is the sample database."
)


async def ask(
    question: str,
    *,
    db: str | None = None,
    models: Sequence[str] | None = None,
    recipe: str | None = None,
    votes: int | None = None,
    docs: str | Path | None = None,
    resume: str | None = None,
    settings: Settings | None = None,
    on_event: Callable[[Event], None] | None = None,
    **options: Any,
) -> Answer:
    """Answer a question about a database.

    Args:
        db: URL of the database (``sqlite:///shop.db``, ``duckdb:///…``) or ``sample``.
        models: Specs ``provider:name``; several share the candidates as experts.
        votes: Candidates that vote.
        docs: Folder of documents that define business terms.
        resume: Id of an interrupted run, a unique beginning of one, or ``last``: it goes on
            with its own question and options, and repeats no finished step.
        settings: Instead of what environment and ``quorum.toml`` say.
        on_event: Hears each step of the run as it happens.
        options: Any other field of ``quorum.settings.Settings``, e.g. ``max_usd=0.5``.

    Returns:
        The answer; ``status`` says whether it is one.

    Raises:
        ConfigurationError: A setting is missing or wrong.
        DatabaseUnavailable: The database cannot be opened or read.
        ModelUnavailable: No model answered.
    """
    from graph.runs import RunFolder

    flags = {
        "database": db,
        "models": list(models) if models else None,
        "recipe": recipe,
        "votes": votes,
        "documents": docs,
        **options,
    }
    settings = settings.changed(**flags) if settings else Settings.load(**flags)
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    if resume is None:
        return await _run(question, run_options(settings), api_key=key, listener=on_event)
    run = await asyncio.to_thread(RunFolder.open, settings.home, resume)
    answer = await asyncio.to_thread(run.answer)
    if answer is not None:
        return Answer.model_validate(answer)
    meta = await asyncio.to_thread(run.meta)
    kept = _options_of(meta, settings)
    return await _run(meta["question"], kept, api_key=key, listener=on_event, resume=run.run_id)


def ask_sync(question: str, **arguments: Any) -> Answer:
    """``ask`` for code without an event loop; same arguments.

    Raises:
        RuntimeError: Called from a running event loop; use ``await ask(…)`` there.
    """
    return asyncio.run(ask(question, **arguments))


def run_options(settings: Settings) -> RunOptions:
    """The run's options that ``settings`` ask for.

    Raises:
        ConfigurationError: No model or no database is set, or an option is wrong.
    """
    from graph.options import RunOptions

    if not settings.models:
        raise ConfigurationError("No model is configured.", hint=NO_MODEL)
    if not settings.database:
        raise ConfigurationError("No database is given.", hint=NO_DATABASE)
    return RunOptions(
        database=settings.database,
        recipe=settings.recipe,
        switches=settings.switches,
        models=list(settings.models),
        votes=settings.votes,
        documents=str(settings.documents) if settings.documents else "",
        strategy=settings.strategy,
        temperature=settings.temperature,
        seed=settings.seed,
        base_url=settings.base_url or "",
        timeout=settings.timeout,
        requests_per_second=settings.requests_per_second,
        max_calls=settings.max_calls,
        max_usd=settings.max_usd,
        deadline=settings.deadline,
        max_rows=settings.max_rows,
        max_bytes=settings.max_bytes,
        query_seconds=settings.query_timeout,
        schema_tokens=settings.schema_tokens,
        link_above=settings.link_above,
        retrieval=settings.retrieval,
        embedding_model=settings.embedding_model,
        prices=settings.prices,
        home=str(settings.home),
    )


def _options_of(meta: dict[str, Any], settings: Settings) -> RunOptions:
    """The interrupted run's own options; a database whose password was left out comes from settings."""
    from graph.options import RunOptions
    from graph.trace import REDACTED

    options = RunOptions.from_dict(meta["options"])
    if REDACTED in options.database:
        if not settings.database:
            raise ConfigurationError(
                "The run's database URL was kept without its password.", hint=NO_DATABASE
            )
        options.database = settings.database
    options.home = str(settings.home)
    return options


async def _run(
    question: str,
    options: RunOptions,
    *,
    api_key: str,
    listener: Callable[[Event], None] | None,
    resume: str = "",
) -> Answer:
    from graph.builder import build_graph
    from graph.checkpoints import open_checkpoints
    from graph.context import open_context
    from graph.live import attach

    if not question.strip():
        raise ConfigurationError("The question is empty.")
    context = await open_context(options, question, resume=resume, api_key=api_key, listener=listener)
    try:
        attach(options, context)
        async with open_checkpoints(context.trace.checkpoint) as saver:
            graph = build_graph(context.recipe, checkpointer=saver)
            config: Any = {"configurable": {"thread_id": context.trace.run_id}}
            begun = bool(resume) and bool((await graph.aget_state(config)).values)
            start: Any = None if begun else {"question": question}
            output = await graph.ainvoke(start, config, context=options, durability="sync")
    finally:
        await context.aclose()
    return Answer.model_validate(output["answer"])
