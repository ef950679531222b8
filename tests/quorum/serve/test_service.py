"""The service: questions that go on by themselves, ask back, and belong to those who asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from quorum.chat import Chat
from quorum.graph.answering import NeedsReply
from quorum.graph.clarification import Clarification
from quorum.graph.context import Context
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.serve.keys import Caller, KeyFile, Purse, add_key
from quorum.serve.question import Question, Refused, cleaned
from quorum.serve.service import IDLE_SECONDS, LOOKS, MOST_RUNNING
from quorum.tools.execute import Database
from quorum.tools.ledger import Usage
from quorum.tools.query import ErrorKind, QueryError
from tests.graph.shop import GOOD, QUESTION, written
from tests.quorum.roles import by_role
from tests.quorum.serve.conftest import ABOVE_SIX, DIFFER, ONE, VIEWS, Make, held
from tests.servers.chat_server import ChatServer
from tests.waiting import until

ME, OTHER = Caller("me"), Caller("other")


async def kinds_of(asked: Question, after: int = 0) -> list[tuple[int, str]]:
    return [(number, step.kind) async for number, step in asked.steps(after) if step]


async def test_a_question_goes_on_by_itself_and_is_its_callers(make: Make) -> None:
    service = make()
    asked = await service.ask(ME, QUESTION)
    kinds = await kinds_of(asked)
    assert (kinds[0], kinds[-1]) == ((1, "begun"), (len(kinds), "answer"))
    answer = await asked.answer()
    assert (answer.status, asked.status, answer.sql) == ("answered", "answered", GOOD)
    found = await service.question(ME, asked.id)
    assert (found.status, found.text, found.database) == ("answered", QUESTION, "shop")
    assert await kinds_of(found, 3) == kinds[3:]
    assert [run.id for run in await service.history(ME, "CITY orders")] == [asked.id]
    assert await service.history(ME, "returned") == await service.history(OTHER) == []
    assert (await service.rows(ME, asked.id)).to_pydict() == {"city": ["Ghent", "Lyon"], "orders": [1, 3]}
    for work in (service.question, service.cancel, service.rows, service.resume, service.keep):
        with pytest.raises(Refused, match="There is no question"):
            await work(OTHER, asked.id)
    for odd in ("../q/runs/" + asked.id, "..", "", "last", asked.id[:-1], "a\0b", "é" * 100):
        with pytest.raises(Refused, match="There is no question"):
            await service.question(ME, odd)
    assert (await service.spent(ME)).calls == answer.usage["model_calls"]
    kept = await service.keep(ME, asked.id)
    assert kept.credit.startswith("verified by me on ")
    again = await service.ask(ME, QUESTION)
    assert (await again.answer()).usage["model_calls"] == 0
    for odd in ("\u202e\x1b[31m\x00 {{7*7}} {0} '; DROP TABLE orders; --", "\ud800"):
        with suppress(QuorumError):  # a lone surrogate is no text
            assert (await (await service.ask(ME, f"{QUESTION} {odd}")).answer()).question.endswith(odd)
    lines = [json.loads(line) for line in service.monitor.log.read_text().splitlines()]
    assert [(line["who"], line["what"], line["outcome"]) for line in lines] == [
        ("me", "question", "answered"),
        ("me", "keep", f"kept {kept.id}"),
        *[("me", "question", outcome) for outcome in ("answered", "answered", "failed")],
    ]


async def test_a_question_that_cannot_begin_is_refused_where_other_processes_would_not_find_it(
    make: Make,
) -> None:
    service = make()
    failed = await service.ask(ME, "\ud800", run_id="q1")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        await failed.answer()
    again = await service.ask(ME, QUESTION, run_id="q1")
    await again.answer()
    assert (await service.question(ME, "q1")).status == "answered", "what failed under its name is forgotten"
    service.leases = cast("Any", object())
    (service.home / "runs" / "killed").mkdir()
    with pytest.raises(ConfigurationError, match="UTF-8"):
        await service.ask(ME, "\ud800", run_id="killed")


def test_half_a_place_of_the_machine_is_not_shown() -> None:
    event = {
        "kind": "failed",
        "t": 0.0,
        "agent": "run",
        "error": "OSError",
        "message": f"{'x' * 80} /srv/home/of/ann",
    }
    step = cleaned(event, lambda text: text.replace("/srv/home/of/ann", "the home"))
    assert "srv" not in step.gist
    assert len(step.gist) <= 100


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("session", ["", "talk"])
async def test_a_question_waits_for_a_reply_and_goes_on_with_it(
    restarted: bool, session: str, make: Make
) -> None:
    service = make(DIFFER, recipe="recap", votes=2)
    asked = await service.ask(ME, QUESTION, clarify="on", session=session)
    with pytest.raises(NeedsReply):
        await asked.answer()
    calls = (await service.spent(ME)).calls
    assert (await kinds_of(asked))[-1][1] == "waiting"
    if restarted:
        await service.aclose()
        service = make(DIFFER, recipe="recap", votes=2)
    waiting = await service.question(ME, asked.id)
    assert waiting.status == "waiting"
    assert isinstance(waiting.waiting, Clarification)
    label = next(each.label for each in waiting.waiting.choices if each.sql == ABOVE_SIX)
    replying = (service.reply(ME, asked.id, label) for _ in range(3))
    replied = await asyncio.gather(*replying, return_exceptions=True)
    assert sorted(type(each).__name__ for each in replied) == ["Question", "Refused", "Refused"]
    goes_on = await service.question(ME, asked.id)
    answer = await goes_on.answer()
    assert (answer.status, answer.sql) == ("answered", ABOVE_SIX)
    assert (await service.spent(ME)).calls == calls == answer.usage["model_calls"], "nothing is asked twice"
    with pytest.raises(Refused, match="waits for no reply"):
        await service.reply(ME, asked.id, label)
    assert not [*service.home.glob("kb/notes/*")], "a caller's choice is no convention of the team"
    if session:
        after = await service.ask(ME, "Only the first one!", session=session)
        assert after.thread == "me.shop.talk"


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("models", [DIFFER, ONE], ids=["two", "one"])
async def test_each_query_is_approved_by_a_reply_of_its_own(models: Any, odd: bool, make: Make) -> None:
    service = make(models, recipe="recap", votes=len(models))
    asked, seen = await service.ask(ME, QUESTION, approve="always"), list[Any]()
    replies = ["yes"] * len(models) + ["perhaps"] * odd
    while asked.status != "answered":
        try:
            await asked.answer()
        except NeedsReply as needs:
            seen.append(needs.asked)
            asked = await service.reply(ME, asked.id, replies.pop())
    assert {each.sql for each in seen} == ({GOOD} if models is ONE else {GOOD, ABOVE_SIX})
    again = [False, True, False][: len(models) + 1] if odd else [False] * len(models)
    assert ["no reply" in each.refused for each in seen] == again


async def test_a_conversation_is_its_callers_and_has_one_turn_at_a_time(make: Make) -> None:
    service = make(VIEWS)
    first = await service.ask(ME, QUESTION, session="s")
    with pytest.raises(Refused, match="being answered") as busy:
        await service.ask(ME, "Only the first!", session="s")
    assert busy.value.status == 409
    others = await service.ask(OTHER, QUESTION, session="s")
    for each in (first, others):
        await each.answer()
    turn = await service.ask(ME, "Only the first!", session="s")
    answer = await turn.answer()
    assert (answer.turn, answer.rows) == ("Only the first!", [["Ghent", 1]])
    await service.aclose()
    service = make(VIEWS)
    again = await (await service.ask(ME, "Only the first, please!", after=turn.id)).answer()
    assert (again.became, again.of_run) == ("the result before: its first 1 rows", answer.of_run)
    with pytest.raises(Refused, match="There is no question"):
        await service.ask(OTHER, "And?", after=turn.id)


async def test_a_turn_behind_a_question_still_knows_it_after_a_restart(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, cut = make(VIEWS), asyncio.Event()

    async def killed(chat: Chat, context: Context, *_: Any, **__: Any) -> None:
        cut.set()
        try:
            await asyncio.Event().wait()
        finally:
            await context.aclose()

    first = await service.ask(ME, QUESTION)
    await first.answer()
    with monkeypatch.context() as patched:
        patched.setattr(Chat, "_answered", killed)
        turn = await service.ask(ME, "Only the first!", after=first.id)
        await cut.wait()
        await service.aclose()
    assert turn.status == "interrupted"
    assert turn.folder.meta()["talk"] == turn.thread
    answer = await (await make(VIEWS).resume(ME, turn.id)).answer()
    assert (answer.turn, answer.of_run, answer.rows) == ("Only the first!", first.id, [["Ghent", 1]])


async def test_a_question_is_cancelled_or_interrupted_and_goes_on_after_a_restart(make: Make) -> None:
    slow = held()
    service = make({"m:a": slow})
    gone, kept = [await service.ask(ME, f"{QUESTION} {n}") for n in range(2)]
    await until(lambda: len(slow.asked) == 2)
    cancelled = await service.cancel(ME, gone.id)
    assert cancelled.status == "cancelled"
    assert {run.id: run.status for run in await service.history(ME)} == {
        gone.id: "cancelled",
        kept.id: "running",
    }
    assert (await kinds_of(gone))[-1][1] == "cancelled"
    with pytest.raises(QuorumError, match="was cancelled"):
        await gone.answer()
    await service.aclose()
    service = make()
    assert (await service.question(ME, gone.id)).status == "cancelled"
    found = await service.question(ME, kept.id)
    assert found.status == "interrupted"
    assert [run.status for run in await service.history(ME)] == ["interrupted", "cancelled"]
    assert (await (await service.resume(ME, kept.id)).answer()).status == "answered"
    assert {run.status for run in await service.history(ME)} == {"cancelled", "answered"}


async def test_a_question_that_cannot_begin_says_so_and_a_service_is_not_overrun(
    make: Make, workplace: Path
) -> None:
    service = make({"m:a": held()})
    with pytest.raises(Refused, match="This key has no database"):
        await service.ask(Caller("me", frozenset()), QUESTION)
    asked = [await service.ask(ME, QUESTION) for _ in range(MOST_RUNNING)]
    with pytest.raises(Refused, match="busy") as busy:
        await service.ask(ME, QUESTION)
    assert busy.value.status == 503
    await asyncio.gather(*(service.cancel(ME, each.id) for each in asked))
    assert service.running == 0
    (workplace / "shop.db").unlink()
    broken = make()
    failed = await broken.ask(ME, QUESTION)
    with pytest.raises(QuorumError, match=r"shop\.db"):
        await failed.answer()
    assert (await broken.question(ME, failed.id)).status == "failed"


async def test_questions_that_race_for_the_last_dollar_cannot_pass_it(make: Make) -> None:
    prices = {"test": {"input": 2.0, "cached": 2.0, "output": 10.0}}
    with ChatServer(by_role(sql_writer=written(GOOD))) as server:
        about = {"models": ["openai:test"], "base_url": server.url, "api_key": "sk-1", "prices": prices}
        service, again, last = (make(None, **about) for _ in range(3))
        one = float((await (await service.ask(OTHER, QUESTION)).answer()).usage["usd"])
        poor = Caller("poor", max_usd=9.5 * one, max_calls=4000, max_bytes=2**40)
        for _ in range(2):  # two processes of one home at once
            pairs = [(each, n) for n in range(25) for each in (service, again)]
            asking = (each.ask(poor, f"{QUESTION} {n}", max_usd=3 * one) for each, n in pairs)
            asked = await asyncio.gather(*asking, return_exceptions=True)
            begun = [question for question in asked if isinstance(question, Question)]
            refused = [error for error in asked if isinstance(error, Refused)]
            assert len(begun) + len(refused) == 50
            assert all((error.status, error.kind) == (429, "limit") for error in refused)
            answers = await asyncio.gather(*(question.answer() for question in begun))
            assert {answer.status for answer in answers} <= {"answered", "stopped"}
            spent = await again.spent(poor)
            assert spent.usd <= 9.5 * one
            assert 1 < len(begun) < 10
        assert spent.usd > 4 * one
        assert spent == await last.spent(poor), "a restart forgets nothing"


def test_while_the_file_of_keys_is_wrong_those_before_count_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.toml"
    key = add_key(file, "me")
    keys, right = KeyFile(file), file.read_text()
    for wrong, said in (
        (f"{right}sqll = true\n", "key 1, sqll: "),
        ("key = [1]", "key 1"),
        ("[", "at end of"),
    ):
        file.write_text(wrong)
        assert keys.caller(key)
        assert said in keys.fault
        assert keys.fault in caplog.text
    file.rename(tmp_path / "away")
    assert keys.look()
    (tmp_path / "away").rename(file)
    file.write_text(right)
    assert keys.look() == ""
    file.write_text("")
    assert keys.caller(key) is None
    assert keys.fault == ""


def test_who_takes_a_question_over_has_its_claim(tmp_path: Path) -> None:
    """Else each process that dies costs a key what its questions under way might have used."""
    who, used = Caller(max_usd=1.0), {"max_usd": 0.125, "max_calls": 2, "max_run_bytes": 9}
    died, other = (Purse(tmp_path / "me", who) for _ in range(2))
    first = died.claim({"max_usd": 0.75}, run="a")
    assert other.spent().usd == 0.75
    other.settle(other.claim({}, run="b"), used)
    again = other.claim({"max_usd": 0.75}, run="a")
    assert (again.amounts, again.inherited) == (first.amounts, True)
    other.settle(again, used)
    died.settle(first, used)  # it only hung
    assert died.spent().usd == other.spent().usd == 0.25


async def test_a_callers_query_has_no_more_rows_than_the_settings_allow(make: Make) -> None:
    found = await make(max_rows=2).run_sql(ME, "SELECT id FROM orders", rows=9)
    assert (getattr(found, "row_count", 0), bool(getattr(found, "truncated", ""))) == (2, True)


async def test_what_a_callers_query_reads_is_counted_and_limited(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list[Any]()

    async def reads(database: Database, *_: Any, **__: Any) -> QueryError:
        left.append(database.ledger.remaining_bytes())
        database.ledger.charge("user", Usage(read_bytes=600))
        return QueryError(ErrorKind.OTHER, "It failed.")

    monkeypatch.setattr("quorum.serve.service.execute", reads)
    service, few = make(), Caller("few", max_bytes=1000)
    for _ in range(2):
        await service.run_sql(few, GOOD)
    assert left == [1000, 400]
    with pytest.raises(Refused):
        await service.run_sql(few, GOOD)


async def test_a_key_sees_the_tables_of_its_schemas_only(make: Make) -> None:
    service, few = make(), Caller("few", schemas=frozenset({"customers"}))
    schema = await service.schema(few)
    assert [each.name for each in schema.tables] == ["customers"]
    refused = await service.run_sql(few, "SELECT COUNT(*) FROM orders")
    assert "orders" in getattr(refused, "message", "")
    assert not getattr(refused, "suggestions", ())
    found = await service.search_values(few, "Lyon")
    assert found.values == {"customers.city": ["Lyon"]}
    asked = await service.ask(few, QUESTION)
    answer = await asked.answer()
    assert (answer.status, answer.columns) == ("no_answer", [])
    prompts = [text.read_text() for text in (asked.folder.folder / "blobs").iterdir()]
    assert not [text for text in prompts if "order_id" in text or "total REAL" in text]
    assert (await service.schema(ME)).total == 2, "another key sees all"
    with pytest.raises(Refused, match="the same tables"):
        await make(show=["customers"]).schema(few)


async def test_a_session_without_a_question_is_closed_after_its_time(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, now, loop = held(), 1.0, asyncio.get_running_loop()
    timers, call_later = list[Callable[[], None]](), loop.call_later

    def later(delay: float, call: Callable[..., None], *given: Any) -> Any:
        timers.extend([call] if delay == LOOKS else ())
        return call_later(delay, call, *given)

    monkeypatch.setattr(loop, "call_later", later)
    serving = make({"m:a": slow})
    serving.clock = lambda: now
    asked = await serving.ask(ME, QUESTION)
    session = serving._session(ME, "shop")
    await until(lambda: slow.asked)
    now = 1 + IDLE_SECONDS
    timers.pop()()
    slow.may.set()
    assert (await asked.answer()).status == "answered", "a question under way keeps its session open"
    assert serving._session(ME, "shop") is session
    now += IDLE_SECONDS
    timers.pop()()
    assert timers == [], "no session is left"
    await asyncio.gather(*serving._closing)
    with pytest.raises(ConfigurationError, match="session is closed"):
        await session.resources()
    assert serving._session(ME, "shop") is not session
