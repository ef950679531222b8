"""What every node has in common: it finds its context, obeys the budget and flushes the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from langgraph.runtime import Runtime

from graph.context import Context
from graph.live import close_own, context_of
from graph.options import RunOptions
from knowledge.errors import BudgetExceeded, MalformedReply, ModelUnavailable

Update = dict[str, Any]
State = Mapping[str, Any]
Step = Callable[[Any, Context], Awaitable[Update]]

MODEL_ERROR = "model"
"""``ErrorState.kind`` of a candidate whose model failed it, beside the kinds of ``ErrorKind``."""


class Node(Protocol):
    async def __call__(self, state: Any, runtime: Runtime[RunOptions]) -> Update: ...


def run_step(step: Step) -> Node:
    """A node of the run: a limit that is reached is noted in ``stopped_by``; the run goes on to its end."""

    async def node(state: Any, runtime: Runtime[RunOptions]) -> Update:
        context = await _context(state, runtime)
        try:
            update = await step(state, context)
        except BudgetExceeded as error:
            context.trace.record("stopped", agent=step.__name__, limit=error.limit, message=str(error))
            update = {"stopped_by": error.limit}
        except BaseException:
            await close_own(context)
            raise
        await context.trace.aflush()
        return update

    return node


def branch_step(step: Step) -> Node:
    """A node of a candidate's branch: whatever goes wrong ends this candidate, never the others."""

    async def node(state: Any, runtime: Runtime[RunOptions]) -> Update:
        context = await _context(state, runtime)
        try:
            update = await step(state, context)
        except BudgetExceeded as error:
            _note(context, "stopped", state, limit=error.limit, message=str(error))
            update = {"stopped_by": error.limit}
        except (MalformedReply, ModelUnavailable) as error:
            _note(context, "candidate_failed", state, message=str(error))
            update = {"error": {"kind": MODEL_ERROR, "message": str(error)}}
        await context.trace.aflush()
        return update

    return node


async def _context(state: State, runtime: Runtime[RunOptions]) -> Context:
    return await context_of(runtime.context, state["question"], state.get("run_id", ""))


def _note(context: Context, kind: str, state: State, **fields: Any) -> None:
    context.trace.record(kind, agent="candidate", candidate=state["candidate"], **fields)
