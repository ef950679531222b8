"""Asking before queries run: in every recipe, in whatever order replies come, however often interrupted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Interrupt

from quorum.graph.answering import NeedsReply, _replies
from quorum.graph.approval import MAX_ASKED, Approval, Approvals, one_execution, read_approval
from quorum.graph.recipes import RECIPES
from quorum.tools.admission import Proposal
from quorum.tools.models.scripted import Prompt, scripted
from quorum.tools.query import Estimate
from quorum.tools.record import request_of
from tests.graph.shop import ABOVE_SIX, GOOD, QUESTION, RENAMED, Asked, Replies, sql, writing

QUERIES = [f"SELECT {n}" for n in range(6)]
IN_LYON = "How many orders came from Lyon?"


def all_say(reply: Any) -> Replies:
    return lambda waiting: {each.id: reply for each in waiting}


def told(asked: Asked) -> tuple[Any, ...]:
    """Return what must not depend on whether anybody was asked."""
    answer = asked.answer.model_dump(exclude={"usage", "run_id", "trace", "result_file", "candidates"})
    candidates = [each.model_dump(exclude={"result_file"}) for each in asked.answer.candidates]
    usage = {name: asked.answer.usage[name] for name in ("model_calls", "queries", "rows", "bytes")}
    ran = Counter(event["executed"] for event in asked.of("query") if "usage" in event)
    return answer, candidates, usage, ran, len(asked.of("model_call"))


@pytest.fixture
def ask(shop: Path, tmp_path: Path) -> Callable[..., Asked]:
    """Runs of models that write these queries, and ask before each runs."""

    def asked(*queries: str, **given: Any) -> Asked:
        models = {f"m:{n}": writing(query) for n, query in enumerate(queries)}
        return Asked(shop, tmp_path / "home", models, **{"approve": "always", **given})

    return asked


async def test_branches_ask_at_the_same_time_what_would_run_and_all_is_for_those_that_wait(ask: Any) -> None:
    asked = await ask(GOOD, RENAMED)(all_say("yes"))
    (both,) = asked.rounds
    assert sorted(each.candidate for each in both) == ["c1", "c2"]
    assert next(each for each in both if each.candidate == "c1") == Approval(
        why="You are asked before every query.",
        sql=GOOD,
        dialect="sqlite",
        database="shop",
        reads="the engine does not tell",
        agent="action",
        candidate="c1",
    )
    heard = list[str]()

    def approve(given: Approval) -> str:
        heard.append(given.sql)
        return "all"

    waiting = [Interrupt(value=each.model_dump(), id=each.sql) for each in both]
    async with asked.opened() as (context, _):
        replies = await _replies(waiting, context, None, approve)
        assert (replies, len(heard)) == ({GOOD: "all", RENAMED: "all"}, 1), "nobody is asked again"
        for one in (GOOD, RENAMED):  # branches ask in any order

            def only(given: Approval, sql: str = one) -> str:
                if given.sql != sql:
                    raise NeedsReply(given)
                return "yes"

            assert await _replies(waiting, context, None, only) == {one: "yes"}


@pytest.mark.parametrize("of", [0, -1], ids=["to the first", "to the last"])
async def test_all_is_said_once_for_the_rest_of_the_run(ask: Any, of: int) -> None:
    """Whichever branch goes on first: the one that was replied to or the one that was not."""

    def first_all(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {waiting[of].id: "all"}

    asked = await ask(GOOD, RENAMED)(first_all)
    assert len(asked.rounds) == 1
    assert asked.answer.status == "answered"
    assert [event["reply"] for event in asked.of("approval")] == ["all"]


async def test_a_no_beside_an_all_is_a_no_and_leaves_the_others_alone(ask: Any) -> None:
    def mixed(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {each.id: "no" if each.value["sql"] == RENAMED else "all" for each in waiting}

    asked = await ask(GOOD, RENAMED)(mixed)
    assert [event["executed"] for event in asked.of("query") if "usage" in event] == [GOOD]
    assert (asked.answer.status, asked.answer.sql) == ("answered", GOOD)
    failed = [each.error for each in asked.answer.candidates if each.error]
    assert failed == ["The user was asked whether this query may run, and did not approve it."]


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


async def test_the_tool_user_is_told_that_a_query_was_not_approved(ask: Any) -> None:
    prompts: list[str] = []

    def step(prompt: Prompt) -> Any:
        prompts.append(prompt.text)
        if "did not approve" not in prompt.text:
            return sql(RENAMED)
        return sql(GOOD) | ({"action": "answer", "sql": GOOD} if prompt.turn > 1 else {})

    run = ask(GOOD, recipe="react")
    run.models = {"m:0": scripted({"tool_user": step})}
    asked = await run(lambda waiting: {each.id: each.value["sql"] == GOOD for each in waiting})
    assert (asked.answer.status, asked.answer.sql) == ("answered", GOOD)
    assert "did not approve it" in prompts[1]


async def test_explorations_queries_are_asked_about_and_given_up_without_approval(ask: Any) -> None:
    def no_to_explorers(waiting: Sequence[Interrupt]) -> dict[str, Any]:
        return {each.id: each.value["agent"] != "column_explorer" for each in waiting}

    asked = await ask(GOOD, ABOVE_SIX, recipe="team", votes=4)(no_to_explorers)
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


async def test_a_run_killed_after_the_reply_does_not_ask_again(ask: Any) -> None:
    """LangGraph keeps a reply only with the step that used it; the trace has it at once."""
    run = ask(GOOD)

    class Dead(BaseException):
        """The process dies while the query runs."""

    async def dies(*_: Any) -> Any:
        raise Dead

    async with run.opened() as (context, go_on):
        first = await go_on({"question": QUESTION})
        context.resources.connector.run = dies
        with pytest.raises(Dead):
            await go_on(Command(resume=all_say("yes")(first["__interrupt__"])))
    async with run.opened(context.trace.run_id) as (_, go_on):
        output = await go_on(None)
    assert "__interrupt__" not in output
    assert output["answer"]["status"] == "answered"


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
    random, shown, events = Random(0), list[str](), list[str]()
    about: dict[str, Any] = {"step": lambda: "step", "record": lambda kind, **_: events.append(kind)}
    trace: Any = SimpleNamespace(earlier_approvals=[], **about)
    approvals = Approvals("always", "shop", "sqlite", trace)

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
    assert events.count("approval") == len(QUERIES)


def test_a_reply_counts_for_its_text_in_every_step_and_all_for_every_text() -> None:
    def approved(reply: str, *queries: str) -> list[bool]:
        earlier = [{"kind": "approval", "task": "earlier", "query": request_of(GOOD), "reply": reply}]
        trace: Any = SimpleNamespace(earlier_approvals=earlier, step=lambda: "later")
        approvals = Approvals("always", "shop", "sqlite", trace)
        return [approvals.approves(Proposal(sql, Estimate(), True, "a", "c")) for sql in queries]

    assert approved("no", GOOD) == [False]
    assert approved("yes", GOOD) == [True]
    assert approved("all", GOOD, RENAMED) == [True, True]


def test_replies_are_understood() -> None:
    meanings: dict[str, list[Any]] = {
        "yes": ["yes", " Y.", True, {"reply": "yes"}, {"decisions": [{"type": "approve"}]}],
        "all": ["all", [{"type": "response", "args": "all"}]],
        "no": ["no", None, "", False, {"decisions": [{"type": "reject", "message": "Why?"}]}],
        "": ["yes please", 7],
    }
    for meaning, replies in meanings.items():
        assert {read_approval(reply) for reply in replies} == {meaning}
