"""The MCP server, by clients of two code bases; by the SDK's in both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server

from quorum import Settings
from quorum.serve.keys import Caller, KeyFile, add_key
from quorum.serve.mcp import TAKES, mcp_server
from quorum.serve.service import Service
from quorum.tools.ledger import Budget, Ledger
from tests.graph.shop import GOOD, QUESTION
from tests.quorum.serve.conftest import ABOVE_SIX, DIFFER, Make, served
from tests.servers.process import missing

ME = Caller()
CHANNELS = {"question": "How many orders did each channel bring?"}
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
async def sample(workplace: Path) -> AsyncIterator[Service]:
    """The sample database and the offline model."""
    made = Service(Settings(models=["offline"], home=workplace / "q"), {"sample": "sample"})
    yield made
    await made.aclose()


@pytest.fixture
def doubtful(make: Make) -> Service:
    """A database about which two models disagree."""
    return make(DIFFER, recipe="recap", votes=2)


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"question": "x" * 1_000_000}, "question: must have at most 20000 characters"),
    ("ask", {"question": ["x"], "votes": 9}, "must be a text; votes: is not known. It takes question"),
    ("ask", {**CHANNELS, "max_usd": -1}, "max_usd: must be greater than 0"),
    ("ask", {**CHANNELS, "database": "hr"}, "There is no database 'hr'. There are: sample."),
    ("follow_up", {"run": "20260101-nothing", "text": "B"}, "There is no question"),
    ("schema", {"words": "\x00 ' OR 1=1 --"}, "No table fits these words"),
    ("search_values", {"words": " "}, "say what to look for"),
    ("trace", {"run": "../../etc"}, "run: must match pattern"),
    ("run_sql", {"sql": "DELETE FROM orders"}, "DELETE is not a query"),
    ("run_sql", {"sql": "SELECT nope FROM orders"}, "There is no column nope in orders"),
]


def server_of(service: Service) -> Server[Any]:
    return mcp_server(service, lambda _: ME)


def text_of(result: Any) -> str:
    return str((result["content"][0] if isinstance(result, dict) else result.content[0].model_dump())["text"])


async def choose(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert "Which answer is meant?" in params.message
    other = params.requested_schema["properties"]["choice"]["enum"][1]
    return types.ElicitResult(action="accept", content={"choice": other})


def sender(client: Client) -> Callable[..., Any]:
    """What sends a request, as ``second_client`` gives it."""

    async def sent(method: str, **given: Any) -> Any:
        steps = list[str | None]()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message)

        try:
            if method == "callTool":  # the client checks the result's schema
                made: Any = await client.call_tool(given["name"], given["arguments"], progress_callback=hear)
            else:
                made = await (client.list_tools() if method == "listTools" else client.read_resource(**given))
        except MCPError as error:
            return {"error": str(error)}
        return made.model_dump(mode="json", by_alias=True) | {"steps": steps}

    return sent


async def try_every_tool(sent: Callable[..., Any]) -> str:
    """Use each tool on the sample, as it is meant and otherwise; return the id of the second turn."""

    async def call(name: str, **given: Any) -> Any:
        return await sent("callTool", name=name, arguments=given)

    assert [each["name"] for each in (await sent("listTools"))["tools"]] == [*TAKES]
    made = await call("ask", **CHANNELS)
    found, run = made["structuredContent"], {"run": made["structuredContent"]["run"]}
    assert (found["status"], found["row_count"], len(found["rows"])) == ("answered", 3, 3)
    assert "| channel | count |" in text_of(made)
    assert run["run"] in text_of(made)
    assert "Database: 3 rows: channel, count" in made["steps"]
    (rows,) = (await sent("readResource", uri=made["content"][1]["uri"]))["contents"]
    assert rows["text"].splitlines()[:2] == ["channel,count", "app,2659"]
    turn = (await call("follow_up", **run, text="How many orders were returned?"))["structuredContent"]
    many = (await call("run_sql", sql="SELECT order_id FROM orders", rows=2))["structuredContent"]
    assert (many["row_count"], many["truncated"]) == (2, True)
    some = await call("schema", words="refunds of returned parcels")
    assert text_of(some).startswith("# database sample (sqlite)")
    assert "table returns" in text_of(some)
    assert some["structuredContent"]["tables"] < 18
    values = await call("search_values", words="orders from Germany")
    assert values["structuredContent"]["values"]["customers.country"] == ["Germany"]
    assert "SqlWriter c1: SELECT" in text_of(await call("trace", **run))
    assert text_of(await call("keep", **run)).startswith("Kept, verified by")
    for tool, given, said in HOSTILE:
        made = await call(tool, **given)
        assert made["isError"], given
        assert said in text_of(made)
        assert "Traceback" not in text_of(made)
        assert len(text_of(made)) < 500
    assert "There is no tool 'drop'; there are ask" in (await call("drop"))["error"]
    for uri in ("quorum://runs/../rows.csv", "file:///etc/passwd"):
        assert "There is no" in (await sent("readResource", uri=uri))["error"]
    return str(turn["run"])


async def choose_later(sent: Callable[..., Any]) -> None:
    """Reply by another call, as clients without forms do."""
    asked = {"name": "ask", "arguments": {"question": QUESTION}}
    assert (await sent("callTool", **asked))["structuredContent"]["status"] == "answered"
    asked["arguments"] |= {"clarify": True}
    made = await sent("callTool", **asked)
    found, choices = made["structuredContent"], made["structuredContent"]["choices"]
    assert (found["status"], {each["sql"] for each in choices}) == ("needs_choice", {GOOD, ABOVE_SIX})
    assert "call follow_up" in text_of(made)
    reply = {"run": found["run"], "text": choices[1]["reply"]}
    again = (await sent("callTool", name="follow_up", arguments=reply))["structuredContent"]
    assert (again["run"], again["sql"]) == (found["run"], choices[1]["sql"])


@MODES
async def test_every_tool(mode: str, sample: Service) -> None:
    async with Client(server_of(sample), mode=mode) as client:
        turn = await sample.question(ME, await try_every_tool(sender(client)))
    assert turn.folder.meta()["talk"] < turn.id, "the conversation is named by its first run"
    assert (await turn.answer()).database == "sample", "as it is served, whatever its file is called"


async def test_tools_say_which_database_and_what_writes(sample: Service) -> None:
    async with Client(server_of(sample)) as client:
        assert client.server_capabilities.resources, "else a client does not follow the link to all rows"
        tools = (await client.list_tools()).tools
    for tool in tools:
        assert "the database sample" in (tool.description or "")
        assert tool.annotations
        assert tool.annotations.read_only_hint is (tool.name != "keep")
        assert tool.input_schema["additionalProperties"] is False
    async with Client(mcp_server(sample, lambda _: Caller("few", sql=False))) as client:
        assert {*TAKES} - {tool.name for tool in (await client.list_tools()).tools} == {"run_sql"}
        made = await client.call_tool("run_sql", {"sql": "SELECT 1"})
        assert "run no query of its own" in text_of(made)


@MODES
async def test_without_forms_the_next_call_replies(mode: str, doubtful: Service) -> None:
    async with Client(server_of(doubtful), mode=mode) as client:
        await choose_later(sender(client))


async def test_a_form_that_is_put_off_can_be_answered_later(doubtful: Service) -> None:
    async def put_off(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="cancel")

    async with Client(server_of(doubtful), elicitation_callback=put_off) as client:
        found = (await client.call_tool("ask", {"question": QUESTION})).structured_content
    assert found["status"] == "needs_choice"
    assert (await doubtful.question(ME, found["run"])).waiting


async def test_a_cancelled_call_cancels_its_question(
    doubtful: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, cancelled, cancel = asyncio.Event(), asyncio.get_running_loop().create_future(), doubtful.cancel

    async def heard(who: Caller, run_id: str) -> Any:
        cancelled.set_result(await cancel(who, run_id))
        return cancelled.result()

    monkeypatch.setattr(doubtful, "cancel", heard)

    async def think(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        return await asyncio.Future()

    async with Client(server_of(doubtful), mode="legacy", elicitation_callback=think) as client:
        call = asyncio.ensure_future(client.call_tool("ask", {"question": QUESTION}))
        await asked.wait()
        call.cancel()
        await asyncio.wait([call])
        assert (await cancelled).status == "cancelled"


async def test_what_all_questions_together_may_cost_and_a_home_that_cannot_be_written(
    make: Make, workplace: Path
) -> None:
    service = make()
    service.shared = total = Ledger(Budget(max_usd=1.0))
    async with Client(server_of(service)) as client:
        assert not (await client.call_tool("ask", {"question": QUESTION})).is_error
        assert total.total.model_calls == 1
        total.total.usd = 1.0
        refused = await client.call_tool("ask", {"question": QUESTION})
    (workplace / "file").write_text("")
    async with Client(server_of(make(home=workplace / "file"))) as client:
        made = await client.call_tool("ask", {"question": QUESTION})
    assert refused.is_error
    assert "$1" in text_of(refused)
    assert made.is_error
    assert "Cannot write to spent" in text_of(made)


@MODES
async def test_over_http_a_key_has_its_own_questions_and_databases(
    mode: str, make: Make, workplace: Path
) -> None:
    service, file = make(DIFFER, recipe="recap", votes=2), workplace / "keys.toml"
    mine, other = (f"Bearer {add_key(file, name)}" for name in ("mine", "other"))
    file.write_text(f"{file.read_text().rstrip()}\ndatabases = []\n")

    async with served(service, KeyFile(file)) as there:
        url = str(there.base_url.join("/mcp"))

        @asynccontextmanager
        async def client(key: str, **given: Any) -> AsyncIterator[Client]:
            http = httpx2.AsyncClient(headers={"authorization": key})
            async with http, Client(streamable_http_client(url, http_client=http), **given) as made:
                yield made

        async with client(mine, mode=mode, elicitation_callback=choose) as assistant:
            found = (await assistant.call_tool("ask", {"question": QUESTION})).structured_content
            assert found["sql"] == ABOVE_SIX
            assert "orders" in str((await assistant.read_resource(found["rows_uri"])).contents)
        run = {"run": found["run"]}
        async with client(other, mode=mode) as assistant:
            for tool, given in (("ask", {"question": QUESTION}), ("schema", {}), ("trace", run)):
                assert (await assistant.call_tool(tool, given)).is_error
        with pytest.raises(Exception):  # noqa: B017 - the client has several
            async with client("Bearer qk_none", mode=mode):
                pass


COMMAND = ["-m", "quorum", "mcp", "--db", "sample", "--model", "offline", "--home"]


@pytest.mark.heavy
@MODES
async def test_over_standard_input_and_output(mode: str, workplace: Path) -> None:
    server = StdioServerParameters(command=sys.executable, args=[*COMMAND, str(workplace / "q")])
    async with Client(server, mode=mode) as client:
        found = (await client.call_tool("ask", CHANNELS)).structured_content
        assert found["rows"][0] == ["app", 2659]


SECOND, SDK = Path(__file__).with_name("second_client.mjs"), "node_modules/@modelcontextprotocol/sdk"


@asynccontextmanager
async def second_client(root: Path, *at: str, forms: bool = False) -> AsyncIterator[Callable[..., Any]]:
    """The client of the TypeScript SDK, at an address or a command; gives what sends a request."""
    if not (node := shutil.which("node")) or not shutil.which("npm"):
        pytest.skip("there is no node, or no npm")
    if not (sdk := root / ".venv" / "servers" / SDK).is_dir():
        missing("the TypeScript SDK is not installed (make .venv/.servers)")
    line = (node, SECOND, sdk, "forms" if forms else "plain", *at)
    pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**24}
    process = await asyncio.create_subprocess_exec(*line, **pipes)

    async def sent(method: str, **params: Any) -> Any:
        process.stdin.write(f"{json.dumps({'method': method, **params})}\n".encode())
        return json.loads(await process.stdout.readline())

    yield sent
    process.stdin.close()
    await process.wait()


@pytest.mark.heavy
async def test_a_client_of_another_code_base(workplace: Path, root: Path, doubtful: Service) -> None:
    async with second_client(root, sys.executable, *COMMAND, str(workplace / "q")) as sent:
        await try_every_tool(sent)
    async with served(doubtful) as there:
        url = str(there.base_url.join("/mcp"))
        async with second_client(root, url, forms=True) as sent:
            made = await sent("callTool", name="ask", arguments={"question": QUESTION})
            assert made["structuredContent"]["sql"] == ABOVE_SIX
            assert "Which answer is meant?" in made["asked"][0]
        async with second_client(root, url) as sent:
            await choose_later(sent)
