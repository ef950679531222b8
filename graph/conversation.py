"""A conversation as a graph: a turn becomes a question, a view of the last result, or words about it.

QuestionRewriter ─ answer    a run of the recipe's graph, for the question that the turn became
                 └ show      no query runs
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeAlias, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph

from quorum.agents.prompting import show_row
from quorum.agents.rewriters import QUESTION_REWRITER, View
from quorum.graph.answer import Answer
from quorum.graph.builder import build_graph
from quorum.graph.clarification import extended
from quorum.graph.context import Context
from quorum.graph.node_context import close_own
from quorum.graph.nodes.finish import rows_of
from quorum.graph.nodes.results import keep_result
from quorum.graph.nodes.step import Update, tell
from quorum.graph.options import RunOptions
from quorum.graph.recipes.branch import RecipeGraph
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import SharedState
from quorum.knowledge.errors import BudgetExceeded, QuorumError
from quorum.knowledge.search.lexical import terms
from quorum.tools.query import QueryResult

Answering: TypeAlias = Callable[[Context, str], Awaitable[Answer]]
"""Answers a question in an open context, and closes that if the graph opened it."""

Say: TypeAlias = Callable[[Answer], str]
"""Makes the text of a message of an answer."""

TURNS = 6
"""The latest turns, which the QuestionRewriter sees: ``HEAD_ROWS`` of each, of the last what was shown."""
HEAD_ROWS = 3

LEAST_WORDS = 7
"""A shorter turn may lean on the turn before, whatever it says."""

LEFT_OUT = " (Sentences with numbers that no query returned are left out.)"


class TalkInput(TypedDict):
    """The input of a turn: a message of the person."""

    messages: Annotated[list[AnyMessage], add_messages]


@dataclass
class Talk:
    """The state of a conversation.

    Attributes:
        answer: The last one, ``quorum.graph.answer.Answer`` as a plain dict.
        turns: The latest answers, without what the QuestionRewriter does not see.
        settled: What the person has settled for the rest of the conversation, in sentences.
        became: The question that the turn became; ``view`` or ``words`` are set if it needs no query.
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
    say: Say,
    *,
    answering: Answering | None = None,
    options: type[RunOptions] = RunOptions,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile a conversation. Its input is ``{"messages": [{"role": "user", "content": "and by month?"}]}``.

    Args:
        answering: By default the recipe's graph, as a subgraph whose interrupts are the conversation's.
    """

    async def as_subgraph(context: Context, question: str) -> Answer:
        inner, opened = build_graph(recipe, options=options), cast("Any", context)
        return Answer.model_validate((await inner.ainvoke({"question": question}, context=opened))["answer"])

    def way(state: Talk) -> str:
        return "show" if state.view or state.words or state.stopped_by else "answer"

    graph = RecipeGraph(recipe, Talk, context_schema=options, input_schema=TalkInput)
    graph.add_edge(START, "QuestionRewriter")
    graph.add_step("QuestionRewriter", rewrite, first=True)
    graph.add_conditional_edges("QuestionRewriter", way, ["answer", "show"])
    graph.add_step("answer", partial(answer, answering=answering or as_subgraph, say=say))
    graph.add_step("show", partial(show, say=say))
    graph.add_edge("answer", END)
    graph.add_edge("show", END)
    return graph.compile(name="chat").with_config(tags=["nostream"])  # what roles say is no message of it


async def rewrite(state: Talk, context: Context) -> Update:
    """Say what the turn asks for; a role is asked only where the turn does not plainly say it itself."""
    turn, settled = state.question, state.settled
    new: Update = {"run_id": context.trace.run_id, "view": None, "words": "", "stopped_by": ""}
    tables = [table.name for table in context.resources.catalog.tables]
    if state.answer is None or stands_alone(turn, tables):
        return new | {"became": extended(turn, " ".join(settled)) if settled else turn}
    last, said = Answer.model_validate(state.answer), conversation(state.turns)
    asked = SharedState(question=turn, run_id=context.trace.run_id)
    about: dict[str, Any] = {"conversation": said, "settled": settled}
    try:
        reply = await tell(asked, context, QUESTION_REWRITER, "rewriting", **about)
    except BudgetExceeded as error:
        return new | {"became": turn, "stopped_by": error.limit}
    new["settled"] = settled = reply.settled
    if reply.ask == "view" and await asyncio.to_thread(view_of, last, reply.view) is not None:
        return new | {"became": describe(reply.view), "view": reply.view.model_dump()}
    if reply.ask == "words" and (words := supported(reply.words, f"{said}\n{turn}")):
        words += LEFT_OUT if len(words) < len(reply.words.strip()) else ""
        return new | {"became": "a question about the answer before", "words": words}
    became = extended(reply.question, " ".join(settled)) if settled else reply.question
    await asyncio.to_thread(context.trace.amend, question=became, turn=turn)
    return new | {"became": became}


async def answer(state: Talk, context: Context, *, answering: Answering, say: Say) -> Update:
    """Answer the question that the turn became."""
    made = await answering(context, state.became)
    became = state.became if state.became != state.question else ""
    made = made.model_copy(update={"turn": state.question, "became": became})
    chosen = [f"For “{made.question}” this is meant: {made.meant}"] if made.meant else []
    return _replied(state, made, say) | {"settled": [*state.settled, *chosen]}


async def show(state: Talk, context: Context, *, say: Say) -> Update:
    """Show the last result otherwise, say what there is to say about it, or that a limit is reached."""
    last, trace = Answer.model_validate(state.answer), context.trace
    if state.stopped_by:  # before it was known what the turn asks for
        about = {name: getattr(last, name) for name in ("database", "dialect", "recipe")}
        last = Answer(question=state.question, status="stopped", stopped_by=state.stopped_by, **about)
    changed = await _viewed(last, View(**state.view), context) if state.view else {"words": state.words}
    became = state.became if state.became != state.question else ""
    changed |= {"question": state.question, "turn": state.question, "became": became}
    changed |= {"of_run": last.of_run or last.run_id, "run_id": trace.run_id, "trace": str(trace.folder)}
    changed |= {"usage": context.ledger.as_dict(), "sources": [], "verified": [], "convention": ""}
    made = last.model_copy(update={"words": "", "chart": "", **changed})
    trace.record("answer", agent="answer", status=made.status, sql="")
    trace.finish(made.model_dump(mode="json"))
    await close_own(context)
    return _replied(state, made, say)


async def _viewed(last: Answer, view: View, context: Context) -> dict[str, Any]:
    """Return the fields of an answer that a view changes."""
    table = await asyncio.to_thread(view_of, last, view)
    if table is None:
        raise QuorumError(f"The rows of the run {last.run_id} are gone.", hint="Ask its question again.")
    kept = await keep_result(QueryResult(table, 0.0), context.trace.folder)
    return {
        **rows_of(kept, context.trace.folder),
        "truncated": last.truncated and not view.first,
        "chart": view.chart,
        "readings": [],
    }


def _replied(state: Talk, made: Answer, say: Say) -> Update:
    turns = [*state.turns, remembered(made)][-TURNS:]
    return {"messages": [AIMessage(say(made))], "answer": made.model_dump(mode="json"), "turns": turns}


def remembered(made: Answer) -> dict[str, Any]:
    """Return what a conversation keeps of an answer for later turns."""
    return made.model_dump(mode="json", exclude={"candidates", "vote", "usage", "tables", "disagreement"})


def conversation(turns: Sequence[dict[str, Any]]) -> str:
    """Return the turns as the QuestionRewriter sees them."""
    found = [Answer.model_validate(each) for each in turns]
    whole = {found[-1].run_id, found[-1].of_run} if found else set()  # a view may hide rows that are meant
    return "\n\n".join("\n".join(_lines(n, each, each.run_id in whole)) for n, each in enumerate(found, 1))


def _lines(number: int, past: Answer, whole: bool) -> Iterator[str]:
    yield f"Turn {number}: {past.turn or past.question}"
    yield from [f"It became: {past.became}"] if past.became else []
    yield from [f"Reply: {past.words}"] if past.words else []
    yield from [] if past.status == "answered" else [f"No answer: {past.missing or past.status}"]
    yield from (f"It assumes: {text}" for text in past.assumptions)
    yield from (f"It could also mean: {reading.says}" for reading in past.readings)
    yield from (f"The data shows: {text}" for text in past.doubts)
    yield from [f"Query: {past.sql}"] if past.sql else []
    if past.columns:
        rows = past.rows if whole else past.rows[:HEAD_ROWS]
        cut = ", cut off: there are more" if past.truncated else ""
        yield f"Confidence: {100 * past.confidence:.0f} %; columns: {show_row(past.columns)}"
        yield from map(show_row, rows)
        yield f"({len(rows)} of {past.row_count} rows{cut})"


_BEGINS = re.compile(
    r"(?:in |for |of |from )?(?:how (?:many|much)|which|what|who|when|where|list|find|count)\b"
)
_ELLIPSIS = re.compile(
    r"^(?:how (?:many|much)|which) (?:am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|of)\b"
    r"|\b(?:most|least|highest|lowest|best|worst|more|fewer|less|not)\W*$"
)
_EXISTS = re.compile(r"\b(is|are|was|were) there\b")
_REFERS = """
it its they them their theirs he him his she her hers that those these this same there then than such so
one ones both either neither again instead also too only else other others another rest remaining further
previous before above earlier former latter last result results answer row rows i we you my our your
"""


def stands_alone(turn: str, tables: Iterable[str]) -> bool:
    """True if a turn is plainly understood without those before it, so that no role need be asked.

    That is a question in English, of ``LEAST_WORDS`` words or more, that names a table, refers to nothing
    (``they``, ``instead``, ``the other``) and leaves nothing out (``Which has the most?``). In doubt it is
    False, which costs one call. ``How many orders were returned in May 2024?`` stands alone.
    """
    said = _EXISTS.sub(r"\1", " ".join(turn.casefold().split()))
    words = re.findall(r"[^\W_]+", said)
    if len(words) < LEAST_WORDS or not _BEGINS.match(said) or _ELLIPSIS.search(said):
        return False
    named = {term for table in tables for term in terms(table)}
    return set(words).isdisjoint(_REFERS.split()) and not named.isdisjoint(terms(turn))


def view_of(answer: Answer, view: View) -> pa.Table | None:
    """Return the rows of a view of an answer's result; None where they need a query.

    That is so if a column is not there, more rows are asked for than there are of a result that was cut off,
    or the cut result would be sorted: its largest rows need not be among those that were kept.
    """
    try:
        table = answer.to_arrow()
        places = {name.casefold(): n for n, name in reversed([*enumerate(table.column_names)])}
        shown = [places[name.casefold()] for name in view.columns] or [*range(table.num_columns)]
        if answer.truncated and (view.sort_by or (view.first or 0) > table.num_rows):
            return None
        if view.sort_by:
            order = "descending" if view.descending else "ascending"
            by = table.column(places[view.sort_by.casefold()])
            table = table.take(pc.sort_indices(by, sort_keys=[("", order)]))
    except (QuorumError, KeyError, pa.ArrowNotImplementedError):  # no file, no such column, or no order
        return None
    return table.select(shown).slice(0, view.first) if shown else None


def describe(view: View) -> str:
    """Return a view in words: ``the result before: sorted by spent, descending; its first 3 rows``."""
    order = ", descending" if view.descending else ""
    parts = [f"sorted by {view.sort_by}{order}"] if view.sort_by else []
    parts += [f"its first {view.first} rows"] if view.first else []
    parts += [f"only {', '.join(view.columns)}"] if view.columns else []
    parts += [f"as a {view.chart} chart"] if view.chart else []
    return f"the result before: {'; '.join(parts) or 'as it is'}"


_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


def supported(words: str, shown: str) -> str:
    """Return the sentences whose numbers all stand in what was shown: the others claim what no query did."""

    def numbers(text: str) -> set[str]:
        plain = (found.replace(",", "").partition(".") for found in _NUMBER.findall(text))
        return {f"{whole.lstrip('0')}{(dot + rest).rstrip('0').rstrip('.')}" for whole, dot, rest in plain}

    known = numbers(shown)
    return " ".join(each for each in re.split(r"(?<=[.!?])\s+", words.strip()) if known >= numbers(each))
