"""Use Quorum's graph as a node of your own LangGraph graph, with a state and a context of its own.

python examples/subgraph.py
"""

import asyncio
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from quorum.graph.builder import build_graph
from quorum.graph.options import RunOptions


class State(TypedDict, total=False):
    """The graph and Quorum share ``question`` and ``answer``."""

    topic: str
    question: str
    answer: dict[str, Any]
    report: str


class Reader(TypedDict):
    """Who reads the report: this graph's own context."""

    name: str


def ask_for(state: State) -> State:
    return {"question": f"How many {state['topic']} are there?"}


def report(state: State, runtime: Runtime[Reader]) -> State:
    return {"report": f"{runtime.context['name']}: {state['topic']} {state['answer']['rows']}"}


async def main() -> None:
    graph = StateGraph(State, context_schema=Reader)
    graph.add_node("ask_for", ask_for)
    graph.add_node("quorum", build_graph(options=RunOptions(database="sample", models=["offline"])))
    graph.add_node("report", report)
    for before, after in ((START, "ask_for"), ("ask_for", "quorum"), ("quorum", "report"), ("report", END)):
        graph.add_edge(before, after)
    compiled = graph.compile(checkpointer=InMemorySaver())
    for topic in ("customers", "orders"):
        thread: Any = {"configurable": {"thread_id": topic}}
        async for path, update in compiled.astream(
            {"topic": topic}, thread, context={"name": "Ada"}, stream_mode="updates", subgraphs=True
        ):
            print(" / ".join([*(each.partition(":")[0] for each in path), *update]))
        print((await compiled.aget_state(thread)).values["report"])


asyncio.run(main())
