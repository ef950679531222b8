"""The service: databases, callers' sessions, questions that go on whether or not somebody listens.

It stores nothing of its own. A question is a run folder: its events are the lines of ``events.jsonl``, its
answer is ``answer.json``. So a reader costs nothing, and a restart loses nothing. A question that has to ask
back ends at its interrupt; a reply goes on from there, also in another process.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from langchain_core.language_models import BaseChatModel

from quorum.answer import Answer
from quorum.graph.answering import NeedsReply
from quorum.graph.recipes import RECIPES
from quorum.graph.resources import Resources
from quorum.graph.runs import Event, RunFolder, RunSummary, list_runs, new_run_id
from quorum.knowledge.errors import ConfigurationError, LeaseLost, QuorumError
from quorum.serve.bodies import RUN, Schema, Spent, TaughtBody, Values, table_body, taught_body
from quorum.serve.keys import KINDS, Caller, Claim, KeyFile, Purse
from quorum.serve.monitoring import Monitor
from quorum.serve.question import Question, Refused, Waiting
from quorum.serve.takeover import end
from quorum.session import Quorum
from quorum.settings import Settings
from quorum.tools.execute import Database, Outcome, execute
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.query import QueryError
from quorum.tools.results.files import read_result
from quorum.tools.sample import DEMO_QUESTIONS
from quorum.tools.urls import SAMPLE, anchored, location, mask_url

if TYPE_CHECKING:
    from quorum.graph.leases import Leases

MOST_RUNNING = 64
"""Questions under way in one process; more are told to come again."""
IDLE_SECONDS = 900.0
"""After which a session is closed, if no question is under way in it; it is looked for every ``LOOKS``."""
LOOKS = 60.0
CANCEL_SECONDS = 10.0
"""To wait for another process that is to cancel a question."""
MOST_TABLES, MOST_FOUND = 100, 20
"""Tables of a schema, and values that words find."""
LOST = 200
"""Questions that failed before they had a folder, and are remembered."""
NOTHING = {"max_usd": 0.0, "max_calls": 0, "max_run_bytes": 0, "queries": 0}
"""Amounts that a question has used, by the options that limit them, and its queries."""

CLOSING = 100
"""Times that a cancelled run's trace is tried for, every twentieth of a second."""

_AT_MOST = ("max_usd", "max_calls", "deadline", "max_bytes", "max_run_bytes", "max_rows")
"""Options of which a question may only ask for less than the server allows."""

_INSTALLED = Path(__file__).resolve().parents[2]

AskFunction = Callable[..., Awaitable[Answer]]


