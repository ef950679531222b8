"""Go over questions on their live databases without a model, a few databases at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TypeAlias, TypeVar

from quorum.evals.questions import EvalQuestion
from quorum.evals.running.databases import GOLD_LIMITS, GoldRun
from quorum.evals.scorers.base import RunSql
from quorum.knowledge.errors import DatabaseUnavailable, QuorumError
from quorum.tools.databases import connect
from quorum.tools.execute import Database
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter

T = TypeVar("T")

DATABASES_AT_ONCE = 2
"""A large one may take a gigabyte for its results."""


Work: TypeAlias = Callable[[EvalQuestion, RunSql | None], Awaitable[T]]
"""Is given a question and what runs SQL on its database; None where that is not live."""


async def sweep(
    questions: Sequence[EvalQuestion],
    work: Work[T],
    unavailable: Callable[[EvalQuestion, str], T],
    *,
    on_done: Callable[[int], None] = lambda _: None,
) -> dict[str, T]:
    """The results of ``work`` by question id, in the order of ``questions``.

    Args:
        unavailable: Makes the value for a question whose database cannot be opened or fails, from the reason.
        on_done: Told how many questions are done.

    Raises:
        ConfigurationError: A database's URL is malformed or its driver is missing, or ``work`` says so.
    """
    groups: dict[str, list[EvalQuestion]] = {}
    for question in questions:
        groups.setdefault(question.url if question.live else "", []).append(question)
    found: dict[str, T] = {}
    places = asyncio.Semaphore(DATABASES_AT_ONCE)

    async def each(members: Sequence[EvalQuestion], database: Database | None) -> None:
        for question in members:
            run = GoldRun(database, known={}) if database else None
            try:
                found[question.id] = await work(question, run)
            except DatabaseUnavailable as error:
                found[question.id] = unavailable(question, str(error))
            on_done(len(found))

    async def group(url: str, members: Sequence[EvalQuestion]) -> None:
        """The questions of one database; of none where ``url`` is empty."""
        async with places:
            try:
                async with open_database(url) if url else nullcontext() as database:
                    await each(members, database)
            except DatabaseUnavailable as error:
                found.update((member.id, unavailable(member, str(error))) for member in members)
                on_done(len(found))

    try:
        async with asyncio.TaskGroup() as tasks:
            for url, members in groups.items():
                tasks.create_task(group(url, members))
    except* QuorumError as raised:
        raise raised.exceptions[0] from None
    return {question.id: found[question.id] for question in questions}


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Open a database for gold queries and for those that are judged.

    Raises:
        ConfigurationError: The URL is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    async with await asyncio.to_thread(connect, url) as connector:
        catalog = await connector.catalog(samples=0)
        yield Database(connector, catalog, Linter(catalog), GOLD_LIMITS, Ledger())
