"""The run folder: what is written, what is kept out, what survives a crash."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from blockbuster import blockbuster_ctx
from pydantic import BaseModel

from quorum.event_text import WORDS, step_of
from quorum.graph.answer import Answer
from quorum.graph.context import Context
from quorum.graph.runs import Event, RunFolder, RunIds, list_runs, new_run_id
from quorum.graph.trace import LONG, Trace, _locked_for_appending, located
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger, Usage
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import scripted
from quorum.tools.query import Limits
from quorum.tools.urls import REDACTED
from tests.engines import opened
from tests.graph.shop import make_shop

SECRET = "tok-12345"
ANSWER = {"question": "one", "status": "answered", "database": "shop", "dialect": "sqlite", "recipe": "x"}


@pytest.fixture
def trace(tmp_path: Path) -> Any:
    trace = Trace.create(tmp_path, "run-1", redact=["ab", SECRET])
    yield trace
    trace.close()


def test_whoever_hears_or_reads_an_event_of_any_kind_finds_its_long_texts_in_place(tmp_path: Path) -> None:
    """They are stored once."""
    long, heard = "SELECT 'ä' -- " + "x" * LONG, list[Event]()
    kinds = [*WORDS, "model_call", "query", "approval_asked", "run_failed"]
    trace = Trace.create(tmp_path, "run-1", listener=heard.append)
    for kind in kinds:
        deep = [{"sql": long, long: [long]}, long]
        trace.record(
            kind, agent="judge", reply=long, message=long, choices=deep, text=long, query="q", request=kind,
            executed=long, problem=long,
        )  # fmt: skip
    trace.close()
    resumed = Trace.resume(tmp_path, "run-1")
    resumed.close()
    assert len(list((trace.folder / "blobs").iterdir())) == 1
    for events in (heard, list(RunFolder(trace.folder).events()), list(resumed.events())):
        assert [event["kind"] for event in events] == kinds
        assert all(event["choices"][0] == {"sql": long, long: [long]} for event in events)
        assert "$blob" not in json.dumps([events, [asdict(step_of(event)) for event in events]])
    recorded = [resumed.recorded_query("query"), resumed.recorded_call("model_call")]
    assert "$blob" not in json.dumps([*recorded, resumed.earlier_approvals])
    assert all(event and event["text"] == long for event in recorded)
    with pytest.raises(QuorumError, match="holds no text"):
        RunFolder(trace.folder).get("../../run")
    shutil.rmtree(trace.folder / "blobs")  # a kill comes before they are written
    going_on = Trace.resume(tmp_path, "run-1")
    going_on.close()
    query, call = going_on.recorded_query("query") or {}, going_on.recorded_call("model_call") or {}
    assert query["executed"] == call["reply"] == call["problem"] == long, "in the events themselves"


def in_context(trace: Trace) -> Context:
    """Return a context that has nothing but a trace."""
    nothing: list[Any] = [None] * 8
    return Context(*nothing, trace)


@pytest.mark.parametrize("secret", ["p4ss-word", 'p4"ss\\wörd'])
def test_secrets_reach_no_file_and_no_listener(tmp_path: Path, secret: str) -> None:
    heard: list[dict[str, Any]] = []
    meta = {"question": secret, "url": f"postgresql://u:{secret}@h/db"}
    trace = Trace.create(tmp_path, meta=meta, redact=[secret], listener=heard.append)
    trace.record("query", sql=f"SELECT '{secret}'", nested=[{secret: (secret,)}], long=secret + "x" * LONG)
    trace.put(secret)
    trace.finish({"sql": secret})
    trace.close()
    files = [path for path in trace.folder.rglob("*") if path.is_file()]
    assert len(files) == 5  # run, events, answer, two texts
    forms = (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    texts = [*(path.read_text() for path in files), json.dumps(heard)]
    assert not [text for text in texts if any(form in text for form in forms)]
    assert REDACTED in json.dumps(heard)


def test_an_event_of_any_values_is_one_line_of_json(trace: Trace) -> None:
    odd: dict[object, object] = {1: float("nan"), 2: {2}, (3,): Path("a"), "u": Usage(queries=1)}
    odd["surrogates"] = "\ud800" * (LONG + 1)
    for name, value in odd.items():
        trace.record("note", value={name: value}, listed=(value,))
    trace.flush()
    plain_forms = [{"1": "nan"}, {"2": [2]}, {"(3,)": "a"}, {"u": Usage(queries=1).as_dict()}]
    *found, (_, last) = ((name, said) for event in trace.events() for name, said in event["value"].items())
    assert [dict([each]) for each in found] == plain_forms
    assert last.startswith("\\ud800")
    lines = (trace.folder / "events.jsonl").read_text().splitlines()
    assert all(json.loads(line, parse_constant=pytest.fail)["listed"] for line in lines)


async def test_recording_never_blocks_the_event_loop(tmp_path: Path) -> None:
    trace = await asyncio.to_thread(Trace.create, tmp_path)
    with blockbuster_ctx():
        for _ in range(50):
            trace.record("step", text="x" * (LONG + 1))
        context = in_context(trace)
        sha = context.put("schema")
        assert await context.text(sha) == "schema", "before it is on disk"
        trace.finish(ANSWER)
        await trace.aflush()
        await trace.aclose()
    assert RunFolder(trace.folder).get(sha) == "schema"
    assert trace.answer() == Answer.model_validate(ANSWER)


def test_a_resumed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = Trace.create(tmp_path, "run-1")
    first.record("model_call", agent="planner", usage=Usage(model_calls=1, input_tokens=10, usd=0.5))
    first.close()
    with (first.folder / "events.jsonl").open("a") as events:
        events.write('{"t": 7.5, "kind": "query", "agent": "action", "usage": {"queries": 1, "rows": 3}}\n')
        events.write('{"t": 9999, "kind": "que')  # a crash cut this line
    second = Trace.resume(tmp_path, "run")
    second.record("query", agent="action", usage=Usage(queries=1, rows=4))
    second.record("model_call", agent="judge", usage=Usage(model_calls=1, usd=None))
    second.close()
    spent = second.ledger()
    assert (spent.total.model_calls, spent.total.queries, spent.total.rows) == (2, 2, 7)
    assert spent.by_agent["action"].queries == 2
    assert spent.by_agent["planner"].usd == 0.5
    assert spent.total.usd is None, "an unknown price stays unknown"
    assert 7.5 <= spent.spent_seconds < 9999


def test_what_comes_after_the_end_changes_nothing(trace: Trace) -> None:
    trace.record("plan", text="about: short texts are no secrets")
    trace.close()
    trace.close()
    trace.record("late")
    trace.flush()
    assert [(e["kind"], e["text"][:5]) for e in trace.events()] == [("plan", "about")]


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file may grow beyond ``room`` bytes: a write is cut short, the next fails."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


async def test_a_full_disk_tears_no_line_and_ends_no_run(trace: Trace) -> None:
    trace.record("plan")
    await trace.aflush()
    with full_disk((trace.folder / "events.jsonl").stat().st_size + 50):
        trace.record("query", sql="SELECT 1 -- " + "x" * 500)
        trace.put("y" * 5000)
        trace.finish({"status": "answered", "sql": "x" * 5000})
        await asyncio.wait_for(trace.aflush(), 10)
    trace.record("answer")
    await trace.aclose()
    assert trace.failure
    assert [event["kind"] for event in RunFolder(trace.folder).events()] == ["plan", "answer"]
    assert trace.answer() is None
    assert not list(trace.folder.rglob("*.part"))


async def test_a_fault_in_the_writer_does_not_leave_a_run_waiting(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Mock(side_effect=ZeroDivisionError("not a disk's fault"))
    monkeypatch.setattr("quorum.graph.trace.replace_file", broken)
    context = in_context(trace)
    sha = context.put("a text")
    trace.record("plan")
    await asyncio.wait_for(trace.aflush(), 10)
    assert trace.failure == "ZeroDivisionError: not a disk's fault."
    assert await context.text(sha) == "a text", "this run goes on with what it has in memory"


def test_an_error_that_ended_a_run_counts_until_the_run_goes_on(trace: Trace, tmp_path: Path) -> None:
    for kind, error, status in (("failed", "down", "failed"), ("begun", "", "unfinished")):
        trace.record(kind, message="down")
        trace.record("query")
        trace.flush()
        assert (trace.error(), [run.status for run in list_runs(tmp_path)]) == (error, [status])


def test_a_line_that_is_no_event_is_named(trace: Trace, tmp_path: Path) -> None:
    trace.record("plan")
    trace.close()
    with (trace.folder / "events.jsonl").open("a") as events:
        events.write("{torn\n")
    with pytest.raises(QuorumError, match=r"Line 2 of .* is no event"):
        list(trace.events())
    assert [run.status for run in list_runs(tmp_path)] == ["unreadable"]


def test_run_ids_are_utc_and_sort_in_the_order_they_were_made() -> None:
    elsewhere = datetime(2026, 11, 20, 14, 45, 1, 123_900, tzinfo=timezone(timedelta(hours=1)))
    assert RunIds()(elsewhere).startswith("20261120-134501-123-")
    made = [new_run_id() for _ in range(200)]
    assert made == sorted(made)
    assert len({run_id[:19] for run_id in made}) == 200
    told = datetime.strptime(made[0][:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - told) < timedelta(minutes=1)


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", ".", "-x"])
def test_a_run_id_stays_inside_its_folder(tmp_path: Path, run_id: str) -> None:
    if run_id:
        with pytest.raises(ConfigurationError, match="cannot name a run"):
            Trace.create(tmp_path, run_id)
    with pytest.raises(ConfigurationError, match="no run"):
        RunFolder.open(tmp_path, run_id)


def test_a_taken_id_and_a_bad_home_are_clear_errors(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="exists already"):
        Trace.create(tmp_path, trace.run_id)
    with pytest.raises(ConfigurationError, match="another process"):
        Trace.resume(tmp_path, trace.run_id)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="Cannot write traces"):
        Trace.create(tmp_path / "file")
    with full_disk(20), pytest.raises(ConfigurationError, match=r"Cannot write traces .*QUORUM_HOME"):
        Trace.create(tmp_path, meta={"question": "x" * 100})


def test_runs_are_found_by_id_beginning_and_age(tmp_path: Path) -> None:
    exact, longer, latest = ("20260101-a", "20260101-ab", "20260102-c")
    for name in (exact, longer, latest):
        Trace.create(tmp_path, name, {"question": name}).close()
    names = {exact: exact, "20260102": latest, "last": latest, "last~2": exact}
    assert {name: RunFolder.open(tmp_path, name).run_id for name in names} == names
    assert RunFolder.open(Path("elsewhere"), f"{tmp_path}/runs/{longer}").run_id == longer
    wrong = {
        "last~3": r"no run 'last~3' .* `quorum history` shows all 3",
        "20260101": r"2 runs begin with .*Give more of the id, or last",
        "x": "latest is 20260102-c",
    }
    for name, said in wrong.items():
        with pytest.raises(ConfigurationError, match=said):
            RunFolder.open(tmp_path, name)


# What a run that goes on finds again of its model calls and queries.


class Form(BaseModel):
    word: str


def asking(trace: Trace, *replies: dict[str, str]) -> Model:
    """A scripted model that is bound to the trace."""
    model = make_model(scripted({"writer": list(replies)}))
    return model.at(ledger=Ledger(), record=trace.record, recall=trace.recorded_call)


async def said(model: Model, task: str = "t1", question: str = "Which?") -> str:
    with located(task=task):
        reply = await model.complete([{"role": "user", "content": question}], role="writer", output=Form)
    return reply.parsed.word


def resumed(trace: Trace) -> Trace:
    trace.close()
    return Trace.resume(trace.folder.parent.parent, "run-1")


async def test_a_call_is_found_by_its_request_in_its_step_and_each_once(trace: Trace) -> None:
    long = "word " * 1000
    first = asking(trace, {"word": "a"}, {"word": long})
    assert [await said(first), await said(first)] == ["a", long]
    again = asking(resumed(trace), {"word": "new"}, {"word": "newer"}, {"word": "third"})
    assert await said(again, task="t2") == "new", "the same request in another step"
    assert await said(again, question="What?") == "newer"
    assert [await said(again) for _ in range(3)] == ["a", long, "third"]
    assert again.ledger.total.model_calls == 3, "what was found is charged already"


async def test_a_reply_that_held_a_secret_or_lost_its_text_is_asked_for_anew(trace: Trace) -> None:
    assert await said(asking(trace, {"word": SECRET})) == SECRET
    events = trace.folder / "events.jsonl"
    assert SECRET not in events.read_text()
    going_on = resumed(trace)
    assert await said(asking(going_on, {"word": "b"})) == "b"
    going_on.close()
    events.write_text(events.read_text().replace('"reply"', '"replied"'))
    assert await said(asking(resumed(going_on), {"word": "c"})) == "c"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """The shop; bound to no run yet."""
    async with connect(str(make_shop(tmp_path / "shop.db"))) as connector:
        yield await opened(connector)


async def test_a_query_is_found_by_its_text_unless_its_result_is_gone_or_its_error_may_not_recur(
    trace: Trace, database: Database
) -> None:
    queries = [
        "SELECT id, note FROM orders",
        "SELECT 1 WHERE 0",
        "SELECT json_extract('{', '$.a') FROM orders",
    ]
    slow = "SELECT count(*) FROM orders a, orders b" + ", orders" * 20

    async def outcomes(trace: Trace) -> tuple[list[Any], int]:
        bound = {"record": trace.record, "folder": trace.results, "recall": trace.recorded_query}
        own = replace(database, ledger=Ledger(), cache=QueryCache(), **bound)
        found = [await execute(own, sql, agent="a") for sql in queries]
        await execute(replace(own, limits=Limits(seconds=0.05)), slow, agent="a")
        return found, own.ledger.total.queries

    (rows, empty, error), ran = await outcomes(trace)
    again = resumed(trace)
    (rows_again, empty_again, error_again), ran_again = await outcomes(again)
    assert (ran, ran_again) == (4, 1), "a timeout may not recur"
    assert error_again == error
    for one, other in ((rows, rows_again), (empty, empty_again)):
        assert (other.table, other.seconds, other.file) == (one.table, one.seconds, one.file)
    rows.file.unlink()
    (rows, _, _), ran = await outcomes(resumed(again))
    assert (rows.table, ran) == (rows_again.table, 2)


def test_a_run_is_locked_before_others_can_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[str]()

    def noted(path: Path, content: bytes) -> None:
        with pytest.raises(ConfigurationError, match="by another process"):
            _locked_for_appending(path.parent)
        written.append(path.name)

    monkeypatch.setattr("quorum.graph.trace.replace_file", noted)
    Trace.create(tmp_path).close()
    assert written == ["run.json"]
