"""Sessions: one database with its models and all that is known of it, open for many questions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from quorum.answer import Answer
from quorum.graph.answer import Answer as _Answer
from quorum.graph.resources import OPENED_WITH
from quorum.graph.runs import RunFolder, new_run_id
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, MachineFailed, QuorumError
from quorum.opening import (
    SessionHandles,
    check_askable,
    ended,
    load_graph,
    named_models,
    resumed,
)
from quorum.settings import Settings
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import check_priced
from quorum.tools.urls import mask_url

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.tools import BaseTool

    from quorum.blocking import Blocking
    from quorum.chat import Chat
    from quorum.graph.answering import OnApprove, OnClarify
    from quorum.graph.options import RunOptions
    from quorum.graph.resources import OnOpen, Resources
    from quorum.graph.runs import Event
    from quorum.teaching import Taught

Through: TypeAlias = Callable[..., Awaitable[_Answer]]

CLOSED = "The session is closed. Open another one."

NAMES = {"db": "database", "docs": "documents"}
"""Arguments that are called otherwise as options."""


class Quorum:
    """A session: ``async with Quorum(db="shop.db", models=["openai:gpt-4.1"]) as quorum: …``.

    It opens the database, its catalog, the models and the documents when the first question comes, shares
    them among all its questions, of which many may be asked at once, and closes them at its end. What is
    verified meanwhile counts for the next question. It belongs to one event loop.

    ``with Quorum(…) as quorum`` gives the same to code without an event loop (``Blocking``).

    Args:
        db: URL of the database (``sqlite:///shop.db``), its file, data files or their folder, or ``sample``;
            a list of several, whose tables one query may join.
        models: Specs ``provider:name`` or LangChain chat models; several share the candidates as experts.
        docs: Folder of documents that define business terms.
        settings: Used instead of what environment and ``quorum.toml`` say.
        chat_models: LangChain chat models of your own, by the spec that ``models`` or ``model_for`` names;
            without ``models``, these are the models.
        on_event, on_clarify, on_approve: As ``ask``, for questions that have none of their own.
        options: Any other field of ``quorum.settings.Settings``, e.g. ``max_usd=0.5``, for each question.

    Raises:
        ConfigurationError: A setting is wrong or unknown.
    """

    _lasting: ClassVar[bool] = True

    def __init__(
        self,
        *,
        db: str | Sequence[str] | None = None,
        models: str | BaseChatModel | Sequence[str | BaseChatModel] | None = None,
        recipe: str | None = None,
        votes: int | None = None,
        docs: str | Path | None = None,
        settings: Settings | None = None,
        chat_models: Mapping[str, BaseChatModel] | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_clarify: OnClarify | None = None,
        on_approve: OnApprove | None = None,
        **options: Any,
    ) -> None:
        specs, self._own = named_models(models, chat_models or {})
        given = {"recipe": recipe, "votes": votes, "documents": docs, "models": specs or None, **options}
        if db is not None:
            given["database"] = [db] if isinstance(db, str) else db
        self._given = settings.changed(**given) if settings else Settings(**given)
        self.settings = self._given.changed(models=None if specs else list(self._own) or None)
        self._on_event, self._on_clarify, self._on_approve = on_event, on_clarify, on_approve
        self._opening: SessionHandles | None = None
        self._asking: dict[asyncio.Timeout, asyncio.Event] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Blocking:
        from quorum.blocking import Blocking

        self._blocking = Blocking(self)
        return self._blocking

    def __exit__(self, *_: object) -> None:
        self._blocking.close()

    async def aclose(self) -> None:
        """Stop what is being asked and close everything; no child process is left. Safe to call twice.

        Raises:
            ConfigurationError: It was opened in another event loop.
        """
        self._check_loop()
        self._closed = True
        asking, self._asking = self._asking, {}
        for scope in asking:
            scope.reschedule(0)
        for over in asking.values():
            await over.wait()
        if opening := self._opening:
            self._opening = None
            await opening.aclose()
        if self._lasting:
            from quorum.tools.guard import process

            await asyncio.to_thread(process.PROCESS.end)

    async def resources(self) -> Resources:
        """Return the open handles that all questions share; open them if they are not.

        Raises:
            ConfigurationError: A setting is missing or wrong, or the session is closed.
            DatabaseUnavailable: The database cannot be opened or read; the next call tries again.
        """
        async with self._until_closed():
            return await self._shared()

    async def ask(
        self,
        question: str = "",
        *,
        resume: str | None = None,
        run_id: str = "",
        on_event: Callable[[Event], None] | None = None,
        on_clarify: OnClarify | None = None,
        on_approve: OnApprove | None = None,
        shared: Ledger | None = None,
        through: Through | None = None,
        meta: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a question about the database; the answer's ``status`` says whether it is one.

        Args:
            resume: Id of an interrupted run, its first letters, ``last`` or ``last~2``: it goes on with its
                own question and options, and repeats no finished step. Leave the question out; limits and the
                way to the endpoint may be changed. A run of another database opens that for itself.
            run_id: Of a new run (letters, digits, ``-_.``); without it the run gets one that sorts by time.
            on_event: Hears each step of the run as it happens.
            on_clarify: Asked which answer is meant, as the option ``clarify`` says; sets it to ``on`` where
                it is ``off``. It (or what it returns, if that is awaitable) gives a label, an addition to the
                question, or None to keep the vote; a reply that is of no use is asked for again, twice at
                most. Another reading that is chosen is kept as a note of the knowledge base
                (``Answer.convention``), unless a caller of ``quorum serve`` or ``mcp`` chose it.
            on_approve: Asked before queries run, as the option ``approve`` says; sets it to ``costly`` where
                it is ``never``. It gives ``yes``, ``no`` or ``all``, True or False, at once or when awaited.
            shared: A ledger that counts this question's calls among others', whose budget holds for all.
            through: Answers in the open context in the place of the question's graph (``quorum.chat``).
            meta: Kept in a new run's ``run.json``: who asks, say.
            options: Of this question, e.g. ``votes=3``; not those that the session has opened with.

        Raises:
            NeedsReply: As ``on_clarify`` or ``on_approve`` raised it; the run can be resumed with a reply.
            ConfigurationError: A setting is missing, wrong or unknown, the question is no text, the run asks
                back and ``on_clarify`` or ``on_approve`` is missing, or the session is closed, now or
                meanwhile: a run that had begun can be resumed.
            DatabaseUnavailable: The database cannot be opened or read.
            ModelUnavailable: No model answered.
        """
        on_clarify, on_approve = on_clarify or self._on_clarify, on_approve or self._on_approve
        if resume is None:
            run = self._options(options)
            if on_clarify is not None and run.clarify == "off":
                run = run.model_copy(update={"clarify": "on"})
            if on_approve is not None and run.approve == "never":
                run = run.model_copy(update={"approve": "costly"})
        else:
            settings = self._again(options)
            folder, answer, question, run = await asyncio.to_thread(resumed, resume, settings, question)
            if answer is not None:
                return answer
            run_id = folder.run_id
        check_askable(question, run, self._own, on_clarify, on_approve)

        async with self._until_closed():
            from quorum.graph.context import open_context

            context = await open_context(
                run,
                partial(load_graph, run),
                question,
                resume=run_id if resume is not None else "",
                run_id=run_id,
                api_key=self.settings.key,
                listener=on_event or self._on_event,
                chat_models=self._own,
                resources=self._shared if resume is None or self._holds(run) else None,
                shared=shared,
                meta=meta,
            )
            from quorum.graph.answering import answer_question

            made = await (through or answer_question)(
                context, question, resumed=resume is not None, on_clarify=on_clarify, on_approve=on_approve
            )
            noted = await asyncio.to_thread(context.trace.meta) if made.meant else {"by": ""}
            if "by" not in noted:  # a service's caller does not speak for the team
                from quorum.teaching import keep_convention

                await asyncio.to_thread(keep_convention, made, self.settings)
            return Answer.of(made)

    def chat(self, thread: str = "", *, run: str = "") -> Chat:
        """Return a conversation, whose turns refer to those before: ``await chat.ask("and by month?")``.

        Args:
            thread: The name of one that goes on; without it a new one begins.
            run: A run whose conversation goes on, or that begins one.
        """
        from quorum.chat import Chat

        return Chat(self, thread, run=run)

    async def ask_many(
        self,
        questions: Iterable[str | Mapping[str, Any]],
        *,
        concurrency: int = 8,
        max_usd: float | None = None,
        **options: Any,
    ) -> AsyncGenerator[Answer]:
        """Ask many questions, ``concurrency`` at a time, and yield the answers as they come.

        A question that fails, for want of the endpoint or the database say, gives an answer of the status
        ``failed`` with ``error`` and ``hint``. Closing the iterator stops what is under way; its runs can be
        resumed.

        Args:
            questions: Texts, or arguments of ``ask``: ``{"question": "…", "run_id": "row-7", "votes": 3}``.
                Read one by one as answers come, so there may be any number.
            max_usd: For all together. Once it is used up, what is under way ends with the status ``stopped``,
                and no further question is read.
            options: Of each question, as ``ask``.

        Raises:
            ConfigurationError: A setting is missing or wrong; nothing was asked.
            BudgetExceeded: ``max_usd`` is used up and questions are left; all answers have been yielded.
            MachineFailed: The disk is full, say.
        """
        if concurrency < 1:
            raise ConfigurationError(f"concurrency is {concurrency}; ask one question at a time at least.")
        budget = Ledger(Budget(max_usd=max_usd))
        await self._prove(budget, options)
        one = isinstance(questions, str | Mapping)
        waiting, running, none_left = (
            iter([questions] if one else questions),
            set[asyncio.Task[Answer]](),
            object(),
        )
        try:
            while True:
                while len(running) < concurrency:
                    given = none_left if budget.spent() or self._closed else next(waiting, none_left)
                    if given is none_left:
                        break
                    running.add(asyncio.create_task(self._ask_one(given, options | {"shared": budget})))
                if not running:
                    break
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            await ended(running)
        ended_by = ConfigurationError(CLOSED) if self._closed else budget.spent()
        if ended_by and next(waiting, none_left) is not none_left:
            raise ended_by

    async def as_tool(self, name: str = "ask_database") -> BaseTool:
        """Return a LangChain tool that asks a question; its description names the database and its tables.

        An agent gets the answer as Markdown, the ``Answer`` is the message's artifact. Why a question cannot
        be asked is said to the agent.

        Raises:
            ConfigurationError, DatabaseUnavailable: As ``resources``.
        """
        from quorum.blocking import tool_of

        return tool_of(name, await self.resources(), self.ask)

    async def keep(self, run: str, *, note: str = "", by: str = "") -> Taught:
        """Keep a run's answer as verified, as ``quorum.keep``: the next question of its words gets it."""
        from quorum.teaching import keep

        return await asyncio.to_thread(keep, run, note=note, by=by, settings=self._again({}))

    async def correct(self, run: str, sql: str, *, note: str = "", by: str = "") -> Taught:
        """Keep the right query for a run's question, as ``quorum.correct``."""
        from quorum.teaching import correct

        return await correct(run, sql, note=note, by=by, settings=self._again({}))

    def _options(self, given: Mapping[str, Any]) -> RunOptions:
        """Return the options of a question.

        Raises:
            ConfigurationError: One of them is what the session has opened with.
        """
        if fixed := [name for name in given if NAMES.get(name, name) in OPENED_WITH]:
            raise ConfigurationError(
                f"A question cannot change {', '.join(fixed)}: that is the session's, and open.",
                hint="Give it to Quorum(…), and open another one where it differs.",
            )
        return (self.settings.changed(**given) if given else self.settings).run_options()

    def _again(self, given: Mapping[str, Any]) -> Settings:
        """Return the settings with which a run goes on, which has options of its own."""
        return self._given.only(OPENED_WITH, **given) if self._lasting else self._given.changed(**given)

    def _holds(self, run: RunOptions) -> bool:
        """True if a run would open what the session has or opens."""
        try:
            mine = self.settings.run_options()
        except ConfigurationError:
            return False
        return all(getattr(mine, name) == getattr(run, name) for name in OPENED_WITH)

    @asynccontextmanager
    async def _until_closed(self) -> AsyncIterator[None]:
        """Stop what is done inside when the session is closed."""
        over = asyncio.Event()
        try:
            async with asyncio.timeout(None) as scope:  # in the caller's task: a Ctrl-C in it is the caller's
                self._asking[scope] = over
                yield
        except TimeoutError:
            if scope.expired():
                raise ConfigurationError(CLOSED) from None
            raise
        finally:
            over.set()
            self._asking.pop(scope, None)

    async def _shared(self, on_open: OnOpen | None = None) -> Resources:
        if self._closed:
            raise ConfigurationError(CLOSED)
        self._check_loop()
        if self._opening is None or self._opening.failed:
            self._opening = SessionHandles(self.settings, self._own)
        return await self._opening.resources(on_open)

    def _check_loop(self) -> None:
        if self._opening and self._opening.loop is not asyncio.get_running_loop():
            raise ConfigurationError(
                "The session belongs to the event loop that it was opened in, and this is another.",
                hint="Ask within one asyncio.run, or use `with Quorum(…)`, which has a loop of its own.",
            )

    async def _prove(self, budget: Ledger, options: Mapping[str, Any]) -> None:
        """Open what is shared, so that a wrong setting fails before anything is asked."""
        self._options({name: value for name, value in options.items() if not name.startswith("on_")})
        with suppress(DatabaseUnavailable):  # it is the trouble of the questions
            found = await self.resources()
            check_priced((*found.models.values(), *found.role_models.values()), budget.budget)

    async def _ask_one(self, given: object, options: Mapping[str, Any]) -> Answer:
        """Ask one of many questions; a failure is an answer, unless it would fail every question."""
        asked = dict(given) if isinstance(given, Mapping) else {"question": given}
        if "resume" not in asked:
            asked.setdefault("run_id", new_run_id())
        try:
            return await self.ask(**{**options, **asked})
        except MachineFailed:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours is this question's, not all the others'
            return await asyncio.to_thread(self._failed, asked, error)

    def _failed(self, asked: Mapping[str, Any], error: Exception) -> Answer:
        message = Exception.__str__(error) if isinstance(error, QuorumError) else repr(error)
        run_id = str(asked.get("run_id") or asked.get("resume") or "")
        folder, begun = RunFolder(self.settings.home / "runs" / run_id), False
        if re.fullmatch(r"\w[\w.-]{0,199}", run_id):  # else the name is what failed
            begun = folder.folder.is_dir()
        return Answer(
            question=str(asked.get("question") or ""),
            status="failed",
            error=message,
            hint=getattr(error, "hint", ""),
            database=", ".join(map(mask_url, self.settings.database)),
            dialect="",
            recipe=self.settings.recipe,
            run_id=run_id,
            trace=str(folder.folder) if begun else "",
            usage=folder.usage() if begun else {},
        )


class OneQuestion(Quorum):
    """A session that closes with its question: the guard's process is left for the next one."""

    _lasting = False

    @asynccontextmanager
    async def _until_closed(self) -> AsyncIterator[None]:
        try:
            async with super()._until_closed():
                yield
        finally:
            await self.aclose()
