"""``ask`` from a script, against a loopback endpoint and a real database."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from quorum import Settings, ask, ask_sync
from quorum.graph.runs import list_runs
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, QUESTION, make_shop, script
from tests.quorum.roles import by_role
from tests.servers.chat_server import ChatServer


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A model and a database, without an endpoint yet."""
    monkeypatch.chdir(tmp_path)
    shop = make_shop(tmp_path / "shop.db")
    return Settings(
        database=f"sqlite:///{shop}",
        models=["openai:test"],
        recipe="recap",
        votes=1,
        api_key="sk-secret-12345",
        home=tmp_path / "q",
    )


async def test_ask_answers_with_rows_cost_and_trace(settings: Settings) -> None:
    heard: list[str] = []
    with ChatServer(by_role()) as server:
        answer = await ask(
            QUESTION,
            settings=settings,
            base_url=server.url,
            on_event=lambda event: heard.append(event["kind"]),
        )
    assert answer.status == "answered"
    assert sorted(answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert answer.usage["cached_tokens"] == 6 * 1024
    assert answer.usage["usd"] is None, "an unknown model has no price"
    assert heard[:2] == ["begun", "schema"]
    assert heard[-1] == "answer"
    assert not answer.demonstration


def test_ask_sync_may_be_called_again_in_the_same_process(settings: Settings) -> None:
    with ChatServer(by_role()) as server:
        answers = [ask_sync(QUESTION, settings=settings, base_url=server.url) for _ in range(3)]
    assert {answer.sql for answer in answers} == {GOOD}
    assert len({answer.run_id for answer in answers}) == 3


async def test_the_key_is_nowhere_in_the_run_folder(settings: Settings) -> None:
    with ChatServer(by_role()) as server:
        answer = await ask(QUESTION, settings=settings, base_url=server.url)
    files = [path for path in Path(answer.trace).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"sk-secret-12345" in path.read_bytes()]


async def test_prices_make_dollars(settings: Settings) -> None:
    prices = {"test": {"input": 2.0, "cached": 1.0, "output": 10.0}}
    with ChatServer(by_role()) as server:
        answer = await ask(QUESTION, settings=settings, base_url=server.url, prices=prices)
    one_call = (176 * 2.0 + 1024 * 1.0 + 40 * 10.0) / 1e6
    assert answer.usage["usd"] == pytest.approx(6 * one_call)


async def test_a_question_that_is_no_text_is_refused_before_the_run(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="not UTF-8 text, from character 4"):
        await ask("caf\udce9", settings=settings)
    assert list_runs(settings.home) == []


@pytest.mark.filterwarnings("error")  # a coroutine that is never awaited
async def test_ask_sync_in_a_coroutine_says_what_to_use() -> None:
    with pytest.raises(RuntimeError, match=r"use `await ask\(…\)`"):
        ask_sync(QUESTION)


async def test_a_dollar_limit_without_a_price_is_refused_at_the_start(settings: Settings) -> None:
    with ChatServer(by_role()) as server, pytest.raises(ConfigurationError, match="price"):
        await ask(QUESTION, settings=settings, base_url=server.url, max_usd=1.0)
    assert not server.requests


async def test_a_missing_database_is_a_clear_error(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="absent"):
        await ask(QUESTION, settings=settings, db=f"sqlite:///{tmp_path}/absent.db")
    assert not (tmp_path / "absent.db").exists()
    assert list_runs(settings.home) == [], "nothing is kept of a run that could not begin"


async def test_an_empty_question_and_an_unknown_recipe_are_refused(workplace: Path) -> None:
    with pytest.raises(ConfigurationError, match="empty"):
        await ask("  ", db="sample", models=["offline"])
    with pytest.raises(ConfigurationError, match="recap"):
        await ask(QUESTION, db="sample", models=["offline"], recipe="nope")


async def test_a_single_model_may_be_a_plain_text(settings: Settings) -> None:
    with ChatServer(by_role()) as server:
        answer = await ask(QUESTION, settings=settings, base_url=server.url, models="openai:one")
    assert {candidate.model for candidate in answer.candidates} == {"openai:one"}


async def test_models_of_ones_own_answer_by_their_spec(settings: Settings) -> None:
    own = {"mine": scripted(script()), "other": scripted(script())}
    answer = await ask(QUESTION, settings=settings, votes=2, chat_models=own)
    assert {candidate.model for candidate in answer.candidates} == {"mine", "other"}
    answer = await ask(QUESTION, settings=settings, models=["mine"], chat_models={"mine": own["mine"]})
    assert {candidate.model for candidate in answer.candidates} == {"mine"}
    with pytest.raises(ConfigurationError, match="chat_models has other"):
        await ask(QUESTION, settings=settings, models=["mine"], chat_models=own)


@pytest.mark.heavy
async def test_a_deadline_stops_the_run(settings: Settings) -> None:
    ended = threading.Event()

    def slow(role: str, request: object) -> None:
        if role == "action":
            ended.wait(60)

    with ChatServer(by_role(slow)) as server:
        answer = await ask(QUESTION, settings=settings, base_url=server.url, deadline=1.5)
        ended.set()
    assert answer.status == "stopped"
    assert answer.stopped_by == "deadline"
