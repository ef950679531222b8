"""A run that is killed at any moment asks no model, and runs no query, a second time."""

from __future__ import annotations

import json
import math
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.runs import RunFolder
from tests.graph.shop import CITIES, GOOD, OTHER, QUESTION, TOWNS, corrected, explored, make_shop, sql
from tests.quorum.forked import OUTPUT, Forked
from tests.quorum.roles import by_role
from tests.servers.chat_server import ChatServer

TIMES = {"seconds", "model_seconds", "query_seconds"}
LONG = "Count the orders of each city. " * 100
REPLIES = {
    "action": sql(GOOD) | {"thought": LONG},
    "sql_writer": {"reasoning": LONG, "sql": GOOD, "readings": [f"{LONG} Or customers."]},
    "reading_writer": {"reasoning": LONG, "readings": [{"meaning": "Which?", "sql": OTHER}]},
    "column_explorer": explored(CITIES, TOWNS),
    "exploration_corrector": corrected("SELECT name FROM customers LIMIT 20"),
}
ALONE = ("--switch", "exploration=always")
"""Each candidate explores for itself."""


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(by_role(**REPLIES)) as server:
        yield server


@pytest.fixture(scope="module")
def quorum(server: ChatServer, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_BASE_URL", server.url)
        environment.setenv("OPENAI_API_KEY", "test-key")
        started = Forked(tmp_path_factory.mktemp("forked"), root)
    with started:
        yield started


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("recipe", "votes", "every"),
    [
        *((("quorum",), 2, 6), (("recap",), 1, 9), (("reforce", *ALONE), 2, 7), (("sqlagent",), 1, 4)),
        (("ssev",), 2, 6),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_run_killed_after_any_event_repeats_no_call(
    tmp_path: Path, quorum: Forked, server: ChatServer, recipe: tuple[str, ...], votes: int, every: int
) -> None:
    shop = make_shop(tmp_path / "shop.db")
    server.requests.clear()
    asked = (QUESTION, "--db", f"sqlite:///{shop}", "--model", "openai:test", "--recipe", *recipe)

    def left(home: str) -> RunFolder:
        return RunFolder.open(tmp_path / home, "last")

    def ask(*arguments: str, home: str, events: float = math.inf) -> int:
        quorum.start("ask", "-q", "--home", str(tmp_path / home), *arguments, events=events)
        return quorum.wait()

    assert ask(*asked, "--votes", str(votes), home="whole") == 0
    whole = left("whole")
    once = len(server.requests)
    for events in range(1, len(list(whole.events())) + 1, every):
        server.requests.clear()
        assert ask(*asked, "--votes", str(votes), home=f"{events}", events=events) == -signal.SIGKILL
        assert ask("--resume", "last", home=f"{events}") == 0, (quorum.folder / OUTPUT).read_text()
        killed = left(f"{events}")
        assert _paid(killed) == _paid(whole), events
        assert _result(killed) == _result(whole), events
        assert once <= len(server.requests) < once + votes, "but for calls that were under way"


def _paid(run: RunFolder) -> tuple[Counter[Any], Counter[Any]]:
    """Model calls and queries that are billed, by who made them and what they asked."""
    paid = [event for event in run.events() if "usage" in event]
    calls = Counter((e["agent"], e["candidate"], e["request"]) for e in paid if e["kind"] == "model_call")
    return calls, Counter(e["executed"] for e in paid if e["kind"] == "query")


def _result(run: RunFolder) -> str:
    """The answer without names of the run, and times."""
    found = run.answer()
    answer = found.model_dump(mode="json")
    usage = answer.pop("usage")
    accounts = {"total": usage, **usage.pop("by_agent"), **usage.pop("by_model")}
    kept = {agent: {k: v for k, v in used.items() if k not in TIMES} for agent, used in accounts.items()}
    text = json.dumps([answer, kept], sort_keys=True)
    return text.replace(str(run.folder), "RUN").replace(run.run_id, "RUN")
