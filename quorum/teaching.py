"""What people teach: an answer kept, one corrected, pairs taken in and held against the database."""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorum.graph.answer import Answer
from quorum.graph.ballots import NO_VERDICT
from quorum.graph.context import experts_in
from quorum.graph.options import Options
from quorum.graph.resources import database_urls, seen_catalog
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
from quorum.settings import NO_DATABASE, Settings, resumed_options
from quorum.tools.databases import connect_all
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results.canonical import canonical
from quorum.tools.results.compare import cluster_keys
from quorum.tools.sql import fixed_dates
from quorum.tools.sql.linking import changed_tables, table_marks
from quorum.tools.urls import REDACTED


@dataclass(frozen=True)
class Taught:
    """The outcome of ``keep`` or ``correct``.

    Attributes:
        file: The pair's.
        result: Of a correction, which was run; None of an answer that was kept.
        right: Models whose candidates were right, ``wrong`` those whose were not; empty where a run had one,
            or taught them before.
        warning: What the data shows against the answer, and what could not be done beside it.
        replaced: Who stood for another query of the same question, which is kept no more.
        dates: The query's fixed dates: asked again later, it still answers for these.
    """

    pair: VerifiedPair
    file: Path
    result: QueryResult | None = None
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    warning: str = ""
    replaced: str = ""


@dataclass(frozen=True)
class Intake:
    """The outcome of an import.

    Attributes:
        known: Pairs that are there already.
        elsewhere: Pairs that name another database.
        refused: Per question that was not kept, why its query does not run.
    """

    kept: int
    known: int
    elsewhere: int
    refused: dict[str, str]


def keep(run: str, *, note: str = "", by: str = "", settings: Settings | None = None) -> Taught:
    """Keep a run's answer as verified: its question is answered by its query from now on.

    Args:
        run: As ``quorum.graph.runs.find_run``.
        note: What settled the reading; later questions on its tables see it.
        by: Who stands for it; by default who is logged in.

    Raises:
        ConfigurationError: There is no such run, it has no result, or the pair cannot be written.
    """
    settings = settings or Settings()
    folder = _asked(run, settings)
    answer = _answer(folder)
    if not answer.sql or not answer.columns:
        raise ConfigurationError(
            f"The run {answer.run_id} has no result that could be kept.",
            hint="Give the right query: quorum correct RUN --sql …",
        )
    clusters = answer.vote.clusters if answer.vote else []
    winner = answer.vote.winner if answer.vote else None
    right = next((each.candidates for each in clusters if winner in each.candidates), [])
    every = [each.id for each in answer.candidates]
    outcomes = _outcomes(answer, right, every)
    taught = _teach(folder, answer, answer.sql, answer.tables, outcomes, settings, note=note, by=by)
    doubts = " ".join(["The data shows against it:", *answer.doubts]) if answer.doubts else ""
    return replace(taught, warning=f"{doubts} {taught.warning}".strip())


async def correct(
    run: str, sql: str, *, note: str = "", by: str = "", settings: Settings | None = None
) -> Taught:
    """Keep the right query for a run's question, once it has run on the run's database, with the wrong one.

    The candidates' queries run again beside it: the data may have changed since.

    Args:
        run, note, by: As ``keep``.

    Raises:
        ConfigurationError: There is no such run, its database's URL has to be given again, or the pair cannot
            be written.
        DatabaseUnavailable: The database cannot be opened.
        QuorumError: The query is refused or fails.
    """
    settings, sql = settings or Settings(), sql.replace("\r\n", "\n").strip()
    folder = _asked(run, settings)
    meta = folder.meta()
    given = {name: getattr(settings, name) for name, of in settings.provenance().items() if of == "flag"}
    options = resumed_options(meta, Settings(**{name: given[name] for name in given if name != "kb"}))
    answer = _answer(folder)
    async with opened(options) as database:
        outcome = await execute(database, sql, agent="correct")
        if isinstance(outcome, QueryError):
            raise QuorumError(f"This query cannot be kept: {outcome.describe()}")
        right, judged = await _equal(answer, outcome, database)
        marks = await asyncio.to_thread(table_marks, sql, database.catalog)
    wrong = "" if answer.vote and answer.vote.winner in right else answer.sql
    outcomes = _outcomes(answer, right, judged)
    taught = _teach(folder, answer, sql, marks, outcomes, settings, note=note, by=by, instead_of=wrong)
    return replace(taught, result=outcome)


