"""``langgraph dev`` serves the assistants: boot it on loopback and ask through the SDK."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from quorum.event_text import step_of
from quorum.graph.recipes import RECIPES
from quorum.graph.runs import RunFolder
from tests.graph.shop import sql
from tests.quorum.roles import by_role
from tests.servers.chat_server import Answer, ChatServer, Request, closed_port, say

pytest.importorskip("langgraph_cli", reason="the extra `studio` is not installed")
langgraph_sdk = pytest.importorskip("langgraph_sdk", reason="the extra `studio` is not installed")

pytestmark = pytest.mark.timeout(300)

BOOT_SECONDS = 90.0
COUNT = "SELECT COUNT(*) AS orders FROM orders"
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
    environment["OPENAI_API_KEY"] = "none"
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


@pytest.fixture
def client(studio: str) -> Any:
    return langgraph_sdk.get_client(url=studio)


@pytest.fixture
async def thread(client: Any) -> str:
    """A new thread."""
    return str((await client.threads.create())["thread_id"])


async def streamed(client: Any, thread: str | None, assistant: str, *modes: str, **asked: Any) -> Any:
    """The parts of a run by their event, without what names a subgraph; none may be an error."""
    parts: dict[str, Any] = {}
    async for part in client.runs.stream(thread, assistant, stream_mode=list(modes), **asked):
        assert part.event != "error", part.data
        parts.setdefault(part.event.partition("|")[0], []).append(part.data)
    return parts


def shown_live(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of an answer's trace that live progress shows, as they come from a server."""
    steps = map(step_of, RunFolder(Path(answer["trace"])).events())
    shown: list[dict[str, Any]] = json.loads(json.dumps([asdict(step) for step in steps if step.live]))
    return shown


async def read_back(client: Any, thread: str) -> tuple[Any, list[Any]]:
    """A thread's state, its branches' too, and its history: the server shows all of them."""
    threads = client.threads
    assert (await threads.get_state(thread, subgraphs=True))["values"] is not None
    return await threads.get_state(thread), list(await threads.get_history(thread, limit=200))


async def test_each_recipe_is_an_assistant_with_a_name_and_a_description(client: Any) -> None:
    found = await client.assistants.search()
    assert {each["graph_id"] for each in found} == {*RECIPES, "chat"}
    described = {assistant["name"]: assistant["description"] for assistant in found}
    chat = described.pop("chat")
    assert chat
    assert described == {name: recipe.summary for name, recipe in RECIPES.items()}


async def test_a_recipes_graph_and_form_are_its_own(client: Any) -> None:
    for name, node in (("team", "SyntaxRetriever"), ("quorum", "Reviser")):
        assistant = (await client.assistants.search(graph_id=name))[0]["assistant_id"]
        schemas = await client.assistants.get_schemas(assistant)
        form = schemas["context_schema"]["properties"]
        assert (form["recipe"]["default"], form["recipe"]["enum"]) == (name, [name])
        assert form["database"]["default"] == ["sample"]
        assert form["votes"]["default"] is None  # the recipe's own
        assert "mbr" in form["strategy"]["enum"]
        assert form["retrieval"]["enum"] == ["lexical", "hybrid"]
        assert all(field["description"] for field in form.values())
        assert list(schemas["input_schema"]["properties"]) == ["question"]
        drawn = await client.assistants.get_graph(assistant)
        assert node in {drawn_node["id"] for drawn_node in drawn["nodes"]}


async def test_updates_say_what_a_node_changed_and_the_custom_stream_what_progress_shows(client: Any) -> None:
    modes = ("updates", "custom", "values", "messages-tuple")
    asked: Any = {"input": {"question": "How many customers are there?"}, "context": {"votes": 2}}
    parts = await streamed(client, None, "quorum", *modes, **asked)
    updates = [(node, change) for part in parts["updates"] for node, change in part.items()]
    changed = dict(updates)
    assert set(changed["open_run"]) == {"run_id", "schema_ref"}
    assert changed["Planner"]["steps"]
    candidates = [change["candidates"][0] for node, change in updates if node == "candidate"]
    assert {candidate["id"] for candidate in candidates} == {"c1", "c2"}
    assert changed["Consensus"]["vote"]["winner"] == "c1"
    assert {node for node, change in updates if not change} <= {"recall", "DraftLinker", "clarify"}, (
        "they had no cause"
    )
    answer = changed["answer"]["answer"]
    assert (answer["status"], len(answer["candidates"])) == ("answered", 2)
    assert answer["demonstration"] is True
    assert parts["values"][-1]["answer"] == answer
    assert parts["messages"]
    assert parts["custom"] == shown_live(answer)
    assert {"Planner", "SqlWriter", "Consensus"} <= {step["agent"] for step in parts["custom"]}
    assert {"c1", "c2"} <= {step["candidate"] for step in parts["custom"]}, "branches are heard too"


