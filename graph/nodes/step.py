"""What all nodes share: finding the context, keeping the budget, asking roles, flushing the trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, Protocol, TypeVar, cast

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from pydantic import BaseModel

from quorum.agents.role import Role
from quorum.graph.approving import attempt
from quorum.graph.ballots import UNANSWERABLE, UNAVAILABLE
from quorum.graph.context import Context
from quorum.graph.live import close_own, context_of, streaming
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import CandidateState, Failure, Known, as_typed
from quorum.graph.trace import located
from quorum.knowledge.errors import BudgetExceeded, ConfigurationError, MalformedReply, ModelUnavailable
from quorum.tools.models import Model

Update = dict[str, Any]
Step = Callable[[Any, Context], Awaitable[Update]]
Reply = TypeVar("Reply")

MALFORMED = "malformed_reply"
"""``Failure.kind`` of a candidate whose model's replies had no form, beside the kinds of ``ErrorKind``."""

FINAL = (MALFORMED, UNAVAILABLE, UNANSWERABLE)
"""Kinds after which a candidate's branch ends."""

UNUSABLE: tuple[type[Exception], ...] = (MalformedReply,)
UNUSABLE_OR_GONE: tuple[type[Exception], ...] = (MalformedReply, ModelUnavailable)
"""Failures of a role that a run tolerates."""


class Node(Protocol):
    async def __call__(self, state: Any, runtime: Runtime[RunOptions | Context]) -> Update: ...


def make_node(name: str, step: Step, recipe: Recipe, *, first: bool = False) -> Node:
    """The node of a step.

    A limit that is reached is noted in ``stopped_by``: the run ends in order. In a candidate's branch a
    model that fails ends this candidate, never the others.

    Args:
        first: This step begins a run, with a new context even on a thread that had a run before.
    """

    async def node(state: Any, runtime: Runtime[RunOptions | Context]) -> Update:
        if not isinstance(state.question, str) or not state.question.strip():
            raise ConfigurationError("There is no question.", hint='The input is {"question": "…"}.')
        state = as_typed(state)
        run_id = "" if first else state.run_id
        async with context_of(runtime.context, recipe, state.question, run_id) as context:
            place = {"node": name, "recipe": recipe.name, "task": _task(runtime)}
            with located(**place), streaming(runtime.stream_writer), attempt():
                return await _run(step, state, context)

    return node


def _task(runtime: Runtime[RunOptions | Context]) -> str:
    """LangGraph's id of the node's execution: the same when an interrupted process's is repeated."""
    return runtime.execution_info.task_id if runtime.execution_info else ""


async def _run(step: Step, state: Known, context: Context) -> Update:
    try:
        update = await step(state, context)
    except BudgetExceeded as error:
        record(context, state, "stopped", _account(state), limit=error.limit, message=str(error))
        update = {"stopped_by": error.limit}
    except (MalformedReply, ModelUnavailable) as error:
        if not isinstance(state, CandidateState):
            await close_own(context)
            raise
        kind = MALFORMED if isinstance(error, MalformedReply) else UNAVAILABLE
        record(context, state, "candidate_failed", _account(state), message=str(error))
        update = {"error": Failure(kind, str(error))}
    except GraphBubbleUp:  # an interrupt: the run goes on later, with the same context
        raise
    except BaseException:
        await close_own(context)
        raise
    await context.trace.aflush()
    return update


def _account(state: Known) -> str:
    return "candidate" if isinstance(state, CandidateState) else "run"


def record(context: Context, state: Known, kind: str, agent: str, **fields: object) -> None:
    """Record an event; in a candidate's branch it names the candidate."""
    candidate = {"candidate": state.input.id} if isinstance(state, CandidateState) else {}
    context.trace.record(kind, agent=agent, **(candidate | fields))


async def ask_role(
    state: Known,
    context: Context,
    role: Role[Any],
    call: Callable[[Model], Awaitable[Reply]],
    *,
    event: str,
    **about: object,
) -> Reply:
    """Ask a role and record its reply: the one way from a node to an agent.

    A role asks the model that the run has for it. Without one a candidate asks its own, and roles that all
    candidates share the first of the run's models. Where an endpoint does not answer, the next of these is
    asked; a substitution is recorded.

    Args:
        call: The agent's function with its arguments, over the model.
        event: Kind of the event that holds the reply's fields, and those given as ``about``.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As the agent's function.
    """
    reply = await _first_available(state, context, role, call)
    record(context, state, event, role.name, **about, **_fields(reply))
    return reply


def _fields(reply: object) -> dict[str, object]:
    """A reply as fields of an event."""
    if isinstance(reply, BaseModel):
        return reply.model_dump()
    if is_dataclass(reply) and not isinstance(reply, type):
        return vars(reply)
    if isinstance(reply, Mapping):
        return dict(reply)
    return {"reply": reply}


async def try_role(
    state: Known,
    context: Context,
    role: Role[Any],
    call: Callable[[Model], Awaitable[Reply]],
    *,
    event: str,
    spare: tuple[type[Exception], ...] = UNUSABLE,
    **about: object,
) -> Reply | None:
    """``ask_role`` where the reply is optional: a failure in ``spare`` is recorded.

    Returns:
        The reply; after a failure what the role falls back to, None where it declares nothing.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As the agent's function, but for those in ``spare``.
    """
    try:
        return await ask_role(state, context, role, call, event=event, **about)
    except spare as error:
        record(context, state, event, role.name, **about, error=str(error))
        return cast("Reply | None", role.fallback)


async def _first_available(
    state: Known,
    context: Context,
    role: Role[Any],
    call: Callable[[Model], Awaitable[Reply]],
) -> Reply:
    *others, last = _models(state, context, role)
    for model in others:
        try:
            return await call(model)
        except ModelUnavailable as error:
            record(context, state, "model_replaced", role.name, model=model.name, message=str(error))
    return await call(last)


def _models(state: Known, context: Context, role: Role[Any]) -> list[Model]:
    """Whom the role may ask, in order, each once.

    In a candidate's branch they are sampled as its input says; a judgement asks ``.at(temperature=0.0)``.
    """
    own = context.role_models.get(role.name)
    if isinstance(state, CandidateState):
        usual = [context.models[state.input.model]]
    else:
        usual = list(context.models.values())
    models = [own, *(model for model in usual if model.backend is not own.backend)] if own else usual
    if isinstance(state, CandidateState):
        start = state.input
        about: dict[str, Any] = {"temperature": start.temperature, "seed": start.seed, "candidate": start.id}
        models = [model.at(**about) for model in models]
    return models


def lost(role: Role[Any]) -> list[str]:
    """The warning that a role's reply was of no use."""
    return [f"The {role.title}'s reply could not be used."]


def one_line(sql: str) -> str:
    """SQL with single blanks, to compare queries."""
    return " ".join(sql.split())


def known(sql: str, queries: Iterable[str]) -> bool:
    """Whether a query is among others, white space aside."""
    return one_line(sql) in map(one_line, queries)
