"""Several ``quorum serve`` over one home and one PostgreSQL, which can be killed, stopped and started again.

    with Fleet(3, home, shop, model_url, checkpoints) as fleet:
        answers = asyncio.run(fleet.ask_all(texts))
        fleet.kill(0)
        fleet.start(0)

A client takes the processes in turn, as a proxy does: each request may reach another one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from quorum.graph.runs import RunFolder
from tests.servers.chat_server import closed_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import quorum.graph.leases as leases, quorum.serve.takeover as takeover
leases.SECONDS, leases.RENEWED, takeover.LOOKS = {seconds}, {looks}, {looks}
from quorum.cli import main
main()
"""
SECONDS = 10.0
"""Of a lease, as ``quorum.graph.leases`` has it."""


class Fleet:
    """The processes; a context manager. Each serves the databases ``db`` at a port of its own."""

    def __init__(
        self,
        count: int,
        home: Path,
        db: Sequence[str],
        model_url: str,
        checkpoints: str,
        *flags: str,
        seconds: float = SECONDS,
        looks: float = 0.0,
    ) -> None:
        self.home, self.ports = home, [closed_port() for _ in range(count)]
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count
        given = ["--home", str(home), "--model", "openai:simulated", "--base-url", model_url, *flags]
        given += ["--checkpoints", checkpoints, *(part for url in db for part in ("--db", url))]
        program = PROGRAM.format(seconds=seconds, looks=looks or seconds / 5)
        self._command = [sys.executable, "-c", program, "serve", *given]
        self._turn = itertools.count()

    def __enter__(self) -> Self:
        for number in range(len(self.ports)):
            self.start(number)
        for number in range(len(self.ports)):
            self.wait(number)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process:
                process.kill()
                process.wait()

    def start(self, number: int) -> None:
        """Start a process that is not running."""
        environment = os.environ | {"OPENAI_API_KEY": "k", "PYTHONPATH": str(ROOT)}
        environment |= {"LANGSMITH_TRACING": "false"}
        command = [*self._command, "--port", str(self.ports[number])]
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / f"serve{number}.log").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                command, cwd=self.home, env=environment, stdout=log, stderr=log
            )

    def wait(self, number: int) -> None:
        """Wait until a process answers."""
        wait_until(lambda: answers(self.url(number)), lambda: (self.home / f"serve{number}.log").read_text())

    def url(self, number: int | None = None) -> str:
        """The URL of a process; without a number, that of the next one."""
        number = next(self._turn) % len(self.ports) if number is None else number
        return f"http://127.0.0.1:{self.ports[number]}"

    def signal(self, number: int, what: signal.Signals) -> None:
        process = self.processes[number]
        process.send_signal(what)
        if what == signal.SIGKILL:
            process.wait()

    async def ask(self, client: httpx.AsyncClient, id: str, text: str, session: str = "") -> dict[str, Any]:
        """Ask, and wait for the answer; the question's body, as the API has it."""
        while True:
            try:
                asked = {"question": text, "id": id, "session": session}
                reply = await client.post(f"{self.url()}/v1/questions", json=asked)
                if reply.status_code == 202:
                    return await self.follow(client, id)
                busy = reply.status_code == 503 or (session and reply.status_code == 409)
                assert busy, reply.text  # the turn before was killed within a moment of its end
            except httpx.TransportError:  # killed, or not there yet
                pass
            await asyncio.sleep(0.02)

    async def follow(self, client: httpx.AsyncClient, id: str, at: int | None = None) -> dict[str, Any]:
        """Wait for the answer; the question's body."""
        while True:
            try:
                reply = await client.get(f"{self.url(at)}/v1/questions/{id}?wait=20")
                assert reply.status_code == 200, reply.text
                if (found := reply.json())["status"] != "running":
                    return dict(found)
            except httpx.TransportError:
                await asyncio.sleep(0.02)

    async def ask_all(self, texts: Sequence[str], at_once: int = 24) -> dict[str, dict[str, Any]]:
        """Ask all, so many at once; their bodies by id."""
        return await self.talk_all([[text] for text in texts], at_once)

    async def talk_all(self, talks: Sequence[Sequence[str]], at_once: int = 24) -> dict[str, dict[str, Any]]:
        """Hold conversations, so many at once, each turn after the one before; the turns' bodies by id."""
        gate, found = asyncio.Semaphore(at_once), dict[str, dict[str, Any]]()
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=200)) as client:

            async def one(number: int, turns: Sequence[str]) -> None:
                session = f"talk{number}" if len(turns) > 1 else ""
                async with gate:
                    for turn, text in enumerate(turns):
                        id = f"q{number:04}-{turn}"
                        found[id] = await self.ask(client, id, text, session)

            await asyncio.gather(*(one(n, turns) for n, turns in enumerate(talks)))
        return dict(sorted(found.items()))

    def runs(self) -> list[RunFolder]:
        """Every run in the home."""
        return [RunFolder(path.parent) for path in sorted(self.home.glob("runs/*/run.json"))]


def answers(url: str) -> bool:
    """True if a server is there."""
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def paid(run: RunFolder) -> Counter[Any]:
    """Model calls and queries that are billed, by who made them and what was asked."""
    events = [event for event in run.events() if "usage" in event]
    return Counter((e["kind"], e["agent"], e.get("candidate"), e["request"]) for e in events)


def outcome(body: dict[str, Any]) -> Any:
    """Return what a question's answer says, without times and names."""
    answer = body["answer"]
    said = ("status", "sql", "columns", "rows", "row_count", "confidence", "assumptions")
    return {name: answer[name] for name in said} | {"model_calls": answer["usage"]["model_calls"]}
