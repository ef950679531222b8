"""Runs beside and after one another: threads, shared options, shared resources, interrupts, failures."""

from __future__ import annotations

import asyncio
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
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from quorum.graph import resources as resources_
from quorum.graph.ballots import Vote
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.context import Context, open_context
from quorum.graph.nodes import recap
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe, recipe_of
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.resources import open_resources
from quorum.graph.state import STATE_TYPES, Candidate
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, ModelUnavailable
from quorum.tools.databases.embedded import EmbeddedConnector
from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, QUESTION, STOP, Run, run_graph, script, sql

SAMPLE = {"recipe": "recap", "models": ["offline"], "votes": 1}


@pytest.fixture
def options(shop: Path, tmp_path: Path) -> Callable[..., RunOptions]:
    """Options of offline runs over the shop."""

    def make(**given: Any) -> RunOptions:
        return RunOptions(database=f"sqlite:///{shop}", home=str(tmp_path / "home"), **{**SAMPLE, **given})

    return make


async def test_the_same_options_serve_again(options: Callable[..., RunOptions]) -> None:
    graph, same = build_graph("recap"), options()
    for _ in range(2):
        output = await graph.ainvoke({"question": "How many customers are there?"}, context=same)
        assert output["answer"]["rows"] == [[3]]


async def test_many_runs_at_the_same_time_leave_each_other_alone(options: Callable[..., RunOptions]) -> None:
    graph = build_graph("recap")
    question = {"question": "How many customers are there?"}
    outputs = await asyncio.gather(*[graph.ainvoke(question, context=options()) for _ in range(20)])
    assert [output["answer"]["rows"] for output in outputs] == [[[3]]] * 20


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


