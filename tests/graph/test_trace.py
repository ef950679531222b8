"""The run folder: what is written, what is kept out, what survives a crash."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given
from hypothesis import strategies as st

from quorum.event_text import WORDS, step_of
from quorum.graph.answer import Answer
from quorum.graph.context import Context
from quorum.graph.runs import Event, RunFolder, RunIds, list_runs, new_run_id
from quorum.graph.trace import LONG, Trace, plain
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.tools.ledger import Usage
from quorum.tools.urls import REDACTED

ANSWER = {
    "question": "one",
    "status": "answered",
    "database": "shop",
    "dialect": "sqlite",
    "recipe": "single",
}


@pytest.fixture
def trace(tmp_path: Path) -> Any:
    trace = Trace.create(tmp_path, "run-1", {"question": "How many?"}, redact=["sk-secret", "ab"])
    yield trace
    trace.close()


def test_the_start_of_a_run_is_on_disk_at_once(trace: Trace) -> None:
    meta = RunFolder(trace.folder).meta()
    assert meta["question"] == "How many?"
    assert meta["run_id"] == "run-1"
    assert trace.results.is_dir()


def test_long_texts_are_stored_once_and_come_back(trace: Trace) -> None:
    prompt = "rules\r\n" + "x" * LONG
    for _ in range(3):
        trace.record("model_call", messages=[{"role": "system", "content": prompt}])
    trace.flush()
    line = json.loads((trace.folder / "events.jsonl").read_text().splitlines()[0])
    stored = line["messages"][0]["content"]
    assert stored["chars"] == len(prompt)
    assert stored["head"] == prompt[:120]
    assert len(list((trace.folder / "blobs").iterdir())) == 1
    assert [event["messages"][0]["content"] for event in trace.events()] == [prompt] * 3


def test_whoever_hears_or_reads_an_event_of_any_kind_finds_its_long_texts_in_place(tmp_path: Path) -> None:
    long, heard = "SELECT 'ä' -- " + "x" * LONG, list[Event]()
    kinds = [*WORDS, "model_call", "query", "approval_asked", "run_failed"]
    trace = Trace.create(tmp_path, "run-1", listener=heard.append)
    for kind in kinds:
        deep = [{"sql": long, long: [long]}, long]
        trace.record(
            kind, agent="judge", reply=long, message=long, choices=deep, text=long, query="q", request=kind
        )
    trace.close()
    resumed = Trace.resume(tmp_path, "run-1")
    resumed.close()
    for events in (heard, list(RunFolder(trace.folder).events()), list(resumed.events())):
        assert [event["kind"] for event in events] == kinds
        assert all(event["choices"][0] == {"sql": long, long: [long]} for event in events)
        assert "$blob" not in json.dumps([events, [asdict(step_of(event)) for event in events]])
    recorded = [resumed.recorded_query("query"), resumed.recorded_call("model_call")]
    assert "$blob" not in json.dumps([*recorded, resumed.earlier_approvals])
    assert all(event and event["text"] == long for event in recorded)


def in_context(trace: Trace) -> Context:
    """Return a context that has nothing but a trace."""
    nothing: list[Any] = [None] * 8
    return Context(*nothing, trace)


async def test_what_was_put_is_there_before_it_is_on_disk(trace: Trace) -> None:
    context = in_context(trace)
    sha = context.put("schema text")
    assert await context.text(sha) == "schema text"
    await trace.aflush()
    assert RunFolder(trace.folder).get(sha) == "schema text"


@pytest.mark.parametrize("sha", ["0" * 64, "../../run", ""])
def test_an_unknown_text_is_an_error(trace: Trace, sha: str) -> None:
    with pytest.raises(QuorumError, match="holds no text"):
        RunFolder(trace.folder).get(sha)


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


def test_short_strings_are_not_taken_for_secrets(trace: Trace) -> None:
    trace.record("note", text="about")
    trace.flush()
    assert next(iter(trace.events()))["text"] == "about"


def test_values_json_cannot_hold_become_text() -> None:
    assert plain({1: float("nan"), "u": Usage(queries=1), "s": {2}, "p": Path("a")}) == {
        "1": "nan",
        "u": Usage(queries=1).as_dict(),
        "s": [2],
        "p": "a",
    }


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_an_event_of_any_values_is_one_line_of_json(trace: Trace) -> None:
    odd: dict[object, object] = {1: float("nan"), 2: {2}, (3,): Path("a"), "u": Usage(queries=1)}
    for name, value in odd.items():
        trace.record("note", value={name: value}, listed=(value,))
    plain_form = [plain({name: value}) for name, value in odd.items()]
    assert [event["value"] for event in trace.events()] == plain_form
    lines = (trace.folder / "events.jsonl").read_text().splitlines()
    assert all(json.loads(line, parse_constant=pytest.fail)["listed"] for line in lines)


@given(json_like)
def test_anything_json_like_has_one_plain_form(value: Any) -> None:
    form = plain(value)
    assert plain(form) == form
    assert json.loads(json.dumps(form, allow_nan=False)) == form


def test_a_lone_surrogate_does_not_end_a_run(trace: Trace) -> None:
    trace.record("query", text="\ud800", long="\ud800" * (LONG + 1))
    trace.flush()
    (event,) = trace.events()
    assert event["long"].startswith("\\ud800")


def test_parallel_recording_tears_no_line(trace: Trace) -> None:
    def work(name: int) -> None:
        for step in range(100):
            trace.record("step", candidate=name, step=step)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.flush()
    events = list(trace.events())
    for name in range(4):
        assert [e["step"] for e in events if e["candidate"] == name] == list(range(100))


async def test_recording_never_blocks_the_event_loop(tmp_path: Path) -> None:
    trace = await asyncio.to_thread(Trace.create, tmp_path)
    with blockbuster_ctx():
        for _ in range(50):
            trace.record("step", text="x" * (LONG + 1))
        context = in_context(trace)
        assert await context.text(context.put("schema")) == "schema"
        trace.finish(ANSWER)
        await trace.aflush()
        await trace.aclose()
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
    second.close()
    spent = second.usage_so_far()
    assert (spent.total.model_calls, spent.total.queries, spent.total.rows) == (1, 2, 7)
    assert spent.by_agent["action"].queries == 2
    assert spent.by_agent["planner"].usd == 0.5
    assert 7.5 <= spent.seconds < 9999


def test_an_unknown_price_stays_unknown_after_resuming(trace: Trace) -> None:
    trace.record("model_call", agent="planner", usage=Usage(model_calls=1, usd=None))
    trace.record("model_call", agent="planner", usage=Usage(model_calls=1, usd=1.0))
    trace.flush()
    assert trace.usage_so_far().total.usd is None


def test_two_writers_are_kept_apart(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="another process"):
        Trace.resume(tmp_path, "run-1")
    trace.close()
    Trace.resume(tmp_path, "run-1").close()


def test_what_comes_after_the_end_changes_nothing(trace: Trace) -> None:
    trace.record("plan")
    trace.close()
    trace.close()
    trace.record("late")
    trace.flush()
    assert [event["kind"] for event in trace.events()] == ["plan"]


async def test_a_trace_that_cannot_be_written_says_so_and_goes_on(trace: Trace) -> None:
    (trace.folder / "blobs").rmdir()
    assert trace.failure == ""
    context = in_context(trace)
    sha = context.put("schema")
    trace.record("plan")
    await trace.aflush()
    assert trace.failure == "No such file or directory."
    assert await context.text(sha) == "schema", "this run goes on with what it has in memory"
    assert [event["kind"] for event in trace.events()] == ["plan"]


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


def test_a_folder_without_room_for_its_first_file_is_a_clear_error(tmp_path: Path) -> None:
    with full_disk(20), pytest.raises(ConfigurationError, match=r"Cannot write traces .*QUORUM_HOME"):
        Trace.create(tmp_path, meta={"question": "x" * 100})


async def test_a_fault_in_the_writer_does_not_leave_a_run_waiting(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    surprise: Any = ZeroDivisionError("not a disk's fault")

    def broken(*_: Any) -> Any:
        raise surprise

    monkeypatch.setattr("quorum.graph.trace.replace_file", broken)
    trace.put("a text")
    trace.record("plan")
    await asyncio.wait_for(trace.aflush(), 10)
    assert trace.failure == "ZeroDivisionError: not a disk's fault."
    assert [event["kind"] for event in trace.events()] == ["plan"]


async def test_nobody_waits_for_a_trace_that_is_being_closed(trace: Trace) -> None:
    flushes = [asyncio.create_task(trace.aflush()) for _ in range(50)]
    close = asyncio.create_task(trace.aclose())
    flushes += [asyncio.create_task(trace.aflush()) for _ in range(50)]
    await asyncio.wait_for(asyncio.gather(close, *flushes), 10)
    await asyncio.wait_for(trace.aflush(), 10)
    trace.put("late")
    trace.finish({})
    assert trace.answer() is None


def test_a_line_that_is_no_event_is_named(trace: Trace, tmp_path: Path) -> None:
    trace.record("plan")
    trace.close()
    with (trace.folder / "events.jsonl").open("a") as events:
        events.write("{torn\n")
    with pytest.raises(QuorumError, match=r"Line 2 of .* is no event"):
        list(trace.events())
    assert [run.status for run in list_runs(tmp_path)] == ["unreadable"]


def test_an_error_that_ended_a_run_counts_until_the_run_goes_on(trace: Trace, tmp_path: Path) -> None:
    trace.record("begun", run="run-1")
    trace.record("failed", message="endpoint down " + "x" * LONG)
    trace.record("query")
    trace.flush()
    assert trace.error().startswith("endpoint down x")
    assert len(trace.error()) > LONG
    assert [run.status for run in list_runs(tmp_path)] == ["failed"]
    trace.record("begun", run="run-1", resumed=True)
    trace.flush()
    assert trace.error() == ""
    assert [run.status for run in list_runs(tmp_path)] == ["unfinished"]


def test_run_ids_are_utc_and_sort_in_the_order_they_were_made() -> None:
    elsewhere = datetime(2026, 11, 20, 14, 45, 1, 123_900, tzinfo=timezone(timedelta(hours=1)))
    assert RunIds()(elsewhere).startswith("20261120-134501-123-")
    made = [new_run_id() for _ in range(200)]
    assert made == sorted(made)
    assert len({run_id[:19] for run_id in made}) == 200
    told = datetime.strptime(made[0][:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - told) < timedelta(minutes=1)


def test_the_last_run_is_the_last_that_was_made(tmp_path: Path) -> None:
    runs = [Trace.create(tmp_path, meta={"question": str(n)}) for n in range(20)]
    for trace in runs:
        trace.close()
    assert RunFolder.open(tmp_path, "last").run_id == runs[-1].run_id


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
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="Cannot write traces"):
        Trace.create(tmp_path / "file")


def test_runs_are_found_by_id_beginning_and_age(tmp_path: Path) -> None:
    for name in ("20260101-a", "20260101-ab", "20260102-c"):
        Trace.create(tmp_path, name, {"question": name}).close()
    assert RunFolder.open(tmp_path, "20260101-a").run_id == "20260101-a"  # exact wins
    assert RunFolder.open(tmp_path, "20260102").run_id == "20260102-c"
    assert RunFolder.open(tmp_path, "last").run_id == "20260102-c"
    assert RunFolder.open(tmp_path, "last~2").run_id == "20260101-a"
    assert RunFolder.open(Path("elsewhere"), f"{tmp_path}/runs/20260101-ab").run_id == "20260101-ab"
    with pytest.raises(ConfigurationError, match=r"no run 'last~3' .* `quorum history` shows all 3"):
        RunFolder.open(tmp_path, "last~3")
    with pytest.raises(ConfigurationError, match=r"2 runs begin with .*Give more of the id, or last"):
        RunFolder.open(tmp_path, "20260101")
    with pytest.raises(ConfigurationError, match="latest is 20260102-c"):
        RunFolder.open(tmp_path, "x")


def test_the_list_tells_finished_from_unfinished_and_unreadable(tmp_path: Path) -> None:
    done = Trace.create(tmp_path, "a", {"question": "one"})
    done.finish(ANSWER | {"demonstration": True})
    done.close()
    Trace.create(tmp_path, "b", {"question": "two"}).close()
    broken = Trace.create(tmp_path, "c")
    broken.close()
    (broken.folder / "run.json").write_text("{")
    runs = [(run.id, run.question, run.status, run.demonstration) for run in list_runs(tmp_path)]
    assert runs == [
        ("c", "", "unreadable", False),
        ("b", "two", "unfinished", False),
        ("a", "one", "answered", True),
    ]


KILLED = """
import sys, time
from pathlib import Path
from quorum.graph.trace import Trace

