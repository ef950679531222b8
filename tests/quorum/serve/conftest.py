"""A service over the small shop, with scripted models."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from quorum import Settings
from quorum.serve.http import make_app
from quorum.serve.keys import KeyFile
from quorum.serve.service import Service
from quorum.tools.models.scripted import ScriptedChatModel, scripted
from tests.graph.shop import ABOVE_SIX, GOOD, QUESTION, make_shop, script, sql, written
from tests.waiting import until

DIFFER = {
    "m:a": scripted(script(action=sql(GOOD), sql_writer=written(GOOD))),
    "m:b": scripted(script(action=sql(ABOVE_SIX), sql_writer=written(ABOVE_SIX))),
}
"""Models whose answers differ."""
ONE = {"m:a": DIFFER["m:a"]}
VIEW = {"ask": "view", "view": {"first": 1}, "words": "", "question": "?"}
VIEWS = {"m:a": scripted(script(sql_writer=written(GOOD), question_rewriter=VIEW))}
"""A model to which every further turn is a view of the first row."""

Make = Callable[..., Service]


@pytest.fixture
async def make(workplace: Path) -> AsyncIterator[Make]:
    """Makes services over the same home, as processes one after the other would."""
    made, shop = list[Service](), make_shop(workplace / "shop.db")

    def service(chat_models: Any = ONE, **given: Any) -> Service:
        about = {"recipe": "single", "models": [*(chat_models or ())], "home": workplace / "q"}
        made.append(Service(Settings(**about | given), {"shop": f"sqlite:///{shop}"}, chat_models))
        return made[-1]

    yield service
    for each in made:
        await each.aclose()


class HeldModel(ScriptedChatModel):
    """Replies to prompts that hold ``to`` once it may."""

    asked: list[int]
    may: Any
    to: str

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
        if self.to in str(messages):
            self.asked.append(1)
            await self.may.wait()
        return await super()._agenerate(messages, stop, run_manager, **more)


def held(to: str = "") -> HeldModel:
    said = script(sql_writer=written(GOOD))
    return HeldModel(script=said, source="held", asked=[], may=asyncio.Event(), to=to)


@contextmanager
def serving(home: Path, *flags: str, **variables: str) -> Iterator[tuple[str, list[str]]]:
    """A server in its own process; gives its address, and what it says once it has ended."""
    command = [sys.executable, "-m", "quorum", "serve", "--port", "0", *flags]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QUORUM_")}
    process = subprocess.Popen(command, cwd=home, env=clean | variables, stderr=subprocess.PIPE, text=True)
    last: list[str] = []
    try:
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert found, said + process.stderr.read()
        yield found[0], last
    finally:
        process.terminate()
        last += process.communicate(timeout=60)[1:]
    assert process.returncode == 0, last


@asynccontextmanager
async def served(service: Service, keys: KeyFile | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service over a socket."""
    service.keys = keys
    config = uvicorn.Config(make_app(service), log_level="warning", port=0)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    task = asyncio.ensure_future(server.serve(sockets=[socket]))
    await until(lambda: server.started)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{socket.getsockname()[1]}", timeout=60
    ) as client:
        yield client
    server.should_exit = True
    await task
    socket.close()


async def answered(client: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    """A question's body, once it has ended or waits."""
    begun = await client.post("/v1/questions", json={"question": QUESTION, **asked})
    assert begun.status_code == 202, begun.text
    return dict((await client.get(begun.json()["links"]["self"], params={"wait": 30})).json())


async def events(client: httpx.AsyncClient, id: str, last: str = "") -> list[tuple[str, str, dict[str, Any]]]:
    """All events of a question: their ids, kinds and data."""
    found, headers = [], {"last-event-id": last} if last else {}
    async with client.stream("GET", f"/v1/questions/{id}/events", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        text = "".join([part async for part in response.aiter_text()])
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found
