"""Many questions at once on an endpoint that refuses, or is away for a while: no question is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.evals.records import Record
from quorum.evals.running.runner import Evaluation, run_evaluation
from quorum.graph.options import RunOptions
from quorum.tools.models.pace import Timing
from tests.evals.simulated import make_suite
from tests.servers.chat_server import Answer, ChatServer, Request, say, status
from tests.servers.replies import reply_to

LATENCY = 0.02


def replies(request: Request) -> Answer:
    return say(reply_to(request.text), delay=LATENCY)


async def evaluate(
    folder: Path,
    url: str,
    *,
    questions: int = 24,
    concurrency: int = 12,
    seen: Callable[[Record], None] = lambda _: None,
) -> list[Record]:
    """The records of questions that take one call each; asserts that all are answered, and rightly."""
    suite = make_suite(folder, questions, 1)
    options = RunOptions(recipe="single", models=["openai:test"], base_url=url)
    evaluation = Evaluation(suite, options, suite.questions, folder / "out", concurrency=concurrency)
    records = list((await run_evaluation(evaluation, on_record=seen)).values())
    assert len(records) == questions
    assert [record.message for record in records if record.error or not record.match] == []
    return records


@pytest.mark.heavy
@pytest.mark.parametrize("headers", [{"Retry-After": "0.3"}, {}])
async def test_a_storm_of_refusals_loses_no_question_and_is_not_answered_by_one_of_retries(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    with ChatServer(replies, capacity=8, refusal=status(429, headers=headers)) as server:
        await evaluate(tmp_path, server.url, questions=60, concurrency=40)
    assert len(server.requests) == 60 + server.refused
    assert server.refused <= 40  # the first burst; what follows keeps below the capacity


@pytest.mark.heavy
async def test_an_endpoint_that_is_gone_for_a_while_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections break and nobody listens at its address any more, until somebody does again."""
    gone, missed = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        missed.set()
        await asyncio.sleep(seconds)

    monkeypatch.setattr("quorum.tools.models.providers.Timing", lambda: Timing(sleep=sleep))
    first = ChatServer(lambda request: Answer(drop=True) if gone.is_set() else replies(request))
    first.__enter__()

    async def restart() -> ChatServer:
        await gone.wait()
        await asyncio.to_thread(first.__exit__, None, None, None)
        missed.clear()
        await missed.wait()
        return ChatServer(replies, port=first.port).__enter__()

    restarting = asyncio.create_task(restart())
    try:
        await evaluate(tmp_path, first.url, seen=lambda _: gone.set())
    finally:
        gone.set()
        (await restarting).__exit__(None, None, None)
