"""What Studio serves, without a server: forms that start from what the user set, contexts, the key, files."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.runtime import _ExecutionRuntime

from quorum.graph.builder import Graph
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError
from tests.graph.shop import changed
from tests.quorum.conftest import python
from tests.servers.chat_server import ChatServer, say

SET: dict[str, tuple[str, Any]] = {
    **{"votes": ("5", 5), "max_usd": ("0.5", 0.5), "deadline": ("9s", 9.0), "strategy": ("wma", "wma")},
    **{"query_timeout": ("3s", 3.0), "schema_tokens": ("900", 900), "recipe": ("recap", "recap")},
    "database": ("postgresql://me:hush-hush@db/shop", ["postgresql://me:hush-hush@db/shop"]),
    "base_url": ("http://me:hush-hush@llm/v1", "http://me:hush-hush@llm/v1"),
    "switches": ('{"exploration": false}', {"exploration": False}),
    "model_for": ('{"planning": "offline"}', {"planning": "offline"}),
    "prices": ('{"m": {"input": 1.0, "output": 2.0}}', {"m": {"input": 1.0, "output": 2.0}}),
}
"""What a user has set, as a variable has it and as an option."""

FORMS = """
import json
from langgraph_sdk.runtime import _ReadRuntime
from quorum import studio

graph = studio.recap(_ReadRuntime(access_context="assistants.read", user=None, store=None))
print(json.dumps({
    "recap": studio.options_for("recap")().as_dict(),
    "single": studio.options_for("single")().as_dict(),
    "nodes": list(graph.get_graph(xray=1).nodes),
    "form": graph.get_context_jsonschema()["properties"],
}))
"""

ASK = """
import asyncio, json, os
from langgraph_sdk.runtime import _ExecutionRuntime
from quorum import studio

given = {"home": "home"}
runtime = _ExecutionRuntime(access_context="threads.create_run", user=None, store=None, context=given)
graph = studio.single(runtime)
output = asyncio.run(graph.ainvoke({"question": "How many customers are there?"}, context=given))
print(json.dumps([output["answer"]["rows"], sorted(os.environ)]))
"""


def printed(root: Path, code: str, **variables: str) -> Any:
    """Return what another process prints, as JSON: ``quorum.studio`` reads settings when it is imported."""
    return json.loads(python(root, "-c", code, env=variables, check=True).stdout)


@pytest.mark.heavy
def test_studio_starts_from_the_users_settings_and_its_form_shows_no_password(root: Path) -> None:
    seen = printed(root, FORMS, **{f"QUORUM_{name.upper()}": text for name, (text, _) in SET.items()})
    options = seen["recap"]
    assert set(options) == set(RunOptions.model_fields)
    assert {name: options[name] for name in SET} == {name: value for name, (_, value) in SET.items()}
    assert seen["form"]["database"]["description"]
    assert "hush-hush" not in json.dumps(seen["form"])
    names = {name.rpartition(":")[2] for name in seen["nodes"]}
    assert "Planner" in names
    assert "ColumnExplorer" not in names, "the graph is built with the user's switches"
    assert seen["single"] == options | {"recipe": "single", "switches": {}, "model_for": {}}, (
        "switches and roles belong to the recipe that is set"
    )


@pytest.mark.heavy
def test_the_key_reaches_the_models_and_no_environment_or_trace(root: Path, workplace: Path) -> None:
    key, shop = "sk-of-the-user", workplace / "shop.db"
    changed(shop, "CREATE TABLE customers (id INTEGER)")
    (workplace / "quorum.toml").write_text(
        f'api_key = "{key}"\nmodels = ["openai:test"]\ndatabase = "{shop}"\n'
    )
    reply = {"reasoning": f"{key} it is", "sql": "SELECT 1", "readings": [], "ordered": False}
    with ChatServer([say(json.dumps(reply))]) as server:
        rows, environment = printed(root, ASK, QUORUM_BASE_URL=server.url)
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {key}"}
    assert rows == [[1]]
    assert "OPENAI_API_KEY" not in environment
    written = [path for path in (workplace / "home").rglob("*") if path.suffix in {".json", ".jsonl", ".txt"}]
    assert written
    assert not [path for path in written if key in path.read_text()]


def test_no_image_holds_what_git_leaves_out(root: Path) -> None:
    kept_out = (root / ".dockerignore").read_text().splitlines()
    left_out = (root / ".gitignore").read_text().splitlines()
    assert not {f"**/{name.strip('/')}" for name in left_out} - set(kept_out)
    assert ".git" in kept_out


def served(recipe: str, context: dict[str, Any]) -> Graph:
    """The graph that the server gets for a run with this context."""
    from quorum import studio  # reads the settings: only once no developer's own are there

    runtime = _ExecutionRuntime(access_context="threads.create_run", user=None, store=None, context=context)
    graph: Graph = vars(studio)[recipe](runtime)
    return graph


def test_what_a_context_has_wrong_is_named(subtests: pytest.Subtests) -> None:
    for context, said in (
        ({"handles": {}}, "no option 'handles'"),
        ({"switches": {"sintax": False}}, "Recipe recap has no switch 'sintax'"),
        ({"switches": {"max_plans": -1}}, "max_plans"),
        ({"model_for": {"judge": "offline"}}, "a model for 'judge', and the recipe 'recap' never asks it"),
        ({"recipe": "quorum"}, "The assistant 'recap' runs its own recipe only, not 'quorum'"),
    ):
        with subtests.test(context=context), pytest.raises(ConfigurationError, match=re.escape(said)):
            served("recap", context)


@pytest.mark.parametrize("more", [{}, {"model_for": {"zzz": "offline"}}])
def test_a_client_names_no_module_to_import(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="'quorum' runs its own recipe only, not 'this:RECIPE'"):
        served("chat", {"recipe": "this:RECIPE"} | more)
    assert "this" not in sys.modules


def test_switches_that_a_context_sets_hold() -> None:
    assert "SyntaxRetriever" in served("team", {}).nodes
    assert "ColumnExplorer" not in served("team", {"switches": {"exploration": False}}).nodes
