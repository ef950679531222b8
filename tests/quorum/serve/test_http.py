"""The HTTP API: nothing of an answer is lost, bad input is said to be so, wrong keys get nothing."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openai import APIStatusError, AsyncOpenAI

from quorum import Settings
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.serve import routes
from quorum.serve.http import LARGEST_BODY
from quorum.serve.keys import Caller, KeyFile, add_key
from quorum.serve.service import Service
from tests.graph.shop import GOOD, QUESTION, make_shop
from tests.quorum.serve.conftest import ABOVE_SIX, DIFFER, VIEWS, Make, answered, events, held, served
from tests.servers.process import missing
from tests.waiting import until


async def test_nothing_of_an_answer_is_lost_and_no_place_of_the_machine_goes_out(
    make: Make, workplace: Path, root: Path
) -> None:
    service = make(DIFFER, recipe="recap", votes=2)
    async with served(service) as client:
        got = await answered(client)
        id, answer = got["id"], got["answer"]
        at = f"/v1/questions/{id}"
        kept = RunFolder(service.home / "runs" / id).answer()
        whole = kept.model_dump(mode="json") | {"trace": f"{at}/trace", "result_file": f"{at}/rows"}
        for each in whole["candidates"]:
            each["result_file"] = f"{at}/rows?candidate={each['id']}"
        shown = answer.pop("shown")
        assert answer == whole
        assert shown["status"] == "Answer of low confidence"
        assert shown["rows"] == [["Ghent", "1"], ["Lyon", "3"]]
        steps = await events(client, id)
        assert [int(number) for number, _, _ in steps[:-1]] == [*range(1, len(steps))]
        assert (steps[0][2]["agent"], steps[-1]) == ("Run", ("", "end", {"status": "answered"}))
        assert await events(client, id, "3") == steps[3:]
        for odd in ("x", "-1", "1e9", "9" * 40, "99999999"):
            assert len(await events(client, id, odd)) in (1, len(steps))
        forms = ("json", "csv", "parquet", "arrow")
        rows = {form: await client.get(f"{at}/rows", params={"format": form}) for form in forms}
        table = pq.read_table(io.BytesIO(rows["parquet"].content))
        assert table == pa.ipc.open_file(rows["arrow"].content).read_all()
        assert rows["csv"].text == "city,orders\nGhent,1\nLyon,3\n"
        assert rows["json"].json()["rows"] == [["Ghent", 1], ["Lyon", 3]]
        others = (await client.get(whole["candidates"][1]["result_file"])).json()["rows"]
        assert others == [["Ghent", 1], ["Lyon", 2]]
        pages = ["/v1/history?words=CITY", "/metrics", "/v1/schema", "/v1/spent", "/v1/databases", "/health"]
        texts = [await client.get(page) for page in (*pages, "/openapi.json", at, f"{at}/trace")]
        assert {each.status_code for each in texts} == {200}
        for each in (*texts, *rows.values()):
            assert not re.search(rf"{workplace}|{root}|file://", each.text)
            assert each.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in each.headers["content-security-policy"]
        assert texts[0].json()["questions"][0]["id"] == id
        assert 'quorum_questions_total{status="answered"} 1' in texts[1].text
        folder, message = service.home / "runs" / id, f"Cannot read {workplace}/shop.db."
        with (folder / "events.jsonl").open("a") as file:
            file.write(f"{json.dumps({'kind': 'failed', 't': 9, 'agent': 'run', 'message': message})}\n")
        (folder / "answer.json").write_text(kept.model_copy(update={"warnings": [message]}).model_dump_json())
        for text in (str((await events(client, id))[-2]), (await client.get(at)).text):
            assert "Cannot read" in text
            assert str(workplace) not in text
        (workplace / "shop.db").unlink()
    async with served(make()) as client:
        failed = await answered(client)
        assert (failed["status"], "shop" in failed["error"]) == ("failed", True)
        gone = await client.get("/v1/schema")
        assert (gone.status_code, gone.headers["retry-after"]) == (503, "5")
        assert str(workplace) not in json.dumps(failed) + gone.text


async def test_a_question_asks_back_is_taught_and_cancelled_over_http(make: Make) -> None:
    service = make(DIFFER, recipe="recap", votes=2)
    async with served(service) as client:
        waiting = await answered(client, clarify="on")
        at = waiting["links"]["self"]
        assert (waiting["status"], waiting["waiting"]["kind"]) == ("waiting", "clarification")
        assert (await events(client, waiting["id"]))[-1][2] == {"status": "waiting"}
        replies = [client.post(f"{at}/reply", json={"reply": "B"}) for _ in range(5)]
        codes = sorted(each.status_code for each in await asyncio.gather(*replies))
        assert codes == [202, 409, 409, 409, 409]
        got = (await client.get(at, params={"wait": 30})).json()
        assert (got["status"], got["answer"]["sql"]) == ("answered", ABOVE_SIX)
        kept = (await client.post(f"{at}/correct", json={"sql": GOOD, "note": "all orders"})).json()
        assert kept["row_count"] == 2
        again = await answered(client)
        assert (again["answer"]["sql"], again["answer"]["usage"]["model_calls"]) == (
            GOOD,
            0,
        )  # it is read anew
        assert (await client.post(f"{at}/cancel")).json()["status"] == "answered"
        ran = (await client.post("/v1/sql", json={"sql": "SELECT 1 AS one"})).json()
        assert (ran["columns"], ran["rows"], ran["shown"], ran["chart"]) == (["one"], [[1]], [["1"]], None)
        drawn = (await client.post("/v1/sql", json={"sql": GOOD, "chart": True})).json()
        assert (drawn["chart"]["kind"], drawn["row_count"]) == ("bar", 2)
        turn = await answered(client, after=waiting["id"])
        assert (waiting["after"], turn["after"]) == ("", waiting["id"])


WRONG: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/v1/questions", {"questin": "q"}, 422, "questin: is not known. It takes question, "),
    ("POST", "/v1/questions", {"question": "x" * 20_001}, 422, "question: "),
    ("POST", "/v1/questions", {"question": "q", "votes": 10**9}, 422, "votes: must be less"),
    ("POST", "/v1/questions", {"question": "q", "approve": 0}, 422, "approve: it must be a text"),
    ("POST", "/v1/questions", {"question": "q", "session": "../../x"}, 422, "session: "),
    ("POST", "/v1/questions", {"question": "q", "recipe": "os:path"}, 422, "no recipe"),
    ("POST", "/v1/questions", {"question": "q", "database": "none"}, 404, "There are: shop"),
    ("POST", "/v1/questions", {"question": "q", "after": "../x"}, 404, "There is no question"),
    ("POST", "/v1/questions", [], 422, "the body: "),
    ("POST", "/v1/questions", None, 422, "question: missing"),
    ("POST", "/v1/questions?question=q", None, 422, "question: is not known in the query"),
    ("POST", "/v1/questions/nobody/cancel", {"now": True}, 422, "now: is not known. It takes nothing"),
    ("POST", "/v1/questions", b"{", 400, "no JSON"),
    ("POST", "/v1/questions", b"[" * 200_000, 400, "no JSON"),
    ("POST", "/v1/questions", b"\xff\xfe", 400, "no JSON"),
    ("POST", "/v1/questions", b" " * (LARGEST_BODY + 1), 413, "larger than"),
    ("POST", "/v1/sql", {"sql": "DELETE FROM orders"}, 422, "only pure reads"),
    ("POST", "/v1/sql", {"sql": "SELECT ct FROM customers"}, 422, "Did you mean: city"),
    ("POST", "/v1/sql", {"sql": "SELECT 1", "rows": 10**30}, 422, "rows: "),
    ("POST", "/v1/chat/completions", {"model": "shop", "messages": []}, 422, "messages: "),
    ("GET", "/v1/questions/..%2F..%2Fq", None, 404, "Not Found"),
    ("GET", "/v1/questions/nobody", None, 404, "There is no question"),
    ("GET", "/v1/questions/nobody?wait=61", None, 422, "wait: must be less than or equal to 60"),
    ("GET", "/v1/questions/nobody/rows?format=xls", None, 422, "format: must be 'json', "),
    ("GET", "/v1/history?limit=-1", None, 422, "limit: must be greater than or equal to 0"),
    ("GET", "/v1/history?lmit=1", None, 422, "lmit: is not known. It takes words?, "),
    ("GET", "/page/%2e%2e/http.py", None, 404, ""),
    ("DELETE", "/v1/questions/nobody", None, 405, "Method Not Allowed"),
]


async def test_what_is_wrong_with_a_request_is_said(make: Make) -> None:
    async with served(make()) as client:
        for method, path, body, status, said in WRONG:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            headers = {"content-type": "application/json"} if content is not None else {}
            got = await client.request(method, path, content=content, headers=headers)
            assert got.status_code == status, (path, got.text)
            error = got.json()["error"]
            assert said in f"{error['message']} {error['hint']}", (path, error)
        plain = await client.post("/v1/questions", content=b'{"question": "q"}')
        assert plain.status_code == 415, "a form of another page could send that"
        for headers, status in (
            ({"host": "evil.example"}, 403),
            ({"host": "127.0.0.1.evil.example"}, 403),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({"x-forwarded-host": "evil.example"}, 200),
            ({"host": "localhost:1"}, 200),
        ):
            got = await client.get("/v1/history", headers=headers)
            assert got.status_code == status, headers
            assert "access-control-allow-origin" not in got.headers


async def test_a_wrong_key_gets_nothing_and_a_key_what_is_its(make: Make, workplace: Path) -> None:
    file = workplace / "keys.toml"
    ours, theirs = add_key(file, "ours"), add_key(file, "theirs")
    assert ours not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text(
        file.read_text()
        .replace('name = "ours"', 'name = "ours"\nsql = false')
        .replace('name = "theirs"', 'name = "theirs"\ndatabases = []\nper_minute = 9')
    )
    keys = KeyFile(file)
    async with served(make(), keys) as client:
        said = set[str]()
        wrong = ("", "Bearer", f"Bearer {ours[:-1]}", f"Basic {ours}", f"Bearer {ours} x", "Bearer é", ours)
        for given in wrong:
            headers = [(b"authorization", given.encode())] if given else []
            for path in ("/v1/history", "/v1/databases", "/metrics", "/v1/models", "/v1/questions/x"):
                got = await client.get(path, headers=headers)
                assert got.status_code == 401
                said.add(got.text)
        assert len(said) == 1, "unknown and malformed get one answer"
        assert (await client.get("/health")).status_code == 200
        client.headers["authorization"] = f"Bearer {ours}"
        got = await answered(client)
        assert got["status"] == "answered"
        for path, asked in (("/v1/sql", {"sql": GOOD}), (f"{got['links']['self']}/correct", {"sql": GOOD})):
            refused = await client.post(path, json=asked)
            assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "sql")
        client.headers["authorization"] = f"bearer {theirs}"
        assert (await client.get("/v1/databases")).json() == {"databases": [], "sql": True}
        for part in ("", "/events", "/rows", "/trace"):
            assert (await client.get(got["links"]["self"] + part)).status_code == 404
        assert (await client.post(got["links"]["self"] + "/cancel")).status_code == 404
        assert (await client.get("/v1/history")).json() == {"questions": []}
        assert (await client.post("/v1/sql", json={"sql": "SELECT 1", "database": "shop"})).status_code == 404
        assert (await client.get("/v1/history")).status_code == 200
        assert (await client.get("/v1/history")).status_code == 429
        file.write_text(re.sub(r'name = "theirs"\n', 'name = "theirs"\nbad = 1\n', file.read_text()))
        assert (await client.get("/v1/history")).status_code == 429, "a file being edited changes nothing"
    with pytest.raises(ConfigurationError, match=r"Cannot read the keys .*bad"):
        KeyFile(file)
    file.write_text('[[key]]\nname = "hashless"\n')
    with pytest.raises(ConfigurationError, match=r"Cannot read the keys .*hash"):
        KeyFile(file)
    with pytest.raises(ConfigurationError, match="cannot name a key"):
        add_key(workplace / "more.toml", "../x")


async def test_readers_that_stop_reading_or_break_off_slow_nobody(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = held()
    service = make({"m:a": slow})
    async with served(service) as client:
        id = (await client.post("/v1/questions", json={"question": QUESTION})).json()["id"]
        with monkeypatch.context() as patch:
            patch.setattr(routes, "ALIVE_SECONDS", 0.01)
            async with client.stream("GET", f"/v1/questions/{id}/events") as stream:
                lines = stream.aiter_lines()
                while await anext(lines) != ": alive":
                    pass
        sockets = [await sent(client, "GET", f"/v1/questions/{id}/events") for _ in range(40)]
        for writer in sockets[::2]:
            writer.transport.abort()
        slow.may.set()
        readers = await asyncio.gather(*(events(client, id) for _ in range(20)))
        assert len({json.dumps(each) for each in readers}) == 1
        assert readers[0][-1][2] == {"status": "answered"}
        left = await sent(client, "POST", "/v1/questions", {"question": QUESTION, "id": "left"})
        await until((service.home / "runs" / "left").is_dir)
        for writer in (left, *sockets):
            writer.transport.abort()
        answer = await (await service.question(Caller(), "left")).answer()
        assert answer.status == "answered", "who asked is gone, the question goes on"
    assert service.monitor.streams == 0


async def sent(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> asyncio.StreamWriter:
    """A connection over which one request was sent and nothing is read."""
    host, port = client.base_url.host, client.base_url.port
    _, writer = await asyncio.open_connection(host, port, limit=1)
    content = json.dumps(body).encode() if body else b""
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    await writer.drain()
    return writer


@pytest.mark.heavy
async def test_two_hundred_questions_at_fifty_at_once_are_all_answered(make: Make) -> None:
    gate = asyncio.Semaphore(50)
    async with served(make()) as client:

        async def one(n: int) -> str:
            async with gate:
                got = await answered(client, question=f"{QUESTION} {n}")
                steps = await events(client, got["id"])
            assert [int(number) for number, _, _ in steps[:-1]] == [*range(1, len(steps))]
            assert (got["status"], got["question"]) == ("answered", f"{QUESTION} {n}")
            return str(got["id"])

        ids = await asyncio.gather(*(one(n) for n in range(200)))
        assert len(set(ids)) == 200
        spent = (await client.get("/v1/spent")).json()
        assert (spent["questions"], spent["calls"]) == (200, 200)


@pytest.mark.heavy
async def test_no_request_that_schemathesis_thinks_of_is_a_fault(
    make: Make, workplace: Path, root: Path
) -> None:
    program = root / ".venv" / "servers" / "bin" / "st"
    if not program.exists():
        missing("schemathesis is not installed (make .venv/.servers)")
    async with served(make()) as client:
        args = ["--checks", "all", "--exclude-checks", "ignored_auth,positive_data_acceptance"]
        args += ["--max-examples", "10", "--max-time", "45", "--seed", "1", "--suppress-health-check", "all"]
        at = f"{client.base_url}/openapi.json"
        refused = "expected-statuses = [400, 404, 405, 409, 413, 415, 422]"
        (workplace / "schemathesis.toml").write_text(f"[checks.negative_data_rejection]\n{refused}\n")
        tried = await asyncio.create_subprocess_exec(
            program, "run", at, *args, "--no-color", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await tried.communicate()
    assert tried.returncode == 0, "\n".join(line[:300] for line in out.decode().splitlines())
    assert b"Tested: " in out


async def test_a_database_that_is_gone_hides_no_other(workplace: Path) -> None:
    there = f"sqlite:///{make_shop(workplace / 'shop.db')}"
    settings = Settings(models=["offline"], home=workplace / "q")
    service = Service(settings, {"gone": f"sqlite:///{workplace / 'gone.db'}", "shop": there})
    async with served(service) as client:
        gone, shop = (await client.get("/v1/databases")).json()["databases"]
        assert gone["error"].startswith("There is no file")
        assert str(workplace) not in gone["error"]
        assert (shop["name"], shop["error"], shop["dialect"]) == ("shop", "", "sqlite")
    await service.aclose()


# Chat Completions, as the openai client speaks them.


async def test_the_openai_client_asks_streams_goes_on_and_replies(make: Make) -> None:
    async with served(make(VIEWS)) as client:
        chat = AsyncOpenAI(api_key="-", base_url=f"{client.base_url}/v1", max_retries=0)
        assert [each.id async for each in chat.models.list()] == ["shop"]
        said: Any = [{"role": "system", "content": "x"}, {"role": "user", "content": QUESTION}]
        whole = await chat.chat.completions.create(model="shop", messages=said)
        text = str(whole.choices[0].message.content)
        assert "| Lyon | 3 |" in text
        assert whole.usage.total_tokens > 0
        said += [{"role": "assistant", "content": text}, {"role": "user", "content": "Only the first!"}]
        streamed = await chat.chat.completions.create(model="shop/single", messages=said, stream=True)
        parts = [part async for part in streamed]
        text = "".join(part.choices[0].delta.content or "" for part in parts)
        assert "> QuestionRewriter: " in text
        assert "Understood as: the result before: its first 1 rows" in text
        with pytest.raises(APIStatusError, match="no database 'none'"):
            await chat.chat.completions.create(model="none", messages=said)


async def test_a_question_back_is_answered_by_the_next_message(make: Make) -> None:
    service = make(DIFFER, recipe="recap", votes=2, clarify="on")
    async with served(service) as client:
        chat = AsyncOpenAI(api_key="-", base_url=f"{client.base_url}/v1", max_retries=0)
        said: Any = [{"role": "user", "content": QUESTION}]
        for reply in ("B", ""):
            got = await chat.chat.completions.create(model="shop", messages=said)
            text = str(got.choices[0].message.content)
            said += [{"role": "assistant", "content": text}, {"role": "user", "content": reply}]
        assert "Which answer is meant?" in said[1]["content"]
        assert ABOVE_SIX.partition("WHERE")[2].split()[0] in said[3]["content"]
