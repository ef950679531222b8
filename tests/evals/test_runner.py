"""An evaluation goes on whatever stopped it, and asks nothing twice."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.folder import EvalFolder, EvalWriter
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.running.attempts import Attempts
from quorum.evals.running.databases import MOST_OPENINGS, DatabasePool
from quorum.evals.running.runner import MAX_IN_A_ROW, Evaluation, GaveUp, run_evaluation
from quorum.evals.scorers.own import OwnScorer
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError, MachineFailed, ModelUnavailable
from quorum.tools.models.pace import Timing
from tests.evals.evaluations import differing
from tests.evals.running import GOLD, Knowing, ShopConnector, evaluation, questions
from tests.evals.simulated import make_suite
from tests.servers.chat_server import Answer, ChatServer, Request, say
from tests.servers.replies import reply_to

pytestmark = pytest.mark.usefixtures("shops")

GONE = ModelUnavailable("test: no connection.")


def lines(folder: Path) -> list[str]:
    return (folder / "results.jsonl").read_text().splitlines()


def ended(folder: Path) -> list[str]:
    """Ids in the order of their lines."""
    return [json.loads(line)["id"] for line in lines(folder)]


def only(*numbers: int) -> Callable[[str, int], Any]:
    """The model is gone for some questions."""
    return lambda role, number: GONE if number in numbers else None


async def unbroken(folder: Path, asked: tuple[EvalQuestion, ...], **how: Any) -> dict[str, Record]:
    return await run_evaluation(evaluation(folder, Knowing(), asked, **how))


async def test_each_question_leaves_one_line_with_all_that_is_known(tmp_path: Path) -> None:
    heard: list[str] = []
    given = evaluation(tmp_path, Knowing(), questions(3))
    records = await run_evaluation(given, on_record=lambda record: heard.append(record.id))
    assert sorted(ended(tmp_path)) == ["q00", "q01", "q02"] == list(records)
    assert ended(tmp_path) == heard
    record = EvalFolder(tmp_path).records()["q01"]
    assert record == records["q01"]
    assert (record.status, record.match, record.executes, record.valid, record.error) == (
        ("answered", True, True, True, "")
    )
    assert record.sql == GOLD.format(number=1)
    assert record.metrics == {"ex": 1.0, "contains": 1.0}
    assert (tmp_path / record.result).is_file()
    assert (tmp_path / record.run / "events.jsonl").is_file()
    assert [row.match for row in record.candidates] == [True]
    assert record.linking.column_recall == 1.0
    assert record.usage["model_calls"] == 1
    assert record.course is not None
    manifest = EvalFolder(tmp_path).manifest()
    assert [item.id for item in manifest.asked] == ["q00", "q01", "q02"]
    assert manifest.options["recipe"] == "single"
    assert "home" not in manifest.options


async def test_started_again_it_asks_only_what_is_new(tmp_path: Path) -> None:
    before = await unbroken(tmp_path, questions(3))
    data, model, earlier = lines(tmp_path), Knowing(), list[Record]()
    again = await run_evaluation(
        evaluation(tmp_path, model, questions(3), concurrency=1), on_begin=earlier.extend
    )
    assert again == before
    assert (len(earlier), lines(tmp_path), model.numbers) == (3, data, set())
    assert ShopConnector.opened == ["shop0"], "no database was opened the second time"
    began = EvalFolder(tmp_path).manifest().started
    records = await run_evaluation(evaluation(tmp_path, model, questions(4)))
    assert (model.numbers, list(records)) == ({3}, ["q00", "q01", "q02", "q03"])
    after = EvalFolder(tmp_path).manifest()
    assert (len(after.asked), after.started) == (4, began)


async def test_another_evaluation_in_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other" / "runs" / "q00").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="belong to no evaluation"):
        await unbroken(tmp_path / "other", questions(1))
    await unbroken(tmp_path, questions(1))
    model, rules = Knowing(), type("Other", (OwnScorer,), {"rules": "other rules"})()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"recipe": "recap"}, "recipe was 'single' and is 'recap'"),
        ({"votes": 2}, "votes was None and is 2"),
        ({"shard": (1, 2)}, "shard was '1/1' and is '1/2'"),
        ({"scorer": rules}, "rules was \"Quorum's own equality"),
        ({"abstain_below": 0.5}, "abstain_below was 0.0 and is 0.5"),
        ({"model_for": {"writing": "offline"}}, "model_for was {} and is {'writing': 'offline'}"),
    ]
    for changed, named in changes:
        with pytest.raises(ConfigurationError, match=named):
            await run_evaluation(evaluation(tmp_path, model, questions(2), **changed))
    assert not model.asked


async def test_a_wrong_setting_shows_before_anything_is_asked_or_written(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for changed, said in (
        ({"recipe": "nope"}, "no recipe"),
        ({"switches": {"nope": 1}}, "no switch"),
        ({"clarify": True}, "nobody to ask"),
        ({"documents": "nowhere"}, "nowhere"),
        ({"demonstrations": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"ids": ("../x",)}, "cannot be a question's id"),
        ({"ids": ("a", "A")}, "Two questions have the id"),
    ):
        with subtests.test(changed=changed):
            model, ids = Knowing(), changed.get("ids", ("a", "b"))
            asked = tuple(dataclasses.replace(questions(1)[0], id=id) for id in ids)
            how = {name: value for name, value in changed.items() if name != "ids"}
            given = evaluation(tmp_path / "out", model, asked, **how)
            with pytest.raises(ConfigurationError, match=said):
                await run_evaluation(given)
            assert not model.asked
            assert not (tmp_path / "out").exists()


async def test_an_interrupted_run_repeats_no_call_that_had_its_reply(tmp_path: Path) -> None:
    reached, run, model = asyncio.Event(), ShopConnector.run, Knowing()

    async def held(shop: ShopConnector, sql: str, *given: Any) -> Any:
        if sql == GOLD.format(number=0):
            reached.set()
            await asyncio.Event().wait()
        return await run(shop, sql, *given)

    given = evaluation(tmp_path, model, questions(1), recipe="recap", votes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShopConnector, "run", held)
        task = asyncio.ensure_future(run_evaluation(given))
        await asyncio.wait_for(reached.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert lines(tmp_path) == []
    before = model.asked.copy()
    record = (await run_evaluation(given))["q00"]
    assert record.resumed
    assert record.match
    assert before["planner", 0] == model.asked["planner", 0] == 1
    assert record.usage["model_calls"] == model.asked.total(), "the ledger covers both processes"


DAMAGE: dict[str, tuple[dict[str, str | None], bool]] = {
    "killed between answer and record": ({}, False),
    "killed before the answer": ({"answer.json": None}, False),
    "no run.json": ({"run.json": None}, True),
    "no blobs": ({"blobs": None}, True),
    "no results": ({"results": None}, True),
    "nothing but an empty folder": (
        dict.fromkeys(("answer.json", "run.json", "events.jsonl", "blobs")),
        True,
    ),
    "a run of another question": ({"run.json": '{"question": "Which?", "options": {}}'}, True),
    "an empty run.json": ({"run.json": ""}, True),
    "no answer in answer.json": ({"answer.json": "{}"}, True),
    "a damaged checkpoint": ({"answer.json": None, "checkpoint.sqlite": "no database" * 100}, True),
    "damaged events": ({"answer.json": None, "events.jsonl": "{}\n"}, True),
}
"""What of a run's folder is gone or is otherwise, and whether the question is asked again."""


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_run_without_its_record_goes_on_or_begins_anew(tmp_path: Path, damage: str) -> None:
    changed, asked_again = DAMAGE[damage]
    whole = await unbroken(tmp_path / "old", questions(2))
    folder = (tmp_path / "old").rename(tmp_path / "moved")
    kept = [line for line in lines(folder) if '"id": "q00"' in line]
    (folder / "results.jsonl").write_text(kept[0] + '\n{"id": "q01", "quest')
    for name, text in changed.items():
        path = folder / "runs" / "q01" / name
        if text is not None:
            path.write_text(text)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    model = Knowing()
    records = await run_evaluation(evaluation(folder, model, questions(2)))
    assert differing(records, whole) == {}
    assert model.numbers == ({1} if asked_again else set())
    assert records["q01"].resumed is not asked_again
    assert ended(folder) == ["q00", "q01"]
    assert all((folder / record.result).is_file() for record in records.values())
    assert list((folder / "discarded").glob("*")) == []
    assert not (tmp_path / "old").exists()


