"""Checkpoints of a run that is cancelled, and results of which several wait for one."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde import jsonplus
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from quorum.agents.writers import Reading
from quorum.graph import checkpoints
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import RunSaver, StateSerializer, open_checkpoints
from quorum.graph.state import STATE_TYPES, Candidate, CandidateInput, Failure, RunState, Turn, branch_input
from tests.graph.shop import GOOD, Run
from tests.waiting import until


async def test_a_cancelled_opening_closes_nothing_that_a_thread_still_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would crash the process."""
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(self: RunSaver) -> None:
        begun.set()
        go_on.wait(60)
        self.conn.execute("SELECT 1")
        order.append("set up")

    monkeypatch.setattr(RunSaver, "setup", slow)

    async def opened() -> None:
        async with open_checkpoints(tmp_path / "checkpoint.sqlite"):
            raise AssertionError("it was cancelled before")

    task = asyncio.ensure_future(opened())
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    await asyncio.wait([task], timeout=0.01)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert order == ["set up"]


FAILED = Candidate("c1", "m", 0.0, 1, "SELECT \ud800", None, Failure("syntax", "So."))
BRANCH = branch_input(RunState(question="?"), CandidateInput("c2", 1, "m", 0.5, 2))
PLAIN = [
    None,
    b"raw",
    {"n": [1, 2.5, "text", None, True], 3: ["a"]},
    [FAILED, Turn("sql", "SELECT 1", "1 row")],
    [Send("candidate", BRANCH)],
]


@pytest.mark.parametrize("value", PLAIN, ids=["nothing", "bytes", "plain", "state", "send"])
def test_states_are_written_as_langgraph_writes_them(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its search for what a value may be, which took most of a step."""
    theirs = jsonplus.JsonPlusSerializer().dumps_typed(value)
    monkeypatch.setattr(jsonplus, "_msgpack_default", None)
    serializer = StateSerializer(allowed_msgpack_modules=STATE_TYPES)
    assert serializer.dumps_typed(value) == theirs
    if value is not PLAIN[3]:  # its lone surrogate is replaced
        assert serializer.loads_typed(theirs) == value


def test_other_values_are_langgraphs_affair() -> None:
    serializer = StateSerializer(allowed_msgpack_modules=STATE_TYPES)
    reading = Reading(meaning="All of them.", sql="SELECT 1")
    values = [datetime(2026, 11, 24, tzinfo=UTC), Path("a/b"), {1, 2}, reading, FAILED.error]
    assert serializer.loads_typed(serializer.dumps_typed(values)) == values


async def test_a_run_has_no_channels_for_its_branches_whose_checkpoints_hold_what_was_set(run: Run) -> None:
    own = {name for name in build_graph("quorum").channels if not name.startswith(("branch:", "__"))}
    assert own == {field.name for field in fields(RunState)}
    ran = await run({"sql_writer": {"reasoning": "So.", "sql": GOOD}}, recipe="single")
    with sqlite3.connect(Path(ran.answer.trace) / "checkpoint.sqlite") as connection:
        rows = connection.execute("SELECT type, checkpoint FROM checkpoints WHERE checkpoint_ns <> ''")
        held = [StateSerializer().loads_typed(row)["channel_values"] for row in rows]
    assert held
    assert not any({"rewrites", "stage_error", "linked_ref"} & set(values) for values in held)


async def beside(saver: Any, quick: Any, slow: Any, start: Any) -> Any:
    """Run two nodes in one step."""
    graph = StateGraph(TypedDict("Values", {"quick": int, "slow": int}))  # type: ignore[operator]
    for name, node in (("quick", quick), ("slow", slow)):
        graph.add_node(name, node).add_edge(START, name)
    config: Any = {"configurable": {"thread_id": "1"}}
    return await graph.compile(checkpointer=saver).ainvoke(start, config, durability="sync")


@pytest.mark.parametrize("ends", ["error", "interrupt", "cancelled"])
async def test_what_a_node_wrote_is_kept_where_its_step_does_not_end(ends: str, tmp_path: Path) -> None:
    """Where it ends the step's state is stored at once, and what its nodes wrote only as part of that."""
    done: list[str] = []

    async def quick(_: dict[str, Any]) -> dict[str, Any]:
        done.append("quick")
        return {"quick": 1}

    async def slow(_: dict[str, Any]) -> dict[str, Any]:
        while "quick" not in done:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append("slow")
        if done.count("slow") == 1 and ends == "error":
            raise ValueError
        if done.count("slow") == 1 and ends == "cancelled":
            run.cancel()
            await asyncio.sleep(60)
        return {"slow": interrupt("?") if ends == "interrupt" else 2}

    for start in ({"quick": 0}, Command(resume=2) if ends == "interrupt" else None):
        async with open_checkpoints(tmp_path / "checkpoint.sqlite") as saver:
            run = asyncio.ensure_future(beside(saver, quick, slow, start))
            with suppress(ValueError, asyncio.CancelledError):
                found = await run
    assert (found, done) == ({"quick": 1, "slow": 2}, ["quick", "slow", "slow"])
    with sqlite3.connect(tmp_path / "checkpoint.sqlite") as connection:
        (stored,) = connection.execute("SELECT count(DISTINCT task_id) FROM writes").fetchone()
        steps = connection.execute("SELECT json_extract(metadata, '$.step') FROM checkpoints").fetchall()
    assert (stored, steps) == (2 + (ends == "interrupt"), [(0,), (1,)])  # the reply is no node's


async def test_what_a_node_wrote_is_stored_while_others_of_its_step_go_on(tmp_path: Path) -> None:
    """A process that is killed then has it."""
    over = asyncio.Event()

    async def slow(_: dict[str, Any]) -> dict[str, Any]:
        await over.wait()
        return {"slow": 2}

    async with open_checkpoints(tmp_path / "checkpoint.sqlite") as saver:
        run = asyncio.ensure_future(beside(saver, lambda _: {"quick": 1}, slow, {"quick": 0}))
        with closing(sqlite3.connect(tmp_path / "checkpoint.sqlite")) as connection:
            await until(lambda: connection.execute("SELECT 1 FROM writes WHERE channel = 'quick'").fetchall())
        over.set()
        assert await run == {"quick": 1, "slow": 2}


async def test_what_a_sent_node_wrote_is_stored_at_once_and_all_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SOON", 60.0)
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": "", "checkpoint_id": "1"}}

    def stored() -> set[str]:
        with closing(sqlite3.connect(tmp_path / "checkpoint.sqlite")) as connection:
            return {channel for (channel,) in connection.execute("SELECT channel FROM writes")}

    async with open_checkpoints(tmp_path / "checkpoint.sqlite") as saver:
        await saver.aput_writes(config, [("sent", 1)], "t1", "~__pregel_push, 0")
        await saver.aput_writes(config, [("other", 1)], "t2", "~__pregel_pull, other")
        assert stored() == {"sent"}
    assert stored() == {"sent", "other"}
