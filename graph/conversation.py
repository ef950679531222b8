"""A conversation as a graph: a turn becomes a question, a view of the last result, or words about it.

QuestionRewriter ─ answer    a run of the recipe's graph, for the question that the turn became
                 └ show      no query runs
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeAlias, TypedDict, cast

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph

from quorum.agents.rewriters import QUESTION_REWRITER, View
from quorum.graph.answer import Answer
from quorum.graph.builder import build_graph
from quorum.graph.clarification import extended
from quorum.graph.context import Context
from quorum.graph.node_context import close_own
from quorum.graph.nodes.results import keep_result
from quorum.graph.nodes.step import Update, tell
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import RecipeGraph
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import Known
from quorum.graph.turns import (
    TURNS,
    conversation,
    describe,
    plain_view,
    stands_alone,
    supported,
    view_of,
)
from quorum.knowledge.errors import QuorumError
from quorum.tools.query import QueryResult

Answering: TypeAlias = Callable[[Context, str], Awaitable[Answer]]
"""Answers a question in an open context, and closes that if the graph opened it."""

LEFT_OUT = " (Sentences with numbers that no query returned are left out.)"


class TalkInput(TypedDict):
    """The input of a turn: a message of the person."""

    messages: Annotated[list[AnyMessage], add_messages]


@dataclass
class Talk:
    """The state of a conversation.

    Attributes:
        answer: The last one, ``quorum.graph.answer.Answer`` as a plain dict.
        turns: The latest ``TURNS`` that were answered.
        settled: What the person has settled for the rest of the conversation, in sentences.
        became: The question that the turn became.
        view, words: What it is instead, if no query is needed.
        run_id: The run of the turn.
    """

    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    turns: list[dict[str, Any]] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    became: str = ""
    view: dict[str, Any] | None = None
    words: str = ""
    run_id: str = ""
    stopped_by: str = ""

    @property
    def question(self) -> str:
        """The turn: the text of the last message."""
        last = self.messages[-1] if self.messages else None
        return str(last.text) if last is not None and last.type == "human" else ""


def build_conversation(
    recipe: Recipe,
    say: Callable[[Answer], str],
    *,
    answering: Answering | None = None,
    options: type[RunOptions] = RunOptions,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile a conversation. Its input is ``{"messages": [{"role": "user", "content": "and by month?"}]}``.

    Args:
        say: Makes the text of the message that replies.
        answering: By default the recipe's graph, as a subgraph whose interrupts are the conversation's.
    """
    graph = RecipeGraph(recipe, Talk, context_schema=options, input_schema=TalkInput)
    graph.add_edge(START, "QuestionRewriter")
    graph.add_step("QuestionRewriter", rewrite, first=True)
    graph.add_conditional_edges("QuestionRewriter", _way, {"answer": "answer", "show": "show"})
    graph.add_step("answer", partial(answer, answering=answering or partial(as_subgraph, options), say=say))
    graph.add_step("show", partial(show, say=say))
    graph.add_edge("answer", END)
    graph.add_edge("show", END)
    # what roles say is no message of the conversation
    return graph.compile(name="chat").with_config(tags=["nostream"])


def _way(state: Talk) -> str:
    return "show" if state.view or state.words else "answer"


async def as_subgraph(options: type[RunOptions], context: Context, question: str) -> Answer:
    """Answer by the recipe's graph inside the graph that runs now."""
    graph, open_one = build_graph(context.recipe, options=options), cast("Any", context)
    output = await graph.ainvoke({"question": question}, context=open_one)
    return Answer.model_validate(output["answer"])


