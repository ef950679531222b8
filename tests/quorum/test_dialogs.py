"""Asking back and asking before queries run: from a script, on a terminal, and where nobody can be asked."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from quorum import Approval, Clarification, ask, explore
from quorum.graph.runs import RunFolder, list_runs
from quorum.knowledge.errors import ConfigurationError
from quorum.page import page_of
from quorum.report import report_of
from quorum.tools.ledger import Ledger
from quorum.tools.models.scripted import scripted
from tests.graph.shop import ABOVE_SIX, GOOD, QUESTION, RENAMED, script, sql
from tests.quorum.conftest import quorum
from tests.quorum.roles import by_role
from tests.servers.bigquery_server import BigqueryServer
from tests.servers.chat_server import Answer, ChatServer, Request, say, tokens

SAME = {"m:a": scripted(script(action=sql(GOOD))), "m:b": scripted(script(action=sql(RENAMED)))}
DIFFER = {"m:a": scripted(script(action=sql(GOOD))), "m:b": scripted(script(action=sql(ABOVE_SIX)))}


class Dead(Exception):
    """The process was killed."""


def asked_so(shop: str, **given: Any) -> dict[str, Any]:
    """Two candidates of one result; each query is asked about."""
    return {"db": shop, "chat_models": SAME, "votes": 2, "recipe": "recap", "approve": "always", **given}


def in_doubt(shop: str, **given: Any) -> dict[str, Any]:
    """Two candidates that disagree."""
    return {"db": shop, "chat_models": DIFFER, "votes": 2, "recipe": "recap", **given}


def label_of(asked: Clarification, query: str) -> str:
    return next(choice.label for choice in asked.choices if choice.sql == query)


# From a script


async def test_a_script_is_asked_and_its_choice_counts(shop: str) -> None:
    """By a coroutine as by a function, which the other tests give."""
    asked_before: list[Approval] = []

    async def choose(asked: Clarification) -> str:
        assert asked.differences
        return label_of(asked, ABOVE_SIX)

    async def allow(asked: Approval) -> bool:
        asked_before.append(asked)
        return True

    answer = await ask(QUESTION, **in_doubt(shop), on_clarify=choose)
    assert (answer.sql, answer.vote.settled) == (ABOVE_SIX, "user")
    answer = await ask(QUESTION, **asked_so(shop), on_approve=allow)
    assert answer.status == "answered"
    assert sorted(each.sql for each in asked_before) == sorted([GOOD, RENAMED])


async def test_a_question_that_was_made_precise_is_shown_so_and_none_keeps_the_vote(shop: str) -> None:
    answer = await ask(QUESTION, **in_doubt(shop), on_clarify=lambda _: "Only paid ones.")
    run = Path(answer.trace)
    assert answer.question == f"{QUESTION}\n\nTo be precise: Only paid ones."
    assert report_of(RunFolder(run)).question == answer.question
    assert list_runs(run.parent.parent)[0].question == answer.question
    answer = await ask(QUESTION, **in_doubt(shop), on_clarify=lambda _: None)
    assert (answer.vote.settled, len(answer.disagreement)) == ("", 4)


async def test_a_run_that_may_ask_needs_somebody_to_ask(shop: str, workplace: Path) -> None:
    for given in (asked_so(shop), in_doubt(shop, clarify=True)):
        with pytest.raises(ConfigurationError, match="nobody to ask"):
            await ask(QUESTION, **given)
    assert not (workplace / ".quorum").exists()


async def test_a_run_that_died_while_it_waited_asks_again_and_repeats_nothing(shop: str) -> None:
    heard, kinds = list[str](), list[str]()

    def second_dies(asked: Approval) -> str:
        heard.append(asked.sql)
        if len(heard) == 2:
            raise Dead
        return "yes"

    def dies(_: Clarification) -> str:
        raise Dead

    given: dict[str, Any] = {"on_event": lambda event: kinds.append(event["kind"])}
    with pytest.raises(Dead):
        await ask(QUESTION, **asked_so(shop) | given, on_approve=second_dies)
    before, again = kinds.count("model_call"), list[str]()
    given["chat_models"] = SAME
    answer = await ask(resume="last", on_approve=lambda asked: again.append(asked.sql) or "yes", **given)
    assert (answer.status, sorted(again)) == ("answered", sorted([GOOD, RENAMED]))
    assert kinds.count("query") == answer.usage["queries"] == 2
    assert kinds.count("model_call") == answer.usage["model_calls"] > before
    kinds.clear()
    given["chat_models"] = DIFFER
    with pytest.raises(Dead):
        await ask(QUESTION, **in_doubt(shop) | given, on_clarify=dies)
    before = kinds.count("model_call")
    answer = await ask(resume="last", on_clarify=lambda asked: label_of(asked, ABOVE_SIX), **given)
    assert answer.sql == ABOVE_SIX
    assert kinds.count("model_call") == before == answer.usage["model_calls"]


async def test_the_users_time_is_not_the_runs(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late, clock = [0.0], Ledger.clock
    monkeypatch.setattr(Ledger, "clock", staticmethod(lambda: clock() + late[0]))

    def thinks(_: Approval | Clarification) -> str:
        late[0] += 3600.0
        return "A" if isinstance(_, Clarification) else "yes"

    for given in (asked_so(shop) | {"on_approve": thinks}, in_doubt(shop) | {"on_clarify": thinks}):
        late[0] = 0.0
        answer = await ask(QUESTION, **given, deadline="10m")
        assert (answer.status, answer.stopped_by) == ("answered", "")
        assert answer.usage["seconds"] < 600
        assert late[0] >= 3600


# What an engine tells


COUNTED = GOOD.replace("COUNT(*)", "COUNT(o.id)")
SUMMED = GOOD.replace("COUNT(*)", "SUM(o.id) - SUM(o.id) + COUNT(o.id)")
ORDERS = """
CREATE TABLE customers (id BIGINT, name VARCHAR, city VARCHAR);
CREATE TABLE orders (id BIGINT, customer_id BIGINT, total DOUBLE, note VARCHAR);
INSERT INTO customers VALUES (1, 'Ada', 'Ghent'), (2, 'Bo', 'Lyon'), (3, 'Cy', 'Lyon');
INSERT INTO orders SELECT i, 1 + i % 3, i, 'n' FROM range(50000) AS r(i);
"""


@pytest.fixture(scope="module")
def warehouse(bigquery: BigqueryServer) -> str:
    return bigquery.url(bigquery.new_dataset(ORDERS))


async def test_only_what_would_read_more_is_asked_about_with_what_it_would_read(
    warehouse: str, bigquery: BigqueryServer
) -> None:
    heard: list[Approval] = []
    before = len(bigquery.jobs)
    models = {"m:a": scripted(script(action=sql(COUNTED)))}
    given = asked_so(warehouse, approve="500kB", chat_models=models, votes=1)
    answer = await ask(QUESTION, **given, on_approve=lambda asked: heard.append(asked) or False)
    assert answer.status == "no_answer"
    assert len(bigquery.jobs) == before, "nothing ran"
    first = heard[0]
    assert (first.bytes, first.billed, first.reads) == (800_048, True, "781 KiB")
    assert first.why == "You are asked about queries that would read more than 488 KiB."
    heard.clear()
    given["approve"] = "1MB"
    answer = await ask(QUESTION, **given, on_approve=lambda asked: heard.append(asked) or False)
    assert (answer.status, heard) == ("answered", [])


async def test_a_runs_bytes_end_it_with_the_best_so_far_marked(warehouse: str, workplace: Path) -> None:
    models = {f"m:{n}": scripted(script(action=sql(query))) for n, query in enumerate((COUNTED, SUMMED))}
    given = asked_so(warehouse, approve=None, max_run_bytes="1200kB", home=str(workplace / "h"))
    answer = await ask(QUESTION, **given | {"chat_models": models})
    assert (answer.status, answer.stopped_by) == ("stopped", "max_run_bytes")
    assert answer.row_count == 2, "one of the two queries ran"
    assert answer.usage["read_bytes"] == 2**20
    assert "1 MiB read" in str(answer)
    html = page_of(report_of(RunFolder(Path(answer.trace))))
    assert '<td data-is="read" class="num">1 MiB</td>' in html


# On a terminal


def on_terminal(
    arguments: list[str], keys: list[str], cwd: Path, root: Path, *, prompt: str = "(Enter: A): "
) -> tuple[int, str, str]:
    """Run ``quorum`` on a pseudo-terminal, typing a line whenever it waits at ``prompt``; exit code, screen,
    output."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(root), "OPENAI_API_KEY": "k", "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "quorum", *arguments],
        cwd=cwd, env=environment, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    screen, typed, deadline = "", 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            screen += os.read(ours, 65536).decode(errors="replace") if ready else ""
        except OSError:  # the other end is closed
            break
        if typed < len(keys) and screen.count(prompt) > typed:
            os.write(ours, keys[typed].encode())
            typed += 1
    output = process.stdout.read().decode()
    process.stdout.close()
    os.close(ours)
    return process.wait(20), screen, output


