"""Processes that ask an evaluation's questions: one process uses one processor core only.

They are the workers of a Dask cluster: one of this machine that lives as long as the evaluation, or one that
is there already, perhaps on many machines. In each an actor asks its share of the questions in the worker's
event loop; this process gives them out and keeps all records.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.running.attempts import Attempts
from quorum.evals.running.evaluation import Evaluation
from quorum.knowledge.errors import ConfigurationError, MachineFailed, QuorumError, missing_extra
from quorum.tools.garbage import rare_collections

if TYPE_CHECKING:
    from distributed import Client

STOP_SECONDS = 20.0
"""Seconds for a worker to end its questions so that they can be resumed."""

START_SECONDS = 60.0
"""Seconds for a cluster to have a worker."""

MOST_LOST = 3
"""Workers that may be lost, per asker, before the evaluation ends."""

SETTINGS = {
    "distributed.worker.daemon": False,  # databases have processes of their own
    "distributed.worker.multiprocessing-method": "forkserver",
    # What Dask does beside the work took a tenth of the time: watching itself, moving tasks between workers,
    # and giving memory back to the system at every chance.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.tick.interval": "1s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ": {},
    # Nobody looks at its pages.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.nanny.http.routes": [],
}

WorkerOutcome: TypeAlias = tuple[Record | QuorumError | RuntimeError | None, bool]
"""A record, an error, or None if the question was interrupted; and whether a model has replied to any
question of this worker since the last outcome."""


@asynccontextmanager
async def workers_of(count: int = 0, *, address: str = "") -> AsyncIterator[Workers]:
    """The workers of a new cluster of ``count`` processes, which ends with the block, or of an existing one.

    Args:
        address: Of the scheduler, ``tcp://host:8786``; its workers must find Quorum installed, and the
            evaluation's folder and databases at the same places.

    Raises:
        ConfigurationError: Dask is not installed, or no cluster with a worker answers.
    """
    try:
        import dask
        import distributed
    except ImportError as error:
        raise missing_extra("cluster", "Asking in several processes", needs="distributed") from error
    lib: Any = distributed  # most of it has no types
    if address:
        try:
            async with lib.Client(address, asynchronous=True, timeout=START_SECONDS / 4) as client:
                await client.wait_for_workers(1, timeout=START_SECONDS / 4)
                yield Workers(client, len(await client.nthreads()))
        except (OSError, TimeoutError, ValueError) as error:
            raise ConfigurationError(
                f"No cluster with a worker answers at {address}: {error}.",
                hint="Start one with `dask scheduler` and `dask worker`, and give the scheduler's address.",
            ) from error
        return

    class Local(lib.LocalCluster):  # type: ignore[misc]
        def _update_worker_status(self, op: str, msg: Any) -> None:
            with suppress(KeyError):  # a worker that left before the cluster was told that it had come
                super()._update_worker_status(op, msg)

    with dask.config.set(SETTINGS):
        lib.utils.get_mp_context().set_forkserver_preload(["quorum.evals.running.preloaded"])
        with _ignored(signal.SIGTERM):
            forkserver.ensure_running()
        local = Local(
            n_workers=count,
            env=dict(os.environ),  # of now: the process that forks has that of its start
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            security=lib.Security.temporary(),  # else every user of the machine could run code in the workers
            asynchronous=True,
        )
        async with local as cluster, lib.Client(cluster, asynchronous=True) as client:
            await client.register_plugin(_unsignalled())
            yield Workers(client, count)


@contextmanager
def _ignored(number: signal.Signals) -> Iterator[None]:
    """Have processes that start inside ignore a signal: where the whole group gets it, this one ends them."""
    if threading.current_thread() is not threading.main_thread():  # only it may say what a signal does
        yield
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL if before is None else before)


def _unsignalled() -> Any:
    from distributed import WorkerPlugin

    class Unsignalled(WorkerPlugin):
        """Ignores the terminal's Ctrl-C, which the main process handles."""

        name = "quorum-unsignalled"

        def setup(self, worker: object) -> None:  # noqa: ARG002
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)

    return Unsignalled()


