"""The real client against a server that misbehaves: every fault ends in a reply or one clear error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from quorum.knowledge.errors import BudgetExceeded, ModelUnavailable
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import Method, Model, ModelSettings, ProblemKind, Reply, make_model
from tests.engines import Events
from tests.servers.chat_server import Answer, ChatServer, Script, closed_port, say, status, tokens
from tests.servers.clock import FakeClock
from tests.waiting import until

SECRET = "sk-very-secret-key-0123456789"
ASK = [{"role": "system", "content": "rules"}, {"role": "user", "content": "<task>planner</task> plan"}]
GOOD = '{"steps": ["count"], "expected_format": "n (int)"}'


class Plan(BaseModel):
    """How to answer."""

    steps: list[str]
    expected_format: str


PLAN = Plan(steps=["count"], expected_format="n (int)")


class Harness:
    """A model on a scripted server, with its events, clock and ledger."""

    def __init__(self, server: ChatServer, budget: Budget | None = None, **settings: Any) -> None:
        self.server, self.clock = server, FakeClock()
        self.events, self.ledger = Events(), Ledger(budget or Budget())
        given: dict[str, Any] = {"base_url": server.url, "timeout": 5.0, "api_key": SecretStr(SECRET)}
        self.model: Model = make_model(
            "openai:test",
            settings=ModelSettings(**(given | settings)),
            ledger=self.ledger,
            record=self.events,
            paces=self.clock.paces(),
        )

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    async def plan(self) -> Reply:
        return await self.model.complete(ASK, role="planner", output=Plan)

    async def say(self) -> Reply:
        return await self.model.complete(ASK, role="planner")

    async def fails(self) -> str:
        """The message of the ``ModelUnavailable`` that a call ends with."""
        with pytest.raises(ModelUnavailable) as failure:
            await self.plan()
        assert failure.value.hint or "refused" in str(failure.value)
        assert self.ledger.reserved_calls == 0
        return str(failure.value)


@pytest.fixture
async def harness() -> Any:
    """``harness(script, **settings)`` makes a ``Harness``; servers and clients close after the test."""
    opened: list[Harness] = []
    with ExitStack() as servers:

        def make(script: Script, budget: Budget | None = None, **settings: Any) -> Harness:
            server = servers.enter_context(ChatServer(script))
            opened.append(Harness(server, budget, **settings))
            return opened[-1]

        yield make
        for one in opened:
            await one.model.aclose()


Make = Callable[..., Harness]


# The good path


async def test_a_structured_reply_with_usage_and_cost(harness: Make) -> None:
    table = {"test": {"input": 2.0, "cached": 0.5, "output": 8.0}}
    one = harness([say(GOOD, usage=tokens(1000, 200, cached=400))], prices=table, temperature=0.3)
    one.model = one.model.at(seed=7, candidate="c2")
    reply = await one.plan()
    assert (reply.parsed, reply.problem) == (PLAN, None)
    assert (reply.method, reply.finish_reason) == (Method.JSON_SCHEMA, "stop")
    used = reply.usage
    assert (used.input_tokens, used.cached_tokens, used.output_tokens) == (1000, 400, 200)
    assert used.usd == pytest.approx((600 * 2 + 400 * 0.5 + 200 * 8) / 1e6)
    assert used.estimated_calls == 0
    assert one.ledger.by_agent["planner"] == one.ledger.total
    assert one.ledger.total.model_seconds > 0
    (request,) = one.server.requests
    assert (request.body["temperature"], request.body["seed"]) == (0.3, 7)
    assert request.body["response_format"]["json_schema"]["strict"] is True
    assert "JSON schema" not in request.text  # the request carries it already
    said = {"agent": "planner", "candidate": "c2", "temperature": 0.3, "seed": 7, "reply": GOOD, "attempt": 1}
    assert one.events[-1] == one.events[-1] | said


@pytest.mark.parametrize("usage", [tokens(-5, 3), tokens(10**30, 5), tokens(0, 0), None], ids=str)
async def test_odd_counts_are_estimated_and_the_reply_is_used(harness: Make, usage: Any) -> None:
    answer = say("four short words here")
    one = harness([replace(answer, body=answer.body | {"usage": usage})])
    reply = await one.say()
    assert (reply.text, reply.usage.estimated_calls) == ("four short words here", 1)
    assert one.events[-1]["estimated"] is True
    assert 0 < reply.usage.input_tokens < 100
    assert 0 < reply.usage.output_tokens < 20
    assert one.ledger.total.usd is None  # an unknown price is unknown, not zero


async def test_event_loops_may_come_and_go_in_one_process() -> None:
    with ChatServer([say("hi")]) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))

        async def ask_four_times() -> None:
            await asyncio.gather(*(model.complete(ASK, role="r") for _ in range(4)))
            await model.aclose()

        for _ in range(5):
            await asyncio.to_thread(asyncio.run, ask_four_times())
        assert len(server.requests) == 20


async def test_a_listener_for_tokens_streams_the_reply(harness: Make) -> None:
    """What LangGraph's stream mode ``messages`` and LangSmith hook into."""
    from langchain_core.runnables import RunnableLambda

    one = harness([say("one two three", usage=tokens(9, 3))])

    async def node(_: str) -> str:
        return (await one.model.complete(ASK, role="planner")).text

    seen = [event async for event in RunnableLambda(node).astream_events("x", version="v2")]
    words = [e["data"]["chunk"].content for e in seen if e["event"] == "on_chat_model_stream"]
    assert "".join(words) == one.events[-1]["reply"] == "one two three"
    assert {e["name"] for e in seen if e["event"] == "on_chat_model_start"} == {"planner"}
    assert one.ledger.total.input_tokens == 9


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (say(None), ProblemKind.EMPTY),
        (say("   \n"), ProblemKind.EMPTY),
        (say(None, refusal="I must not."), ProblemKind.REFUSAL),
        (say("{", finish="content_filter"), ProblemKind.REFUSAL),
        (say(GOOD[:20], finish="length"), ProblemKind.LENGTH),
        (say('{"steps": 3}'), ProblemKind.INVALID),
        (say(GOOD.replace("count", "\ud800")), ProblemKind.INVALID),
        (say(GOOD.replace("count", "\\ud800")), ProblemKind.INVALID),
        (say("{steps: [broken"), ProblemKind.NO_JSON),
        (say(arguments='{"steps": ["a"'), ProblemKind.NO_JSON),
        (say(arguments={"steps": ["\udfff"], "expected_format": "n"}), ProblemKind.INVALID),
    ],
)
async def test_a_useless_reply_is_a_typed_problem_and_is_charged(
    harness: Make, answer: Answer, kind: ProblemKind
) -> None:
    one = harness([answer])
    reply = await one.plan()
    assert (reply.parsed, reply.problem and reply.problem.kind) == (None, kind)
    assert one.ledger.total.model_calls == 1
    assert one.events[0]["problem"].startswith(kind.value)
    assert reply.text.encode() is not None  # it can be sent back to be repaired