@pytest.mark.parametrize("recipe", ["single", "recap"])
async def test_what_failed_for_want_of_the_endpoint_is_asked_again_and_nothing_else(
    tmp_path: Path, recipe: str
) -> None:
    """Of ``single`` the only candidate fails, of ``recap`` the planner: both go on from there."""
    first = await run_evaluation(evaluation(tmp_path, Knowing(only(1, 3)), questions(4), recipe=recipe))
    assert {id: record.error for id, record in first.items()} == {
        "q00": "", "q01": "endpoint", "q02": "", "q03": "endpoint"
    }  # fmt: skip
    assert [record.finished for record in first.values()] == [True, False, True, False]
    assert first["q01"].match is not True
    model = Knowing()
    again = await run_evaluation(evaluation(tmp_path, model, questions(4), recipe=recipe))
    assert model.numbers == {1, 3}
    assert all(record.match for record in again.values())
    assert Counter(ended(tmp_path)) == {"q00": 1, "q01": 2, "q02": 1, "q03": 2}
    assert EvalFolder(tmp_path).records() == again


@pytest.mark.parametrize("recorded", [True, False])
async def test_one_candidate_without_its_endpoint_is_enough_to_ask_again(
    tmp_path: Path, recorded: bool
) -> None:
    """The lost candidate might have had the answer that the others do not have."""
    bad = {"reasoning": "Guess.", "sql": "SELECT nothing FROM nowhere"}
    turns = iter([GONE, bad, bad])
    model = Knowing(lambda role, number: next(turns, None))
    first = await run_evaluation(evaluation(tmp_path, model, questions(1), votes=3))
    assert (first["q00"].status, first["q00"].error) == ("no_answer", "endpoint")
    assert (tmp_path / "runs" / "q00" / "answer.json").is_file()
    if not recorded:  # the process was killed between answer and record
        (tmp_path / "results.jsonl").write_text("")
    again = await run_evaluation(evaluation(tmp_path, model, questions(1), votes=3))
    assert again["q00"].match
    assert not again["q00"].resumed