def command(shop: str, server: ChatServer, votes: int, *more: str) -> list[str]:
    about = ["--db", shop, "--model", "openai:x", "--base-url", server.url]
    return ["ask", QUESTION, *about, "--votes", str(votes), "--recipe", "recap", *more]


def one_differs(role: str, request: Request) -> Answer | None:
    """The candidate that is drawn at temperature 0 writes another query than the other."""
    if role != "action":
        return None
    query = ABOVE_SIX if request.body.get("temperature", 0) == 0 else GOOD
    return say(json.dumps(sql(query)), usage=tokens(10, 5, 0))


@pytest.mark.heavy
def test_on_a_terminal_the_user_chooses(shop: str, workplace: Path, root: Path) -> None:
    with ChatServer(by_role(one_differs)) as server:
        typed = command(shop, server, 2, "--clarify", "--json")
        code, screen, output = on_terminal(typed, ["Z\n", "B\n"], workplace, root)
    assert code == 0, screen + output
    for said in ("Which answer is meant?", "There is no answer 'Z'", "o.total > 6"):
        assert said in screen
    answer = json.loads(output)
    assert answer["vote"]["settled"] == "user"
    assert "the user chose answer B" in answer["vote"]["notes"][-1]


@pytest.mark.heavy
def test_on_a_terminal_the_user_is_asked_before_a_query(shop: str, workplace: Path, root: Path) -> None:
    with ChatServer(by_role()) as server:
        typed = command(shop, server, 1, "--approve", "always", "--json")
        keys, prompt = ["what?\n", "yes\n"], "(Enter: no): "
        code, screen, output = on_terminal(typed, keys, workplace, root, prompt=prompt)
    assert "May this query run?" in screen
    assert "JOIN customers" in screen
    facts = "Reads: the engine does not tell; database: shop (sqlite); for: Action candidate 1"
    assert facts in " ".join(screen.split())
    assert "That is no reply to this. Reply yes, no, or all" in screen
    assert (code, json.loads(output)["status"]) == (0, "answered")
    shown = quorum("trace", "show", "last").stdout
    assert "asks before its query runs" in shown
    assert "approves the query" in shown


