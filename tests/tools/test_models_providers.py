"""From a string to a model, and the models that need no network."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.chat_models.base import _get_chat_model_creator
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableMap
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, PrivateAttr, SecretStr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.tools.ledger import Budget
from quorum.tools.models import Method, Model, ModelSettings, check_priced, make_model, make_models
from quorum.tools.models.scripted import ScriptedChatModel, scripted
from tests.engines import Events
from tests.servers.clock import FakeClock

ASK = [{"role": "user", "content": "<task>writer</task> write"}]


class Sql(BaseModel):
    sql: str


# The registry


@pytest.mark.parametrize(
    ("spec", "base_url", "said"),
    [
        *(("gpt-4.1", "", "provider 'gpt-4.1'"), ("nobody:model", "", "cannot be made")),
        *(("Openai:x", "", "openai:gpt-4.1.*replay:"), ("groq:llama", "", "pip install langchain-groq`")),
        *(("openai:gpt-4.1", "", "OPENAI_API_KEY"), ("openai:", "http://localhost/v1", "has no name")),
        ("openai:gpt-4.1", "localhost:8000", "is no address"),
    ],
)
def test_a_model_that_cannot_be_made_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, spec: str, base_url: str, said: str
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_groq", None)  # absent, whatever is installed here
    with pytest.raises(ConfigurationError, match=said):
        make_model(spec, settings=ModelSettings(base_url=base_url))


def test_a_dollar_limit_needs_known_prices() -> None:
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1")
    models = make_models(["openai:gpt-4.1", "openai:my-own", scripted(["x"])], settings=settings)
    check_priced(models, Budget(max_calls=3))
    check_priced([models[0], models[2]], Budget(max_usd=1.0))
    with pytest.raises(ConfigurationError, match="openai:my-own is unknown"):
        check_priced(models, Budget(max_usd=1.0))


# Replay


async def test_a_run_is_replayed_from_its_events(tmp_path: Path) -> None:
    long = "-- " + "x" * 3000
    answers: dict[str, Any] = {
        "planner": ["the plan"],
        "writer/1": [AIMessage("first", response_metadata={"finish_reason": "length"}), long],
        "writer/2": ["second"],
    }
    events = Events([{"kind": "schema", "tables": 3}])
    model = make_model(scripted(answers), record=events)
    asked = [("planner", None), ("writer", 1), ("writer", 2), ("writer", 1)]
    said = [await model.at(candidate=who).complete(ASK, role=role) for role, who in asked]

    sha = hashlib.sha256(long.encode()).hexdigest()
    events[-1]["reply"] = {"$blob": sha, "chars": len(long), "head": long[:10]}
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / f"{sha}.txt").write_text(long)
    recording = tmp_path / "events.jsonl"
    by_hand = '{"agent": "judge", "reply": {"sql": "SELECT 1"}}'
    recording.write_text("\n".join([*(json.dumps(event, default=str) for event in events), by_hand, ""]))

    again = make_model(f"replay:{recording}")
    repeated = [await again.at(candidate=who).complete(ASK, role=role) for role, who in asked]
    for one, other in zip(repeated, said, strict=True):
        assert (one.text, one.problem) == (other.text, other.problem)
        assert one.usage.input_tokens == other.usage.input_tokens
    assert (await again.at(candidate=5).complete(ASK, role="judge", output=Sql)).parsed == Sql(sql="SELECT 1")
    assert again.ledger.total.usd == 0.0
    with pytest.raises(ConfigurationError, match="no reply left"):
        await again.at(candidate=3).complete(ASK, role="writer")


@pytest.mark.parametrize("content", [None, "", "not json\n", '{"kind": "answer"}\n'])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match="The recording"):
        make_model(f"replay:{path}")


# Models of LangChain's other providers


class Refusal(Exception):
    """What a vendor's client raises, in the form that most of them have."""

    def __init__(self, status_code: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status_code, self.body = status_code, {"error": {"message": message}}
        self.response = SimpleNamespace(headers={k.replace("_", "-"): v for k, v in headers.items()})


class ChatGroq(ScriptedChatModel):
    """Stands in for a vendor's class: known settings, tools that it can bind, JSON schema."""

    model: str
    groq_api_key: SecretStr = SecretStr("gsk-very-secret")
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    max_retries: int = 2
    script: Any = ()
    _seen: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @override
    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice)

    @override
    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Any:
        if kwargs["method"] == "json_schema":
            return RunnableMap(raw=self.bind(response_format=schema))
        return super().with_structured_output(schema, include_raw=include_raw, **kwargs)

    @override
    async def _agenerate(self, messages: Any, *given: Any, **kwargs: Any) -> ChatResult:
        self._seen.append({"messages": messages, "temperature": self.temperature, **kwargs})
        return await super()._agenerate(messages, *given, **kwargs)


