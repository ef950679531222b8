"""What people teach: an answer kept, one corrected, pairs taken in and held against the database."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from quorum.graph.answer import Answer
from quorum.graph.ballots import NO_VERDICT
from quorum.graph.context import experts_in
from quorum.graph.resources import database_url
from quorum.graph.runs import RunFolder
from quorum.knowledge.demonstrations import Demonstration
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
from quorum.resume import resumed_options
from quorum.settings import NO_DATABASE, Settings
from quorum.tools.databases import connect
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryError, QueryResult
from quorum.tools.results import cluster_keys
from quorum.tools.sql import fixed_dates, tables_in


@dataclass(frozen=True)
class Taught:
    """What was kept.

    Attributes:
        file: The pair's.
        result: Of a correction, which was run; None of an answer that was kept.
        right: Models whose candidates were right; ``wrong`` those whose were not. Empty where a run had one.
        dates: The query's fixed dates: asked again later, it still answers for these.
    """

    pair: VerifiedPair
    file: Path
    result: QueryResult | None = None
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intake:
    """What became of pairs that were taken in.

    Attributes:
        elsewhere: Pairs that name another database.
        refused: Per question that was not kept, why its query does not run.
    """

    kept: int
    elsewhere: int
    refused: dict[str, str]


def keep(run: str, *, note: str = "", by: str = "", settings: Settings | None = None) -> Taught:
    """Keep a run's answer as verified: its question is answered by its query from now on.

    Args:
        run: Its id, a unique beginning of it, or ``last``.
        note: What settled the reading; later questions on its tables see it.
        by: Who stands for it; by default who is logged in.

    Raises:
        ConfigurationError: There is no such run, or it has no result.
    """
    settings = settings or Settings()
    answer = _answer(RunFolder.open(settings.home, run))
    if not answer.sql or not answer.columns:
        raise ConfigurationError(
            f"The run {answer.run_id} has no result that could be kept.",
            hint="Give the right query: quorum correct RUN --sql …",
        )
    vote = answer.vote
    winning = vote.clusters[0].candidates if vote and vote.clusters else []
    return _teach(answer, answer.sql, winning, settings, note=note, by=by)


async def correct(
    run: str, sql: str, *, note: str = "", by: str = "", settings: Settings | None = None
) -> Taught:
    """Keep the right query for a run's question, once it has run on the run's database, with the wrong one.

    Args:
        run, note, by: As ``keep``.

    Raises:
        ConfigurationError: There is no such run, or its database's URL has to be given again.
        DatabaseUnavailable: The database cannot be opened.
        QuorumError: The query is refused or fails.
    """
    settings = settings or Settings()
    folder = RunFolder.open(settings.home, run)
    options = resumed_options(folder.meta(), settings)
    answer = _answer(folder)
    async with opened(options.database, settings.home, options.max_rows) as database:
        outcome = await execute(database, sql, agent="correct")
    if isinstance(outcome, QueryError):
        raise QuorumError(f"This query cannot be kept: {outcome.describe()}")
    equal = await asyncio.to_thread(_equal, answer, outcome)
    wrong = answer.sql if not answer.vote or answer.vote.winner not in equal else ""
    taught = _teach(answer, sql.strip(), equal, settings, note=note, by=by, instead_of=wrong)
    return replace(taught, result=outcome)


@asynccontextmanager
async def opened(url: str, home: Path, max_rows: int) -> AsyncIterator[Database]:
    """A database to run single queries on.

    Raises:
        ConfigurationError: There is no URL, it is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    if not url:
        raise ConfigurationError(NO_DATABASE)
    where = await asyncio.to_thread(database_url, url, home)
    async with await asyncio.to_thread(connect, where) as connector:
        catalog = await connector.catalog(samples=0)
        yield Database(connector, catalog, Linter(catalog), Limits(max_rows), Ledger())


async def take_in(
    items: Iterable[Demonstration],
    database: Database,
    known: KnowledgeBase,
    *,
    by: str = "",
) -> Intake:
    """Keep the pairs of a database whose queries run there."""
    catalog, refused, kept, elsewhere = database.catalog, dict[str, str](), 0, 0
    for item in items:
        if item.database.casefold() not in ("", catalog.name.casefold()):
            elsewhere += 1
            continue
        outcome = await execute(database, item.sql, agent="import")
        if isinstance(outcome, QueryError):
            refused[item.question] = outcome.describe()
        else:
            known.keep(_pair(item.question, item.sql, catalog.name, catalog.dialect, by))
            kept += 1
    return Intake(kept, elsewhere, refused)


async def verify(known: KnowledgeBase, database: Database) -> dict[str, str]:
    """Run every pair's query again; by the pair's id, why it fails."""
    failed = {}
    for pair in known.pairs:
        outcome = await execute(database, pair.sql, agent="verify")
        if isinstance(outcome, QueryError):
            failed[pair.id] = outcome.describe()
    return failed


def _answer(folder: RunFolder) -> Answer:
    found = folder.answer()
    if found is None:
        raise ConfigurationError(
            f"The run {folder.run_id} has no answer yet.", hint=f"quorum ask --resume {folder.run_id}"
        )
    return Answer.model_validate(found)


def _pair(question: str, sql: str, database: str, dialect: str, by: str) -> VerifiedPair:
    return VerifiedPair(
        question=question,
        sql=sql.strip(),
        database=database,
        dialect=dialect,
        tables=tuple(tables_in(sql, dialect)),
        by=by or getpass.getuser(),
        date=datetime.now(UTC).date().isoformat(),
    )


def _teach(
    answer: Answer,
    sql: str,
    right: Collection[str],
    settings: Settings,
    *,
    note: str,
    by: str,
    instead_of: str = "",
) -> Taught:
    known = KnowledgeBase.load(settings.knowledge)
    pair = replace(
        _pair(answer.question, sql, answer.database, answer.dialect, by),
        note=note.strip(),
        instead_of=instead_of,
        run=answer.run_id,
    )
    before = any(other.run == pair.run and other.sql == pair.sql for other in known.pairs)
    file = known.keep(pair)
    outcomes = {} if before else _outcomes(answer, right)
    if outcomes:
        experts_in(settings.home).update(outcomes, feedback="user")
    return Taught(
        pair,
        file,
        right=tuple(name for name, is_right in outcomes.items() if is_right),
        wrong=tuple(name for name, is_right in outcomes.items() if not is_right),
        dates=tuple(fixed_dates(sql, answer.dialect)),
    )


def _outcomes(answer: Answer, right: Collection[str]) -> dict[str, bool]:
    """Per model whether a candidate of it was right; empty for a single model, or if the user chose before.

    A model is left out if nothing of it could be judged.
    """
    if answer.vote and answer.vote.settled:
        return {}
    found: dict[str, bool] = {}
    for each in answer.candidates:
        if each.id in right or each.error_kind not in NO_VERDICT:
            found[each.model] = found.get(each.model, False) or each.id in right
    return found if len(found) > 1 else {}


def _equal(answer: Answer, result: QueryResult) -> list[str]:
    """The candidates whose results are equal to ``result`` within the tolerance of a vote."""
    from quorum.tools.canonical import canonical
    from quorum.tools.results import read_result

    with_result = [each for each in answer.candidates if each.result_file]
    files = dict.fromkeys(each.result_file for each in with_result)
    try:
        tables = [read_result(Path(file)) for file in files]
    except QuorumError:
        return []  # cleared: who was right is no longer known
    own, *others = cluster_keys([canonical(table) for table in (result.table, *tables)])
    same = {file for file, key in zip(files, others, strict=True) if key == own}
    return [each.id for each in with_result if each.result_file in same]
