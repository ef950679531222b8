"""The MCP server, by the SDK's client in both generations of the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
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
from quorum.serve.keys import Caller, Keys, add_key
from quorum.serve.mcp import TAKES, mcp_server
from quorum.serve.service import Service
from quorum.tools.ledger import Budget, Ledger
from tests.graph.shop import GOOD, QUESTION
from tests.quorum.serve.conftest import ABOVE_SIX, DIFFER, Make, served

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


def server_of(service: Service) -> Server[Any]:
    return mcp_server(service, lambda _: ME)


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def choose(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert isinstance(params, types.ElicitRequestFormParams)
    assert "Which answer is meant?" in params.message
    other = params.requested_schema["properties"]["choice"]["enum"][1]
    return types.ElicitResult(action="accept", content={"choice": other})


@MODES
async def test_every_tool(mode: str, sample: Service) -> None:
    async with Client(server_of(sample), mode=mode) as client:
        said = list[str | None]()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            said.append(message)

        made = await client.call_tool("ask", CHANNELS, progress_callback=hear)  # the client checks its schema
        found = made.structured_content
        assert (found["status"], found["row_count"], len(found["rows"])) == ("answered", 3, 3)
        assert "| channel | count |" in text_of(made)
        assert found["run"] in text_of(made)
        assert "Database: 3 rows: channel, count" in said
        assert isinstance(made.content[1], types.ResourceLink)
        (rows,) = (await client.read_resource(made.content[1].uri)).contents
        assert isinstance(rows, types.TextResourceContents)
        assert rows.text.splitlines()[:2] == ["channel,count", "app,2659"]
        run = {"run": found["run"]}
        on = await client.call_tool("follow_up", {**run, "text": "How many orders were returned?"})
        turn = await sample.question(ME, on.structured_content["run"])
        assert turn.folder.meta()["talk"] == found["run"]
        many = await client.call_tool("run_sql", {"sql": "SELECT order_id FROM orders", "rows": 2})
        assert (many.structured_content["row_count"], many.structured_content["truncated"]) == (2, True)
        some = await client.call_tool("schema", {"words": "refunds of returned parcels"})
        assert "table returns" in text_of(some)
        assert some.structured_content["tables"] < 18
        values = await client.call_tool("search_values", {"words": "orders from Germany"})
        assert values.structured_content["values"]["customers.country"] == ["Germany"]
        assert "SqlWriter c1: SELECT" in text_of(await client.call_tool("trace", run))
        assert text_of(await client.call_tool("keep", run)).startswith("Kept, verified by")


async def test_tools_say_which_database_and_what_writes(sample: Service) -> None:
    async with Client(server_of(sample)) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [*TAKES]
    for tool in tools:
        assert "the database sample" in (tool.description or "")
        assert tool.annotations
        assert tool.annotations.read_only_hint is (tool.name != "keep")
        assert tool.input_schema["additionalProperties"] is False


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"question": "x" * 1_000_000}, "question: must have at most 20000 characters"),
    (
        "ask",
        {"question": ["x"], "votes": 9},
        "must be a text; votes: there is no such argument. The tool",
    ),
    ("ask", {}, "question: missing. The tool ask takes question, database?"),
    ("ask", {**CHANNELS, "max_usd": -1}, "max_usd: must be greater than 0"),
    ("ask", {**CHANNELS, "database": "hr"}, "There is no database 'hr'. There are: sample."),
    ("ask", {"question": "  "}, "The question is empty."),
    ("follow_up", {"run": "20260101-nothing", "text": "B"}, "There is no question"),
    ("schema", {"words": "\x00 ' OR 1=1 --"}, "No table fits these words"),
    ("trace", {"run": "../../etc"}, "run: must match pattern"),
    ("run_sql", {"sql": "DELETE FROM orders"}, "DELETE is not a query"),
    ("run_sql", {"sql": "SELECT nope FROM orders"}, "There is no column nope in orders"),
    ("run_sql", {"sql": "SELECT 1", "rows": 10**9}, "rows: must be less than or equal to 1000"),
]


async def test_hostile_arguments(sample: Service) -> None:
    async with Client(server_of(sample)) as client:
        for tool, given, said in HOSTILE:
            made = await client.call_tool(tool, given)
            assert made.is_error, given
            assert said in text_of(made)
            assert "Traceback" not in text_of(made)
            assert len(text_of(made)) < 500


async def test_a_home_that_cannot_be_written(make: Make, workplace: Path) -> None:
    (workplace / "file").write_text("")
    async with Client(server_of(make(home=workplace / "file"))) as client:
        made = await client.call_tool("ask", {"question": QUESTION})
    assert made.is_error
    assert f"Cannot write to {workplace / 'file'}" in text_of(made)
    assert "--home" in text_of(made)


async def test_what_is_not_there(sample: Service) -> None:
    async with Client(server_of(sample)) as client:
        with pytest.raises(MCPError, match="There is no tool 'drop'; there are ask"):
            await client.call_tool("drop", {})
        for uri in ("quorum://runs/../rows.csv", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="There is no"):
                await client.read_resource(uri)


@MODES
async def test_the_user_is_asked_by_a_form(mode: str, doubtful: Service) -> None:
    async with Client(server_of(doubtful), mode=mode, elicitation_callback=choose) as client:
        found = (await client.call_tool("ask", {"question": QUESTION})).structured_content
    assert found["status"] == "answered"
    assert found["sql"] == ABOVE_SIX


@MODES
async def test_without_forms_the_next_call_replies(mode: str, doubtful: Service) -> None:
    async with Client(server_of(doubtful), mode=mode) as client:
        at_once = await client.call_tool("ask", {"question": QUESTION})
        assert at_once.structured_content["status"] == "answered"
        asked = await client.call_tool("ask", {"question": QUESTION, "clarify": True})
        found = asked.structured_content
        assert (found["status"], [each["sql"] for each in found["choices"]]) == (
            "needs_choice",
            [GOOD, ABOVE_SIX],
        )
        assert "call follow_up" in text_of(asked)
        again = await client.call_tool(
            "follow_up", {"run": found["run"], "text": found["choices"][1]["reply"]}
        )
    assert (again.structured_content["run"], again.structured_content["sql"]) == (found["run"], ABOVE_SIX)


async def test_a_form_that_is_put_off_can_be_answered_later(doubtful: Service) -> None:
    async def put_off(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="cancel")

    async with Client(server_of(doubtful), elicitation_callback=put_off) as client:
        found = (await client.call_tool("ask", {"question": QUESTION})).structured_content
    assert found["status"] == "needs_choice"
    assert (await doubtful.question(ME, found["run"])).waiting


async def test_a_cancelled_call_cancels_its_question(doubtful: Service) -> None:
    asked = asyncio.Event()

    async def think(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        return await asyncio.Future()

    async with Client(server_of(doubtful), mode="legacy", elicitation_callback=think) as client:
        call = asyncio.ensure_future(client.call_tool("ask", {"question": QUESTION}))
        await asked.wait()
        call.cancel()
        await asyncio.wait([call])
        while (await doubtful.history(ME))[0][0].status != "cancelled":
            await asyncio.sleep(0)


async def test_what_all_questions_together_may_cost(make: Make) -> None:
    service = make()
    service.shared = total = Ledger(Budget(max_usd=1.0))
    async with Client(server_of(service)) as client:
        assert not (await client.call_tool("ask", {"question": QUESTION})).is_error
        assert total.total.model_calls == 1
        total.total.usd = 1.0
        refused = await client.call_tool("ask", {"question": QUESTION})
    assert refused.is_error
    assert "$1" in text_of(refused)


@MODES
async def test_over_http_a_key_has_its_own_questions_and_databases(
    mode: str, make: Make, workplace: Path
) -> None:
    service, file = make(DIFFER, recipe="recap", votes=2), workplace / "keys.toml"
    mine, other = (f"Bearer {add_key(file, name)}" for name in ("mine", "other"))
    file.write_text(f"{file.read_text().rstrip()}\ndatabases = []\n")

    async with served(service, Keys(file)) as there:
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
        async with client(other, mode=mode) as assistant:
            for tool, given in (
                ("ask", {"question": QUESTION}),
                ("schema", {}),
                ("trace", {"run": found["run"]}),
            ):
                assert (await assistant.call_tool(tool, given)).is_error
        with pytest.raises(Exception):  # noqa: B017 - the client has several
            async with client("Bearer qk_none", mode=mode):
                pass


@pytest.mark.heavy
@MODES
async def test_over_standard_input_and_output(mode: str, workplace: Path) -> None:
    args = ["-m", "quorum", "mcp", "--db", "sample", "--model", "offline", "--home", str(workplace / "q")]
    server = StdioServerParameters(command=sys.executable, args=args)
    async with Client(server, mode=mode) as client:
        found = (await client.call_tool("ask", CHANNELS)).structured_content
        assert found["rows"][0] == ["app", 2659]