async def rewrite(state: Talk, context: Context) -> Update:
    """Say what the turn asks for; a role is asked only where the turn does not plainly say it itself."""
    turn, settled = state.question, state.settled
    new: Update = {"run_id": context.trace.run_id, "view": None, "words": "", "stopped_by": ""}
    tables = [table.name for table in context.resources.catalog.tables]
    if state.answer is None or stands_alone(turn, tables):
        return new | {"became": _with(turn, settled)}
    last = Answer.model_validate(state.answer)
    if (view := plain_view(turn)) and await asyncio.to_thread(view_of, last, view):
        return new | {"became": describe(view), "view": view.model_dump()}
    told = conversation([Answer.model_validate(each) for each in state.turns])
    asked = Known(question=turn, run_id=context.trace.run_id)
    about: dict[str, Any] = {"conversation": told, "settled": settled}
    reply = await tell(asked, context, QUESTION_REWRITER, "rewriting", **about)
    new["settled"] = reply.settled
    if reply.ask == "view" and await asyncio.to_thread(view_of, last, reply.view):
        return new | {"became": describe(reply.view), "view": reply.view.model_dump()}
    if reply.ask == "words" and (words := supported(reply.words, f"{told}\n{turn}")):
        words += LEFT_OUT if len(words) < len(reply.words.strip()) else ""
        return new | {"became": "a question about the answer before", "words": words}
    became = _with(reply.question, reply.settled)
    await asyncio.to_thread(context.trace.amend, question=became, turn=turn)
    return new | {"became": became}


def _with(question: str, settled: list[str]) -> str:
    """Return the question with what was settled before and it does not say itself."""
    return extended(question, " ".join(settled)) if settled else question


async def answer(
    state: Talk, context: Context, *, answering: Answering, say: Callable[[Answer], str]
) -> Update:
    """Answer the question that the turn became."""
    made = await answering(context, state.became)
    became = state.became if state.became != state.question else ""
    made = made.model_copy(update={"turn": state.question, "became": became})
    chosen = [f"For “{made.question}” this is meant: {made.meant}"] if made.meant else []
    return _replied(state, made, say) | {"settled": [*state.settled, *chosen]}


async def show(state: Talk, context: Context, *, say: Callable[[Answer], str]) -> Update:
    """Show the last result otherwise, or say what there is to say about it, without a query."""
    assert state.answer is not None  # else the turn is a question
    last = Answer.model_validate(state.answer)
    changed = await _view(last, View(**state.view), context) if state.view else {"words": state.words}
    changed |= {
        "question": state.question,
        "turn": state.question,
        "became": state.became,
        "of_run": last.of_run or last.run_id,
        "usage": context.ledger.as_dict(),
        "run_id": context.trace.run_id,
        "trace": str(context.trace.folder),
    }
    made = last.model_copy(update={"words": "", "chart": "", **changed})
    context.trace.record("answer", agent="answer", status=made.status, sql="")
    context.trace.finish(made.model_dump(mode="json"))
    await close_own(context)
    return _replied(state, made, say)


async def _view(last: Answer, view: View, context: Context) -> dict[str, Any]:
    """Return the fields of an answer that a view changes."""
    table = await asyncio.to_thread(view_of, last, view)
    if table is None:
        raise QuorumError(f"The rows of the run {last.run_id} are gone.", hint="Ask its question again.")
    cut = last.truncated and not view.first
    kept = await keep_result(QueryResult(table, 0.0), context.trace.folder)
    return {
        "columns": kept.columns,
        "types": kept.types,
        "rows": kept.preview,
        "row_count": kept.row_count,
        "truncated": cut,
        "result_file": str(context.trace.folder / kept.file),
        "chart": view.chart,
        "readings": [],
        "sources": [],
        "verified": [],
        "convention": "",
    }


def _replied(state: Talk, made: Answer, say: Callable[[Answer], str]) -> Update:
    """Return the update of a turn that was answered."""
    return {
        "messages": [AIMessage(say(made))],
        "answer": made.model_dump(mode="json"),
        "turns": [*state.turns, remembered(made)][-TURNS:],
    }


def remembered(made: Answer) -> dict[str, Any]:
    """Return what a conversation keeps of an answer for later turns."""
    return made.model_dump(mode="json", exclude={"candidates", "vote", "usage", "tables", "disagreement"})
