"""A question of a service: how far it is, its events and its answer, read from its run folder."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from quorum.answer import Answer
from quorum.event_text import EventText, step_of
from quorum.graph.answering import NeedsReply
from quorum.graph.approval import Approval
from quorum.graph.clarification import Clarification
from quorum.graph.runs import Event, RunFolder
from quorum.knowledge.atomic import lock
from quorum.knowledge.catalog import ADVICE
from quorum.knowledge.errors import QuorumError
from quorum.knowledge.schema.grammar import one_line
from quorum.tools.record import with_texts

Waiting: TypeAlias = Clarification | Approval

LOOKS = 0.5
"""Seconds between two looks at a question that another process answers."""
CHUNK = 2**16
"""Bytes of events that are read at a time."""


class Refused(QuorumError):
    """The service does not do what is asked; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int, kind: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status, self.kind = status, kind


@dataclass(eq=False)
class Question:
    """A question that is asked of a service, or was.

    Attributes:
        clean: Takes places of this machine out of what it says.
        thread: The conversation's, of which it is a turn that is asked here.
        status: ``running``, ``waiting`` for a reply, ``cancelled``, ``failed``, ``interrupted`` (by an end of
            its process: it can be resumed), or the answer's.
        waiting: What it asks, if it waits.
        error: Why it failed.
        task: Answers it, while this process does.
        elsewhere: True where another process has taken it over from this one.
    """

    folder: RunFolder
    clean: Callable[[str], str]
    by: str
    text: str
    database: str
    session: str
    after: str
    thread: str = ""
    status: str = "running"
    waiting: Waiting | None = None
    error: QuorumError | None = None
    task: asyncio.Task[None] | None = None
    elsewhere: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return self.folder.run_id

    def tell(self) -> None:
        """Wake those who wait for something new."""
        self._changed.set()
        self._changed = asyncio.Event()

    def look(self) -> None:
        """Read from its folder how far it is; blocks."""
        answer, ended = (self.folder.folder / "answer.json").is_file(), self.folder.ended()
        self.waiting, self.error = None, None
        if answer:
            found = self.folder.answer()
            self.status = found.status if found else "failed"
        elif ended is None:
            self.status = "running" if self._is_written() else "interrupted"
        else:
            self.status = ended["kind"]
            if self.status == "waiting":
                asked: type[Waiting] = Clarification if "choices" in ended["asked"] else Approval
                self.waiting = asked.model_validate(ended["asked"])
            elif self.status == "failed":
                self.error = QuorumError(str(ended.get("message", "")))

    def _is_written(self) -> bool:
        if "thread" in self.folder.meta():  # by whoever has its lease, or takes it over
            return True
        try:
            with (self.folder.folder / "events.jsonl").open("ab") as file:
                return not lock(file)
        except OSError:
            return False

    def is_there(self) -> bool:
        """True once its folder is a run, which every process finds; blocks."""
        return (self.folder.folder / "run.json").is_file()

    async def begun(self) -> None:
        """Wait until its folder is there: from then on no process that dies loses it."""
        while self.task and not await asyncio.to_thread(self.is_there):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def change(self, since: asyncio.Event | None = None) -> None:
        """Wait until something may have changed, since it was looked at last."""
        changed = since or self._changed
        if self.task:
            await changed.wait()
        elif self.status == "running":
            await asyncio.sleep(LOOKS)
            await asyncio.to_thread(self.look)

    async def answer(self) -> Answer:
        """Wait for the answer, with all that its folder says.

        Raises:
            NeedsReply: It waits for a reply.
            QuorumError: It failed, was cancelled or interrupted.
        """
        while self.status == "running":
            await self.change()
        if self.waiting:
            raise NeedsReply(self.waiting)
        if self.error:
            raise self.error
        found = await asyncio.to_thread(self.folder.answer)
        if found is None:
            raise Refused(f"The question was {self.status}.", 409, self.status, hint="Ask it again.")
        meta = await asyncio.to_thread(self.folder.meta)
        if turn := str(meta.get("turn", "")):
            found.turn, became = turn, str(meta["question"])
            found.became = found.became or (became if became != turn else "")
        said: dict[str, Any] = {name: self.clean(getattr(found, name)) for name in ("error", "hint")}
        said["database"] = self.database or found.database  # by the name under which it is served
        return Answer.of(found).model_copy(
            update=said | {"warnings": [self.clean(each.partition(ADVICE)[0]) for each in found.warnings]}
        )

    async def steps(
        self, after: int = 0, width: int = 100, alive: float | None = None
    ) -> AsyncIterator[tuple[int, EventText | None]]:
        """Yield the steps behind number ``after`` with their numbers, as they come, until it ends or waits.

        Of a text that is longer than ``quorum.graph.trace.LONG`` an event has the first characters.

        Args:
            alive: Seconds without an event after which None is yielded for one.
        """
        number, place, path = 0, 0, self.folder.folder / "events.jsonl"
        clock = asyncio.get_running_loop().time
        heard = clock()
        while True:
            changed, last = self._changed, self.status != "running"
            lines, place = await asyncio.to_thread(_lines, path, place)
            for line in lines:
                number, heard = number + 1, clock()
                if number > after:
                    yield number, cleaned(with_texts(json.loads(line), _heads), self.clean, width)
            if lines:
                continue
            if last:
                return
            try:
                async with asyncio.timeout_at(heard + alive if alive else None):
                    await self.change(changed)
            except TimeoutError:
                heard = clock()
                yield number, None


def cleaned(event: Event, clean: Callable[[str], str], width: int = 100) -> EventText:
    """Return an event's step, whose text is cleaned before it is cut: half a path would not be known."""
    step = step_of(event, sys.maxsize)
    return replace(step, gist=one_line(clean(step.gist), width))


def _heads(sha: str) -> str:
    raise QuorumError(f"The text {sha} is not read.")


def _lines(path: Path, place: int) -> tuple[list[bytes], int]:
    """Return whole lines of a file from a place on, and where they end."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            found = file.read(CHUNK)
            while found and b"\n" not in found and (more := file.read(CHUNK)):
                found += more
    except FileNotFoundError:
        return [], place
    whole = found.rpartition(b"\n")[0]
    return (whole.split(b"\n"), place + len(whole) + 1) if whole else ([], place)