def keep_convention(answer: Answer, settings: Settings) -> None:
    """Keep the reading that the user chose as a note of the team, which later questions are shown.

    The answer gets the note's file (``convention``), or a warning where it cannot be written.
    """
    question = " ".join(answer.question.split())
    said = ", ".join(filter(None, (_user(""), _today())))
    tables = ", ".join(answer.tables)
    text = f'# {tables}\n\nAsked "{question}", this is meant: {answer.meant} (chosen: {said})\n'
    name = hashlib.sha256(question.casefold().encode(errors="surrogatepass")).hexdigest()[:12]
    try:
        kept = KnowledgeBase.load(settings.knowledge).keep_note(f"meant-{name}", text)
        answer.convention = str(kept)
    except ConfigurationError as error:
        answer.warnings.append(f"The reading that you chose was not kept: {error}")


def correct_sync(run: str, sql: str, **arguments: Any) -> Taught:
    """``correct`` for code without an event loop; same arguments."""
    return asyncio.run(correct(run, sql, **arguments))


@asynccontextmanager
async def opened(options: Options) -> AsyncIterator[Database]:
    """The options' database, to run single queries on within their limits.

    Raises:
        ConfigurationError: There is no URL, it is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    if not options.database:
        raise ConfigurationError(NO_DATABASE)
    urls = await asyncio.to_thread(database_urls, options.database, options.home)
    async with await asyncio.to_thread(connect_all, urls) as connector:
        if not connector.live:
            raise ConfigurationError(
                f"{', '.join(options.database)} is a schema without data: no query can run there."
            )
        catalog = await seen_catalog(connector, options)
        yield Database(connector, catalog, Linter(catalog), options.query_limits, Ledger())


async def take_in(pairs: Iterable[VerifiedPair], database: Database, folder: Path, *, by: str = "") -> Intake:
    """Keep the pairs of a database whose queries run there, with who stood for them; ``by`` for the others.

    A question that is known already stays as it is.

    Raises:
        ConfigurationError: The folder cannot be read or written to.
    """
    catalog, refused, kept, elsewhere, known = database.catalog, dict[str, str](), 0, 0, 0
    now = KnowledgeBase.load(folder)
    before = {pair.id: pair for pair in now.pairs}
    for given in pairs:
        if given.database.casefold() not in ("", catalog.name.casefold()):
            elsewhere += 1
            continue
        sql = given.sql.replace("\r\n", "\n")
        pair = replace(given, sql=sql, database=catalog.name, dialect=catalog.dialect)
        if other := before.get(pair.id):
            if other.sql == pair.sql:
                known += 1
            else:
                refused[pair.question] = f"Another query is kept for it ({other.id}); forget that first."
            continue
        outcome = await execute(database, pair.sql, agent="import")
        if isinstance(outcome, QueryError):
            refused[pair.question] = outcome.describe()
            continue
        marks = await asyncio.to_thread(table_marks, pair.sql, catalog)
        pair = replace(pair, tables=tuple(marks), marks=tuple(marks.values()))
        pair = replace(pair, by=pair.by or _user(by), date=pair.date or _today())
        try:
            now.keep(pair, now)
        except ConfigurationError as error:
            refused[pair.question] = str(error)
            continue
        before[pair.id], kept = pair, kept + 1
    return Intake(kept, known, elsewhere, refused)


async def verify(pairs: Iterable[VerifiedPair], database: Database) -> dict[str, str]:
    """Run the queries of pairs again; by id, why one fails, or answers its question no more."""
    failed = dict[str, str]()
    for pair in pairs:
        outcome = await execute(database, pair.sql, agent="verify")
        if isinstance(outcome, QueryError):
            failed[pair.id] = outcome.describe()
        elif changed := await asyncio.to_thread(changed_tables, pair, database.catalog):
            failed[pair.id] = f"The columns of {', '.join(changed)} have changed since."
    return failed


def _asked(run: str, settings: Settings) -> RunFolder:
    """Return a run; of a turn that only showed another run's result that one, whose query it is."""
    folder = RunFolder.open(settings.home, run)
    answer = folder.answer()
    return RunFolder.open(settings.home, answer.of_run) if answer and answer.of_run else folder