async def test_an_interrupt_keeps_the_context_and_the_trace_goes_on(
    options: Callable[..., RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan = recap.write_plan

    async def ask_first(state: Any, context: Context) -> Any:
        interrupt("Which year?")
        return await write_plan(state, context)

    monkeypatch.setattr(recap, "write_plan", ask_first)
    same: Any = {"switches": {"max_plans": 2, "own_plans": False}}
    recipe = find_recipe("recap", same["switches"])  # compiled anew, with the interrupting step
    graph = build_graph(recipe, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    stopped = await graph.ainvoke(
        {"question": "How many customers are there?"}, config, context=options(**same)
    )
    assert stopped["__interrupt__"][0].value == "Which year?"
    output = await graph.ainvoke(Command(resume="2024"), config, context=options(**same))
    answer = output["answer"]
    assert answer["rows"] == [[3]]
    assert (Path(answer["trace"]) / "answer.json").is_file()


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


async def test_resources_are_shared_between_runs_and_stay_open(options: Callable[..., RunOptions]) -> None:
    given = options()
    resources = await open_resources(given)
    try:
        catalogs = set()
        for _ in range(2):
            context = await open_context(given, recipe_of(given), QUESTION, resources=resources)
            output = await build_graph("recap").ainvoke(
                {"question": "How many orders are there?"}, context=context
            )
            assert output["answer"]["rows"] == [[4]]
            assert context.ledger.total.model_calls == 6, "each run has a ledger of its own"
            catalogs.add(id(context.resources.catalog))
            await context.aclose()
        assert len(catalogs) == 1
    finally:
        await resources.aclose()


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
    given = options(switches={"syntax": False})
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
        await build_graph("recap").ainvoke({"question": "?"}, context=options(switches={"syntax": False}))


@pytest.mark.parametrize("value", ["true", 1, None])
def test_a_switch_is_true_or_false(value: object) -> None:
    with pytest.raises(ConfigurationError, match="sql_critique"):
        find_recipe("recap", {"sql_critique": value})


@pytest.mark.parametrize("value", ["three", -1, 1000, True, [1]])
def test_a_limit_is_a_small_number(value: object) -> None:
    with pytest.raises(ConfigurationError, match="max_actions"):
        find_recipe("recap", {"max_actions": value})


def test_more_models_than_votes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="3 models cannot share 2 votes"):
        RunOptions(models=["a", "b", "c"], votes=2)


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


async def test_replies_that_never_fit_are_no_answer_and_the_ledger_counts_them(run: Run) -> None:
    ran = await run(script(action="no json"), votes=2)
    assert ran.answer.status == "no_answer"
    assert ran.answer.usage["model_calls"] == 2 * (3 + 3)
    assert "no usable reply" in ran.answer.warnings[0]


async def test_a_candidate_that_gives_up_says_so(run: Run) -> None:
    stop = {"thought": "No such thing here.", "action": "terminate", "sql": None, "command": None}
    ran = await run(script(action=stop))
    assert ran.answer.status == "no_answer"
    assert "gave up" in ran.answer.candidates[0].error
    assert "gave up" in ran.answer.warnings[0]


async def test_a_refiner_that_repeats_itself_ends_the_branch(run: Run) -> None:
    bad = "SELECT nowhere FROM customers"
    ran = await run(script(action=sql(bad), self_refiner={"explanation": "?", "sql": bad}))
    assert ran.calls()["self_refiner"] == 1
    assert ran.answer.status == "no_answer"


async def test_a_run_whose_endpoint_failed_asks_anew_when_it_is_resumed(shop: Path, tmp_path: Path) -> None:
    given = RunOptions(
        database=f"sqlite:///{shop}", recipe="recap", home=str(tmp_path), models=["m"], votes=2
    )
    down = script(action=ModelUnavailable("The endpoint is unreachable."))
    run_id = ""
    for replies, resume in ((down, ""), (script(), "again")):
        context = await open_context(
            given,
            recipe_of(given),
            QUESTION,
            resume=run_id,
            chat_models={"m": scripted(replies)},
        )
        run_id = context.trace.run_id
        config: Any = {"configurable": {"thread_id": run_id}}
        try:
            async with open_checkpoints(context.trace.checkpoint) as saver:
                graph = build_graph("recap", checkpointer=saver)
                start = None if resume else {"question": QUESTION}
                if not resume:
                    with pytest.raises(ModelUnavailable, match="unreachable"):
                        await graph.ainvoke(start, config, context=context, durability="sync")  # type: ignore[arg-type]
                else:
                    output = await graph.ainvoke(start, config, context=context, durability="sync")  # type: ignore[arg-type]
                    assert output["answer"]["sql"] == GOOD
                    assert len(output["answer"]["candidates"]) == 2
        finally:
            await context.aclose()


async def test_a_replayed_demonstration_is_still_one(options: Callable[..., RunOptions]) -> None:
    graph, question = build_graph("recap"), {"question": "How many customers are there?"}
    first = (await graph.ainvoke(question, context=options()))["answer"]
    again = options(models=[f"replay:{first['trace']}/events.jsonl"])
    second = (await graph.ainvoke(question, context=again))["answer"]
    assert (second["sql"], second["rows"]) == (first["sql"], first["rows"])
    assert first["demonstration"] is True
    assert second["demonstration"] is True


async def test_events_stream_while_candidates_run_in_parallel(options: Callable[..., RunOptions]) -> None:
    question = {"question": "How many customers are there?"}
    stream = build_graph("recap").astream_events(question, context=options(votes=3), version="v2")
    names = [event["name"] async for event in stream if event["event"] == "on_chain_end"]
    assert names.count("run_sql") == 3
    assert names[-1] == "recap"


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


@pytest.mark.parametrize(
    ("wrong", "said"), [({"votes": "many"}, "votes = 'many'"), ({"models": 3}, "models = 3")]
)
def test_options_of_the_wrong_type_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        RunOptions(**wrong)


def test_options_take_what_a_form_gives() -> None:
    assert RunOptions(votes="3", max_usd="0.5").max_usd == 0.5  # type: ignore[arg-type]


async def test_a_failed_query_is_not_tried_again_by_the_action(run: Run) -> None:
    bad = "SELECT nowhere FROM customers"
    rejected = {"valid_result": False, "columns_not_needed": [], "result_empty": False, "suggest_fix": "No."}
    ran = await run(script(action=[sql(bad), sql(bad), STOP], validator=rejected))
    assert "Error: " in ran.prompt("action", 1)
    assert len([event for event in ran.of("query") if event["sql"] == bad]) == 1


async def test_repairs_are_counted_as_they_were(run: Run) -> None:
    bad = "SELECT nowhere FROM customers"
    ran = await run(script(action=sql(bad), self_refiner={"explanation": "?", "sql": bad}))
    assert ran.answer.candidates[0].repairs == 1


async def test_the_linker_keeps_to_the_recipes_limit_before_planning_too(run: Run) -> None:
    look = {"thought": "Look.", "command": "ls", "linked_schema": None}
    ran = await run(script(schema_linker=look), link_above=10, switches={"max_link_steps": 4})
    assert ran.calls()["schema_linker"] == 4


async def test_a_query_that_never_ran_is_not_said_to_have_failed(run: Run) -> None:
    ran = await run(script(), max_calls=4)
    assert not any("failed" in warning for warning in ran.answer.warnings)
    assert any("stopped by max_calls" in warning for warning in ran.answer.warnings)


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