def two_opinions(role: str, request: Request) -> Answer | None:
    """Action's queries for the first candidate, which is drawn at 0, and for the other ones."""
    if role != "action":
        return None
    columns = "full_name" if request.body["temperature"] == 0 else "full_name, country"
    return say(json.dumps(sql(f"SELECT {columns} FROM customers ORDER BY customer_id LIMIT 3")))


async def test_a_close_vote_interrupts_and_goes_on_with_the_users_choice(client: Any, thread: str) -> None:
    with ChatServer(by_role(two_opinions)) as server:
        model = {"models": ["openai:two"], "base_url": server.url}
        about: Any = {"context": {"votes": 2, "clarify": True, **model}}
        question = {"question": "Top 3 customers by revenue"}
        first = await streamed(client, thread, "recap", "custom", input=question, **about)
        state: Any = await client.threads.get_state(thread)
        asked = state["interrupts"][0]["value"]
        assert (asked["kind"], asked["how"][:12], asked["refused"]) == ("clarification", "Choose A, B,", "")
        for nonsense in (99, ["A"]):
            command = {"resume": nonsense}
            parts = await streamed(client, thread, "recap", "custom", command=command, **about)
            first["custom"] += parts.get("custom", [])
            state, _ = await read_back(client, thread)
            assert state["interrupts"][0]["value"]["refused"].startswith("A reply is a text. Choose A, B,")
        assert [choice["label"] for choice in asked["choices"]] == ["A", "B"]
        assert any("Answer B has 1 column more" in sentence for sentence in asked["differences"])
        chosen = {"resume": "B"}
        parts = await streamed(client, thread, "recap", "custom", "values", command=chosen, **about)
        answer = parts["values"][-1]["answer"]
        assert answer["sql"] == asked["choices"][1]["sql"]
        assert answer["vote"]["settled"] == "user"
        assert len([c for c in answer["candidates"] if not c["error"]]) == 2
        assert "chooses answer B" in [step["gist"] for step in parts["custom"]]
        assert first["custom"] + parts["custom"] == shown_live(answer)


async def test_a_query_waits_for_approval_and_each_branch_gets_its_own_reply(
    client: Any, thread: str
) -> None:
    about: Any = {"context": {"votes": 2, "approve": "always"}}
    question = {"question": "Top 3 customers by revenue"}
    first = await streamed(client, thread, "recap", "custom", input=question, **about)
    state: Any = await client.threads.get_state(thread)
    waiting = {each["id"]: each["value"] for each in state["interrupts"]}
    assert sorted(asked["candidate"] for asked in waiting.values()) == ["c1", "c2"]
    for asked in waiting.values():
        assert (asked["kind"], asked["why"]) == ("approval", "You are asked before every query.")
        shown = {name: asked[name] for name in ("sql", "database", "reads")}
        assert asked["action_requests"][0]["args"] == asked["action_request"]["args"] == shown
        assert (asked["bytes"], asked["reads"]) == (None, "the engine does not tell")
        assert asked["sql"].startswith("SELECT")
        assert asked["database"]
    steps, no = first["custom"], next(each for each, asked in waiting.items() if asked["candidate"] == "c2")
    yes = {"decisions": [{"type": "approve"}]}  # as Agent Chat UI replies
    for replies in ({no: "no"}, {each: yes for each in waiting if each != no}):
        command = {"resume": replies}
        parts = await streamed(client, thread, "recap", "custom", "values", command=command, **about)
        steps += parts["custom"]
    answer = parts["values"][-1]["answer"]
    errors = {each["id"]: each["error_kind"] for each in answer["candidates"]}
    assert errors == {"c1": "", "c2": "not_approved"}
    assert (answer["status"], answer["usage"]["queries"]) == ("answered", 1)
    assert steps == shown_live(answer)