async def test_a_dead_endpoint_burns_few_questions_and_one_that_answers_others_is_not_given_up(
    tmp_path: Path,
) -> None:
    model = Knowing(lambda role, number: GONE)
    with pytest.raises(GaveUp, match="no connection"):
        await run_evaluation(evaluation(tmp_path / "dead", model, questions(24), concurrency=6))
    assert MAX_IN_A_ROW <= len(lines(tmp_path / "dead")) < MAX_IN_A_ROW + 6
    assert len(model.numbers) < MAX_IN_A_ROW + 12
    assert not any(record.finished for record in EvalFolder(tmp_path / "dead").records().values())
    bad = Knowing(only(*range(0, 18, 2)))
    records = await run_evaluation(evaluation(tmp_path / "half", bad, questions(18), concurrency=5))
    assert sum(not record.finished for record in records.values()) == 9 > MAX_IN_A_ROW


async def test_a_broken_database_fails_its_own_questions_only(tmp_path: Path) -> None:
    asked = questions(8, shops=2)
    ShopConnector.broken = {"shop0"}
    records = await run_evaluation(evaluation(tmp_path, Knowing(), asked))
    assert {record.error for record in records.values() if record.database == "shop0"} == {"database"}
    assert all(record.match for record in records.values() if record.database == "shop1")
    assert ShopConnector.opened.count("shop0") == MOST_OPENINGS
    ShopConnector.broken, model = set(), Knowing()
    again = await run_evaluation(evaluation(tmp_path, model, asked))
    assert all(record.match for record in again.values())
    assert model.numbers == {0, 2, 4, 6}


async def test_a_connection_lost_while_judging_keeps_the_answer(tmp_path: Path) -> None:
    class Losing(OwnScorer):
        async def score(self, *given: Any) -> Any:
            ShopConnector.lost = {"shop0"}
            return await super().score(*given)

    first = await unbroken(tmp_path, questions(1), scorer=Losing())
    assert (first["q00"].error, first["q00"].finished) == ("database", False)
    ShopConnector.lost, model = set(), Knowing()
    again = await run_evaluation(evaluation(tmp_path, model, questions(1)))
    assert again["q00"].match
    assert not model.asked


