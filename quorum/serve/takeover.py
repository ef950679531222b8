"""Several processes of ``quorum serve`` over one home: each goes on with the questions of one that died."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from quorum.graph.leases import MOST_TAKEN, Expired, Leases, leases_at, run_id_of
from quorum.graph.runs import RunFolder
from quorum.graph.trace import Trace
from quorum.knowledge.errors import LeaseLost, QuorumError
from quorum.serve.keys import Caller

if TYPE_CHECKING:
    from quorum.serve.service import Service

LOOKS = 2.0
"""Seconds between two looks at the leases."""
AT_ONCE = 16
"""Questions that are taken over at one look, so that other processes get some too."""


@asynccontextmanager
async def looking_after(service: Service) -> AsyncIterator[None]:
    """While inside, take over questions of processes that died, and hear what others wish of this one's.

    It does nothing without the option ``checkpoints``.

    Raises:
        ConfigurationError, QuorumError: Its database cannot be used.
    """
    if not (url := service.settings.checkpoints):
        yield
        return
    service.leases = await asyncio.to_thread(leases_at, url)
    task = asyncio.ensure_future(_look_after(service, service.leases))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _look_after(service: Service, leases: Leases) -> None:
    while True:
        await asyncio.sleep(LOOKS)
        for lease in [*leases.held.values()]:
            if lease.gone:
                service.stop(run_id_of(lease.run))
            elif lease.cancel:
                await service.cancel_here(run_id_of(lease.run))
        with suppress(QuorumError, OSError):  # Postgres, or the home, is away for a while
            expired = await asyncio.to_thread(leases.expired)
            for each in random.sample(expired, min(AT_ONCE, len(expired))):
                await _take_over(service, leases, each)


async def _take_over(service: Service, leases: Leases, lease: Expired) -> None:
    """Go on with a question, or note that it is over; leave the runs of other homes, and of no service."""
    run = RunFolder(service.home / "runs" / run_id_of(lease.run))
    with suppress(LeaseLost):  # another process was first
        if (found := await asyncio.to_thread(_begun, run, lease.run)) is None:
            return
        by, over = found
        if over or lease.cancel:
            await asyncio.to_thread(end, run, leases, "cancelled")
        elif lease.taken >= MOST_TAKEN:
            message = f"{MOST_TAKEN} processes ended while they answered it."
            await asyncio.to_thread(partial(end, run, leases, "failed", message=message))
        elif who := service.keys.named(by) if service.keys else Caller(by):
            await service.go_on(who, run.run_id)
        else:
            await asyncio.to_thread(partial(end, run, leases, "failed", message="Its key is gone."))


def _begun(run: RunFolder, thread: str) -> tuple[str, bool] | None:
    """Return whose question a run is, and if it is over; None for one of another home, or of no service."""
    meta = run.meta() if (run.folder / "run.json").is_file() else {}
    if meta.get("thread") != thread or "by" not in meta:
        return None
    return str(meta["by"]), run.ended() is not None or run.answer() is not None


def end(run: RunFolder, leases: Leases | None, kind: str, **fields: Any) -> None:
    """Record that a run that nobody has is over (``quorum.graph.runs.ENDED``), unless that is recorded.

    Raises:
        LeaseLost: Another process has it, or has answered it.
        ConfigurationError: The same, where its checkpoints lie in its folder.
    """
    thread = run.meta().get("thread")
    lease = leases.take(str(thread)) if leases and thread else None
    try:
        trace = Trace.resume(run.folder.parents[1], run.run_id, lease=lease)
    except BaseException:
        if lease:
            lease.release(ended=False, answered=False)
        raise
    trace.finished, ended = run.answer(), run.ended()
    if not trace.finished and (ended is None or ended["kind"] == "waiting"):
        trace.record(kind, agent="run", **fields)
    trace.over = True
    trace.close()