Vendors = Callable[..., tuple[Model, ChatGroq]]


@pytest.fixture
def groq(monkeypatch: pytest.MonkeyPatch) -> Vendors:
    """``groq(script, **settings)`` makes a model of a package ``langchain_groq`` that is not there."""
    monkeypatch.setitem(sys.modules, "langchain_groq", SimpleNamespace(ChatGroq=ChatGroq))
    _get_chat_model_creator.cache_clear()

    def make(script: Any, **settings: Any) -> tuple[Model, ChatGroq]:
        model = make_model("groq:llama-3", settings=ModelSettings(**settings), paces=FakeClock().paces())
        chat = model.backend.chat()
        assert isinstance(chat, ChatGroq)
        chat.script = script
        return model, chat

    yield make
    _get_chat_model_creator.cache_clear()


def _call(**arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "Sql", "args": arguments, "id": "1"}])


async def test_any_provider_of_langchain_is_reached_by_its_name(groq: Vendors) -> None:
    price = {"llama-3": {"input": 1.0, "output": 2.0}}
    model, chat = groq([_call(sql="SELECT 1")], prices=price, temperature=0.3, timeout=7.0)
    assert (chat.model, chat.max_retries, chat.timeout, chat.max_tokens) == ("llama-3", 0, 7.0, 16_000)
    reply = await model.at(temperature=0.9).complete(ASK, role="writer", output=Sql)
    assert (reply.parsed, reply.method) == (Sql(sql="SELECT 1"), Method.FUNCTION_CALLING)
    assert chat._seen[0]["temperature"] == 0.9
    assert [tool["function"]["name"] for tool in chat._seen[0]["tools"]] == ["Sql"]
    assert model.name == "groq:llama-3"
    assert model.backend.endpoint == "groq"
    assert reply.usage.usd is not None


async def test_what_a_provider_refuses_is_not_asked_of_it_again(groq: Vendors) -> None:
    refusals = [
        Refusal(400, "temperature is not supported"),
        Refusal(400, "llama-3 does not support tools"),
        Refusal(400, "json_schema is not supported"),
    ]
    good = '{"sql": "SELECT 1"}'
    model, chat = groq([*refusals, good, good], temperature=0.3)
    for asked in (4, 5):
        reply = await model.complete(ASK, role="writer", output=Sql)
        assert (reply.parsed, reply.method) == (Sql(sql="SELECT 1"), Method.TEXT)
        assert len(chat._seen) == asked
    assert [seen["temperature"] for seen in chat._seen] == [0.3, None, None, None, None]
    assert ["tools" in seen for seen in chat._seen] == [True, True, False, False, False]
    assert "response_format" in chat._seen[2]
    assert "Reply with one JSON object" in str(chat._seen[3]["messages"])


async def test_a_model_class_without_tools_and_forms_is_asked_for_text() -> None:
    model = make_model(FakeListChatModel(responses=['{"sql": "SELECT 1"}']))
    reply = await model.complete(ASK, role="writer", output=Sql)
    assert (reply.parsed, reply.method) == (Sql(sql="SELECT 1"), Method.TEXT)


@pytest.mark.parametrize(("code", "kind"), [(429, "rate"), (503, "server"), (529, "server")])
async def test_a_provider_that_is_busy_is_asked_again_when_it_says(
    groq: Vendors, code: int, kind: str
) -> None:
    events = Events()
    model, _ = groq([Refusal(code, "busy", retry_after="7"), _call(sql="SELECT 1")])
    assert (await model.at(record=events).complete(ASK, role="writer", output=Sql)).parsed
    assert (events[0]["kind"], events[0]["failure"], events[0]["wait"]) == ("model_retry", kind, 7.0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Refusal(401, "no such key: gsk-very-secret"),
            r"denies access \(401\): no such key: \[redacted\]\. .*API key",
        ),
        (ConnectionError("refused"), "No connection to groq: refused"),
        (TimeoutError(), "groq was silent for 120 s"),
        (RuntimeError("vendor trouble"), "RuntimeError: vendor trouble"),
    ],
)
async def test_what_a_provider_raises_becomes_one_clear_error(
    groq: Vendors, error: Exception, said: str
) -> None:
    model, _ = groq([error] * 4)
    with pytest.raises(ModelUnavailable, match=said):
        await model.complete(ASK, role="writer", output=Sql)