def test_without_a_terminal_the_command_line_says_so(shop: str) -> None:
    for flags, said in (
        (("--clarify",), ["clarify asks on the terminal", "Leave it out"]),
        (("--approve", "costly"), ["approve asks on the terminal", "--approve never"]),
    ):
        result = quorum("ask", *flags, QUESTION, "--db", shop, "--model", "offline")
        assert result.exit_code == 2
        assert [part for part in said if part not in result.output] == []


# Where nobody is asked


def test_doctor_and_guard_tell_what_an_engine_can(warehouse: str, shop: str) -> None:
    doctor = ("doctor", "--model", "offline", "--json", "--max-bytes", "1GiB", "--approve", "costly", "--db")
    for url, oks, said in (
        (warehouse, [True], "is paid for, is told before they run"),
        (shop, [None] * 3, "max_bytes has no effect here"),
    ):
        checks = json.loads(quorum(*doctor, url).stdout)["checks"]
        costs = [check for check in checks if check["name"] == "costs"]
        assert [check["ok"] for check in costs] == oks
        assert said in " ".join(check["text"] for check in costs)
    guard = ("guard", "SELECT total FROM orders", "--db", warehouse)
    assert "would read: 391 KiB, which is billed" in quorum(*guard).stdout
    found = json.loads(quorum(*guard, "--json").stdout)
    assert (found["verdict"], found["estimate"]["bytes"]) == ("pass", 400_000)


async def test_one_query_may_not_read_more_and_a_writer_is_told(warehouse: str) -> None:
    narrow = {"self_refiner": {"explanation": "Narrower.", "sql": "SELECT count(*) AS n FROM customers"}}
    models = {"m:a": scripted(script(action=sql(GOOD), **narrow))}
    given = asked_so(warehouse, approve=None, max_bytes="1100kB", chat_models=models, votes=1)
    answer = await ask(QUESTION, **given)
    assert (answer.candidates[0].repairs, answer.usage["queries"]) == (1, 1)


async def test_evaluations_and_explorations_ask_nobody_and_say_so(shop: str, workplace: Path) -> None:
    with pytest.raises(ConfigurationError, match="An exploration asks nobody"):
        await explore(db=shop, models="offline", approve="always")
    (workplace / "q.jsonl").write_text(json.dumps({"id": "a", "question": "How many?", "gold": "SELECT 1"}))
    run = ["eval", "run", "q.jsonl", "--db", shop, "--model", "offline", "--approve", "costly"]
    result = quorum(*run)
    assert result.exit_code == 2
    assert "An evaluation has nobody to ask before queries run (approve=costly)" in result.output
