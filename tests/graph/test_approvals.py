"""Asking before queries run: in every recipe, in whatever order replies come, however often interrupted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Interrupt

from quorum.graph.answer import Answer
from quorum.graph.answering import _Asked
from quorum.graph.approval import MAX_ASKED, Approval, Approvals, one_execution, read_approval
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, recipe_of
from quorum.tools.admission import Proposal
from quorum.tools.models.scripted import Prompt, Script, scripted
from quorum.tools.query import Estimate
from tests.graph.shop import CITIES, GOOD, QUESTION, explored, script, sql

RENAMED = GOOD.replace("AS orders", "AS n")
QUERIES = [f"SELECT {n}" for n in range(6)]
IN_LYON = "How many orders came from Lyon?"
NO_ROW = (
    "WITH big AS (SELECT * FROM orders WHERE total > 6) "
    "SELECT customer_id, COUNT(*) AS n FROM big GROUP BY customer_id HAVING COUNT(*) > 7"
)
Replies = Callable[[Sequence[Interrupt]], dict[str, Any]]


def writes(query: str, **roles: Any) -> Script:
    """A model all of whose writers give one query; the tool user runs it and then answers."""
    written = {"reasoning": "Count.", "sql": query}
    about = {"action": sql(query), "sql_writer": written, "gen_agent": written}
    about |= {"column_explorer": explored(CITIES), **roles}
    replies = script(**about)

    def reply(prompt: Prompt) -> Any:
        if prompt.role == "tool_user":
            return sql(query) | ({"action": "answer", "sql": None} if prompt.turn else {})
        said = replies[prompt.role]
        return said(prompt) if callable(said) else said

    return reply


class Asked:
    """A run that asks before queries run: what it asked, its answer and its events."""

    def __init__(
        self, shop: Path, home: Path, *queries: str, roles: Any = None, question: str = QUESTION, **given: Any
    ) -> None:
        self.question = question
        models = {f"m:{n}": scripted(writes(query, **roles or {})) for n, query in enumerate(queries)}
        usual = {"recipe": "recap", "models": list(models), "votes": len(models), "approve": "always"}
        self.options = RunOptions(database=f"sqlite:///{shop}", home=str(home), **usual | given)
        self.models = models
        self.rounds: list[list[Approval]] = []
        self.events: list[dict[str, Any]] = []
        self.answer = Answer(question="", status="no_answer", database="", dialect="", recipe="")

    async def opened(self, resume: str = "") -> Context:
        recipe = recipe_of(self.options)
        return await open_context(self.options, recipe, self.question, chat_models=self.models, resume=resume)

    async def __call__(self, reply: Replies, *, streamed: bool = False, killed: bool = False) -> Asked:
        """Run to the end.

        Args:
            streamed: By ``astream``, not ``ainvoke``.
            killed: The process dies whenever it waits, and another one goes on from the run's folder.
        """
        context = await self.opened()
        start: Any = {"question": self.question}
        while True:
            config: Any = {"configurable": {"thread_id": context.trace.run_id}}
            async with open_checkpoints(context.trace.checkpoint) as saver:
                graph = build_graph(context.recipe, checkpointer=saver)
                output = await _output(graph, start, config, context, streamed=streamed)
                waiting = output.get("__interrupt__")
                if not waiting:
                    break
                self.rounds.append([Approval.model_validate(each.value) for each in waiting])
                start = Command(resume=reply(waiting))
                if not killed:
                    continue
            await context.aclose()
            context = await self.opened(context.trace.run_id)
            async with open_checkpoints(context.trace.checkpoint) as saver:
                graph = build_graph(context.recipe, checkpointer=saver)
                again = await _output(graph, None, config, context, streamed=streamed)
                shown = {each.id: each.value for each in again["__interrupt__"]}
                assert shown == {each.id: each.value for each in waiting}
        await context.trace.aflush()
        self.events = list(context.trace.events())
        await context.aclose()
        self.answer = Answer.model_validate(output["answer"])
        return self

    @property
    def asked(self) -> list[str]:
        """The queries that were asked about, in order."""
        return [each.sql for waiting in self.rounds for each in waiting]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]


async def _output(graph: Any, start: Any, config: Any, context: Context, *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return dict(await graph.ainvoke(start, config, context=context, durability="sync"))
    output: dict[str, Any] = {}
    async for mode, part in graph.astream(start, config, context=context, stream_mode=["values", "updates"]):
        if mode == "values":
            output |= part
        elif "__interrupt__" in part:
            output["__interrupt__"] = [*output.get("__interrupt__", []), *part["__interrupt__"]]
    return output


def all_say(reply: Any) -> Replies:
    return lambda waiting: {each.id: reply for each in waiting}


def shuffled(seed: int) -> Replies:
    """Yes to some of those that wait, in any order; the others are asked again."""
    random = Random(seed)

    def reply(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        chosen = random.sample(list(waiting), random.randint(1, len(waiting)))
        return {each.id: "yes" for each in chosen}

    return reply


def told(asked: Asked) -> tuple[Any, ...]:
    """Return what must not depend on whether anybody was asked."""
    answer = asked.answer.model_dump(exclude={"usage", "run_id", "trace", "result_file", "candidates"})
    candidates = [each.model_dump(exclude={"result_file"}) for each in asked.answer.candidates]
    usage = {name: asked.answer.usage[name] for name in ("model_calls", "queries", "rows", "bytes")}
    ran = Counter(event["executed"] for event in asked.of("query") if "usage" in event)
    return answer, candidates, usage, ran, len(asked.of("model_call"))


@pytest.fixture
def ask(shop: Path, tmp_path: Path) -> Callable[..., Asked]:
    return lambda *queries, **given: Asked(shop, tmp_path / "home", *queries, **given)


async def test_branches_ask_at_the_same_time_and_the_user_sees_what_would_run(ask: Any) -> None:
    asked = await ask(GOOD, RENAMED)(all_say("yes"))
    (both,) = asked.rounds
    assert sorted(each.candidate for each in both) == ["c1", "c2"]
    first = next(each for each in both if each.candidate == "c1")
    assert (first.sql, first.database, first.dialect) == (GOOD, "shop", "sqlite")
    assert (first.kind, first.agent, first.bytes) == ("approval", "action", None)
    assert first.why == "You are asked before every query."
    assert first.reads == "the engine does not tell"


@pytest.mark.parametrize("of", [0, -1], ids=["to the first", "to the last"])
async def test_all_is_said_once_for_the_rest_of_the_run(ask: Any, of: int) -> None:
    """Whichever branch goes on first: the one that was replied to or the one that was not."""

    def first_all(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {waiting[of].id: "all"}

    asked = await ask(GOOD, RENAMED)(first_all)
    assert len(asked.rounds) == 1
    assert asked.answer.status == "answered"
    assert [event["reply"] for event in asked.of("approval")] == ["all"]


async def test_after_all_those_that_wait_together_get_it_and_nobody_is_asked_again(ask: Any) -> None:
    asked, heard = await ask(GOOD, RENAMED)(all_say("yes")), list[str]()

    def approve(given: Approval) -> str:
        heard.append(given.sql)
        return "all"

    waiting = [Interrupt(value=each.model_dump(), id=each.sql) for each in asked.rounds[0]]
    context = await asked.opened()
    replies = await _Asked(context, None, approve).replies(waiting)
    await context.aclose()
    assert (replies, len(heard)) == ({GOOD: "all", RENAMED: "all"}, 1)


async def test_a_no_beside_an_all_is_a_no(ask: Any) -> None:
    def mixed(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {each.id: "no" if each.value["sql"] == RENAMED else "all" for each in waiting}

    asked = await ask(GOOD, RENAMED)(mixed)
    ran = [event["executed"] for event in asked.of("query") if "usage" in event]
    assert ran == [GOOD]


@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "react"])
async def test_what_is_not_approved_is_repaired_by_nobody(recipe: str, ask: Any) -> None:
    queries = (GOOD,) if recipe == "single" else (GOOD, RENAMED)
    asked = await ask(*queries, recipe=recipe)(all_say("no"))
    assert asked.answer.status == "no_answer"
    assert {each.error_kind for each in asked.answer.candidates} == {"not_approved"}
    assert asked.answer.usage["queries"] == 0
    assert asked.of("refinement") == []
    assert "did not approve it" in asked.answer.warnings[-1]
    assert asked.answer.sql in queries
    rounds = [{each.sql for each in waiting} for waiting in asked.rounds]
    assert sum(map(len, rounds)) == len(set().union(*rounds)), "nothing is asked about again"


async def test_one_that_is_not_approved_leaves_the_others_alone(ask: Any) -> None:
    def no_to_renamed(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {each.id: each.value["sql"] == GOOD for each in waiting}

    asked = await ask(GOOD, RENAMED)(no_to_renamed)
    assert (asked.answer.status, asked.answer.sql) == ("answered", GOOD)
    failed = [each.error for each in asked.answer.candidates if each.error]
    assert failed == ["The user was asked whether this query may run, and did not approve it."]


async def test_the_tool_user_is_told_that_a_query_was_not_approved(ask: Any) -> None:
    prompts: list[str] = []

    def step(prompt: Prompt) -> Any:
        prompts.append(prompt.text)
        if "did not approve" not in prompt.text:
            return sql(RENAMED)
        return sql(GOOD) | ({"action": "answer", "sql": GOOD} if prompt.turn > 1 else {})

    run = ask(GOOD, recipe="react")
    run.models = {"m:0": scripted(step)}
    asked = await run(lambda waiting: {each.id: each.value["sql"] == GOOD for each in waiting})
    assert (asked.answer.status, asked.answer.sql) == ("answered", GOOD)
    assert "did not approve it" in prompts[1]


COUNTED: Any = {"switches": {"confirm_empty": True}}


async def test_what_counts_rows_of_an_empty_result_is_asked_about_too(ask: Any) -> None:
    """Several queries of one step, which runs again from its start for each reply."""
    free = await ask(NO_ROW, approve="never", **COUNTED)(all_say("yes"))
    for killed in (False, True):
        asked = await ask(NO_ROW, **COUNTED)(all_say("yes"), killed=killed)
        assert told(asked) == told(free)
        counts = [each for each in asked.rounds if each[0].agent == "self_refiner"]
        assert len(counts) == 2, "CTEs, rows"
        assert all(len(waiting) == 1 for waiting in asked.rounds)


async def test_a_no_to_one_of_several_queries_of_a_step_is_recorded_once(ask: Any) -> None:
    def no_first(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        counting = waiting[0].value["agent"] == "self_refiner"
        return {waiting[0].id: "no" if counting and "part_0" in waiting[0].value["sql"] else "yes"}

    for killed in (False, True):
        asked = await ask(NO_ROW, **COUNTED)(no_first, killed=killed)
        assert asked.answer.status == "answered"
        refused = [event["executed"] for event in asked.of("query") if event.get("error")]
        assert len(refused) == len(set(refused)) > 0


async def test_explorations_queries_are_asked_about_and_given_up_without_approval(ask: Any) -> None:
    above = GOOD.replace(" GROUP BY", " WHERE o.total > 6 GROUP BY")

    def no_to_explorers(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {each.id: each.value["agent"] != "column_explorer" for each in waiting}

    asked = await ask(GOOD, above, recipe="team", votes=4)(no_to_explorers)
    assert len(asked.of("exploration_given_up")) == 1
    assert asked.of("correction") == []


async def test_a_reply_that_is_none_is_asked_for_again_then_taken_for_no(ask: Any) -> None:
    replies = iter(["perhaps", "yes"])
    asked = await ask(GOOD)(lambda waiting: {waiting[0].id: next(replies)})
    assert [bool(waiting[0].refused) for waiting in asked.rounds] == [False, True]
    assert asked.answer.status == "answered"
    never = await ask(GOOD)(all_say("perhaps"))
    assert len(never.rounds) == MAX_ASKED
    assert never.answer.candidates[0].error_kind == "not_approved"


async def test_a_run_killed_after_the_reply_does_not_ask_again(ask: Any, shop: Path) -> None:
    """LangGraph keeps a reply only with the step that used it; the trace has it at once."""
    run = ask(GOOD)
    context = await run.opened()
    config: Any = {"configurable": {"thread_id": context.trace.run_id}}

    class Killed(BaseException):
        """The process dies while the query runs."""

    async def dies(*_: Any) -> Any:
        raise Killed

    async with open_checkpoints(context.trace.checkpoint) as saver:
        graph = build_graph(context.recipe, checkpointer=saver)
        first: Any = await graph.ainvoke({"question": QUESTION}, config, context=context, durability="sync")
        context.resources.connector.run = dies  # type: ignore[method-assign]
        replies = all_say("yes")(first["__interrupt__"])
        with pytest.raises(Killed):
            await graph.ainvoke(Command(resume=replies), config, context=context, durability="sync")
    await context.aclose()
    context = await run.opened(context.trace.run_id)
    async with open_checkpoints(context.trace.checkpoint) as saver:
        graph = build_graph(context.recipe, checkpointer=saver)
        output: Any = await graph.ainvoke(None, config, context=context, durability="sync")
    await context.aclose()
    assert "__interrupt__" not in output
    assert output["answer"]["status"] == "answered"


async def test_a_graph_that_opens_its_own_context_asks_too(ask: Any) -> None:
    run = ask(GOOD)
    options = run.options.model_copy(update={"models": ["offline"], "votes": 2})
    graph = build_graph("recap", checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    question: Any = {"question": "How many customers are there?"}
    first: Any = await graph.ainvoke(question, config, context=options)
    waiting = first["__interrupt__"]
    assert len(waiting) == 2
    answer: Any = await graph.ainvoke(Command(resume=all_say("yes")(waiting)), config, context=options)
    assert answer["answer"]["rows"] == [[3]]


async def test_with_always_nothing_is_read_unasked(ask: Any) -> None:
    asked = await ask(GOOD, recipe="quorum", question=IN_LYON)(all_say("yes"))
    assert asked.of("values") == []
    free = await ask(GOOD, recipe="quorum", question=IN_LYON, approve="costly")(all_say("yes"))
    assert free.of("values")


async def test_a_database_that_does_not_tell_asks_nobody_by_size_and_says_so(ask: Any) -> None:
    asked = await ask(GOOD, approve="costly", max_bytes=1000, max_run_bytes=1000)(all_say("yes"))
    assert (asked.rounds, asked.answer.status) == ([], "answered")
    told = [text for text in asked.answer.warnings if "has no effect here" in text]
    assert [text.split(" ")[0] for text in told] == ["max_bytes", "max_run_bytes", "approve=costly"]


async def test_queries_that_a_step_runs_side_by_side_get_their_own_replies() -> None:
    """Each gets the reply to what was shown, in whatever order they come."""
    random, shown = Random(0), list[str]()
    events: list[tuple[str, Any]] = []
    approvals = Approvals(
        rule="always",
        database="shop",
        dialect="sqlite",
        record=lambda kind, **fields: events.append((kind, fields.get("reply"))),
        step=lambda: "step",
    )

    async def one(sql: str) -> bool:
        await asyncio.sleep(random.random() / 1000)
        said = approvals.answered(sql)
        return approvals.approves(Proposal(sql, Estimate(), True, "a", "c")) if said is None else said

    async def step(_: dict[str, Any]) -> dict[str, Any]:
        with one_execution():
            queries = random.sample(QUERIES, len(QUERIES))
            replies = await asyncio.gather(*map(one, queries))
        return {"said": dict(zip(queries, replies, strict=True))}

    graph: Any = StateGraph(dict)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    output = await compiled.ainvoke({"said": {}}, config)
    while waiting := output.get("__interrupt__"):
        (asked,) = waiting
        shown.append(asked.value["sql"])
        reply = "no" if asked.value["sql"] in QUERIES[:2] else "yes"
        output = await compiled.ainvoke(Command(resume={asked.id: reply}), config)
    assert sorted(shown) == sorted(QUERIES), "each once"
    assert output["said"] == {sql: sql not in QUERIES[:2] for sql in QUERIES}
    assert len([kind for kind, _ in events if kind == "approval"]) == len(QUERIES)


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        ("yes", "yes"),
        (" Y.", "yes"),
        (True, "yes"),
        ({"reply": "yes"}, "yes"),
        ("all", "all"),
        ("no", "no"),
        (None, "no"),
        ("", "no"),
        (False, "no"),
        ("yes please", ""),
        (7, ""),
    ],
)
def test_replies_are_understood(reply: Any, meaning: str) -> None:
    assert read_approval(reply) == meaning
