"""``langgraph dev`` serves the graph: boot it on loopback and ask through the SDK."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.recipes import RECIPES
from tests.servers.chat_server import closed_port

pytest.importorskip("langgraph_cli", reason="the extra `studio` is not installed")
langgraph_sdk = pytest.importorskip("langgraph_sdk", reason="the extra `studio` is not installed")

BOOT_SECONDS = 90.0
QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
}


@pytest.fixture(scope="module")
def studio(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ``langgraph dev`` of its own."""
    folder, port = tmp_path_factory.mktemp("studio"), closed_port()
    environment = os.environ | QUIET | {"QUORUM_HOME": str(folder / "home"), "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(root / "langgraph.json")]
    command += ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    log = folder / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield _when_up(f"http://127.0.0.1:{port}", process, log)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _when_up(url: str, process: subprocess.Popen[bytes], log: Path) -> str:
    import httpx

    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/ok", timeout=1).is_success:
                return url
        except httpx.HTTPError:
            time.sleep(0.2)
    pytest.fail(f"langgraph dev did not come up:\n{log.read_text()[-3000:]}")


@pytest.mark.timeout(180)
async def test_a_question_runs_to_its_answer_and_streams_each_step(studio: str) -> None:
    client = langgraph_sdk.get_client(url=studio)
    thread = await client.threads.create()
    steps: list[str] = []
    async for part in client.runs.stream(
        thread["thread_id"],
        "quorum",
        input={"question": "How many customers are there?"},
        context={"votes": 2},
        stream_mode=["updates", "events"],
        stream_subgraphs=True,
    ):
        assert part.event != "error", part.data
        if part.event.startswith("updates"):
            steps.extend(part.data)
    assert {"open_run", "write_plan", "write", "run_sql", "consensus", "answer"} <= set(steps)
    state: Any = await client.threads.get_state(thread["thread_id"])
    answer = state["values"]["answer"]
    assert answer["status"] == "answered"
    assert len(answer["candidates"]) == 2
    assert answer["demonstration"] is True


async def test_the_context_form_names_database_recipe_and_votes(studio: str) -> None:
    client = langgraph_sdk.get_client(url=studio)
    schemas = await client.assistants.get_schemas(
        (await client.assistants.search(graph_id="quorum"))[0]["assistant_id"]
    )
    form = schemas["context_schema"]["properties"]
    assert form["database"]["default"] == "sample"
    assert form["recipe"]["default"] == "quorum"
    assert form["votes"]["default"] is None  # the recipe's own
    assert form["recipe"]["enum"] == list(RECIPES)
    assert "mbr" in form["strategy"]["enum"]
    assert form["retrieval"]["enum"] == ["lexical", "hybrid"]
    assert all(field["description"] for field in form.values())
    assert list(schemas["input_schema"]["properties"]) == ["question"]


@pytest.mark.timeout(180)
async def test_an_interrupted_run_shows_where_it_stands_and_goes_on(studio: str) -> None:
    client = langgraph_sdk.get_client(url=studio)
    thread = await client.threads.create()
    asked: Any = {"input": {"question": "How many orders are there?"}, "context": {"votes": 1}}
    await client.runs.wait(thread["thread_id"], "recipe", interrupt_before=["consensus"], **asked)
    state: Any = await client.threads.get_state(thread["thread_id"])
    assert state["next"] == ["consensus"]
    assert state["values"]["candidates"][0]["result"]["row_count"] == 1
    result: Any = await client.runs.wait(thread["thread_id"], "recipe", input=None, context={"votes": 1})
    assert result["answer"]["status"] == "answered"
    assert result["answer"]["usage"]["model_calls"] == 3, "nothing was done twice"


@pytest.mark.timeout(180)
async def test_a_close_vote_interrupts_and_goes_on_with_the_users_choice(studio: str) -> None:
    client = langgraph_sdk.get_client(url=studio)
    thread = await client.threads.create()
    about: Any = {"context": {"recipe": "recap", "votes": 2, "clarify": True}}
    question = {"question": "Top 3 customers by revenue"}
    await client.runs.wait(thread["thread_id"], "quorum", input=question, **about)
    state: Any = await client.threads.get_state(thread["thread_id"])
    asked = state["interrupts"][0]["value"]
    assert [choice["label"] for choice in asked["choices"]] == ["A", "B"]
    assert any("Answer B has 1 column more" in sentence for sentence in asked["differences"])
    chosen = {"resume": "B"}
    result: Any = await client.runs.wait(thread["thread_id"], "quorum", command=chosen, **about)
    answer = result["answer"]
    assert answer["sql"] == asked["choices"][1]["sql"]
    assert answer["vote"]["settled"] == "user"
    assert len([c for c in answer["candidates"] if not c["error"]]) == 2


@pytest.mark.timeout(180)
async def test_a_wrong_database_is_an_error_that_says_so(studio: str) -> None:
    client = langgraph_sdk.get_client(url=studio)
    thread = await client.threads.create()
    result: Any = await client.runs.wait(
        thread["thread_id"],
        "quorum",
        input={"question": "How many?"},
        context={"database": "sqlite:////nowhere/absent.db"},
        raise_error=False,
    )
    assert "absent.db" in str(result)