# Faults of the endpoint


async def test_a_redirect_is_not_followed(harness: Make) -> None:
    other = harness([say(GOOD)])
    there = other.server.url.replace("127.0.0.1", "localhost") + "/chat/completions?key=k-98765"
    one = harness([Answer({}, status=307, headers={"Location": there})])
    message = await one.fails()
    assert "redirects to http://localhost" in message
    assert "k-98765" not in message
    assert (len(one.server.requests), other.server.requests) == (1, [])


@pytest.mark.parametrize(
    ("echoed", "shown"),
    [
        (
            "headers: {'authorization': 'Bearer sk-ve***', 'X-Api-Key': 'abc123'}",
            "'Bearer [redacted]', 'X-Api-Key': '[redacted]'",
        ),
        ("Authorization: Basic dXNlcjpodW50ZXIy", "Authorization: Basic [redacted]"),
        ("Ocp-Apim-Subscription-Key: 99aa", "Subscription-Key: [redacted]"),
        (f"x {' ' * 280} {SECRET}", "x [redacted]"),
        (f"{'x' * 290} {SECRET}", "x [redacted]"),
        ("Authorization header is missing", "Authorization header is missing"),
    ],
)
async def test_an_echoed_header_is_not_quoted(harness: Make, echoed: str, shown: str) -> None:
    one = harness([status(400, echoed)])
    assert shown in (message := await one.fails())
    assert shown in one.events[-1]["reason"]
    assert "sk-ve" not in message


