"""Ask a role: render its prompt, call the model, validate the reply, send a bad one back at most twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from quorum.agents.prompting import PromptContext, prompts
from quorum.agents.role import R, Role, plain
from quorum.knowledge.errors import MalformedReply
from quorum.tools.models import Model, Problem, ProblemKind, Reply

Found = TypeVar("Found")

AT_ONCE = 8
"""Calls of ``ask_each`` under way at a time; the model's own pace may allow fewer."""

MOST_REPAIRS = 2
_ECHO = 4_000  # characters of a bad reply that are sent back; a runaway reply would be billed again


async def ask(model: Model, role: Role[R], context: PromptContext, **variables: Any) -> R:
    """Ask a role and return its validated reply.

    The system message holds the house rules, schema and documents: it is the same to the byte for all roles
    and candidates of a question, so that providers cache it. The user message is the role's template, with
    the form of its reply. A reply of the wrong form is sent back with one line on what is wrong, at most
    twice.

    Args:
        variables: Those of the role's template that ``context`` does not have.

    Raises:
        MalformedReply: Still of the wrong form after the repairs, or the model refused.
        ModelUnavailable: No reply at all.
        BudgetExceeded: The run's calls, dollars or time are used up.
        LookupError: The template is missing, lacks a variable, or uses none of that name.
    """
    asking = Asking(model, role, context, variables)
    while asking.found is None:
        asking.take(await asking.model.complete(**asking.request()))
    return asking.found


class Asking(Generic[R]):
    """A role's task for a model: its next request, and its reply once one has the role's form.

    Attributes:
        model: Sampled as the role is where the model's sampling is not set.
        found: The validated reply; None before there is one.
    """

    def __init__(
        self, model: Model, role: Role[R], context: PromptContext, variables: Mapping[str, Any]
    ) -> None:
        cool = model.temperature is None and role.temperature is not None
        self.model = model.at(temperature=role.temperature) if cool else model
        self.found: R | None = None
        self._role, self._attempt = role, 0
        self._messages = prompts(role.folder).messages(role, context, variables)
        self._output = role.reply if context.house else plain(role.reply)

    def request(self) -> dict[str, Any]:
        """Return the arguments of ``Model.complete``."""
        self._attempt += 1
        about = {"role": self._role.name, "output": self._output, "attempt": self._attempt}
        return {"messages": self._messages, **about}

    def take(self, reply: Reply) -> None:
        """Keep a reply of the right form; else the next request sends it back.

        Raises:
            MalformedReply: There is no next request.
        """
        if isinstance(reply.parsed, self._role.reply):
            self.found = reply.parsed
            return
        problem = reply.problem or Problem(ProblemKind.NO_JSON, "The reply holds no JSON object.")
        if problem.kind is ProblemKind.REFUSAL or self._attempt > MOST_REPAIRS:
            raise _malformed(self.model, self._role.title, reply, problem)
        self._messages = [*self._messages, *_repair(reply, problem)]


async def ask_each(
    calls: Iterable[Callable[[], Awaitable[Found]]], *, at_once: int = AT_ONCE
) -> list[Found | None]:
    """Return each call's result, in order; None where a reply was malformed.

    Raises:
        Exception: The first other one that a call raised; the calls under way are cancelled.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(call: Callable[[], Awaitable[Found]]) -> Found | None:
        async with gate:
            try:
                return await call()
            except MalformedReply:
                return None

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _repair(reply: Reply, problem: Problem) -> list[dict[str, str]]:
    """Return the bad reply and the request to mend it, as messages."""
    wanted = prompts().render("repair", {"problem": problem.message, "kind": problem.kind.value})
    text = reply.text if len(reply.text) <= _ECHO else f"{reply.text[:_ECHO]}…"
    return [
        {"role": "assistant", "content": text.strip() or "(empty)"},  # many endpoints refuse an empty turn
        {"role": "user", "content": wanted},
    ]


def _malformed(model: Model, role: str, reply: Reply, problem: Problem) -> MalformedReply:
    start = " ".join(reply.text.split())[:160]
    start = f" It began: {start!r}." if start else ""
    wrong = problem.message.rstrip(".") + "."
    if problem.kind is ProblemKind.REFUSAL:
        return MalformedReply(f"{model.name} refused the task of the {role}: {wrong}{start}")
    return MalformedReply(
        f"{model.name} gave the {role} no usable reply in {MOST_REPAIRS + 1} tries: {wrong}{start}",
        hint="Raise max_output_tokens." if problem.kind is ProblemKind.LENGTH else "Try another model.",
    )
