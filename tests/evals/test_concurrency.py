"""Many questions at once on an endpoint that is away for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorum.evals.running.runner import Evaluation, run_evaluation
from quorum.graph.options import RunOptions
from quorum.tools.models.pace import Timing
from tests.evals.simulated import make_suite
from tests.servers.chat_server import Answer, ChatServer, Request, say
from tests.servers.replies import reply_to


@pytest.mark.heavy
async def test_an_endpoint_that_is_gone_for_a_while_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections break and nobody listens at its address any more, until somebody does again."""
    gone, missed = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        missed.set()
        await asyncio.sleep(seconds)

    def replies(request: Request) -> Answer:
        return say(reply_to(request.text), delay=0.02)

    monkeypatch.setattr("quorum.tools.models.providers.Timing", lambda: Timing(sleep=sleep))
    first = ChatServer(lambda request: Answer(drop=True) if gone.is_set() else replies(request))
    first.__enter__()

    async def restart() -> ChatServer:
        await gone.wait()
        await asyncio.to_thread(first.__exit__, None, None, None)
        missed.clear()
        await missed.wait()
        return ChatServer(replies, port=first.port).__enter__()

    suite = make_suite(tmp_path, 24, 1)
    options = RunOptions(recipe="single", models=["openai:test"], base_url=first.url)
    asked = Evaluation(suite, options, suite.questions, tmp_path / "out", concurrency=12)
    restarting = asyncio.create_task(restart())
    try:
        records = (await run_evaluation(asked, on_record=lambda _: gone.set())).values()
    finally:
        gone.set()
        (await restarting).__exit__(None, None, None)
    assert len(records) == 24
    assert [record.message for record in records if record.error or not record.match] == []