async def test_chat_takes_messages_turn_by_turn_and_asks_back(client: Any, thread: str) -> None:
    """Two questions, of which one waits for approval, and a view between them."""
    become = {"ask": "question", "question": "How many customers are there?", "settled": []}
    bars = {"ask": "view", "question": "?", "view": {"chart": "bar"}}

    def rewrites(role: str, request: Request) -> Answer | None:
        bar = "bars" in request.body["messages"][1]["content"].rpartition("<turn>")[2]
        return say(json.dumps(bars if bar else become)) if role == "question_rewriter" else None

    with ChatServer(by_role(rewrites, sql_writer={"sql": COUNT})) as server:
        context = {"models": ["openai:chatty"], "base_url": server.url}

        async def said(text: str, **options: Any) -> dict[str, Any]:
            asked = {"messages": [{"type": "human", "content": [{"type": "text", "text": text}]}]}
            modes, about = ("values", "messages-tuple"), {"context": context | options}
            return await streamed(client, thread, "chat", *modes, input=asked, **about)

        first = (await said("How many orders are there?"))["values"][-1]
        assert first["answer"]["rows"] == [[13000]]
        assert [each["type"] for each in first["messages"]] == ["human", "ai"]
        assert "13,000" in first["messages"][-1]["content"]
        view = (await said("show it as bars"))["values"][-1]
        assert (view["answer"]["chart"], len(view["messages"])) == ("bar", 4)
        stopped = await said("and customers?", approve="always")
        assert "messages" not in stopped, "no role's reply is a message"
        state: Any = await client.threads.get_state(thread)
        asked = state["interrupts"][0]["value"]
        assert (asked["kind"], asked["how"][:14], asked["sql"]) == ("approval", "Reply yes, no,", COUNT)
        about: Any = {"context": context | {"approve": "always"}}
        last = (await streamed(client, thread, "chat", "values", command={"resume": "yes"}, **about))[
            "values"
        ][-1]
    assert (last["answer"]["became"], last["answer"]["rows"]) == (become["question"], [[13000]])
    assert last["messages"][-1]["content"].startswith(f"Understood as: {become['question']}")
    assert len(last["messages"]) == 6
    calls = last["answer"]["usage"]["by_agent"]
    assert (calls["question_rewriter"]["model_calls"], calls["sql_writer"]["model_calls"]) == (1, 1)


async def test_a_thread_stops_goes_on_takes_a_second_question_and_forks(client: Any, thread: str) -> None:
    about: Any = {"context": {"votes": 1}}
    question = {"question": "How many orders are there?"}
    await client.runs.wait(thread, "quorum", input=question, interrupt_before=["Consensus"], **about)
    state: Any = await client.threads.get_state(thread)
    assert state["next"] == ["Consensus"]
    assert state["values"]["candidates"][0]["result"]["row_count"] == 1
    first: Any = await client.runs.wait(thread, "quorum", input=None, **about)
    assert first["answer"]["rows"] == [[13000]]
    assert first["answer"]["usage"]["model_calls"] == 3, "nothing was done twice"
    stood: Any = state["checkpoint"]

    question = {"question": "How many customers are there?"}
    second: Any = await client.runs.wait(thread, "quorum", input=question, **about)
    assert second["answer"]["rows"] == [[3000]]
    assert second["answer"]["run_id"] != first["answer"]["run_id"]

    edited: Any = await client.threads.update_state(
        thread, {"warnings": ["Edited."]}, checkpoint=stood, as_node="candidate"
    )
    again = {"input": None, "checkpoint": edited["checkpoint"]} | about
    parts = await streamed(client, thread, "quorum", "updates", "custom", **again)
    changed = {node: change for part in parts["updates"] for node, change in part.items()}
    assert next(iter(changed)) == "Consensus"
    answer = changed["answer"]["answer"]
    assert (answer["run_id"], answer["rows"]) == (first["answer"]["run_id"], [[13000]])
    assert "Edited." in answer["warnings"]
    assert parts["custom"][0]["agent"] == "Validator", "a run that is opened again is heard"


@pytest.mark.parametrize("recipe", ["quorum", "recap"])
async def test_a_thread_that_waits_for_approval_again_and_again_can_be_read_and_replayed(
    client: Any, thread: str, recipe: str
) -> None:
    """Earlier candidates are kept while later ones wait; their checkpoints go back as the JSON that came."""
    about: Any = {"context": {"approve": "always", "votes": 2 if recipe == "recap" else None}}
    given: dict[str, Any] = {"input": {"question": "Top 3 customers by revenue"}}
    replies, said = iter(["maybe", 17, [], "no", {"reply": "yes"}]), list[str]()
    while True:
        await client.runs.wait(thread, recipe, **given, **about)
        state, history = await read_back(client, thread)
        if not state["interrupts"]:
            break
        first = state["interrupts"][0]
        said.append(first["value"]["refused"])
        given = {"command": {"resume": {first["id"]: next(replies, "no")}}}
    assert sum("That is no reply to this. Reply yes, no, or all" in refusal for refusal in said) >= 2
    run, sql = state["values"]["run_id"], "SELECT 42 AS answer"
    for before in [each for each in history if each["next"] and each["values"].get("run_id")]:
        edited = dict(before["values"])
        if kept := edited.get("candidates"):
            edited["candidates"] = [kept[-1] | {"sql": sql, "note": "by hand"}]
            del edited["candidates"][0]["warnings"]
        fork = await client.threads.update_state(thread, edited, checkpoint=before["checkpoint"])
        state, _ = await read_back(client, thread)
        assert not kept or state["values"]["candidates"][-1]["sql"] == sql
        again: Any = {"input": None, "checkpoint": fork["checkpoint"], "interrupt_before": ["answer"]}
        await client.runs.wait(thread, recipe, **again, **about)
        state, _ = await read_back(client, thread)
        assert state["values"]["run_id"] == run