async def test_a_key_in_the_address_is_sent_and_never_shown(harness: Make) -> None:
    with ChatServer([status(404, "there is no /v1?api-key=QS%2Fsecret1, QS/secret1")]) as server:
        one = harness([], base_url=f"{server.url}?api-key=QS%2Fsecret1&api-version=2")
        assert "secret1" not in await one.fails()
        assert "secret1" not in str(one.events)
        assert server.requests[0].path == "/v1/chat/completions?api-key=QS%2Fsecret1&api-version=2"


@pytest.mark.parametrize("fault", [status(500), Answer(drop=True)])
async def test_what_may_pass_is_tried_again_with_growing_waits(harness: Make, fault: Answer) -> None:
    one = harness([fault, fault, fault, say(GOOD)])
    assert (await one.plan()).parsed == PLAN
    assert one.clock.waits == [0.5, 1.0, 2.0]
    assert one.kinds() == ["model_retry"] * 3 + ["model_call"]
    last = harness([fault], max_retries=2)
    assert "3 tries" in await last.fails()
    assert last.kinds() == ["model_retry", "model_retry", "model_failed"]


NO_COMPLETIONS = [
    Answer(b"<html>Please log in</html>", content_type="text/html"),
    Answer({"choices": []}),
    Answer({"choices": [{"index": 0, "message": None}]}),
    Answer({"error": {"message": "overloaded", "code": 502}}),
    Answer(b"[" * 200_000),
    Answer({"choices": [{"message": {"role": "wizard", "content": "{}"}}]}),
]


@pytest.mark.parametrize(
    ("answer", "part", "tries"),
    [
        (status(401, "Incorrect key"), "Is the API key right", 1),
        (status(404, "No such model"), "Is the model called 'test' there? Is base_url right?", 1),
        (status(429, "Pay first", kind="insufficient_quota"), "Check its plan and billing", 1),
        (status(400, "Too much", kind="context_length_exceeded"), "Give the schema fewer tokens", 1),
        (status(400, "Computer says no"), "Computer says no", 1),
        (status(429, headers={"Retry-After": "3600"}), "asks to wait 3600 s", 1),
        *((answer, "no chat completion", 3) for answer in NO_COMPLETIONS),
    ],
)
async def test_what_will_not_pass_is_explained_and_not_tried_again_for_long(
    harness: Make, answer: Answer, part: str, tries: int
) -> None:
    one = harness([answer])
    assert part in await one.fails()
    assert (len(one.server.requests), len(one.clock.waits)) == (tries, tries - 1)
    assert one.ledger.total.model_calls == 0


async def test_an_unreachable_endpoint_is_a_clear_error_in_seconds(harness: Make) -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    one = harness([say("x")], base_url=url, timeout=120.0)
    assert f"No connection to {url}" in await one.fails()
    assert sum(one.clock.waits) < 30


async def test_silence_is_a_timeout_and_its_calls_are_charged(harness: Make) -> None:
    one = harness([say("x", delay=30)], timeout=0.2)
    assert "was silent for 0.2 s" in await one.fails()
    await until(lambda: len(one.server.requests) == 2)
    used = one.ledger.total
    assert (used.model_calls, used.estimated_calls, used.output_tokens) == (2, 2, 0)
    assert used.input_tokens > 0
    recorded = [event["usage"]["model_calls"] for event in one.events]
    assert recorded == [1, 1]  # a resumed run adds up the events


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("answer", "timeout", "said"),
    [
        (Answer(b'{"a": "', forever=b"x", pause=0.02), 0.5, "not complete after 1.5 s"),
        (Answer(b'{"a": "', forever=b"x" * 2**20), 30.0, "exceeded 16 MB"),
    ],
)
async def test_an_endless_reply_ends_by_the_clock_or_before_it_fills_the_memory(
    harness: Make, answer: Answer, timeout: float, said: str
) -> None:
    one = harness([answer], timeout=timeout)
    assert said in await one.fails()
    assert len(one.server.requests) == 1


async def test_the_deadline_ends_a_call_under_way(harness: Make) -> None:
    one = harness([say("x", delay=60)], Budget(seconds=0.3))
    one.ledger.clock = lambda: one.ledger._start + bool(one.server.requests)  # it stands still before
    with pytest.raises(BudgetExceeded) as ended:
        await one.say()
    assert ended.value.limit == "deadline"
    assert (one.ledger.total.model_calls, one.ledger.reserved_calls) == (1, 0)