trace = Trace.create(Path(sys.argv[1]), "killed")
for step in range(1000):
    trace.record("query", step=step, usage={"queries": 1})
trace.flush()
print("flushed", flush=True)
while True:
    trace.record("query", step=-1)
    time.sleep(0.001)
"""


def test_what_a_resumed_run_goes_by_is_in_the_events_themselves(tmp_path: Path) -> None:
    long = "SELECT 1 -- " + "x" * LONG
    trace = Trace.create(tmp_path, "run-1")
    trace.record("query", request="q", sql=long, executed=long)
    trace.record("model_call", request="m", reply=long, problem=long)
    trace.close()
    shutil.rmtree(trace.folder / "blobs")  # a kill comes before they are written
    resumed = Trace.resume(tmp_path, "run-1")
    resumed.close()
    query, call = resumed.recorded_query("q"), resumed.recorded_call("m")
    assert query
    assert call
    assert (query["executed"], call["reply"], call["problem"]) == (long, long, long)


def test_kill_9_loses_nothing_that_was_flushed(tmp_path: Path, root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == b"flushed\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    trace = Trace.resume(tmp_path, "killed")
    trace.close()
    assert [event["step"] for event in trace.events() if event["step"] >= 0] == list(range(1000))
    assert trace.usage_so_far().total.queries == 1000