async def test_an_edit_that_fits_no_field_is_refused_in_words_and_spoils_nothing(
    client: Any, thread: str
) -> None:
    about: Any = {"context": {"votes": 1}}
    asked = {"question": "How many orders are there?"}
    await client.runs.wait(thread, "quorum", input=asked, interrupt_before=["answer"], **about)
    state, history = await read_back(client, thread)
    candidate = state["values"]["candidates"][0]
    nameless = {name: value for name, value in candidate.items() if name != "id"}
    for why, values in {
        "candidates.0.id: missing": {"candidates": [nameless]},
        "candidates.0.result: must be an object": {"candidates": [candidate | {"result": "13000"}]},
        "candidates: must be a list": {"candidates": candidate},
        "warnings: must be a list": {"warnings": "Mine."},
        "warnings.0: must be a text": {"warnings": [5]},
        "vote.clusters: missing": {"vote": {"winner": "c1"}},
        "extras: must be an object": {"extras": None},
        "question: must be a text": {"question": 5},
    }.items():
        with pytest.raises(langgraph_sdk.errors.BadRequestError) as refused:
            await client.threads.update_state(thread, values, as_node="clarify")
        assert f"The state cannot be used: {why}. Edit that value again." in refused.value.response.text
    again, then = await read_back(client, thread)
    assert (again["values"], len(then)) == (state["values"], len(history))
    await client.threads.update_state(thread, {"warnings": ["Mine."], "plans": "1"}, as_node="clarify")
    ended: Any = await client.runs.wait(thread, "quorum", input=None, **about)
    assert "Mine." in ended["answer"]["warnings"]
    asked = {"question": "How many customers are there?"}
    second: Any = await client.runs.wait(thread, "quorum", input=asked, **about)
    alone: Any = await client.runs.wait(None, "quorum", input=asked, **about)
    own = ("answer", "run_id", "vote", "candidates", "batch")
    assert {k: v for k, v in second.items() if k not in own} == {
        k: v for k, v in alone.items() if k not in own
    }
    assert second["answer"]["rows"] == alone["answer"]["rows"] == [[3000]]


async def test_a_run_that_is_cancelled_can_be_read_and_goes_on(client: Any, thread: str) -> None:
    released = threading.Event()

    def held(role: str, request: Request) -> Answer | None:
        if role != "action":
            return None
        released.wait(60)
        return say(json.dumps(sql("SELECT COUNT(*) AS n FROM orders")))

    with ChatServer(by_role(held)) as server:
        context = {"votes": 2, "models": ["openai:held"], "base_url": server.url}
        run, question = "", {"question": "How many orders are there?"}
        about: Any = {"context": context, "stream_mode": "custom"}
        async for part in client.runs.stream(thread, "recap", input=question, **about):
            run = run or part.data.get("run_id", "")
            if part.event == "custom" and part.data["agent"] == "Planner":
                await client.runs.cancel(thread, run, wait=True)
                break
        released.set()
        state, history = await read_back(client, thread)
        assert state["next"]
        assert len(history) > 1
        ended: Any = await client.runs.wait(thread, "recap", input=None, context=context)
    assert ended["answer"]["rows"] == [[13000]]


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"context": {"vote": 2}}, "ConfigurationError", "There is no option 'vote'. Did you mean 'votes'?"),
        ({"config": {"configurable": {"vote": 2}}}, "ConfigurationError", "Did you mean 'votes'?"),
        ({"context": {"database": "sqlite:////nowhere/absent.db"}}, "DatabaseUnavailable", "absent.db"),
    ],
)
async def test_what_is_wrong_is_an_error_that_says_so(client: Any, given: Any, kind: str, said: str) -> None:
    question = {"question": "How many customers are there?"}
    result: Any = await client.runs.wait(None, "single", input=question, raise_error=False, **given)
    assert result["__error__"]["error"] == kind
    assert said in result["__error__"]["message"]
