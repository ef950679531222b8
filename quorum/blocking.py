"""A session where its caller has no event loop, and as a tool of an agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from quorum.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from quorum.chat import BlockingChat
    from quorum.graph.resources import Resources
    from quorum.session import Quorum

T = TypeVar("T")

MAX_TABLES = 40
"""Tables that a tool's description names; more are counted."""


class Blocking:
    """A session for code without an event loop: it has a loop of its own, in a thread."""

    def __init__(self, session: Quorum) -> None:
        self.session = session
        self._ready, self._thread = threading.Event(), threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._ready.wait()

    def ask(self, question: str = "", **given: Any) -> Answer:
        """Answer a question as ``Quorum.ask`` does."""
        return self.wait(self.session.ask(question, **given))

    def chat(self, thread: str = "", **given: Any) -> BlockingChat:
        """Return a conversation as ``Quorum.chat`` does; its ``ask`` needs no ``await``."""
        from quorum.chat import BlockingChat

        return BlockingChat(self.session.chat(thread, **given), self.wait)

    def ask_many(self, questions: Iterable[str | Mapping[str, Any]], **given: Any) -> Generator[Answer]:
        """Yield answers as ``Quorum.ask_many`` does; questions go on while the caller is busy with one."""
        answers = self.session.ask_many(questions, **given)

        async def following() -> Answer | None:
            return await anext(answers, None)

        try:
            while (answer := self.wait(following())) is not None:
                yield answer
        finally:
            self.wait(answers.aclose())

    def as_tool(self, name: str = "ask_database") -> BaseTool:
        """Return ``Quorum.as_tool``'s tool for agents with and without an event loop."""
        return tool_of(name, self.wait(self.session.resources()), self._from_any_loop, self.wait)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the session's loop and return its result; Ctrl-C stops it."""
        if self._loop.is_closed():
            work.close()
            raise ConfigurationError("The session is closed. Open another one.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Close the session; no child process is left. Safe to call twice."""
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _from_any_loop(self, question: str) -> Answer:
        asking = asyncio.run_coroutine_threadsafe(self.session.ask(question), self._loop)
        return await asyncio.wrap_future(asking)

    def _serve(self) -> None:
        asyncio.run(self._until_closed())

    async def _until_closed(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()
        await self.session.aclose()


def tool_of(
    name: str,
    resources: Resources,
    ask: Callable[[str], Awaitable[Answer]],
    wait: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
) -> BaseTool:
    """Return the LangChain tool that asks; ``wait`` runs a coroutine for agents without an event loop."""
    from langchain_core.tools import StructuredTool, ToolException

    catalog, tables = resources.catalog, [table.name for table in resources.catalog.tables]
    shown = ", ".join(tables[:MAX_TABLES])
    more = f" and {len(tables) - MAX_TABLES} more" if len(tables) > MAX_TABLES else ""

    async def asked(question: str) -> tuple[str, Answer]:
        try:
            made = await ask(question)
        except QuorumError as error:
            raise ToolException(str(error)) from error
        return made.to_markdown(), made

    def asked_now(question: str) -> Any:
        return wait(asked(question)) if wait else None

    return StructuredTool.from_function(
        func=asked_now if wait else None,
        coroutine=asked,
        name=name,
        description=(
            f"Answers a question in plain language about the database {catalog.name} ({catalog.dialect}), "
            f"read-only: writes SQL, runs and checks it. Its tables: {shown}{more}. The reply has the query, "
            "the first rows, what it assumes and how far to trust it."
        ),
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