class Workers:
    """The workers of a cluster, for the evaluations of one event loop, one after the other.

    Attributes:
        count: How many ask.
    """

    def __init__(self, client: Client, count: int) -> None:
        self.client, self.count = client, count

    def askers(self, evaluation: Evaluation, replied: Callable[[], None]) -> list[RemoteAsker]:
        """One for each worker.

        Args:
            replied: Called when a model has replied there.

        Raises:
            ConfigurationError: The evaluation cannot be handed to another process.
        """
        from distributed.protocol import pickle as handing_over

        dumps: Callable[[object], bytes] = handing_over.dumps
        try:
            dumps(evaluation)
        except Exception as error:  # whatever a model's own way to be pickled raises
            raise ConfigurationError(
                f"The evaluation cannot be handed to another process: {error}", hint="Use one worker."
            ) from error
        return [RemoteAsker(self.client, evaluation, replied) for _ in range(self.count)]


class RemoteAsker:
    """Asks questions in a worker, with the methods of ``quorum.evals.running.attempts.Attempts``.

    If the worker is lost, another one resumes its questions.
    """

    def __init__(self, client: Client, evaluation: Evaluation, replied: Callable[[], None]) -> None:
        self._client, self._evaluation, self._replied = client, evaluation, replied
        self._link: asyncio.Task[_Link] | None = None
        self._lost = 0

    async def record(self, question: EvalQuestion) -> Record:
        """Ask and judge, like ``Attempts.record``.

        Raises:
            MachineFailed: ``MOST_LOST`` workers were lost, e.g. for lack of memory.
        """
        found, replied = await self._exchange(lambda link: link.outcome(question))
        if replied:
            self._replied()
        if isinstance(found, Record):
            return found
        raise found or asyncio.CancelledError

    async def prove(self, question: EvalQuestion) -> None:
        """Have a worker open what the question needs, like ``Attempts.prove``.

        Raises:
            MachineFailed: As ``record``.
        """
        if error := pickle.loads(await self._exchange(lambda link: link.actor.prove(question))):
            raise error

    async def _exchange(self, exchange: Callable[[_Link], Awaitable[Any]]) -> Any:
        """Return what the worker gives back, or another one if it is lost."""
        while True:
            link = self._link = self._link or asyncio.ensure_future(self._linked())
            try:
                return await exchange(await asyncio.shield(link))
            except (OSError, RuntimeError) as error:  # what Dask says of a worker that is gone
                self._is_lost(link, error)

    async def close(self, url: str) -> None:
        """Close the database after its last question."""
        with suppress(OSError, RuntimeError):
            if self._link is not None:
                await (await asyncio.shield(self._link)).actor.close(url)

    async def end(self) -> None:
        """End the running questions so that they can be resumed; safe to call twice."""
        link, self._link = self._link, None
        if link is not None:
            with suppress(Exception):  # it is gone already, or does not stop
                async with asyncio.timeout(STOP_SECONDS):
                    await (await link).actor.end()

    async def _linked(self) -> _Link:
        """A link to an actor in the worker that has the fewest."""
        client: Any = self._client
        try:
            await client.wait_for_workers(1, timeout=START_SECONDS)
            return _Link(await client.submit(AskingActor, self._evaluation, actor=True, pure=False))
        except (OSError, RuntimeError):
            raise
        except Exception as error:
            raise ConfigurationError(
                f"A worker cannot ask questions: {error}", hint="Is the same Quorum installed there?"
            ) from error

    def _is_lost(self, link: asyncio.Task[_Link], error: Exception) -> None:
        if self._link is not link:
            return  # another question has said so
        self._link = None
        self._lost += 1
        if self._lost >= MOST_LOST:
            raise MachineFailed(
                f"{self._lost} worker processes have ended while they asked: {error}.",
                hint="What Dask said of it is above; else see to the machine's memory, or use fewer "
                "workers. What is finished is kept.",
            ) from error


