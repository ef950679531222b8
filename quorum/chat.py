"""Conversations: turns that refer to those before, kept as threads under ``home``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from quorum.answer import Answer
from quorum.graph.answer import Answer as _Answer
from quorum.graph.runs import RunFolder, new_run_id
from quorum.knowledge.atomic import lock
from quorum.knowledge.errors import ConfigurationError, LeaseLost
from quorum.settings import Settings, resumed_options

if TYPE_CHECKING:
    from langchain_core.messages import HumanMessage

    from quorum.graph.context import Context
    from quorum.graph.leases import Lease
    from quorum.session import Quorum


class Chat:
    """A conversation of a session (``Quorum.chat``); its turns are answered one after the other.

    Attributes:
        thread: Its name, with which it goes on another day.
        last: The latest answer, or that of ``run``; None before there is one.
    """

    def __init__(self, session: Quorum, thread: str = "", *, run: str = "") -> None:
        self._session, self._lock = session, asyncio.Lock()
        self._lease: Lease | None = None
        self.last: Answer | None = None
        if run:
            folder = RunFolder.open(session.settings.home, run)
            thread, answer = str(folder.meta().get("talk") or folder.run_id), folder.answer()
            if answer is None:
                raise ConfigurationError(f"The run {folder.run_id} has no answer to go on from.")
            self.last = Answer.of(answer)
        self.thread = thread or new_run_id()
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", self.thread):
            message = f"{self.thread!r} cannot name a conversation: use letters, digits, '-', '_', '.'."
            raise ConfigurationError(message)
        self._file = session.settings.home / "talks" / f"{self.thread}.sqlite"

    async def ask(self, turn: str, **given: Any) -> Answer:
        """Answer a turn; the answer's ``became`` says what was made of it, where that is something else.

        A turn that asks to see the last result otherwise (``only the first three``), or about it (``why so
        few in May?``), runs no query.

        Args:
            given: As ``Quorum.ask``, without ``resume``.

        Raises:
            ConfigurationError, DatabaseUnavailable, ModelUnavailable: As ``Quorum.ask``.
            MalformedReply: The QuestionRewriter gave no usable reply.
        """
        given["meta"] = {**(given.get("meta") or {}), "talk": self.thread, "turn": turn}
        async with self._lock:
            async with self._alone():
                self.last = await self._session.ask(turn, through=self._answered, **given)
            return self.last

    async def resume(self, run: str, **given: Any) -> Answer:
        """Go on with the turn of a run that waits for a reply, or was cut short; as ``Quorum.ask``."""
        async with self._lock:
            async with self._alone():
                self.last = await self._session.ask(resume=run, through=self._answered, **given)
            return self.last

    async def _answered(self, context: Context, turn: str, *, resumed: bool, **asked: Any) -> _Answer:
        from langchain_core.messages import HumanMessage
        from langgraph.graph import END

        from quorum.graph.answering import answer_question
        from quorum.graph.checkpoints import has_checkpoint, open_checkpoints
        from quorum.graph.conversation import Talk, answer, build_conversation, remembered

        config: Any = {"configurable": {"thread_id": self.thread}}
        answering: Any = partial(answer_question, resumed=resumed, **asked)
        graph = build_conversation(context.recipe, message_of, answering=answering)
        meta = await asyncio.to_thread(context.trace.meta) if resumed else {}
        said = HumanMessage(str(meta.get("turn", turn)), id=context.trace.run_id)

        async def take_in(said: HumanMessage, became: str, answering: Any) -> Any:
            """Add a turn that became a question before, and its answer."""
            past = (await graph.aget_state(config)).values
            kept = {name: past[name] for name in ("turns", "settled") if name in past}
            state = Talk([said], became=became, **kept)
            made = await answer(state, context, answering=answering, say=message_of)
            made["messages"] = [said, *made["messages"]]  # one that was noted as the turn began is replaced
            await graph.aupdate_state(config, made, as_node="answer")
            return made["answer"]

        try:
            known = resumed and await has_checkpoint(context.trace.checkpoint, context.trace.lease)
            async with open_checkpoints(self._file, self._lease) as saver:
                graph = graph.copy({"checkpointer": saver})
                state = await graph.aget_state(config)
                past, begin = state.values, None  # a turn that is under way goes on with its own step
                if [each.id for each in past.get("messages", ())][-1:] != [said.id]:
                    if known:
                        return _Answer.model_validate(await take_in(said, turn, answering))
                    if state.tasks and not state.next:  # a process died before its step's state was stored
                        await graph.aupdate_state(config, None, as_node=END)
                    if left := await asyncio.to_thread(self._left_out, past):
                        await take_in(*left)
                    elif (first := self.last) and not past:
                        begun = {"answer": first.model_dump(mode="json"), "turns": [remembered(first)]}
                        await graph.aupdate_state(config, begun, as_node="answer")
                    begin = {"messages": [said]}
                output = await graph.ainvoke(begin, config, context=context, durability="sync")
        except Exception as error:  # of the rewriting: a question that failed has closed the trace
            if not isinstance(error, LeaseLost):  # of the conversation: the run is handed over
                context.trace.record("failed", agent="run", error=type(error).__name__, message=str(error))
            raise
        finally:
            await context.aclose()
        return _Answer.model_validate(output["answer"])

    def _left_out(self, past: dict[str, Any]) -> tuple[HumanMessage, str, Any] | None:
        """Return a turn, its question and what answers it, if its process died before that was noted here."""
        from langchain_core.messages import HumanMessage

        last = str(past.get("run_id", ""))
        if last in ("", (past.get("answer") or {}).get("run_id")):
            return None
        folder = RunFolder(self._session.settings.home / "runs" / last)
        if (found := folder.answer()) is None:
            return None

        async def answering(*_: Any) -> _Answer:
            return found

        return HumanMessage(str(folder.meta()["turn"]), id=last), str(past["became"]), answering

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the conversation's lock, or its lease, so that no other turn overwrites this one."""
        if not (url := self._session.settings.checkpoints):
            with await asyncio.to_thread(self._locked):
                yield
            return
        from quorum.graph.leases import leases_at

        # an answer is read a moment before its conversation is free for the next turn
        lease = await asyncio.to_thread(lambda: leases_at(url).take(f"{self.thread}:talk", patience=1.0))
        self._lease = lease
        try:
            yield
        finally:
            await asyncio.to_thread(lambda: lease.release(ended=True, answered=False))

    def _locked(self) -> IO[bytes]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        file = self._file.with_suffix(".lock").open("ab")
        if not lock(file):
            file.close()
            message = f"Another turn of the conversation {self.thread} is being answered."
            raise ConfigurationError(message, hint="Wait for it, or begin another conversation.")
        return file


class BlockingChat:
    """A conversation for code without an event loop."""

    def __init__(self, chat: Chat, wait: Callable[[Any], Answer]) -> None:
        self.chat, self._wait = chat, wait

    def ask(self, turn: str, **given: Any) -> Answer:
        """Answer a turn as ``Chat.ask`` does."""
        return self._wait(self.chat.ask(turn, **given))


def message_of(answer: _Answer) -> str:
    """Return an answer as the text of a message."""
    return Answer.of(answer).to_markdown()


def settings_of(run: str, settings: Settings) -> Settings:
    """Return the settings with the options of a run, as ``quorum.settings.resumed_options`` does."""
    options = resumed_options(RunFolder.open(settings.home, run).meta(), settings)
    return settings.changed(**{name: getattr(options, name) for name in type(options).model_fields})
