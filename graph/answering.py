"""Run the graph over an open context: one question, from its beginning or from its checkpoint."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.types import Command, Interrupt

from quorum.graph.answer import Answer
from quorum.graph.approval import ALL, Approval, read_approval
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.clarification import Clarification
from quorum.graph.context import Context
from quorum.graph.nodes.finish import INCOMPLETE
from quorum.knowledge.errors import MachineFailed, QuorumError

OnClarify: TypeAlias = Callable[[Clarification], str | Awaitable[str | None] | None]
OnApprove: TypeAlias = Callable[[Approval], str | bool | Awaitable[str | bool | None] | None]


class NeedsReply(QuorumError):
    """Raise it in ``on_clarify`` or ``on_approve`` where nobody can reply: the run ends at its question.

    It can be resumed, and asks again; its trace says ``waiting``.
    """

    def __init__(self, asked: Clarification | Approval) -> None:
        super().__init__("The run waits for a reply.", hint=asked.how)
        self.asked = asked


async def answer_question(
    context: Context,
    question: str,
    *,
    resumed: bool = False,
    on_clarify: OnClarify | None = None,
    on_approve: OnApprove | None = None,
) -> Answer:
    """Answer a question, and close the context.

    Args:
        resumed: The run was begun before: it goes on where its checkpoint stands, if it has one.
        on_clarify: Asked which answer is meant; needed where ``context.options.clarify`` is not ``off``.
        on_approve: Asked before queries run; needed where ``context.options.approve`` is not ``never``.

    Raises:
        NeedsReply: As ``on_clarify`` or ``on_approve`` raised it.
        QuorumError: The run cannot go on; its trace says so too.
    """
    trace = context.trace
    outside = var_child_runnable_config.set(None)  # else a graph around this one would take its checkpoints
    config: Any = {"configurable": {"thread_id": trace.lease.run if trace.lease else trace.run_id}}
    try:
        trace.record("begun", agent="run", run=trace.run_id, resumed=resumed)
        async with open_checkpoints(trace.checkpoint, trace.lease) as saver:
            graph = build_graph(context.recipe, checkpointer=saver)
            under_way = resumed and bool((await graph.aget_state(config)).values)
            start: Any = None if under_way else {"question": question}
            output = await graph.ainvoke(start, config, context=context, durability="sync")
            while waiting := output.get("__interrupt__"):
                asked = await _replies(waiting, context, on_clarify, on_approve)
                reply: Command[Any] = Command(resume=asked)
                output = await graph.ainvoke(reply, config, context=context, durability="sync")
        answer = Answer.model_validate(output["answer"])
    except NeedsReply as waiting:
        trace.record("waiting", agent="run", asked=waiting.asked.model_dump(mode="json"))
        raise
    except Exception as error:  # of any kind: whoever looks at the run later wants to know
        if not trace.finished:  # else only its last checkpoint is missing
            trace.record("failed", agent="run", error=type(error).__name__, message=str(error))
            check_machine(error)
            _check_checkpoint(error, trace.checkpoint)
            raise
        answer = Answer.model_validate(trace.finished)
    finally:
        var_child_runnable_config.reset(outside)
        await context.aclose()
    incomplete = [INCOMPLETE.format(trace.failure)] if trace.failure else []  # maybe by the answer itself
    answer.warnings = [*dict.fromkeys(answer.warnings + incomplete)]
    return answer


def _check_checkpoint(error: Exception, path: Path) -> None:
    """Raise a ``QuorumError`` if the run's checkpoint is damaged."""
    if getattr(error, "sqlite_errorname", ""):
        hint = "Delete that file, and the run begins again."
        raise QuorumError(f"The checkpoint {path} cannot be used: {error}.", hint=hint) from error


async def _replies(
    waiting: Sequence[Interrupt], context: Context, on_clarify: Any, on_approve: Any
) -> dict[str, str]:
    """Ask the user; return the reply to each interrupt by its id. The time they take is not the run's.

    Branches that want to run the same query get one reply; ``all`` is one for all of them. Replies that
    were given are passed on before the run ends for want of another.
    """
    await context.trace.aflush()
    start = context.ledger.clock()
    replies, said, unanswered = dict[str, str](), dict[str, str](), None
    refused_first = sorted(waiting, key=lambda each: not each.value.get("refused"))
    for each in refused_first:  # they say why they ask again
        try:
            if each.value.get("kind") != "approval":
                reply = await _said(on_clarify, Clarification.model_validate(each.value))
                replies[each.id] = reply or ""  # LangGraph takes None for none
                continue
            asked = Approval.model_validate(each.value)
            if ALL not in said.values() and asked.sql not in said:
                reply = await _said(on_approve, asked)
                said[asked.sql] = read_approval(reply) or str(reply)  # the run says if it is no reply
            replies[each.id] = said.get(asked.sql, ALL)
        except NeedsReply as waits:  # another one, in whatever order they come, may have its reply
            unanswered = unanswered or waits
    if unanswered and not replies:
        raise unanswered
    context.ledger.spent_seconds -= context.ledger.clock() - start
    return replies


async def _said(on: Any, asked: Clarification | Approval) -> Any:
    reply = on(asked)  # without it no run is begun that may ask
    return await reply if inspect.isawaitable(reply) else reply


_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}
_MACHINE |= {errno.ENOMEM}
_SQLITE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_READONLY")


def check_machine(error: Exception) -> None:
    """Raise ``MachineFailed`` if the machine failed, not the question."""
    sqlite = str(getattr(error, "sqlite_errorname", ""))
    own = isinstance(error, MemoryError) or sqlite.startswith(_SQLITE)
    if own or (isinstance(error, OSError) and error.errno in _MACHINE):
        full = sqlite == "SQLITE_FULL"
        what = "no space is left for the run's checkpoint" if full else str(error) or type(error).__name__
        hint = "See to its disk, memory or limit of open files."
        raise MachineFailed(f"This machine cannot go on: {what}.", hint=hint) from error
