"""Run the graph over an open context: one question, from its beginning or from its checkpoint."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from langgraph.types import Command

from quorum.graph.answer import Answer
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.clarification import Clarification
from quorum.graph.context import Context
from quorum.graph.machine import check_machine
from quorum.graph.nodes.finish import INCOMPLETE
from quorum.knowledge.errors import QuorumError

OnClarify: TypeAlias = Callable[[Clarification], str | Awaitable[str | None] | None]


async def answer_question(
    context: Context, question: str, *, resumed: bool = False, on_clarify: OnClarify | None = None
) -> Answer:
    """Answer a question, and close the context.

    Args:
        resumed: The run was begun before: it goes on where its checkpoint stands, if it has one.
        on_clarify: Asked which answer is meant; needed where ``context.options.clarify`` is set.

    Raises:
        QuorumError: The run cannot go on; its trace says so too.
    """
    trace = context.trace
    try:
        trace.record("begun", agent="run", run=trace.run_id, resumed=resumed)
        answer = await _invoke(context, question, on_clarify, resumed=resumed)
    except Exception as error:  # of any kind: whoever looks at the run later wants to know
        if not trace.finished:  # else only its last checkpoint is missing
            trace.record("failed", agent="run", error=type(error).__name__, message=str(error))
            check_machine(error)
            _check_checkpoint(error, trace.checkpoint)
            raise
        answer = Answer.model_validate(trace.finished)
    finally:
        await context.aclose()
    incomplete = [INCOMPLETE.format(trace.failure)] if trace.failure else []  # maybe by the answer itself
    answer.warnings = [*dict.fromkeys(answer.warnings + incomplete)]
    return answer


def _check_checkpoint(error: Exception, path: Path) -> None:
    """Raise a ``QuorumError`` if the run's checkpoint is damaged."""
    if getattr(error, "sqlite_errorname", ""):
        hint = "Delete that file, and the run begins anew."
        raise QuorumError(f"The checkpoint {path} cannot be used: {error}.", hint=hint) from error


async def _invoke(context: Context, question: str, on_clarify: OnClarify | None, *, resumed: bool) -> Answer:
    config: Any = {"configurable": {"thread_id": context.trace.run_id}}
    async with open_checkpoints(context.trace.checkpoint) as saver:
        graph = build_graph(context.recipe, checkpointer=saver)
        under_way = resumed and bool((await graph.aget_state(config)).values)
        start: Any = None if under_way else {"question": question}
        output = await graph.ainvoke(start, config, context=context, durability="sync")
        while asked := output.get("__interrupt__"):
            assert on_clarify is not None  # without it no run is begun that may ask
            reply: Command[Any] = Command(resume=await _reply(asked[0].value, on_clarify, context))
            output = await graph.ainvoke(reply, config, context=context, durability="sync")
    return Answer.model_validate(output["answer"])


async def _reply(asked: Any, on_clarify: OnClarify, context: Context) -> str:
    """What the user replies, empty to keep the vote; the time they take is not the run's."""
    await context.trace.aflush()
    start = context.ledger.clock()
    reply = on_clarify(Clarification.model_validate(asked))
    text = await reply if inspect.isawaitable(reply) else reply
    context.ledger.spent_seconds -= context.ledger.clock() - start
    return text or ""  # LangGraph takes None for no reply at all
