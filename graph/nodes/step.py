"""Shared by all nodes: their context, budget and trace, and ``tell``, by which they ask a role."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, cast

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from pydantic import BaseModel

from quorum.agents.base import Asking
from quorum.agents.role import R, Role, module_file
from quorum.graph.approval import one_execution
from quorum.graph.ballots import UNANSWERABLE, UNAVAILABLE
from quorum.graph.context import Context
from quorum.graph.node_context import close_own, context_of, streaming
from quorum.graph.options import RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import CandidateState, Failure, SharedState, as_typed
from quorum.graph.trace import located
from quorum.knowledge.errors import BudgetExceeded, ConfigurationError, MalformedReply, ModelUnavailable
from quorum.tools.models import Model

Update = dict[str, Any]
Step = Callable[[Any, Context], Awaitable[Update]]

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
    """Make the node of a step.

    A limit that is reached is noted in ``stopped_by``: the run ends in order. In a candidate's branch a
    model that fails ends this candidate, never the others.

    Args:
        first: This step begins a run, with a new context even on a thread that had a run before.
    """

    code = code_of(step)

    async def node(state: Any, runtime: Runtime[RunOptions | Context]) -> Update:
        if not isinstance(state.question, str) or not state.question.strip():
            inputs = """{"question": "…"}; of chat, {"messages": [{"role": "user", "content": "…"}]}."""
            raise ConfigurationError("There is no question.", hint=f"The input is {inputs}")
        state = as_typed(state)
        run_id = "" if first else state.run_id
        # LangGraph's id of this execution: the same when an interrupted process's is repeated
        task = runtime.execution_info.task_id if runtime.execution_info else ""
        async with context_of(recipe.bound or runtime.context, recipe, state.question, run_id) as context:
            place = {"node": name, "recipe": recipe.name, "code": code, "task": task}
            with located(**place), streaming(runtime.stream_writer), one_execution():
                try:
                    update = await step(state, context)
                except GraphBubbleUp:  # an interrupt: the run goes on later, with the same context
                    raise
                except BaseException as error:
                    update = _ended(state, context, error)
                    if not update:
                        await close_own(context)
                        raise
                await context.trace.aflush()
                return update

    return node


def code_of(step: Step) -> str:
    """Return file and line of a step's function, below the project's root: ``graph/nodes/prepare.py:29``."""
    function: Any = inspect.unwrap(step.func if isinstance(step, partial) else step)
    return f"{module_file(function.__module__)}:{function.__code__.co_firstlineno}"


def _ended(state: SharedState, context: Context, error: BaseException) -> Update:
    """Return the update of a step that a limit or a failing model ended; empty if the run must fail."""
    if isinstance(error, BudgetExceeded):
        record(context, state, "stopped", _account(state), limit=error.limit, message=str(error))
        return {"stopped_by": error.limit}
    if not isinstance(state, CandidateState) or not isinstance(error, MalformedReply | ModelUnavailable):
        return {}
    kind = MALFORMED if isinstance(error, MalformedReply) else UNAVAILABLE
    record(context, state, "candidate_failed", _account(state), message=str(error))
    return {"error": Failure(kind, str(error))}


def _account(state: SharedState) -> str:
    return "candidate" if isinstance(state, CandidateState) else "run"


def record(context: Context, state: SharedState, kind: str, agent: str, **fields: object) -> None:
    """Record an event; in a candidate's branch it names the candidate."""
    candidate = {"candidate": state.input.id} if isinstance(state, CandidateState) else {}
    context.trace.record(kind, agent=agent, **(candidate | fields))