async def test_a_fault_of_ours_is_one_question_s_and_keeps_what_it_cost(tmp_path: Path) -> None:
    fault = ZeroDivisionError("by nought")
    model = Knowing(lambda role, number: fault if number == 1 and role != "planner" else None)
    records = await run_evaluation(evaluation(tmp_path, model, questions(3), recipe="recap"))
    found = records["q01"]
    assert (found.status, found.error, found.match, found.finished) == ("failed", "fault", False, True)
    assert "Traceback" in found.message
    assert "ZeroDivisionError: by nought" in found.message
    assert found.usage["by_agent"]["planner"]["model_calls"] == found.usage["model_calls"] == 1
    assert records["q00"].match
    assert records["q02"].match
    model.asked.clear()
    await run_evaluation(evaluation(tmp_path, model, questions(3), recipe="recap"))
    assert not model.asked, "a fault is final"


async def test_a_full_disk_ends_the_run_and_spoils_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("quorum.tools.results.files.write_result", full)
        with pytest.raises(MachineFailed, match="No space left"):
            await unbroken(tmp_path, questions(3))
    assert lines(tmp_path) == []
    records = await unbroken(tmp_path, questions(3))
    assert all(record.match for record in records.values())


async def test_questions_of_a_database_are_asked_together_and_it_is_closed_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = list[str](), ShopConnector.close

    async def noted(shop: ShopConnector) -> None:
        closed.append(shop.name)
        await close(shop)

    monkeypatch.setattr(ShopConnector, "close", noted)
    await unbroken(tmp_path, questions(9, shops=3), concurrency=1)
    order = [int(id[1:]) % 3 for id in ended(tmp_path)]
    assert order == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert closed == ShopConnector.opened == ["shop0", "shop1", "shop2"]


async def test_closing_waits_for_what_is_being_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone: list[str] = []
    opening = asyncio.Event()

    async def slow(self: ShopConnector) -> None:
        opening.set()
        try:
            await asyncio.sleep(60)
        finally:
            gone.append(self.name)

    monkeypatch.setattr(ShopConnector, "open", slow)
    monkeypatch.setattr(ShopConnector, "close", lambda self: asyncio.sleep(0))
    given = evaluation(tmp_path, Knowing(), questions(1))
    databases = DatabasePool(given.options, chat_models=given.chat_models)
    waiting = asyncio.ensure_future(databases.of(given.questions[0]))
    await asyncio.wait_for(opening.wait(), 60)
    waiting.cancel()
    await databases.aclose()
    assert gone == ["shop0"]
    await databases.aclose()


@pytest.mark.heavy
async def test_an_endpoint_that_is_gone_for_a_while_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections break and nobody listens at its address any more, until somebody does again."""
    gone, missed = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        missed.set()
        await asyncio.sleep(seconds)

    def replies(request: Request) -> Answer:
        return say(reply_to(request.text), delay=0.02)

    monkeypatch.setattr("quorum.tools.models.providers.Timing", lambda: Timing(sleep=sleep))
    first = ChatServer(lambda request: Answer(drop=True) if gone.is_set() else replies(request))
    first.__enter__()

    async def restart() -> ChatServer:
        await gone.wait()
        await asyncio.to_thread(first.__exit__, None, None, None)
        missed.clear()
        await missed.wait()
        return ChatServer(replies, port=first.port).__enter__()

    suite = make_suite(tmp_path, 24, 1)
    options = RunOptions(recipe="single", models=["openai:test"], base_url=first.url)
    asked = Evaluation(suite, options, suite.questions, tmp_path / "out", concurrency=12)
    restarting = asyncio.create_task(restart())
    try:
        records = (await run_evaluation(asked, on_record=lambda _: gone.set())).values()
    finally:
        gone.set()
        (await restarting).__exit__(None, None, None)
    assert len(records) == 24
    assert [record.message for record in records if record.error or not record.match] == []


async def test_nobody_else_may_write_until_what_was_asked_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, others = Attempts.end, list[bool]()

    async def looked(attempts: Attempts) -> None:
        with suppress(ConfigurationError), EvalWriter(tmp_path / "out"):
            others.append(True)
        await end(attempts)

    monkeypatch.setattr(Attempts, "end", looked)
    await run_evaluation(evaluation(tmp_path / "out", Knowing(), questions(1)))
    assert others == [True], "only once the folder was closed"
