"""A session: what its questions share, many at once, one budget, and what is left when it closes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from quorum import Answer, Quorum, Settings, ask, ask_sync
from quorum.graph import resources as opening
from quorum.graph.options import RunOptions
from quorum.graph.resources import OPENED_WITH, open_resources
from quorum.graph.runs import RunFolder, list_runs
from quorum.knowledge.errors import BudgetExceeded, ConfigurationError, DatabaseUnavailable
from quorum.tools.models.scripted import ScriptedChatModel, scripted
from tests.graph.shop import GOOD, QUESTION, make_shop, script, written
from tests.quorum.conftest import HOSTILE, python
from tests.quorum.roles import by_role
from tests.quorum.serve.conftest import held
from tests.servers.chat_server import ChatServer
from tests.waiting import until

TOTAL = "SELECT COUNT(*) AS orders FROM orders"


def right(**roles: Any) -> ScriptedChatModel:
    return scripted(script(**roles))


@pytest.fixture
def session(workplace: Path) -> Quorum:
    """A session over the shop; its model fails where a question says so."""
    make_shop(workplace / "shop.db")

    def write(prompt: Any) -> Any:
        return OSError("the line is dead") if "BREAK" in prompt.text else written(GOOD)

    return Quorum(db="shop.db", models=[right(sql_writer=write)], recipe="single", home=workplace / "q")


async def test_questions_share_what_is_open_and_differ_where_they_may(
    session: Quorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, connect = list[Any](), opening.connect_all
    monkeypatch.setattr(opening, "connect_all", lambda urls: opened.append(urls) or connect(urls))
    async with session as quorum:
        answers = await asyncio.gather(*(quorum.ask(f"{QUESTION} {n}") for n in range(5)))
        several = await quorum.ask(QUESTION, votes=3)
        for name, value in (("db", "other.db"), ("docs", "docs"), ("models", ["offline"]), ("home", ".")):
            with pytest.raises(ConfigurationError, match=rf"cannot change {name}: .* Give it to Quorum"):
                await quorum.ask(QUESTION, **{name: value})
    assert len(opened) == 1
    assert {answer.usage["model_calls"] for answer in answers} == {1}
    assert len({answer.run_id for answer in answers}) == 5
    assert len(several.candidates) == 3
    with pytest.raises(ConfigurationError, match="closed"):
        await quorum.ask(QUESTION)


async def test_what_handles_are_opened_with_is_declared(workplace: Path) -> None:
    read = set[str]()

    class Watched(RunOptions):
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    make_shop(workplace / "shop.db")
    options = Watched(database="shop.db", models=["offline"], embedding_model="openai:e", kb="kb")
    read.clear()
    await (await open_resources(options, api_key="sk-1")).aclose()
    read &= RunOptions.model_fields.keys()
    assert read - {"max_bytes", "max_usd"} <= OPENED_WITH, "limits are each question's own"


async def test_an_opening_that_failed_is_tried_again(session: Quorum, workplace: Path) -> None:
    (workplace / "shop.db").rename(workplace / "away.db")
    async with session as quorum:
        for failed in await asyncio.gather(*(quorum.ask(QUESTION) for _ in range(3)), return_exceptions=True):
            assert isinstance(failed, DatabaseUnavailable)
        (workplace / "away.db").rename(workplace / "shop.db")
        assert (await quorum.ask(QUESTION)).status == "answered"


async def test_closing_stops_what_is_asked_or_opened_with_an_error_that_says_so(session: Quorum) -> None:
    opening = [asyncio.create_task(work) for work in (session.ask(QUESTION), session.resources())]
    while session._opening is None:
        await asyncio.sleep(0)
    await session.aclose()
    begun = asyncio.Event()
    async with Quorum(settings=session.settings, models=[right()], on_event=lambda _: begun.set()) as quorum:
        asking, given_up = (asyncio.create_task(quorum.ask(f"{QUESTION} {n}")) for n in range(2))
        await begun.wait()
        given_up.cancel()
    for stopped in await asyncio.gather(*opening, asking, return_exceptions=True):
        assert isinstance(stopped, ConfigurationError)
        assert "closed" in str(stopped)
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_many_questions_end_with_their_session(session: Quorum) -> None:
    answers = session.ask_many(f"{QUESTION} {n}" for n in itertools.count())
    await anext(answers)
    await session.aclose()
    with pytest.raises(ConfigurationError, match="closed"):
        async with asyncio.timeout(60):
            assert [answer async for answer in answers]


def test_a_session_is_not_carried_into_another_event_loop(session: Quorum) -> None:
    with asyncio.Runner() as runner:
        runner.run(session.resources())
        with pytest.raises(ConfigurationError, match=r"event loop .* is another"):
            asyncio.run(session.ask(QUESTION))
        runner.run(session.aclose())


async def test_models_may_be_langchains_beside_specs(workplace: Path) -> None:
    make_shop(workplace / "shop.db")
    own = FakeListChatModel(responses=["{}"])
    session = Quorum(db="shop.db", models=[own, "offline", own, right()], votes=4)
    assert session.settings.models == [
        "fake-list-chat-model:custom", "offline", "fake-list-chat-model:custom#2", "scripted:custom"
    ]  # fmt: skip
    async with session as quorum:
        handles = await quorum.resources()
        assert [*handles.models] == session.settings.models
    assert Quorum(db="shop.db", models=own).settings.models == ["fake-list-chat-model:custom"]


async def test_a_question_that_fails_loses_none_of_the_others(session: Quorum) -> None:
    questions = [QUESTION, "BREAK this", "", None, {"question": QUESTION, "votes": 2, "run_id": "row-5"}, 7]
    questions += [{"question": "misnamed", "run_id": name} for name in ("/", "x" * 300)]
    async with session as quorum:
        answers = [answer async for answer in quorum.ask_many(questions, concurrency=3)]  # type: ignore[arg-type]
    assert len(answers) == len(questions)
    found = {answer.question: answer for answer in answers if answer.status == "failed"}
    assert found["BREAK this"].error
    assert Path(found["BREAK this"].trace).is_dir()
    assert found["misnamed"].trace == ""
    assert (found[""].error, found[""].trace) in {
        ("The question is empty.", ""),
        ("The question is NoneType, not text.", ""),
    }
    right = {answer.run_id: answer for answer in answers if answer.status == "answered"}
    assert len(right) == 2
    assert len(right["row-5"].candidates) == 2
    assert "Failed" in str(found["BREAK this"])


async def test_many_questions_are_read_one_by_one_and_stopped_when_nobody_listens(
    workplace: Path, session: Quorum
) -> None:
    read, model = list[int](), held(to="number 3")

    def endless() -> Iterator[str]:
        for number in itertools.count():
            read.append(number)
            yield f"{QUESTION} It is number {number}."

    async with Quorum(settings=session.settings, models=[model]) as quorum:
        answers = quorum.ask_many(endless(), concurrency=2)
        seen = [await anext(answers) for _ in range(6)]
        await until(lambda: model.asked)
        await answers.aclose()
        assert len(read) <= 6 + 2
        (cut,) = [run for run in list_runs(session.settings.home) if "number 3" in run.question]
        assert cut.status == "unfinished"
        assert {(answer.status, answer.error) for answer in seen} == {("answered", "")}
        await quorum.ask("And one more?")
    async with Quorum(settings=session.settings, chat_models={"scripted:custom": right()}) as quorum:
        assert (await quorum.ask(resume=cut.id)).question.endswith("number 3.")


async def test_one_budget_holds_for_all(workplace: Path) -> None:
    make_shop(workplace / "shop.db")
    prices = {"test": {"input": 2.0, "cached": 1.0, "output": 10.0}}  # 0.001776 a call
    with ChatServer(by_role()) as server:
        about: dict[str, Any] = {"db": "shop.db", "models": ["openai:test"], "recipe": "single"}
        async with Quorum(**about, base_url=server.url, api_key="sk-1", prices=prices) as quorum:
            questions, answers = iter(f"{QUESTION} {n}" for n in range(50)), list[Answer]()

            async def all_of_them() -> None:
                async for answer in quorum.ask_many(questions, concurrency=1, max_usd=0.005):
                    answers.append(answer)

            with pytest.raises(BudgetExceeded, match=r"\$0.005 is used up"):
                await all_of_them()
            enough = [answer async for answer in quorum.ask_many([QUESTION] * 3, max_usd=1.0)]
        async with Quorum(**about, base_url=server.url, api_key="sk-1") as quorum:
            with pytest.raises(ConfigurationError, match=r"price of .* is unknown"):
                await anext(quorum.ask_many([QUESTION], max_usd=1.0))
    paid = [answer for answer in answers if answer.status == "answered"]
    assert 1 <= len(paid) <= 3
    assert [answer.stopped_by for answer in answers[len(paid) :]] in ([], ["max_usd"])
    assert next(questions).endswith(f" {len(answers) + 1}"), "one was read to see whether any is left"
    assert [answer.status for answer in enough] == ["answered"] * 3
    assert len(server.requests) == len(paid) + 3


async def test_what_is_wrong_for_all_of_them_fails_before_any(session: Quorum) -> None:
    wrong: dict[str, dict[str, Any]] = {"concurrency is 0": {"concurrency": 0}, "'votes'": {"votse": 3}}
    async with session as quorum:
        for said, given in (wrong | {"cannot change db": {"db": "x"}}).items():
            with pytest.raises(ConfigurationError, match=said):
                await anext(quorum.ask_many([QUESTION], **given))
    assert not (session.settings.home / "runs").exists()


async def test_a_run_goes_on_in_a_session_with_its_own_database(session: Quorum, workplace: Path) -> None:
    other = make_shop(workplace / "other.db")
    done = await ask(QUESTION, db=str(other), models=[right()], home=session.settings.home, run_id="o")
    run = RunFolder.open(session.settings.home, "o")
    for name in ("answer.json", "checkpoint.sqlite", "events.jsonl"):
        (run.folder / name).unlink()
    settings = Settings(home=session.settings.home)
    async with Quorum(settings=settings, chat_models={"scripted:custom": right()}) as quorum:
        assert (await quorum.ask(resume="o")).rows == done.rows
        with pytest.raises(ConfigurationError, match="No database"):
            await quorum.resources()


def test_code_without_a_loop_has_the_same(session: Quorum) -> None:
    with session as quorum:
        assert quorum.ask(QUESTION).status == "answered"
        answers = quorum.ask_many([QUESTION] * 5, concurrency=2)
        assert next(answers).status == "answered"
        answers.close()
        assert len(list(quorum.ask_many([QUESTION] * 5))) == 5
        assert len(list(quorum.ask_many(QUESTION))) == 1
        with pytest.raises(ConfigurationError, match="empty"):
            quorum.ask("")
        tool = quorum.as_tool("shop")
        call = {"name": "shop", "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}
        message = tool.invoke(call)
        assert "the database shop (sqlite)" in tool.description
        assert "customers, orders" in tool.description
        assert ("| Lyon | 3 |" in message.content, isinstance(message.artifact, Answer)) == (True, True)
        assert asyncio.run(tool.ainvoke({"question": ""})) == "The question is empty."
        quorum.close()
    with pytest.raises(ConfigurationError, match="closed"):
        quorum.ask(QUESTION)


def test_an_answer_prints_in_every_form_and_nothing_in_it_is_markup(answer: dict[str, Any]) -> None:
    made = Answer.model_validate(
        answer | {"summary": f"[x](https://e.example) {HOSTILE}", "doubts": ["1 | 2"]}
    )
    text, markdown, html = str(made), made.to_markdown(), made._repr_html_()
    for part, whole in (("Garden", text), ("4.25", text), ("| Garden | 4.25 |", markdown), ("<td", html)):
        assert part in whole
    for part, whole in (("quorum keep", text), ("<script", html), ("<a ", html), ("\x1b", text + markdown)):
        assert part not in whole


# One question


async def test_ask_answers_with_rows_cost_and_trace(workplace: Path) -> None:
    about: dict[str, Any] = {
        "models": ["openai:test"],
        "recipe": "recap",
        "votes": 1,
        "home": workplace / "q",
    }
    shop = f"sqlite:///{make_shop(workplace / 'shop.db')}"
    settings = Settings(database=shop, api_key="sk-secret-12345", **about)
    heard, prices = list[str](), {"test": {"input": 2.0, "cached": 1.0, "output": 10.0}}
    given: dict[str, Any] = {"settings": settings, "on_event": lambda event: heard.append(event["kind"])}
    with ChatServer(by_role()) as server:
        answer = await ask(QUESTION, **given, base_url=server.url, prices=prices)
    assert answer.status == "answered"
    assert sorted(answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert answer.usage["cached_tokens"] == 6 * 1024
    assert answer.usage["usd"] == pytest.approx(6 * (176 * 2.0 + 1024 * 1.0 + 40 * 10.0) / 1e6)
    assert heard[:2] == ["begun", "schema"]
    assert heard[-1] == "answer"
    assert not answer.demonstration
    files = [path for path in Path(answer.trace).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"sk-secret-12345" in path.read_bytes()]


@pytest.mark.filterwarnings("error")  # a coroutine that is never awaited
async def test_ask_sync_in_a_coroutine_says_what_to_use() -> None:
    with pytest.raises(RuntimeError, match=r"use `await ask\(…\)`"):
        ask_sync(QUESTION)


async def test_models_of_ones_own_answer_by_their_spec(session: Quorum) -> None:
    settings = session.settings
    own = {"mine": scripted(script()), "other": scripted(script())}
    answer = await ask(QUESTION, settings=settings, votes=2, chat_models=own)
    assert {candidate.model for candidate in answer.candidates} == {"mine", "other"}
    answer = await ask(QUESTION, settings=settings, models=["mine"], chat_models={"mine": own["mine"]})
    assert {candidate.model for candidate in answer.candidates} == {"mine"}
    with pytest.raises(ConfigurationError, match="chat_models has other"):
        await ask(QUESTION, settings=settings, models=["mine"], chat_models=own)


# Children


CHILDREN = """
import asyncio, os, signal, sys
from pathlib import Path
import psutil
from quorum import Quorum

def children():
    return psutil.Process().children(recursive=True)

async def main():
    async with Quorum(db="shop.db", models=["offline"], home="q") as quorum:
        print((await quorum.ask("How many orders are there?")).rows)
        for child in children():
            child.kill()
        psutil.wait_procs(children())
        print((await quorum.ask("How many customers are there?")).rows)
        print(bool(children()))
    print(children())

asyncio.run(main())
with Quorum(db="shop.db", models=["offline"], home="q") as quorum:
    quorum.ask("How many orders are there?")
print(children())
"""


@pytest.mark.heavy
def test_closing_ends_every_child_and_a_killed_one_is_replaced(root: Path, workplace: Path) -> None:
    make_shop(workplace / "shop.db")
    done = python(root, "-c", CHILDREN)
    assert done.stdout.split("\n") == ["[[4]]", "[[3]]", "True", "[]", "[]", ""], done.stderr