class _Link:
    """A connection to the actor in a worker, shared by many questions."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self._waiting: dict[str, asyncio.Future[WorkerOutcome]] = {}
        self._listening = asyncio.create_task(self._listen())

    async def outcome(self, question: EvalQuestion) -> WorkerOutcome:
        """The outcome of asking it there.

        Raises:
            OSError, RuntimeError: The worker is gone, or its reply cannot be read.
        """
        outcome: asyncio.Future[WorkerOutcome] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = outcome
        await self.actor.ask(question)
        either: list[asyncio.Future[Any]] = [outcome, self._listening]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if outcome.done():
            return outcome.result()
        raise OSError(f"the worker is gone: {self._listening.exception()}")

    async def _listen(self) -> None:
        while True:
            for found in pickle.loads(await self.actor.outcomes()):
                if found is None:
                    return
                id, outcome, replied = found
                answer = self._waiting.pop(id)
                if not answer.done():  # cut short here
                    answer.set_result((pickle.loads(outcome), replied))


class AskingActor:
    """The actor in a worker: asks the questions that it is sent."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._attempts = Attempts(evaluation, replied=self._heard)
        self._replied = False
        self._under_way: set[asyncio.Task[None]] = set()
        self._outcomes: asyncio.Queue[tuple[str, bytes, bool] | None] = asyncio.Queue()
        self._block = ExitStack()
        self._block.enter_context(rare_collections())

    async def prove(self, question: EvalQuestion) -> bytes:
        """Open what the question needs; return the error, or None, pickled."""
        return await _pickled(self._attempts.prove(question))

    async def ask(self, question: EvalQuestion) -> None:
        """Begin to ask a question."""
        task = asyncio.create_task(self._ask(question))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def outcomes(self) -> bytes:
        """The next outcomes and their questions' ids, as soon as there is one; None is the last."""
        found = [await self._outcomes.get()]
        while not self._outcomes.empty():
            found.append(self._outcomes.get_nowait())
        return pickle.dumps(found)

    async def _ask(self, question: EvalQuestion) -> None:
        found = pickle.dumps(None)
        try:
            found = await _pickled(self._attempts.record(question))
        finally:
            replied, self._replied = self._replied, False
            self._outcomes.put_nowait((question.id, found, replied))

    async def close(self, url: str) -> None:
        """Close the database after its last question."""
        await self._attempts.close(url)

    async def end(self) -> None:
        """End the running questions so that they can be resumed, and close the databases."""
        from langchain_core.tracers.langchain import wait_for_all_tracers

        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        self._outcomes.put_nowait(None)
        await self._attempts.end()
        await asyncio.to_thread(wait_for_all_tracers)  # LangSmith's, which the process's end would cut short
        self._block.close()

    def _heard(self) -> None:
        self._replied = True


async def _pickled(work: Awaitable[object]) -> bytes:
    """Return its result, or the error that it raises, as another process can read it."""
    try:
        return pickle.dumps(await work)
    except Exception as error:  # noqa: BLE001 - of whatever kind: the other process raises it
        with suppress(Exception):  # it cannot be handed on as it is
            if isinstance(error, QuorumError):
                return pickle.dumps(error)
        return pickle.dumps(RuntimeError("".join(traceback.format_exception(error))))


class Shares:
    """Splits questions among askers: each has a consecutive part, and takes from others when it is done.

    So questions of one database are asked in one place, as long as no asker is idle.
    """

    def __init__(self, questions: Sequence[EvalQuestion], count: int) -> None:
        bounds = [len(questions) * number // count for number in range(count + 1)]
        self._parts = [deque(questions[a:b]) for a, b in itertools.pairwise(bounds)]

    def of(self, number: int) -> Iterator[EvalQuestion]:
        """The questions for the asker of that number; several may take from one part."""
        while any(self._parts):
            own = self._parts[number]
            yield own.popleft() if own else max(self._parts, key=len).pop()
