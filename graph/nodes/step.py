"""What every node has in common: it finds its context, obeys the budget and flushes the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from quorum.graph.context import Context
from quorum.graph.live import close_own, context_of
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.knowledge.errors import BudgetExceeded, ConfigurationError, MalformedReply, ModelUnavailable

Update = dict[str, Any]
Step = Callable[[Any, Context], Awaitable[Update]]

MALFORMED, UNAVAILABLE = "malformed_reply", "model_unavailable"
"""``ErrorState.kind`` of a candidate whose model failed it, beside the kinds of ``ErrorKind``."""

MODEL_ERRORS = (MALFORMED, UNAVAILABLE)


class Node(Protocol):
    async def __call__(self, state: Any, runtime: Runtime[RunOptions]) -> Update: ...


class Steps:
    """Makes nodes of steps, for the graph of one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def first(self, step: Step) -> Node:
        """The node that begins a run, with a context of its own even on a thread that had a run before."""

        async def node(state: Any, runtime: Runtime[RunOptions]) -> Update:
            return await self._run({**state, "run_id": ""}, runtime, step)

        return node

    def run(self, step: Step) -> Node:
        """A node of the run; a limit that is reached is noted in ``stopped_by``: the run ends in order."""

        async def node(state: Any, runtime: Runtime[RunOptions]) -> Update:
            return await self._run(state, runtime, step)

        return node

    def branch(self, step: Step) -> Node:
        """A node of a candidate's branch: a model that fails ends this candidate, never the others."""

        async def guarded(state: Any, context: Context) -> Update:
            try:
                return await step(state, context)
            except (MalformedReply, ModelUnavailable) as error:
                kind = MALFORMED if isinstance(error, MalformedReply) else UNAVAILABLE
                _record(context, state, "candidate_failed", message=str(error))
                return {"error": {"kind": kind, "message": str(error)}}

        return self.run(guarded)

    async def _run(self, state: Any, runtime: Runtime[RunOptions], step: Step) -> Update:
        question = state.get("question", "")
        if not isinstance(question, str) or not question.strip():
            raise ConfigurationError("There is no question.", hint='The input is {"question": "…"}.')
        if not isinstance(runtime.context, RunOptions):
            raise ConfigurationError("The graph has no context.", hint="Pass context=RunOptions(…).")
        async with context_of(runtime.context, question, state.get("run_id", "")) as context:
            try:
                self._check(context)
                update = await step(state, context)
            except BudgetExceeded as error:
                _record(context, state, "stopped", limit=error.limit, message=str(error))
                update = {"stopped_by": error.limit}
            except GraphBubbleUp:  # an interrupt: the run goes on later, with the same context
                raise
            except BaseException:
                await close_own(context)
                raise
            await context.trace.aflush()
            return update

    def _check(self, context: Context) -> None:
        if context.recipe != self.recipe:
            raise ConfigurationError(
                "The options ask for another recipe, or other switches, than the graph was built with.",
                hint="Build it from find_recipe(name, switches).",
            )


def _record(context: Context, state: Any, kind: str, **fields: Any) -> None:
    candidate = state.get("candidate", "")
    agent = "candidate" if candidate else "run"
    context.trace.record(kind, agent=agent, candidate=candidate, **fields)
