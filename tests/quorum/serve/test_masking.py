"""What a rule masks leaves by no route of the service, in no form, and lies in no file of home."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from mcp import Client

from quorum import Settings
from quorum.serve.keys import Caller
from quorum.serve.mcp import mcp_server
from quorum.serve.service import Service
from quorum.tools.masking import MASK
from quorum.tools.models.scripted import scripted
from tests.graph.shop import script, written
from tests.quorum.serve.conftest import answered, served
from tests.tools.test_rights import RULES, made

LEAK = re.compile(r"(?i)zqx|(?<![\d.•a-f])77000\d(?!\d)")
CURIOUS = (
    "SELECT * FROM c",
    "SELECT CAST(email AS INTEGER) FROM c",
    "PIVOT c ON email USING count(*)",
    "SELECT {'a': email} AS s, salary - 1 AS n FROM c",
    "SELECT country, max(salary) AS top FROM c GROUP BY country",
)
PARTS = ("", "/events", "/trace", "/chart", "/rows", "/rows?format=csv", "/rows?format=arrow")


async def test_no_masked_value_leaves(workplace: Path) -> None:
    queries, said = itertools.cycle(CURIOUS), list[str]()
    model = scripted(script(sql_writer=lambda _: written(next(queries))))
    settings = Settings(models=["m"], home=workplace / "q", recipe="single", **RULES)
    service = Service(settings, {"shop": made("duckdb", workplace)}, {"m": model})
    async with served(service) as client, Client(mcp_server(service, lambda _: Caller())) as assistant:
        for number, sql in enumerate(CURIOUS):
            question = f"Who is number {number}?"
            at = (await answered(client, question=question))["links"]["self"]
            said += [(await client.get(at + part)).content.decode("utf-8", "replace") for part in PARTS]
            said.append((await client.post("/v1/sql", json={"sql": sql, "chart": True})).text)
            for stream in (False, True):
                chat = {"model": "shop", "messages": [{"role": "user", "content": question}]}
                said.append((await client.post("/v1/chat/completions", json=chat | {"stream": stream})).text)
            for tool, given in (("run_sql", {"sql": sql}), ("ask", {"question": question})):
                made_of = await assistant.call_tool(tool, given)
                said.append(made_of.model_dump_json())
            if uri := (made_of.structured_content or {}).get("rows_uri"):
                said.append(str(await assistant.read_resource(uri)))
        for words in ("zqxanna", "email salary"):
            for tool in ("schema", "search_values"):
                said.append(str((await assistant.call_tool(tool, {"words": words})).structured_content))
        said += [(await client.get(page)).text for page in ("/metrics", "/v1/history", "/v1/schema")]
    await service.aclose()
    said += [path.read_bytes().decode("utf-8", "replace") for path in settings.home.rglob("*.*")]
    assert [found[0] for text in said if (found := LEAK.search(text))] == []
    assert sum(MASK in text for text in said) > 20
