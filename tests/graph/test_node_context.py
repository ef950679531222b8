"""Runs beside and after one another: threads, shared options, shared resources, interrupts, failures."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
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

from quorum.graph import resources as resources_
from quorum.graph.ballots import Vote
from quorum.graph.builder import build_graph
from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe, recipe_of
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import STATE_TYPES, Candidate
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.embedded import EmbeddedConnector
from tests.graph.shop import QUESTION, Run, run_graph, script, sql

SAMPLE = {"recipe": "recap", "models": ["offline"], "votes": 1}


@pytest.fixture
def options(shop: Path, tmp_path: Path) -> Callable[..., RunOptions]:
    """Options of offline runs over the shop."""

    def make(**given: Any) -> RunOptions:
        return RunOptions(database=f"sqlite:///{shop}", home=str(tmp_path / "home"), **{**SAMPLE, **given})

    return make


async def test_a_run_leaves_nothing_in_memory(shop: Path, tmp_path: Path) -> None:
    alive: list[weakref.ref[Context]] = []
    for _ in range(2):
        given = RunOptions(database=f"sqlite:///{shop}", home=str(tmp_path / "home"), **SAMPLE)
        context = await open_context(given, recipe_of(given), QUESTION)
        await build_graph("recap").ainvoke({"question": "How many customers are there?"}, context=context)
        await context.aclose()
        alive.append(weakref.ref(context))
        del context, given
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


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


async def test_a_run_that_cannot_open_leaves_no_folder(
    options: Callable[..., RunOptions], tmp_path: Path
) -> None:
    for wrong, error in (
        ({"models": ["nobody:x"]}, ConfigurationError),
        ({"database": f"sqlite:///{tmp_path}/absent.db"}, DatabaseUnavailable),
    ):
        given = options(**{k: v for k, v in wrong.items() if k != "database"})
        given.database = [str(wrong["database"])] if "database" in wrong else given.database
        with pytest.raises(error):
            await open_context(given, recipe_of(given), QUESTION)
    assert not list((tmp_path / "home" / "runs").iterdir())


async def test_database_graph_and_models_open_side_by_side(
    options: Callable[..., RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, make_models = options(recipe="quorum"), resources_.make_models
    read_catalog, read_values = resources_.read_catalog, resources_.read_values
    catalog_read, values_begun, seen = threading.Event(), threading.Event(), list[str]()

    async def catalog(*args: Any, **more: Any) -> Any:
        found = await read_catalog(*args, **more)
        seen.append("catalog")
        catalog_read.set()
        return found

    async def values(*args: Any, **more: Any) -> Any:
        seen.append("values")
        values_begun.set()
        return await read_values(*args, **more)

    def models(*args: Any, **more: Any) -> Any:
        assert values_begun.wait(60), "the models were waited for"
        seen.append("models")
        return make_models(*args, **more)

    def load() -> Recipe:
        assert catalog_read.wait(60), "the graph was waited for"
        seen.append("graph")
        return recipe_of(given)

    monkeypatch.setattr(resources_, "read_catalog", catalog)
    monkeypatch.setattr(resources_, "read_values", values)
    monkeypatch.setattr(resources_, "make_models", models)
    context = await open_context(given, load, QUESTION)
    await context.aclose()
    assert seen == ["catalog", "graph", "values", "models"]


async def test_a_graph_that_cannot_be_loaded_closes_what_was_opened(
    options: Callable[..., RunOptions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = list[str](), EmbeddedConnector.close

    async def closing(connector: EmbeddedConnector) -> None:
        closed.append(connector.name)
        await close(connector)

    def unknown() -> Recipe:
        return find_recipe("nobody's")

    monkeypatch.setattr(EmbeddedConnector, "close", closing)
    with pytest.raises(ConfigurationError, match="no recipe"):
        await open_context(options(), unknown, QUESTION)
    assert closed == ["shop"]
    assert not list((tmp_path / "home" / "runs").iterdir())


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
        given: Any = {"question": "How many orders are there?"}
        asked = 0
        while "seen" not in (output := await graph.ainvoke(given, config, context={"reader": "Ada"})):
            asked += 1
            given = Command(resume={each.id: "yes" for each in output["__interrupt__"]})
        assert output["seen"] == "Ada [[4]]"
        assert asked == 1
    assert "unregistered" not in caplog.text


async def test_a_bound_graph_keeps_its_recipe_and_needs_no_context(
    options: Callable[..., RunOptions],
) -> None:
    given = options(switches={"max_plans": 1})
    graph = build_graph("recap", options=given)
    output = await graph.ainvoke(
        {"question": "How many orders are there?"}, context=RunOptions(database="no.db")
    )
    assert output["answer"]["rows"] == [[4]]
    for name in ("single", find_recipe("recap")):
        with pytest.raises(ConfigurationError, match="another recipe"):
            build_graph(name, options=given)


async def test_other_switches_than_the_graph_was_built_with_are_refused(
    options: Callable[..., RunOptions],
) -> None:
    with pytest.raises(ConfigurationError, match="find_recipe"):
        await build_graph("recap").ainvoke({"question": "?"}, context=options(switches={"max_plans": 1}))


async def test_values_of_every_size_survive_a_checkpoint(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "big.duckdb")) as database:
        database.execute("CREATE TABLE t AS SELECT 9223372036854775807 AS v FROM range(4)")
    everything = """SELECT SUM(v) AS h, [SUM(v)] AS l, {'a': SUM(v)} AS s, 1.5::DECIMAL(38, 2) AS d,
        DATE '2024-01-31' AS day, TIMESTAMP '2024-01-31 12:00:00' AS at, 'x'::BLOB AS b, NULL AS n,
        MAP {'k': 1} AS m, INTERVAL 3 DAY AS i, 'nan'::DOUBLE AS f, true AS t, uuid() IS NOT NULL AS u
        FROM t"""
    replies = script(action=sql(everything))
    ran = await run_graph(tmp_path / "home", f"duckdb:///{tmp_path}/big.duckdb", replies)
    assert ran.answer.rows[0][0] == str(4 * 9223372036854775807)
    assert ran.answer.rows[0][4] == "2024-01-31"
    assert len(ran.answer.columns) == 13


async def test_a_wide_result_keeps_the_state_small(run: Run) -> None:
    wide = "SELECT " + ", ".join(f"hex(zeroblob(90)) AS c{i}" for i in range(1000)) + " FROM orders"
    ran = await run(script(action=sql(wide)), votes=1)
    event = ran.of("result")[0]
    assert len(str(event)) < 60_000
    assert any("900 further columns" in warning for warning in ran.answer.warnings)


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "no question"), ({"question": " "}, "no question"), ({"question": 3}, "no question")],
)
async def test_a_graph_without_a_question_says_so(
    options: Callable[..., RunOptions], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        await build_graph("recap").ainvoke(given or {"question": ""}, context=options())


async def test_a_graph_without_a_context_says_so() -> None:
    with pytest.raises(ConfigurationError, match="no context"):
        await build_graph("recap").ainvoke({"question": "How many?"})


async def test_the_linker_keeps_to_the_recipes_limit_before_planning_too(run: Run) -> None:
    look = {"thought": "Look.", "command": "ls", "linked_schema": None}
    ran = await run(script(schema_linker=look), link_above=10, switches={"max_link_steps": 4})
    assert ran.calls()["schema_linker"] == 4


async def test_a_switch_that_the_recipe_lacks_is_named(options: Callable[..., RunOptions]) -> None:
    given = options(recipe="single", switches={"exploration": False})
    with pytest.raises(ConfigurationError, match="Recipe single has no switch 'exploration'"):
        await build_graph("single").ainvoke({"question": "How many customers are there?"}, context=given)


async def test_a_saver_that_loads_known_types_only_knows_those_of_the_state(
    options: Callable[..., RunOptions],
) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    graph = build_graph("recap", checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    for _ in range(2):
        output = await graph.ainvoke({"question": "How many orders are there?"}, config, context=options())
        assert output["answer"]["rows"] == [[4]]
    state = (await graph.aget_state(config)).values
    assert isinstance(state["vote"], Vote)
    assert isinstance(state["candidates"][0], Candidate)