async def tell(
    state: SharedState,
    context: Context,
    role: Role[R],
    event: str,
    *,
    by: Callable[..., Awaitable[Any]] | None = None,
    about: Mapping[str, object] = MappingProxyType({}),
    at: Mapping[str, Any] = MappingProxyType({}),
    **variables: Any,
) -> R:
    """Give a role its task, and return and record its reply: the one way from a node to an agent.

    A role asks the model that the run has for it. Without one a candidate asks its own, and roles that all
    candidates share the first of the run's models. Where an endpoint does not answer, the next of these is
    asked; a substitution is recorded.

    Args:
        event: Kind of the event that holds the reply's fields, and ``about``.
        by: A role's own function, of a model and a ``PromptContext``, where one call is not enough: its
            reply is the one that is returned.
        at: How the model samples, such as ``seed``, where ``sampling`` has nothing else.
        variables: Those of the role's template, or arguments of ``by``, that ``PromptContext`` does not have.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``.
    """
    prompt = await context.prompt(state)
    models = _models(state, context, role, at)
    for model in models:
        try:
            if by:
                reply: Any = await by(model, context=prompt, **variables)
            else:
                asking = Asking(model, role, prompt, variables)
                while asking.found is None:
                    asking.take(await asking.model.complete(**asking.request()))
                reply = asking.found
            break
        except ModelUnavailable as error:
            if model is models[-1]:
                raise
            record(context, state, "model_replaced", role.name, model=model.name, message=str(error))
    record(context, state, event, role.name, **about, **_fields(reply))
    return cast("R", reply)


def _fields(reply: object) -> dict[str, object]:
    """Return a reply as fields of an event."""
    if isinstance(reply, BaseModel):
        return reply.model_dump()
    if is_dataclass(reply) and not isinstance(reply, type):
        return vars(reply)
    if isinstance(reply, Mapping):
        return dict(reply)
    raise TypeError(f"A reply of the type {type(reply).__name__} has no fields.")


async def try_tell(
    state: SharedState,
    context: Context,
    role: Role[R],
    event: str,
    *,
    spare: tuple[type[Exception], ...] = UNUSABLE,
    about: Mapping[str, object] = MappingProxyType({}),
    **given: Any,
) -> R | None:
    """``tell`` where the reply is optional: a failure in ``spare`` is recorded.

    Returns:
        The reply; after a failure the role's fallback, None where it declares none.

    Raises:
        MalformedReply, ModelUnavailable, BudgetExceeded: As ``tell``, but for those in ``spare``.
    """
    try:
        return await tell(state, context, role, event, about=about, **given)
    except spare as error:
        record(context, state, event, role.name, **about, error=str(error))
        return role.fallback


def _models(state: SharedState, context: Context, role: Role[Any], at: Mapping[str, Any]) -> list[Model]:
    """Return the models that the role may ask, in order, each once, sampled as ``sampling`` says."""
    own = context.role_models.get(role.name)
    if isinstance(state, CandidateState):
        usual = [context.models[state.input.model]]
    else:
        usual = list(context.models.values())
    models = [own, *(model for model in usual if model.backend is not own.backend)] if own else usual
    sampled = {**at, **sampling(state, context, role)}
    return [model.at(**sampled) for model in models] if sampled else models


def sampling(state: SharedState, context: Context, role: Role[Any]) -> dict[str, Any]:
    """Return how a role is asked: at the recipe's one temperature, else at its own, else at the candidate's.

    Without any the models keep theirs, which is 0. In a candidate's branch its seed and its id are added.
    """
    own = context.temperature if context.recipe.one_temperature else role.temperature
    at = {} if own is None else {"temperature": own}
    if isinstance(state, CandidateState):
        start = state.input
        return {"temperature": start.temperature, "seed": start.seed, "candidate": start.id} | at
    return at


def lost(role: Role[Any]) -> list[str]:
    """Return the warning that a role's reply could not be used."""
    return [f"The {role.title}'s reply could not be used."]


def one_line(sql: str) -> str:
    """Return SQL with single blanks, to compare queries."""
    return " ".join(sql.split())


def same_query(sql: str, queries: Iterable[str]) -> bool:
    """True if a query is among others; white space does not count."""
    return one_line(sql) in map(one_line, queries)
