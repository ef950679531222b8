"""Give an agent of your own a tool that asks a database.

python examples/agent.py                    a stand-in for a model, which only shows the way
python examples/agent.py openai:gpt-4.1     your model
"""

import asyncio
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from quorum import Quorum


class StandIn(GenericFakeChatModel):
    """Says what it was given, whatever it is asked."""

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self


QUESTION = "How many customers are there?"
CALL = {"name": "ask_database", "args": {"question": QUESTION}, "id": "1"}
stand_in = StandIn(messages=iter([AIMessage("", tool_calls=[CALL]), AIMessage("See the table above.")]))


async def main() -> None:
    async with Quorum(db="sample", models=["offline"]) as quorum:
        tool = await quorum.as_tool()
        agent = create_agent(sys.argv[1] if len(sys.argv) > 1 else stand_in, [tool])
        print(tool.description)
        reply = await agent.ainvoke({"messages": [("user", "How many customers do we have?")]})
        for message in reply["messages"]:
            print(f"{message.type}: {message.content}")
            if message.type == "tool":
                print("SQL:", message.artifact.sql)


asyncio.run(main())
