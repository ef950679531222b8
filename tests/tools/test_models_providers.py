"""From a string to a model, and the models that need no network."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from pydantic import BaseModel
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import Method, ModelSettings, check_priced, make_model, make_models
from quorum.tools.models import providers as registry
from quorum.tools.models.scripted import Prompt, scripted

ASK = [{"role": "user", "content": "<task>writer</task> write"}]


class Sql(BaseModel):
    sql: str


# The registry


def test_importing_the_models_loads_no_provider(root: Path) -> None:
    code = (
        "import sys, tools.models, agents.base\n"
        "heavy = {'langchain_core', 'langchain_openai', 'openai', 'langgraph', 'tiktoken'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("spec", ["gpt-4.1", "nobody:model", "", "Openai:x"])
def test_an_unknown_provider_is_answered_with_the_known_ones(spec: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        make_model(spec)
    for example in ("openai:gpt-4.1", "offline", "replay:", "scripted:"):
        assert example in str(error.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = registry.Provider("langchain_lost.chat:make", "langchain-lost", "lost:x")
    monkeypatch.setattr(registry, "PROVIDERS", {"lost": lost})
    with pytest.raises(ConfigurationError, match="pip install langchain-lost"):
        make_model("lost:x")


def test_a_fault_of_ours_is_not_taken_for_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = registry.Provider("quorum.tools.models.no_such_module:make", "langchain-x", "broken:x")
    monkeypatch.setattr(registry, "PROVIDERS", {"broken": broken})
    with pytest.raises(ModuleNotFoundError):
        make_model("broken:x")


def test_an_unknown_offline_model_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="offline:gpt"):
        make_model("offline:gpt")


def test_a_dollar_limit_needs_known_prices() -> None:
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1")
    models = make_models(["openai:gpt-4.1", "openai:my-own", scripted(["x"])], settings=settings)
    check_priced(models, Budget(max_calls=3))
    check_priced([models[0], models[2]], Budget(max_usd=1.0))
    with pytest.raises(ConfigurationError, match="openai:my-own is unknown"):
        check_priced(models, Budget(max_usd=1.0))


def test_a_model_is_bound_to_another_run_and_shared_otherwise() -> None:
    first = make_model(scripted(["x"]))
    ledger = Ledger()
    second = make_model(first, ledger=ledger)
    assert second.backend is first.backend
    assert second.ledger is ledger
    assert first.ledger is not ledger


# Scripted


async def test_a_script_by_role_and_candidate() -> None:
    script: dict[str, Any] = {
        "writer": [{"sql": "1"}, Sql(sql="2")],
        "writer/2": '{"sql": "other"}',
        "judge": ["yes"],
    }
    model = make_model(scripted(script))
    texts = []
    for candidate in (1, 1, 2, 2, 3):
        reply = await model.at(candidate=candidate).complete(ASK, role="writer", output=Sql)
        assert isinstance(reply.parsed, Sql)
        texts.append(reply.parsed.sql)
    assert texts == ["1", "2", "other", "other", "1"]
    assert reply.method is Method.BUILT_IN
    assert model.ledger.total.usd == 0.0
    with pytest.raises(ConfigurationError, match="no reply left for role 'writer', candidate 1"):
        await model.at(candidate=1).complete(ASK, role="writer")


async def test_a_script_may_be_a_function_of_the_prompt() -> None:
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> str:
        seen.append(prompt)
        return "ok"

    model = make_model(scripted(answer)).at(temperature=0.7, seed=4, candidate=1)
    await model.complete(ASK, role="writer")
    await model.complete(ASK, role="writer")
    assert [(p.role, p.turn, p.candidate, p.temperature, p.seed) for p in seen] == [
        ("writer", 0, 1, 0.7, 4),
        ("writer", 1, 1, 0.7, 4),
    ]
    assert seen[0].messages == (("human", ASK[0]["content"]),)


async def test_a_script_may_raise() -> None:
    model = make_model(scripted([ModelUnavailable("gone"), "back"]))
    with pytest.raises(ModelUnavailable, match="gone"):
        await model.complete(ASK, role="writer")
    assert (await model.complete(ASK, role="writer")).text == "back"
    assert model.ledger.reserved_calls == 0


async def test_a_script_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"writer": {"sql": "SELECT 1"}}')
    model = make_model(f"scripted:{path}")
    assert (await model.complete(ASK, role="writer", output=Sql)).parsed == Sql(sql="SELECT 1")
    for content in ("3", "not json"):
        path.write_text(content)
        with pytest.raises(ConfigurationError):
            make_model(f"scripted:{path}")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        make_model(f"scripted:{tmp_path / 'none.json'}")


# Replay


async def test_a_run_is_replayed_from_its_events(tmp_path: Path) -> None:
    long = "-- " + "x" * 3000
    answers: dict[str, Any] = {
        "planner": ["the plan"],
        "writer/1": [AIMessage("first", response_metadata={"finish_reason": "length"}), long],
        "writer/2": ["second"],
    }
    events: list[dict[str, Any]] = [{"kind": "schema", "tables": 3}]
    model = make_model(
        scripted(answers), record=lambda kind, **fields: events.append({"kind": kind, **fields})
    )
    asked = [("planner", None), ("writer", 1), ("writer", 2), ("writer", 1)]
    said = [await model.at(candidate=who).complete(ASK, role=role) for role, who in asked]

    sha = hashlib.sha256(long.encode()).hexdigest()
    events[-1]["reply"] = {"$blob": sha, "chars": len(long), "head": long[:10]}
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / f"{sha}.txt").write_text(long)
    recording = tmp_path / "events.jsonl"
    recording.write_text("\n".join(json.dumps(event, default=str) for event in events) + "\n")

    again = make_model(f"replay:{recording}")
    repeated = [await again.at(candidate=who).complete(ASK, role=role) for role, who in asked]
    assert [reply.text for reply in repeated] == [reply.text for reply in said]
    assert [reply.problem for reply in repeated] == [reply.problem for reply in said]
    assert [reply.usage.input_tokens for reply in repeated] == [reply.usage.input_tokens for reply in said]
    assert again.ledger.total.usd == 0.0
    with pytest.raises(ConfigurationError, match="no reply left"):
        await again.at(candidate=3).complete(ASK, role="writer")


async def test_a_recording_may_be_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_text('{"agent": "writer", "reply": {"sql": "SELECT 1"}}\n\n')
    model = make_model(f"replay:{path}")
    reply = await model.at(candidate=5).complete(ASK, role="writer", output=Sql)
    assert reply.parsed == Sql(sql="SELECT 1")


@pytest.mark.parametrize("content", [None, "", "not json\n", '{"kind": "answer"}\n'])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match="The recording"):
        make_model(f"replay:{path}")


# A LangChain model of the caller's own


async def test_any_langchain_chat_model_will_do() -> None:
    chat = GenericFakeChatModel(messages=iter([AIMessage('So: {"sql": "SELECT 1"}')]))
    model = make_model(chat)
    reply = await model.complete(ASK, role="writer", output=Sql)
    assert (reply.parsed, reply.method) == (Sql(sql="SELECT 1"), Method.TEXT)
    assert reply.usage.usd is None


class Vendor(GenericFakeChatModel):
    """A vendor's class that raises a vendor's error."""

    @override
    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise RuntimeError("vendor trouble")


async def test_what_such_a_model_raises_becomes_one_clear_error() -> None:
    model = make_model(Vendor(messages=iter([])), settings=ModelSettings(max_retries=0))
    with pytest.raises(ModelUnavailable, match="RuntimeError: vendor trouble"):
        await model.complete(ASK, role="writer")
