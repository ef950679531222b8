"""Use the LangGraph object itself: stream the updates of its nodes as they come.

python examples/langgraph_object.py
"""

import asyncio

from quorum.graph.builder import build_graph
from quorum.graph.options import RunOptions


async def main() -> None:
    graph = build_graph("quorum")
    options = RunOptions(database="sample", models=["offline"], votes=2)
    question = {"question": "How many customers are there?"}
    async for update in graph.astream(question, context=options, stream_mode="updates"):
        for node, change in update.items():
            print(f"{node}: {', '.join(change or {})}")
            if node == "answer":
                print(change["answer"]["sql"], change["answer"]["rows"])


asyncio.run(main())
