"""What a run that goes on keeps to itself, what may be given anew, what must be given again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorum import Settings, ask, ask_sync
from quorum.graph.runs import RunFolder, list_runs
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.settings import resumed_options
from quorum.tools.models.scripted import ScriptedChatModel, scripted
from quorum.tools.urls import REDACTED
from tests.graph.shop import QUESTION, make_shop, script
from tests.quorum.conftest import quorum
from tests.quorum.roles import by_role
from tests.servers.chat_server import ChatServer, closed_port


@pytest.fixture
def failed(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run that found no endpoint; its database lies in the working directory."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("QUORUM_HOME", str(workplace / ".quorum"))
    make_shop(workplace / "shop.db")
    url = f"http://127.0.0.1:{closed_port()}/v1"
    with pytest.raises(ModelUnavailable):
        ask_sync(QUESTION, db="shop.db", models="openai:m", votes=1, base_url=url)
    (run,) = list_runs(workplace / ".quorum")
    return run.id


def test_a_failed_run_is_listed_shown_and_goes_on_at_another_endpoint_and_from_another_folder(
    failed: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert f"{failed}  failed" in quorum("history").stdout
    shown = quorum("trace", "show", "last").stdout
    assert "it failed: " in shown
    assert "127.0.0.1" in shown
    assert f"quorum ask --resume {failed}" in shown
    with ChatServer(by_role()) as server:
        result = quorum("ask", "--resume", "last", "--json", "--base-url", server.url)
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["status"], answer["run_id"]) == (0, "answered", failed)
    assert Path(answer["trace"]).is_absolute()
    assert Path(answer["result_file"]).is_absolute()
    assert f"{failed}  answered" in quorum("history").stdout
    again = quorum("ask", "--resume", failed, "--json")
    assert json.loads(again.stdout) == answer, "a finished run answers from its folder"


def test_what_the_run_keeps_to_itself_is_refused_by_name(failed: str) -> None:
    options = [name for name, option in Settings.declared().items() if option.on_resume]
    for given, said in (
        ([QUESTION], ["leave QUESTION out"]),
        (["--continue"], ["leave QUESTION out"]),
        (["--db", "other.db"], ["keeps its own database (--db).", *options]),
        (["--model", "openai:n"], ["keeps its own models (--model).", *options]),
        (["--model-for", "judge=openai:m"], ["keeps its own model_for.", *options]),
        (["--docs", "."], ["keeps its own documents (--docs).", *options]),
    ):
        result = quorum("ask", "--resume", failed, *given)
        assert result.exit_code == 2
        assert [part for part in said if part not in result.stderr] == []
    with pytest.raises(ConfigurationError, match="has its own question"):
        ask_sync(QUESTION, resume=failed)


def test_what_only_the_environment_says_is_no_flag(failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUM_VOTES", "5")
    monkeypatch.setenv("QUORUM_MAX_CALLS", "1")
    meta = RunFolder.open(Settings().home, failed).meta()
    options = resumed_options(meta, Settings())
    assert (options.votes, options.max_calls) == (1, None)
    assert resumed_options(meta, Settings(max_calls=2)).max_calls == 2


async def test_a_role_keeps_its_model_and_its_account(workplace: Path) -> None:
    """The Planner's model replied before the PlanCritique's was gone: it is not asked again."""
    shop = make_shop(workplace / "shop.db")
    down = scripted(script(plan_critique=ModelUnavailable("Down.")))
    own: dict[str, Any] = {"usual": down, "own": ScriptedChatModel(script=script(), source="own")}
    given: dict[str, Any] = {"models": "usual", "model_for": {"planner": "own", "validator": "own"}}
    given |= {"db": str(shop), "recipe": "team", "votes": 1}
    settings = Settings(home=workplace / "q")
    with pytest.raises(ModelUnavailable):
        await ask(QUESTION, settings=settings, chat_models=own, **given)
    own["usual"] = scripted(script())
    answer = await ask(resume="last", settings=settings, chat_models=own)
    calls = [
        event for event in RunFolder.open(settings.home, "last").events() if event["kind"] == "model_call"
    ]
    assert [event["agent"] for event in calls if event["model"] == "own"] == ["planner", "validator"]
    assert answer.usage["by_model"]["own"]["model_calls"] == 2
    assert answer.usage["model_calls"] == len(calls)
    assert {candidate.model for candidate in answer.candidates} == {"usual"}


@pytest.mark.heavy
async def test_an_endpoints_password_must_be_given_again(workplace: Path) -> None:
    url = f"http://me:pw-of-mine@127.0.0.1:{closed_port()}/v1"
    settings = Settings(home=workplace / "q", api_key="sk-test")
    shop = make_shop(workplace / "shop.db")
    with pytest.raises(ModelUnavailable):
        await ask(QUESTION, settings=settings, db=str(shop), models="openai:m", base_url=url, votes=1)
    assert REDACTED in RunFolder.open(workplace / "q", "last").meta()["options"]["base_url"]
    with pytest.raises(ConfigurationError, match=r"held a password.* Give it again with --base-url") as said:
        await ask(resume="last", settings=settings)
    assert "me:[redacted]@127" in str(said.value)
    with pytest.raises(ModelUnavailable):
        await ask(resume="last", settings=settings, base_url=url)


def redacted_run(home: Path, url: str | list[str], *secrets: str) -> dict[str, Any]:
    """``run.json`` of a run on a database with a password."""
    meta = {"question": "q", "options": {"database": url, "models": ["offline"]}}
    trace = Trace.create(home, meta=meta, redact=secrets)
    trace.close()
    return trace.meta()


def test_a_databases_password_must_be_given_again_for_the_same_database(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://shop:shop@shop.example/shop?token=tell-no-one"
    meta = redacted_run(workplace / "q", url, "shop", "tell-no-one")
    assert "tell-no-one" not in json.dumps(meta)
    with pytest.raises(ConfigurationError, match="database held a password"):
        resumed_options(meta, Settings())
    with pytest.raises(ConfigurationError, match=r"not postgresql://shop:\[redacted\]@other/shop") as caught:
        resumed_options(meta, Settings(database="postgresql://shop:shop@other/shop"))
    assert "held a password" not in str(caught.value)
    assert resumed_options(meta, Settings(database=url)).database == [url]
    urls = ["postgresql://me:first-one@h/a", "mysql://me:other-one@h/b"]
    both = redacted_run(workplace / "q", urls, *Settings(database=urls).secrets())
    assert "-one" not in json.dumps(both)
    with pytest.raises(ConfigurationError, match="Give it as it was"):
        resumed_options(both, Settings(database=urls[:1]))
    assert resumed_options(both, Settings(database=urls)).database == urls
    monkeypatch.setenv("QUORUM_DATABASE", url)
    assert resumed_options(meta, Settings()).database == [url]