async def test_a_wait_beyond_the_deadline_is_not_begun(harness: Make) -> None:
    one = harness([status(429, headers={"Retry-After": "60"})], Budget(seconds=20))
    with pytest.raises(BudgetExceeded, match="too late"):
        await one.say()
    assert one.clock.waits == []


# What an endpoint does not support


@pytest.mark.parametrize(
    ("refused", "sent"),
    [(["max_tokens"], {"max_completion_tokens"}), (["max_tokens", "max_completion_tokens"], set())],
)
async def test_the_token_limit_goes_by_either_name_or_none(
    harness: Make, refused: list[str], sent: set[str]
) -> None:
    one = harness([say("fine", unsupported=tuple(refused))], max_output_tokens=500)
    await one.say()
    assert {"max_tokens", "max_completion_tokens"} & one.server.requests[-1].body.keys() == sent
    assert one.kinds() == [*["model_adapted"] * len(refused), "model_call"]


METHODS = {
    Method.JSON_SCHEMA: (
        "json_schema",
        say(GOOD),
        status(400, "response_format json_schema is not supported"),
    ),
    Method.FUNCTION_CALLING: (
        "tools",
        say(arguments=GOOD),
        status(400, "The model does not support tool use"),
    ),
    Method.JSON_MODE: ("json_object", say(GOOD), status(422, "No json_object", param="response_format")),
    Method.TEXT: ("", say(f"Here you are:\n```json\n{GOOD}\n```"), None),
}
"""What is sent for each, in the order in which they are tried; a good reply; how an endpoint refuses it."""


@pytest.mark.parametrize("known", METHODS)
async def test_structured_replies_fall_back_to_what_the_endpoint_knows(harness: Make, known: Method) -> None:
    refused = list(METHODS.values())[: list(METHODS).index(known)]
    sent, good, _ = METHODS[known]
    one = harness([*(refusal for _, _, refusal in refused), good])
    for more in (1, 2):  # the second call has nothing left to learn
        reply = await one.plan()
        assert (reply.parsed, reply.method) == (PLAN, known)
        assert len(one.server.requests) == len(refused) + more
    assert one.kinds().count("model_adapted") == len(refused)
    last = one.server.requests[-1]
    form = last.body.get("response_format", {}).get("type", "")
    assert ("tools" if "tools" in last.body else form) == sent
    assert last.text.count("Reply with one JSON object") == 1, known
    assert last.body["messages"][0]["content"] == "rules"  # the shared prefix stays as it is


# Many calls at once, secrets and settings


@pytest.mark.parametrize("budget", [Budget(max_usd=3.5), Budget(max_calls=3)], ids=["dollars", "calls"])
async def test_no_parallel_call_overshoots_the_budget(harness: Make, budget: Budget) -> None:
    sent = sum(estimate_tokens(message["content"]) for message in ASK)
    price = {"test": {"input": 1e6 / sent, "output": 0.0}}  # a dollar a call
    one = harness([say("x", usage=tokens(sent, 1), delay=0.05)], budget, prices=price)
    outcomes = await asyncio.gather(*(one.say() for _ in range(8)), return_exceptions=True)
    limit = "max_calls" if budget.max_calls else "max_usd"
    assert [o.limit for o in outcomes if isinstance(o, BudgetExceeded)] == [limit] * 5
    assert one.ledger.total.usd == pytest.approx(3.0)
    assert (len(one.server.requests), one.ledger.reserved_calls) == (3, 0)


async def test_the_key_is_sent_and_shown_nowhere(harness: Make) -> None:
    one = harness([status(400, f"bad key {SECRET}")])
    message = await one.fails()
    assert one.server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    chat = one.model.backend.chat()
    shown = [message, one.events, one.model, one.model.backend, one.model.backend.settings, chat]
    assert SECRET not in "".join(repr(part) for part in shown)
    assert SECRET not in "".join(str(vars(part)) for part in (one.model.backend, chat))


async def test_the_environment_does_not_override_what_is_set(
    harness: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    one = harness([say("fine")])
    assert (await one.say()).text == "fine"
    assert one.server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
