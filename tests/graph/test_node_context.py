"""Runs beside and after one another: threads, shared options, shared resources, interrupts, failures."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from quorum.graph import node_context
from quorum.graph import resources as resources_
from quorum.graph.ballots import Vote
from quorum.graph.builder import build_graph
from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe, recipe_of
from quorum.graph.state import STATE_TYPES, Candidate, RunState, fresh
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools import garbage
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.garbage import YOUNG, rare_collections
from quorum.tools.models.scripted import ScriptedChatModel
from tests.graph.shop import BROKEN, GOOD, QUESTION, Run, repaired, script, sql, taking_turns

ORDERS = "How many orders are there?"


@pytest.fixture
def options(shop: Path, tmp_path: Path) -> Callable[..., RunOptions]:
    """Options of offline runs over the shop."""

    def make(**given: Any) -> RunOptions:
        usual = {"recipe": "recap", "models": ["offline"], "votes": 1}
        return RunOptions(database=f"sqlite:///{shop}", home=str(tmp_path / "home"), **usual | given)

    return make


async def test_a_run_that_is_opened_again_keeps_its_database(
    options: Callable[..., RunOptions], tmp_path: Path
) -> None:
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as database:
        database.execute("CREATE TABLE customers AS SELECT 1 AS id")
    graph = build_graph("recap", checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"question": "How many customers are there?"}, config, context=options())
    stood = [state async for state in graph.aget_state_history(config) if "send_candidates" in state.next]
    elsewhere = options()
    elsewhere.database = [f"duckdb:///{other}"]
    with pytest.raises(ConfigurationError, match=r"shop\.db.*other\.duckdb"):
        await graph.ainvoke(None, stood[0].config, context=elsewhere)
    output = await graph.ainvoke(None, stood[0].config, context=options())
    assert output["answer"]["rows"] == [[3]]


@pytest.mark.parametrize("votes", [1, 2])
async def test_the_time_that_a_person_takes_to_reply_is_not_the_runs(
    shop: Path, tmp_path: Path, votes: int
) -> None:
    """Whether or not another candidate goes on, which tries a broken query again, while one asks."""
    slow = script(
        sql_writer=taking_turns(GOOD, BROKEN),
        self_refiner=lambda prompt: repaired(f"{BROKEN} LIMIT {prompt.turn + 5}"),
    )
    given = {"recipe": "quorum", "approve": "always", "deadline": 300.0, "votes": votes}
    options = RunOptions(database=f"sqlite:///{shop}", home=str(tmp_path), models=["m:x"], **given)
    handles = {"chat_models": {"m:x": ScriptedChatModel(script=slow, source="m:x")}}
    options = type("Own", (RunOptions,), {"handles": handles})(**options.model_dump())
    graph, config = build_graph("quorum", checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    output = await graph.ainvoke({"question": QUESTION}, config, context=options)
    assert output["__interrupt__"]
    ((_, own),) = node_context._loops[asyncio.get_running_loop()].items()
    own.used -= 1000  # as if they had passed
    own.opening.result().ledger._start -= 1000
    while output.get("__interrupt__"):
        output = await graph.ainvoke(Command(resume="all"), config, context=options)
    assert output["answer"]["status"] == "answered"
    assert output["answer"]["usage"]["seconds"] < 300


class Outer(TypedDict, total=False):
    """The state of a graph around this one."""

    question: str
    answer: dict[str, Any]
    seen: str


async def test_a_bound_graph_is_a_node_of_a_graph_with_another_context(
    options: Callable[..., RunOptions], caplog: pytest.LogCaptureFixture
) -> None:
    def note(state: Outer, runtime: Runtime[dict[str, str]]) -> Outer:
        return {"seen": f"{runtime.context['reader']} {state['answer']['rows']}"}

    around = StateGraph(Outer, context_schema=dict)
    around.add_node("quorum", build_graph(options=options(approve="always", votes=2)))
    around.add_node("note", note)
    around.add_edge(START, "quorum")
    around.add_edge("quorum", "note")
    graph = around.compile(
        checkpointer=InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=STATE_TYPES))
    )
    for thread in "ab":
        config: Any = {"configurable": {"thread_id": thread}}
        given: Any = {"question": ORDERS}
        asked = 0
        while "seen" not in (output := await graph.ainvoke(given, config, context={"reader": "Ada"})):
            asked += 1
            given = Command(resume={each.id: "yes" for each in output["__interrupt__"]})
        assert output["seen"] == "Ada [[4]]"
        assert asked == 1
    assert "unregistered" not in caplog.text


async def test_a_wide_result_keeps_the_state_small(run: Run) -> None:
    wide = "SELECT " + ", ".join(f"hex(zeroblob(90)) AS c{i}" for i in range(1000)) + " FROM orders"
    ran = await run(script(action=sql(wide)), votes=1)
    event = ran.of("result")[0]
    assert len(str(event)) < 60_000
    assert any("900 further columns" in warning for warning in ran.answer.warnings)


async def test_a_saver_that_loads_known_types_only_knows_those_of_the_state(
    options: Callable[..., RunOptions],
) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    graph = build_graph("recap", checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    for votes in (2, 1):
        output = await graph.ainvoke({"question": ORDERS}, config, context=options(votes=votes))
        assert output["answer"]["rows"] == [[4]]
    state = (await graph.aget_state(config)).values
    assert isinstance(state["vote"], Vote)
    (candidate,) = state["candidates"]  # nothing of the first question is left
    assert isinstance(candidate, Candidate)
    assert set(fresh("?")) == {item.name for item in fields(RunState)}, "a question sets every field"


async def test_a_run_leaves_nothing_in_memory(options: Callable[..., RunOptions]) -> None:
    alive: list[weakref.ref[Context]] = []
    for _ in range(2):
        given = options()
        context = await open_context(given, recipe_of(given), QUESTION)
        await build_graph("recap").ainvoke({"question": ORDERS}, context=context)
        await context.aclose()
        alive.append(weakref.ref(context))
        del context, given
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


async def test_a_run_that_cannot_open_leaves_no_folder_and_closes_its_database(
    options: Callable[..., RunOptions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = list[str](), EmbeddedConnector.close

    async def closing(connector: EmbeddedConnector) -> None:
        closed.append(connector.name)
        await close(connector)

    monkeypatch.setattr(EmbeddedConnector, "close", closing)
    absent = options()
    absent.database = [f"sqlite:///{tmp_path}/absent.db"]
    for given, recipe, error in (
        (options(models=["nobody:x"]), "recap", ConfigurationError),
        (options(), "nobody's", ConfigurationError),
        (absent, "recap", DatabaseUnavailable),
    ):
        closed.clear()
        with pytest.raises(error):
            await open_context(given, partial(find_recipe, recipe), QUESTION)
        assert given is absent or closed == ["shop"]
    assert not list((tmp_path / "home" / "runs").iterdir())


async def test_database_graph_and_models_open_side_by_side(
    options: Callable[..., RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are read when the catalog and the graph are there, while the models are being made."""
    read_values, make_models, values_begun = resources_.read_values, resources_.make_models, threading.Event()

    async def values(*args: Any, **more: Any) -> Any:
        values_begun.set()
        return await read_values(*args, **more)

    def models(*args: Any, **more: Any) -> Any:
        assert values_begun.wait(60), "the models were waited for"
        return make_models(*args, **more)

    monkeypatch.setattr(resources_, "read_values", values)
    monkeypatch.setattr(resources_, "make_models", models)
    given = options(recipe="quorum")
    context = await open_context(given, lambda: recipe_of(given), QUESTION)
    await context.aclose()


