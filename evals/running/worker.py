"""A process that asks questions for another one's evaluations: ``python -m evals.running.worker``.

``evals.running.processes`` starts it and talks to it through its standard input and output. What comes is
``("begin", evaluation)``, ``("ask", id)``, ``("done", id)`` and ``("end",)``. What goes is ``("replied",)``,
``("made", id, record)`` or ``("failed", id, error)``; that of the end has no id.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from langchain_core.tracers.langchain import wait_for_all_tracers

from quorum.evals.running.attempts import Attempts
from quorum.evals.running.databases import Databases
from quorum.evals.running.evaluation import Evaluation
from quorum.evals.running.frames import pack, unpack
from quorum.knowledge.errors import QuorumError
from quorum.tools.garbage import rare_collections


class _Evaluation:
    """One evaluation, as far as it is this process's."""

    def __init__(self, evaluation: Evaluation, out: asyncio.WriteTransport) -> None:
        self._out = out
        self._questions = {question.id: question for question in evaluation.questions}
        self._databases = Databases.for_questions(evaluation, evaluation.questions)
        self._attempts = Attempts(evaluation, self._databases, replied=self._replied)
        self._under_way: set[asyncio.Task[None]] = set()

    def obey(self, word: str, id: str) -> None:
        """Begin to do what is asked."""
        work = self._ask(id) if word == "ask" else self._attempts.done(self._questions[id])
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def end(self) -> None:
        """End what is under way, so that it can be gone on with, and close the databases."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._databases.aclose()
        await asyncio.to_thread(wait_for_all_tracers)  # LangSmith's, which the process's end would cut short

    async def _ask(self, id: str) -> None:
        self._out.write(await _outcome(id, self._attempts.record(self._questions[id])))

    def _replied(self) -> None:
        self._out.write(pack(("replied",)))


async def _outcome(id: str, work: Coroutine[Any, Any, Any]) -> bytes:
    """The frame that tells what came of ``work``, a failure as well: the other process raises it."""
    try:
        return pack(("made", id, await work))
    except Exception as error:  # noqa: BLE001 - of whatever kind
        if isinstance(error, QuorumError):
            with suppress(Exception):  # it cannot be handed on as it is
                return pack(("failed", id, error))
        return pack(("failed", id, RuntimeError("".join(traceback.format_exception(error)))))


async def _work(out: int) -> None:
    loop, stream = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    pipe, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(out, "wb", 0))
    now: _Evaluation | None = None
    while True:
        try:
            message = await unpack(stream)
        except EOFError:
            os._exit(0)  # whoever asks is gone, and goes on another time: nothing is to be ended in order
        match message:
            case ("begin", evaluation):
                now = _Evaluation(evaluation, pipe)
            case ("end",):
                assert now is not None
                pipe.write(await _outcome("", now.end()))
            case (word, id):
                assert now is not None
                now.obey(word, id)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # they are the other process's affair
        signal.signal(number, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no frame
    with rare_collections():
        asyncio.run(_work(out))


if __name__ == "__main__":
    main()
