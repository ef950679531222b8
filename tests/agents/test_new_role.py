"""A role is added in two files, its module and its prompt: all that there is about roles knows it then."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from quorum import agents
from quorum.agents.base import ask
from quorum.agents.prompting import PromptContext
from quorum.agents.role import Role, find_role, roles
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, try_tell
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe
from quorum.graph.recipes.branch import RecipeGraph
from quorum.graph.state import RunState
from quorum.tools.models import Method, ModelSettings, make_model
from quorum.tools.models.scripted import scripted
from tests.graph.shop import make_shop, run_options, script
from tests.servers.chat_server import ChatServer, say

MODULE = '''"""UnitChecker: are the units of the result those of the question?"""

from pydantic import BaseModel, Field

from quorum.agents.role import Role


class Units(BaseModel):
    """What the units are."""

    check: str = Field(description="What the question asks for, in one sentence.")
    units: list[str] = Field(description="Columns in another unit; empty if right.")
    sql: str | None = Field(description="The query that converts them; null if right.")


ROLE = Role(
    "unit_checker",
    "UnitChecker",
    "converts {units:column|columns}: {check}",
    Units,
    fallback=Units(check="", units=[], sql=None),
)
'''
PROMPT = """<task>unit_checker</task>
Do the units of the result fit the question?

{{ reply_form }}

<question>{{ question }}</question>
<sql>{{ sql | default }}</sql>
"""
QUESTION = "What is the average weight of orders?"
CONTEXT = PromptContext("sqlite", "orders(id, weight)", database="shop", question=QUESTION)
REPLY: dict[str, Any] = {"check": "Pounds are asked for.", "units": ["weight"], "sql": "SELECT 2.2"}


@pytest.fixture
def unit_checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of a role whose two files lie in a folder of their own."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "unit_checker.py").write_text(MODULE)
    (tmp_path / "prompts" / "unit_checker.md").write_text(PROMPT)
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path)])
    roles.cache_clear()
    assert find_role("unit_checker") is not None
    yield sys.modules["quorum.agents.unit_checker"]
    del sys.modules["quorum.agents.unit_checker"]
    roles.cache_clear()


def test_every_role_has_its_prompt_and_no_other_name_is_one(unit_checker: ModuleType, root: Path) -> None:
    assert unit_checker.ROLE.prompt == "agents/prompts/unit_checker.md"
    assert [find_role(name) for name in ("writers", "nobody", "../role", "database", "")] == [None] * 5
    own = {name: role for name, role in roles().items() if name != "unit_checker"}
    shared = {"rules", "context", "repair", "findings", "verified", "values", "explored"}
    assert {path.stem for path in (root / "agents" / "prompts").glob("*.md")} - {*own} == shared
    for role in own.values():
        assert role.fallback is None or isinstance(role.fallback, role.reply)
        assert "{{ reply_form }}" in (root / role.prompt).read_text()


@pytest.mark.parametrize("method", Method)
async def test_the_form_stands_in_the_prompt_once(unit_checker: ModuleType, method: Method) -> None:
    reply = unit_checker.Units(**REPLY).model_dump_json()
    called = reply if method is Method.FUNCTION_CALLING else None
    with ChatServer([say("" if called else reply, arguments=called)]) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))
        model.backend.learned.ladder = (method,)
        await ask(model, unit_checker.ROLE, CONTEXT)
        await model.aclose()
    (request,) = server.requests
    said = "What the question asks for, in one sentence."
    assert request.text.count(said) == json.dumps(request.body).count(said) == 1
    if method is Method.JSON_SCHEMA:
        schema = request.body["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["check"] == {"type": "string"}


@pytest.mark.parametrize(("said", "summary", "calls"), [(REPLY, REPLY["check"], 1), ("No.", "", 3)])
async def test_added_to_quorum_it_is_asked_of_the_answer_and_recorded(
    unit_checker: ModuleType, tmp_path: Path, said: Any, summary: str, calls: int
) -> None:
    """One step and its edge, after all that the recipe has."""
    quorum = find_recipe("quorum")

    async def check_units(state: RunState, context: Context) -> Update:
        found = await try_tell(state, context, unit_checker.ROLE, "unit_checker", sql=state.answer["sql"])
        return {"answer": state.answer | {"summary": found.check if found else ""}}

    def wire(recipe: Any, options: type[RunOptions]) -> RecipeGraph:
        graph: RecipeGraph = quorum.wire(recipe, options)
        return graph.add_step("UnitChecker", check_units).add_edge("answer", "UnitChecker")

    url = f"sqlite:///{make_shop(tmp_path / 'shop.db')}"
    options = RunOptions(database=url, home=str(tmp_path), models=["m"], recipe="checked")
    model, recipe = scripted(script(unit_checker=said)), replace(quorum, name="checked", wire=wire)
    ran = await run_options(options, QUESTION, {"m": model}, recipe=recipe)
    (event,) = ran.of("unit_checker")
    assert (event["node"], event["recipe"]) == ("UnitChecker", "checked")
    assert event["prompt"] == "agents/prompts/unit_checker.md"
    assert ("error" in event) == (said == "No.")
    assert "Do the units of the result fit the question?" in ran.prompt("unit_checker")
    assert ran.answer.sql in ran.prompt("unit_checker")
    assert sum(call["agent"] == "unit_checker" for call in ran.of("model_call")) == calls
    assert ran.answer.summary == summary


def test_a_reply_cannot_have_a_field_of_every_event() -> None:
    class Named(BaseModel):
        node: str

    with pytest.raises(ValueError, match="'node'"):
        Role("namer", "Namer", "names {node}", Named)