class Service:
    """Databases that callers may ask, and their questions. It belongs to one event loop.

    Args:
        settings: Of every question; their ``database`` counts for nothing.
        databases: Each one's URL, or those of several that are read in one question, by its name.
        chat_models: As ``Quorum``.
        shared: A ledger whose budget holds for all questions together.
        keys: Without them anybody may ask.
        remote: Callers are at other machines, so that no place of this one is told.
    """

    def __init__(
        self,
        settings: Settings,
        databases: Mapping[str, str | list[str]],
        chat_models: Mapping[str, BaseChatModel] | None = None,
        shared: Ledger | None = None,
        *,
        keys: KeyFile | None = None,
        remote: bool = True,
    ) -> None:
        self.settings, self.home, self._models = settings, settings.home, chat_models
        self.shared, self.keys = shared, keys
        self.monitor = Monitor(self.home / "audit.jsonl")
        self._urls = {name: [urls] if isinstance(urls, str) else urls for name, urls in databases.items()}
        self._names = {tuple(map(location, urls)): name for name, urls in self._urls.items()}
        folders = (self.home, settings.documents, settings.kb, settings.explored, Path.cwd(), _INSTALLED)
        places = {
            str(each.resolve()): each.name for each in folders if each and len(each.resolve().parts) > 2
        }
        for name, urls in self._urls.items():
            given = (anchored(url, Path.cwd()) for url in urls if url != SAMPLE)
            places |= {place: name for url in given for place in (mask_url(url), location(url))}
        self._places = sorted(places.items() if remote else (), reverse=True, key=lambda each: len(each[0]))
        self._sessions: dict[tuple[str, frozenset[str] | None], tuple[Quorum, float]] = {}
        self._running: dict[str, Question] = {}
        self._lost: OrderedDict[str, Question] = OrderedDict()
        self._calls = defaultdict[str, deque[float]](deque)
        self._closing = set[asyncio.Future[None]]()
        self._timer: asyncio.TimerHandle | None = None
        self._ending, self.clock = False, time.monotonic
        self.leases: Leases | None = None
        """Which process has which run, where several share a home (``quorum.serve.takeover``)."""

    async def aclose(self) -> None:
        """End in order: what is under way is interrupted and can be resumed."""
        self._ending = True
        if self._timer:
            self._timer.cancel()
        tasks = [each.task for each in self._running.values() if each.task]
        for task in tasks:
            _cancel(task)
        await asyncio.gather(*tasks, *self._closing, return_exceptions=True)
        for session, _ in self._sessions.values():
            await session.aclose()
        self._sessions.clear()

    @property
    def running(self) -> int:
        """Questions under way."""
        return len(self._running)

    def clean(self, text: str) -> str:
        """Return a text without places of this machine."""
        for place, name in self._places:
            text = text.replace(f"{place}/", "").replace(place, name)
        return text

    def admit(self, who: Caller) -> None:
        """Count a call against the caller's rate.

        Raises:
            Refused: It was reached in the last minute.
        """
        now, calls, most = self.clock(), self._calls[who.name], who.per_minute
        while calls and calls[0] <= now - 60:
            calls.popleft()
        if most and len(calls) >= most:
            raise Refused(f"This key may call {most} times a minute.", 429, "rate", hint="Wait a little.")
        calls.append(now)

    def databases(self, who: Caller) -> list[str]:
        """Return the names of the databases that a caller may ask."""
        return [name for name in self._urls if who.databases is None or name in who.databases]

    def examples(self, name: str) -> list[str]:
        """Return questions to begin with, of the sample; there are none of other databases."""
        return [each.question for each in DEMO_QUESTIONS] if self._urls[name] == [SAMPLE] else []

    async def resources(self, who: Caller, database: str = "") -> Resources:
        """Return a database's open handles, its catalog among them."""
        return await self._session(who, self._named(who, database)).resources()

    async def ask(
        self,
        who: Caller,
        text: str,
        *,
        database: str = "",
        session: str = "",
        after: str = "",
        run_id: str = "",
        **options: Any,
    ) -> Question:
        """Begin a question in a task of its own, and return it at once.

        Args:
            session: Names a conversation, of which this is a turn.
            run_id: The question's id. One that is asked already is returned.
            after: A question whose conversation goes on.
            options: As ``Quorum.ask``; limits are the server's at most.

        Raises:
            Refused: The database is not the caller's, a limit is reached, or a turn is being answered.
        """
        if run_id:
            meta = self.home / "runs" / run_id / "run.json"
            if await asyncio.to_thread(meta.is_file):
                return await self.question(who, run_id)
        if after:
            before = await self.question(who, after)
            database, session = before.database, before.session
        name, asks = self._named(who, database), self._bounded(options)
        quorum, run_id = self._session(who, name), run_id or new_run_id()
        thread = ".".join(filter(None, (who.name, name, session))) if session else ""
        about: dict[str, Any] = {"by": who.name, "session": session, "after": after}
        folder = RunFolder(self.home / "runs" / run_id)
        made = Question(folder, self.clean, text=text, database=name, **about)
        asking: AskFunction = quorum.ask
        if thread or after:
            chat = await asyncio.to_thread(quorum.chat, thread, run=after)
            made.thread, asking = chat.thread, chat.ask
        asks |= {"run_id": run_id, "meta": about}
        for option, asked in (("clarify", "on_clarify"), ("approve", "on_approve")):
            if asks.get(option, getattr(self.settings, option)) not in ("off", "never"):
                asks[asked] = _nobody
        await self._begin(who, made, partial(asking, text), asks)
        if self.leases:
            await made.begun()
            if not await asyncio.to_thread(made.is_there):  # no other process hears of it
                raise _being_answered() if made.elsewhere else made.error or _busy()
        return made

    async def question(self, who: Caller, run_id: str) -> Question:
        """Return a question of the caller, also one of an earlier process, from its folder.

        Raises:
            Refused: The caller has no such question.
        """
        found = self._running.get(run_id) or self._lost.get(run_id)
        if found is None:
            found = await asyncio.to_thread(self._found, run_id)
        if found.by != who.name or (who.name and found.database not in self.databases(who)):
            raise _missing(run_id)
        return found

    async def reply(self, who: Caller, run_id: str, text: str) -> Question:
        """Reply to what a question waits for; it goes on in a task of its own.

        Raises:
            Refused: It waits for nothing.
        """
        found = await self.question(who, run_id)
        if found.waiting is None:
            raise Refused(f"The question {run_id} waits for no reply.", 409, "not_waiting")
        return await self._resume(who, found, _once(found.waiting, text))

    async def resume(self, who: Caller, run_id: str) -> Question:
        """Go on with a question that was interrupted, in a task of its own; one that ended stays as it is."""
        found = await self.question(who, run_id)
        return await self._resume(who, found, _nobody) if found.status == "interrupted" else found

    async def cancel(self, who: Caller, run_id: str) -> Question:
        """Stop a question; one that has ended stays as it is."""
        found = await self.question(who, run_id)
        if await self.cancel_here(run_id):
            return found
        if found.status in ("waiting", "interrupted"):
            await asyncio.to_thread(_note_cancelled, found.folder, self.leases)
            await asyncio.to_thread(found.look)
        elif found.status == "running" and self.leases:  # another process's
            meta = await asyncio.to_thread(found.folder.meta)
            await asyncio.to_thread(self.leases.cancel, str(meta.get("thread")))
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    while found.status == "running":
                        await found.change()
        return found

    async def cancel_here(self, run_id: str) -> bool:
        """Cancel a question that this process answers; return False if it does not."""
        found = self._running.get(run_id)
        if not found or not found.task:
            return False
        _cancel(found.task)
        await asyncio.wait([found.task])
        return True

    async def go_on(self, who: Caller, run_id: str) -> None:
        """Go on with a question of a process that is gone, if it can be done here and now."""
        with suppress(Refused):
            await self._resume(who, await asyncio.to_thread(self._found, run_id), _nobody)

    def stop(self, run_id: str) -> None:
        """Stop a question of this process that another one has taken over."""
        found = self._running.get(run_id)
        if found and found.task:
            found.elsewhere = True
            _cancel(found.task)

    async def history(
        self, who: Caller, words: str = "", *, database: str = "", limit: int = 20
    ) -> list[RunSummary]:
        """Return the caller's questions with all words, the latest first, with their databases' names."""
        mine, asked = set(self.databases(who)), words.casefold().split()

        def wanted(run: RunSummary) -> bool:
            name = self._name_of(run.databases)
            own = run.by == who.name and (not who.name or name in mine) and database in ("", name)
            return own and all(word in run.question.casefold() for word in asked)

        def served(run: RunSummary) -> RunSummary:
            status = run.status
            if status == "unfinished":
                status = (self._running.get(run.id) or self._found(run.id)).status
            return replace(run, status=status, databases=[self._name_of(run.databases)])

        return await asyncio.to_thread(lambda: [*map(served, list_runs(self.home, wanted, limit))])

    async def rows(self, who: Caller, run_id: str, reading: int = 0, candidate: str = "") -> pa.Table:
        """Return all kept rows of an answer, of another reading of its question, or of a candidate.

        Raises:
            Refused: There are none.
        """
        found = await self.question(who, run_id)
        answer = await asyncio.to_thread(found.folder.answer)
        files: dict[Any, str] = {}
        if answer:
            files |= {each.id: each.result_file for each in answer.candidates} | {"": answer.result_file}
            files |= {n: each.result_file for n, each in enumerate(answer.readings, 1)}
        if not (file := files.get(reading or candidate)):
            raise Refused("There are no such rows.", 404, "not_found")
        return await asyncio.to_thread(read_result, found.folder.results / Path(file).name)

    async def schema(self, who: Caller, words: str = "", *, database: str = "") -> Schema:
        """Return tables with their columns; with ``words`` those that they may mean, the best first."""
        name = self._named(who, database)
        opened = await self.resources(who, name)
        catalog, tables = opened.catalog, opened.catalog.tables
        if words:
            found = await asyncio.to_thread(opened.columns.tables, words, MOST_TABLES)
            tables = tuple(filter(None, map(catalog.table, found)))
        shown = [table_body(each, catalog.dialect) for each in tables[:MOST_TABLES]]
        about = {"total": len(catalog.tables), "notes": catalog.facts}
        return Schema(database=name, dialect=catalog.dialect, tables=shown, **about)

    async def search_values(self, who: Caller, words: str, *, database: str = "") -> Values:
        """Return values that words name, by column."""
        found, unread = await (await self.resources(who, database)).matches(words, MOST_FOUND)
        return Values(values=found, unread=unread)

    async def run_sql(self, who: Caller, sql: str, *, database: str = "", rows: int = 100) -> Outcome:
        """Judge and run a query, within the limits; what the guard or the database says of it is a value."""
        _check_sql(who)
        name, options, purse = self._named(who, database), self.settings, self._purse(who)
        opened = await self.resources(who, name)
        limits = replace(options.query_limits, rows=min(rows, options.max_rows))
        claim = await asyncio.to_thread(purse.claim, {}, ("max_run_bytes",))
        most = int(claim.amounts["max_run_bytes"]) if claim.amounts else None
        ledger, outcome = Ledger(Budget(read_bytes=most)), "failed"
        try:
            over = Database(opened.connector, opened.catalog, opened.linter, limits, ledger)
            found = await execute(over, sql, agent="user")
            outcome = found.kind.value if isinstance(found, QueryError) else "answered"
            return found
        finally:
            used = {**NOTHING, "max_run_bytes": ledger.total.read_bytes + ledger.total.estimated_bytes}
            self.monitor.count("queries_total")
            await asyncio.to_thread(purse.settle, claim, used)
            await self._audit(who, "query", text=sql, database=name, outcome=outcome, **_cost(used))

    async def keep(self, who: Caller, run_id: str, sql: str = "", *, note: str = "") -> TaughtBody:
        """Keep an answer as verified by the caller; with ``sql`` that query, as the right one."""
        if sql:
            _check_sql(who)
        found = await self.question(who, run_id)
        session, about = self._session(who, found.database), {"note": note, "by": who.name}
        try:
            teaching = session.correct(run_id, sql, **about) if sql else session.keep(run_id, **about)
            taught = await teaching
        except QuorumError as error:
            if type(error) is QuorumError:  # the query is refused, or fails
                raise Refused(Exception.__str__(error), 422, "query", hint=error.hint) from error
            raise
        told = {"id": run_id, "database": found.database, "outcome": f"kept {taught.pair.id}"}
        await self._audit(who, "keep", text=taught.pair.sql, **told)
        return taught_body(taught)

    async def spent(self, who: Caller) -> Spent:
        """Return what the caller has used this month, and what is left."""
        return await asyncio.to_thread(self._purse(who).spent)

    async def _audit(self, who: Caller, what: str, **about: Any) -> None:
        await asyncio.to_thread(self.monitor.audit, who.name, what, **about)

    async def _resume(self, who: Caller, found: Question, reply: Callable[[Any], Any]) -> Question:
        quorum, meta = self._session(who, found.database), await asyncio.to_thread(found.folder.meta)
        asking: AskFunction = partial(quorum.ask, resume=found.id)
        if thread := str(meta.get("talk", "")):
            answered = (self.home / "runs" / found.after / "answer.json").is_file
            after = found.after if await asyncio.to_thread(answered) else ""
            chat = await asyncio.to_thread(partial(quorum.chat, thread, run=after))
            found.thread, asking = thread, partial(chat.resume, found.id)
        await self._begin(who, found, asking, {"on_clarify": reply, "on_approve": reply})
        return found

    def _check_free(self, made: Question) -> None:
        threads = {each.thread for each in self._running.values()} - {""}
        if made.id in self._running or made.thread in threads:
            raise _being_answered()
        if self._ending or len(self._running) >= MOST_RUNNING:
            raise _busy()

    async def _begin(self, who: Caller, made: Question, asking: AskFunction, asks: dict[str, Any]) -> None:
        """Begin or go on with a question, once what it may use is claimed."""
        if self.shared and (over := self.shared.spent()):
            raise over
        self._check_free(made)
        purse, before = self._purse(who), await asyncio.to_thread(_used, made.folder)
        wanted = {name: asks.get(name) or getattr(self.settings, name) for name in KINDS}
        claim = await asyncio.to_thread(partial(purse.claim, wanted, run=made.id))
        before = NOTHING if claim.inherited else before
        try:
            self._check_free(made)  # others may have begun meanwhile
        except Refused:
            if not claim.inherited:
                await asyncio.to_thread(purse.settle, claim, NOTHING)
            raise
        for name, amount in claim.amounts.items():
            most = before[name] + min(amount, wanted[name] or amount)
            asks[name] = most if name == "max_usd" else int(most)
        loop = asyncio.get_running_loop()

        def heard(_: Event) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(made.tell)

        made.status, made.waiting, made.error = "running", None, None
        asking = partial(asking, on_event=heard, shared=self.shared, **asks)
        made.task = asyncio.ensure_future(self._answered(who, made, asking, claim, before))
        self._running[made.id] = made
        self._lost.pop(made.id, None)

    async def _answered(
        self, who: Caller, made: Question, asking: AskFunction, claim: Claim, before: Mapping[str, float]
    ) -> None:
        """Answer a question, and note what it came to and what it used."""
        status, begun = "failed", time.monotonic()
        try:
            status = (await asking()).status
        except NeedsReply as asked:
            status, made.waiting = "waiting", asked.asked
        except LeaseLost:
            status, made.elsewhere = "running", True
        except asyncio.CancelledError:
            here = "interrupted" if self._ending else "cancelled"
            status = "running" if made.elsewhere else here
        except Exception as error:  # noqa: BLE001 - a fault of ours ends this question only
            ours = QuorumError(f"{type(error).__name__}: {error}")
            made.error = error if isinstance(error, QuorumError) else ours
            if not await asyncio.to_thread(made.is_there):
                self._lost[made.id] = made
                while len(self._lost) > LOST:
                    self._lost.popitem(last=False)
        try:
            if status == "cancelled":
                await asyncio.to_thread(_note_cancelled, made.folder, self.leases)
            now = await asyncio.to_thread(_used, made.folder)
            used = {name: now[name] - before[name] for name in now}
            await asyncio.to_thread(self._purse(who).settle, claim, used)
            self.monitor.ended(status, time.monotonic() - begun, used)
            about = {"id": made.id, "text": made.text, "database": made.database, "outcome": status}
            await self._audit(who, "question", **about, **_cost(used))
        finally:
            made.status, made.task = status, None
            del self._running[made.id]
            made.tell()

    def _found(self, run_id: str) -> Question:
        folder = RunFolder(self.home / "runs" / run_id)
        if not re.fullmatch(RUN, run_id) or not (folder.folder / "run.json").is_file():
            raise _missing(run_id)
        meta = folder.meta()
        urls = meta.get("options", {}).get("database") or []
        about: dict[str, Any] = {name: str(meta.get(name, "")) for name in ("by", "session", "after")}
        text = str(meta.get("turn") or meta.get("question", ""))
        found = Question(folder, self.clean, text=text, database=self._name_of(urls), **about)
        found.look()
        return found

    def _name_of(self, urls: str | Sequence[str]) -> str:
        return self._names.get(tuple(map(location, [urls] if isinstance(urls, str) else urls)), "")

    def _named(self, who: Caller, database: str) -> str:
        mine = self.databases(who)
        name = database or (mine[0] if len(mine) == 1 else "")
        if name not in mine:
            what = f"There is no database {database!r}." if database else "Say which database is asked."
            hint = f"There are: {', '.join(mine)}." if mine else "This key has no database."
            raise Refused(what, 404 if database else 422, "database", hint=hint)
        return name

    def _bounded(self, options: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(options)
        if given.get("clarify") == "on" and self.settings.clarify == "always":
            given["clarify"] = "always"
        for name in given.keys() & set(_AT_MOST):
            if (most := getattr(self.settings, name)) is not None:
                given[name] = min(given[name], most)
        if (recipe := given.get("recipe")) and recipe not in (*RECIPES, self.settings.recipe):
            hint = f"There are: {', '.join(RECIPES)}."  # others would be imported
            raise Refused(f"There is no recipe {recipe!r}.", 422, "recipe", hint=hint)
        return given

    def _purse(self, who: Caller) -> Purse:
        return Purse(self.home / "spent" / (who.name or "local"), who)

    def _session(self, who: Caller, database: str) -> Quorum:
        """Return the session of a database as the caller may see it."""
        key = database, who.schemas
        if key not in self._sessions:
            urls = self._urls.get(database)
            if urls is None:
                raise Refused("The question's database is not served here.", 409, "database")
            if who.schemas and self.settings.show:
                raise Refused("This server shows all keys the same tables.", 403, "schemas")
            settings = self.settings.changed(database=urls, show=sorted(who.schemas or ()) or None)
            self._sessions[key] = Quorum(settings=settings, chat_models=self._models), 0.0
        session = self._sessions[key][0]
        self._sessions[key] = session, self.clock()
        if self._timer is None:
            self._close_idle()
        return session

    def _close_idle(self) -> None:
        """Close the sessions that are idle, and look again while there are others."""
        busy = {each.database for each in self._running.values()}
        late = self.clock() - IDLE_SECONDS
        for key in [each for each, (_, used) in self._sessions.items() if used <= late]:
            if key[0] not in busy:
                closing = asyncio.ensure_future(self._sessions.pop(key)[0].aclose())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LOOKS, self._close_idle) if self._sessions else None