async def test_a_bound_graph_needs_no_context_and_any_other_graph_the_one_for_it(
    options: Callable[..., RunOptions],
) -> None:
    other = options(switches={"max_plans": 1})
    bound = build_graph("recap", options=other)
    output = await bound.ainvoke({"question": ORDERS}, context=RunOptions(database="no.db"))
    assert output["answer"]["rows"] == [[4]]
    for name in ("single", find_recipe("recap")):
        with pytest.raises(ConfigurationError, match="another recipe"):
            build_graph(name, options=other)
    wrong: list[tuple[dict[str, Any], RunOptions | None, str]] = [
        ({"question": ORDERS}, None, "no context"),
        ({"question": ORDERS}, other, "find_recipe"),
        *(({"question": said}, options(), "no question") for said in ("", " ", 3)),
    ]
    for given, context, says in wrong:
        with pytest.raises(ConfigurationError, match=says):
            await build_graph("recap").ainvoke(given, context=context)


def test_the_last_run_restores_what_the_first_one_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_open", 0)  # whatever another test of this process has left open
    gc.unfreeze()
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    with first:
        assert gc.get_threshold() == (max(YOUNG, before[0]), *before[1:])
        second.__enter__()
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] >= YOUNG, "the second run is open"
    second.__exit__(None, None, None)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
