"""More processes than this one that ask an evaluation's questions: one uses one processor core only."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.running.failures import MachineFailed
from quorum.evals.running.frames import pack, unpack
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.evals.running.evaluation import Evaluation

ROOT = Path(__file__).resolve().parent.parent.parent
STOP_SECONDS = 20.0
"""For a process to end what is under way, so that it can be gone on with, before it is killed."""


@contextmanager
def worker_processes(count: int) -> Iterator[list[WorkerProcess]]:
    """Start so many processes beside this one, which load what they need while this one does.

    They serve the evaluations of one event loop, one after the other, and end with the block.
    """
    with ExitStack() as stack:
        workers = [WorkerProcess() for _ in range(count)]
        for worker in workers:
            stack.callback(worker.kill)
        yield workers


class WorkerProcess:
    """Asks questions in a process of its own; as ``evals.running.attempts.Attempts``, whose words it has."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", "quorum.evals.running.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is this process's affair
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        )
        self._input: asyncio.WriteTransport | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._replied: Callable[[], None] = lambda: None
        self._gone = False

    async def begin(self, evaluation: Evaluation, replied: Callable[[], None]) -> None:
        """Be ready for the questions of ``evaluation``; pair with ``end``.

        Args:
            replied: Called when a model has replied there.

        Raises:
            ConfigurationError: The evaluation cannot be handed to another process.
        """
        try:
            frame = pack(("begin", evaluation))
        except Exception as error:  # whatever a model's own way to be pickled raises
            raise ConfigurationError(
                f"The evaluation cannot be handed to another process: {error}", hint="Use one worker."
            ) from error
        self._replied = replied
        if self._input is None:
            await self._connect()
        self._send(frame)

    async def record(self, question: EvalQuestion) -> Record:
        """As ``Attempts.record``.

        Raises:
            MachineFailed: The process is gone, for want of memory, say.
        """
        record: Record = await self._answer(question.id, ("ask", question.id))
        return record

    async def done(self, question: EvalQuestion) -> None:
        """As ``Attempts.done``."""
        self._send(pack(("done", question.id)))

    async def end(self) -> None:
        """End the evaluation there: what is under way in such order that it can be gone on with."""
        with suppress(MachineFailed, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._answer("", ("end",))
                return
        self.kill()

    def kill(self) -> None:
        """End the process; safe to call twice."""
        self._process.kill()
        self._process.wait()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        stream, (out, to) = asyncio.StreamReader(), _pipes(self._process)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), out)
        self._input, _ = await loop.connect_write_pipe(asyncio.Protocol, to)
        self._listening = asyncio.create_task(self._listen(stream))

    def _send(self, frame: bytes) -> None:
        assert self._input is not None
        if not self._gone:
            self._input.write(frame)

    async def _answer(self, key: str, message: tuple[Any, ...]) -> Any:
        if self._gone:
            raise _ended(self._process)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        self._send(pack(message))
        try:
            return await answer
        finally:
            self._waiting.pop(key, None)

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        try:
            with suppress(EOFError):
                while True:
                    self._hear(*await unpack(stream))
        finally:
            self._gone = True
            self.kill()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_ended(self._process))

    def _hear(self, word: str, id: str = "", said: Any = None) -> None:
        if word == "replied":
            self._replied()
        elif (answer := self._waiting.get(id)) and not answer.done():
            answer.set_result(said) if word == "made" else answer.set_exception(said)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdout is not None
    assert process.stdin is not None
    return process.stdout, process.stdin


def _ended(process: subprocess.Popen[bytes]) -> MachineFailed:
    return MachineFailed(
        f"A worker process has ended (exit status {process.returncode}).",
        hint="What it said of it stands above, if anything; else see to the machine's memory, or use fewer "
        "workers. What is finished is kept.",
    )


class Shares:
    """Questions for several who ask: each has a part that follows in order, and helps others at the end.

    So those of one database are asked in one place, as far as that leaves nobody idle.
    """

    def __init__(self, questions: Sequence[EvalQuestion], count: int) -> None:
        bounds = [len(questions) * number // count for number in range(count + 1)]
        self._parts = [deque(questions[a:b]) for a, b in itertools.pairwise(bounds)]

    def of(self, number: int) -> Iterator[EvalQuestion]:
        """What the asker of that number is to ask; several may take from one asker's."""
        while any(self._parts):
            own = self._parts[number]
            yield own.popleft() if own else max(self._parts, key=len).pop()