def _cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task once: a second time would cut short the notes of what it used."""
    if not task.cancelling():
        task.cancel()


async def _nobody(asked: Waiting) -> str:
    raise NeedsReply(asked)


def _once(waiting: Waiting, reply: str) -> Callable[[Waiting], str]:
    """Return what replies to a question that waits, once, and to no other."""
    replies = [reply]

    def replied(asked: Waiting) -> str:
        same = asked.kind == waiting.kind and getattr(asked, "sql", "") == getattr(waiting, "sql", "")
        if not same or not replies:
            raise NeedsReply(asked)
        return replies.pop()

    return replied


def _check_sql(who: Caller) -> None:
    if not who.sql:
        raise Refused("This key may ask questions only, and run no query of its own.", 403, "sql")


def _note_cancelled(run: RunFolder, leases: Leases | None) -> None:
    if not (run.folder / "run.json").is_file():
        return
    for _ in range(CLOSING):
        try:
            end(run, leases, "cancelled")
        except ConfigurationError:  # a thread closes its trace just now
            time.sleep(0.05)
            continue
        except LeaseLost:  # another process goes on with it already
            assert leases is not None
            leases.cancel(str(run.meta().get("thread")))
        return


def _used(run: RunFolder) -> dict[str, float]:
    used = run.usage()
    read = used.get("read_bytes", 0) + used.get("estimated_bytes", 0)
    amounts = used.get("usd") or 0.0, used.get("model_calls", 0), read, used.get("queries", 0)
    return dict(zip(NOTHING, amounts, strict=True))


def _cost(used: Mapping[str, float]) -> dict[str, float]:
    return {"usd": round(used["max_usd"], 6), "calls": used["max_calls"], "bytes": used["max_run_bytes"]}


def _being_answered() -> Refused:
    return Refused("This, or another turn of its conversation, is being answered.", 409, "running")


def _busy() -> Refused:
    return Refused("The server is busy.", 503, "busy", hint="Try again in a moment.")


def _missing(run_id: str) -> Refused:
    return Refused(f"There is no question with the id {run_id!r}.", 404, "not_found")