def _answer(folder: RunFolder) -> Answer:
    found = folder.answer()
    if found is None:
        raise ConfigurationError(
            f"The run {folder.run_id} has no answer yet.", hint=f"quorum ask --resume {folder.run_id}"
        )
    return found


def _user(given: str) -> str:
    """Return the name given, else the login's; "" if the system knows none."""
    try:
        return given.strip() or getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _teach(
    run: RunFolder,
    answer: Answer,
    sql: str,
    marks: dict[str, str],
    outcomes: dict[str, bool],
    settings: Settings,
    *,
    note: str,
    by: str,
    instead_of: str = "",
) -> Taught:
    if REDACTED in f"{sql}{answer.question}":
        raise ConfigurationError("A secret was removed from this run, so its query is not whole.")
    asked_with = run.meta().get("options", {}).get("kb")
    place = settings.kb or (Path(asked_with) if asked_with else settings.knowledge)
    known = KnowledgeBase.load(place)
    pair = VerifiedPair(
        question=answer.question.strip(),
        sql=sql.strip(),
        database=answer.database,
        dialect=answer.dialect,
        tables=tuple(marks),
        marks=tuple(marks.values()),
        by=_user(by),
        date=_today(),
        note=note.strip(),
        instead_of=instead_of.strip(),
        run=answer.run_id,
    )
    before = next((other for other in known.pairs if other.id == pair.id), None)
    if before and before.sql == pair.sql:  # what is known of it stays, but for what is given now
        who, when = (pair.by, pair.date) if by else (before.by, before.date)
        note = pair.note or before.note
        pair = replace(pair, note=note, instead_of=before.instead_of, run=before.run, by=who, date=when)
    taught = Taught(pair, known.keep(pair), dates=tuple(fixed_dates(sql, answer.dialect)))
    if before and before.sql != pair.sql:
        taught = replace(taught, replaced=before.credit)
    return _teach_experts(run, outcomes, settings, taught)


def _teach_experts(run: RunFolder, outcomes: dict[str, bool], settings: Settings, taught: Taught) -> Taught:
    """Teach who was right, once for each run."""
    mark = run.folder / "taught.json"
    if not outcomes or mark.exists():
        return taught
    try:
        experts_in(settings.home).update(outcomes, feedback="user")
        mark.write_text(json.dumps(outcomes), "utf-8")
    except (QuorumError, OSError) as error:
        return replace(taught, warning=f"The experts' weights were not updated: {error}")
    right = tuple(name for name, is_right in outcomes.items() if is_right)
    return replace(taught, right=right, wrong=tuple(name for name in outcomes if name not in right))


def _outcomes(answer: Answer, right: Collection[str], judged: Collection[str]) -> dict[str, bool]:
    """Per model whether a candidate of it was right; empty for a single model, or if the user chose before.

    A model is left out if nothing of it could be judged.
    """
    if answer.vote and answer.vote.settled:
        return {}
    found: dict[str, bool] = {}
    for each in answer.candidates:
        if each.id in judged and (each.id in right or each.error_kind not in NO_VERDICT):
            found[each.model] = found.get(each.model, False) or each.id in right
    return found if len(found) > 1 else {}


async def _equal(answer: Answer, result: QueryResult, database: Database) -> tuple[list[str], list[str]]:
    """The candidates whose queries give the same now, within a vote's tolerance, and those that are judged.

    A query that ran and fails now is not.
    """
    judged, tables, places = list[str](), [result.table], dict[str, int]()
    for each in answer.candidates:
        outcome = await execute(database, each.sql, agent="correct") if each.result_file else None
        if not isinstance(outcome, QueryError):
            judged.append(each.id)
        if isinstance(outcome, QueryResult):
            places[each.id] = len(tables)
            tables.append(outcome.table)
    keys = await asyncio.to_thread(lambda: cluster_keys([canonical(table) for table in tables]))
    return [id for id, place in places.items() if keys[place] == keys[0]], judged
