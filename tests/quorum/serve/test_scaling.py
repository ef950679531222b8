"""Several servers over one home: what one that dies, hangs or ends has begun, another one answers, once."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import yaml

from tests.evals.simulated import make_suite
from tests.servers.chat_server import closed_port
from tests.servers.fleet import ROOT, Fleet, answers, outcome, paid
from tests.servers.postgres_server import PostgresServer
from tests.servers.slow_server import SlowServer
from tests.waiting import until, wait_until

pytest.importorskip("langgraph.checkpoint.postgres", reason="the extra quorum-sql[serve] is not installed")

pytestmark = pytest.mark.heavy
QUESTIONS, KILLS = 36, 3
RECIPE = ("--recipe", "recap")
"""Six model calls, one after the other."""
Make: TypeAlias = Callable[..., tuple[Fleet, list[str]]]


@pytest.fixture(scope="module")
def model() -> Iterator[SlowServer]:
    with SlowServer(latency=0.3) as server:
        yield server


@pytest.fixture
def checkpoints(postgres: PostgresServer) -> str:
    return f"{postgres.admin_url}/{postgres.new_database()}"


@pytest.fixture
def fleet_of(tmp_path: Path, model: SlowServer, checkpoints: str) -> Make:
    """Makes a fleet over a database of numbered questions; gives these, too."""

    def made(count: int, questions: int = 1, home: str = "q", **given: Any) -> tuple[Fleet, list[str]]:
        (folder := tmp_path / f"{home}-data").mkdir()
        suite = make_suite(folder, questions, 1)
        db = [str(suite.questions[0].url)]
        fleet = Fleet(count, tmp_path / home, db, model.url, checkpoints, *RECIPE, **given)
        return fleet, [each.question for each in suite.questions]

    return made


def kinds_of(fleet: Fleet) -> dict[str, list[str]]:
    return {run.run_id: [event["kind"] for event in run.events()] for run in fleet.runs()}


async def called(fleet: Fleet, run: str, times: int = 1) -> None:
    """Wait until a run has asked its model so often."""
    events = fleet.home / "runs" / run / "events.jsonl"
    await until(lambda: events.exists() and events.read_bytes().count(b'"kind":"model_call"') >= times)


def test_killed_servers_lose_no_question_and_answer_none_twice(fleet_of: Make, model: SlowServer) -> None:
    calm, texts = fleet_of(1, QUESTIONS, "calm")
    with calm:
        undisturbed = asyncio.run(calm.ask_all(texts))
    once = model.served()
    fleet, _ = fleet_of(3, QUESTIONS, seconds=2.5)
    with fleet:

        def answered(wanted: int) -> bool:
            return len(list(fleet.home.glob("runs/*/answer.json"))) >= wanted

        def kill() -> None:
            """Each process once, whenever a fifth of the questions more is answered."""
            for number in range(KILLS):
                wait_until(partial(answered, (number + 1) * QUESTIONS // 5))
                fleet.signal(number, signal.SIGKILL)
                fleet.start(number)
                fleet.wait(number)

        killing = threading.Thread(target=kill)
        killing.start()
        found = asyncio.run(fleet.ask_all(texts, at_once=12))
        killing.join()
    kinds, runs = kinds_of(fleet), fleet.runs()
    assert [*map(outcome, found.values())] == [*map(outcome, undisturbed.values())]
    assert list(kinds) == list(found)
    for each in kinds.values():  # the step that was cut short before its file was there is done again
        assert each[-1] == "answer"
        assert each.count("answer") <= each.count("begun")
    taken_over = sum(each.count("begun") - 1 for each in kinds.values())
    assert taken_over >= 1
    assert {run.run_id: paid(run) for run in runs} == {run.run_id: paid(run) for run in calm.runs()}
    asked_again = model.served() - 2 * once
    assert 0 <= asked_again <= taken_over, "only replies that were under way"


async def test_a_server_that_ends_hands_over_at_once_and_others_cancel_its_questions(
    fleet_of: Make,
) -> None:
    """With leases of ten minutes: nobody waits for their end."""
    fleet, (first, second) = fleet_of(2, 2, seconds=600.0, looks=0.2)
    with fleet:
        async with httpx.AsyncClient(timeout=60) as client:
            await client.post(f"{fleet.url(0)}/v1/questions", json={"question": second, "id": "b"})
            await client.post(f"{fleet.url(1)}/v1/questions/b/cancel", json={})
            cancelled = await fleet.follow(client, "b", 1)
            await client.post(f"{fleet.url(0)}/v1/questions", json={"question": first, "id": "a"})
            await called(fleet, "a")
            fleet.signal(0, signal.SIGTERM)
            answered = await fleet.follow(client, "a", 1)
    assert cancelled["status"] == "cancelled"
    assert answered["status"] == "answered"
    kinds = kinds_of(fleet)
    assert kinds["a"].count("begun") == 2
    assert kinds["b"].count("begun") <= 1
    assert kinds["b"][-1] == "cancelled"


async def test_a_conversation_goes_on_in_any_process_and_through_a_kill_in_the_middle_of_a_turn(
    fleet_of: Make, postgres: PostgresServer, checkpoints: str
) -> None:
    fleet, (*_, first) = fleet_of(2, 8, seconds=2.0)
    more, database = "And over ten more?", checkpoints.rpartition("/")[2]

    def handed_back() -> bool:
        return not postgres.execute("SELECT run FROM quorum_leases", database)

    with fleet:
        async with httpx.AsyncClient(timeout=60) as client:

            async def ask(at: int, turn: int, text: str) -> httpx.Response:
                asked = {"question": text, "id": f"turn{turn}", "session": "talk"}
                return await client.post(f"{fleet.url(at)}/v1/questions", json=asked)

            assert (await ask(0, 1, first)).status_code == 202
            refused = await ask(1, 2, more)
            found = [await fleet.follow(client, "turn1", 1)]
            await until(handed_back)
            assert (await ask(1, 2, more)).status_code == 202
            await called(fleet, "turn2", 2)
            fleet.signal(1, signal.SIGKILL)
            found.append(await fleet.follow(client, "turn2", 0))
            await until(handed_back)
            await ask(0, 3, more)
            found.append(await fleet.follow(client, "turn3", 0))
    assert refused.status_code == 409, refused.text
    assert "another turn of its conversation, is being answered" in refused.text
    wanted = [f"How many orders over {number} euros did each city place?" for number in (7, 17, 27)]
    assert [each["answer"]["became"] or first for each in found] == wanted
    assert [re.findall(r"total > (\d+)", each["answer"]["sql"]) for each in found] == [["7"], ["17"], ["27"]]
    assert [each.count("begun") for each in kinds_of(fleet).values()] == [1, 2, 1]
    assert max(paid(fleet.runs()[1]).values()) == 1, "nothing is billed twice"


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
async def test_the_proxy_of_the_compose_file_passes_events_at_once_and_skips_a_dead_server(
    tmp_path: Path, fleet_of: Make
) -> None:
    fleet, (question,) = fleet_of(2, seconds=2.0)
    with fleet, _nginx(tmp_path / "nginx", fleet.ports) as url:
        async with httpx.AsyncClient(timeout=60, base_url=url) as client:
            asked = {"question": question, "id": "q"}
            assert (await client.post("/v1/questions", json=asked)).status_code == 202
            lines = list[str]()
            async with client.stream("GET", "/v1/questions/q/events") as stream:
                async for line in stream.aiter_lines():
                    lines += [line] if line.startswith("event: ") else []
                    if lines == ["event: begun"]:
                        assert not (fleet.home / "runs" / "q" / "answer.json").exists(), "buffered"
            assert lines[-1] == "event: end"
            fleet.signal(0, signal.SIGKILL)
            for number in range(20):
                assert (await client.get("/health")).status_code == 200
                again = await client.post("/v1/questions", json=asked | {"id": f"q{number % 2}"})
                assert again.status_code == 202
            for id in ("q0", "q1"):
                reply = await client.get(f"/v1/questions/{id}?wait=20")
                assert reply.json()["status"] == "answered"


@contextmanager
def _nginx(folder: Path, ports: list[int]) -> Iterator[str]:
    """Run the proxy of the compose file before servers at these ports."""
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    port, conf = closed_port(), compose["configs"]["nginx"]["content"].replace("$$", "$")
    conf = conf.replace("listen 80;", f"listen 127.0.0.1:{port};")
    for number, each in enumerate(ports, 1):
        conf = conf.replace(f"quorum{number}:8642", f"127.0.0.1:{each}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folder.mkdir()
    own = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    head = f"{'user root;' if os.getuid() == 0 else ''}\nevents {{}}\npid {folder}/pid;\ndaemon off;\n"
    (folder / "conf").write_text(f"{head}http {{\naccess_log off;\n{own}{conf}}}\n", "utf-8")
    with (folder / "log").open("wb") as log:
        command = ["nginx", "-p", str(folder), "-c", str(folder / "conf"), "-e", str(folder / "errors")]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}"), (folder / "log").read_text)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
