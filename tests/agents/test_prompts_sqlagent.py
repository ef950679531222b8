"""The whole prompts of SQLAgent's roles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from quorum.agents import context_expander, describer, explorer, gen_agent, info_agent, simulator
from quorum.agents.explorer import StateText
from quorum.agents.turns import Attempt
from quorum.knowledge.triplets import Example
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import Prompt, scripted
from tests.agents.test_prompts import CONTEXT, QUESTION, SQL

SCHEMA = "table orders (4 rows)\n  id INTEGER\n  city TEXT [Ghent, Lyon]"
FAILED = Attempt("SELECT town FROM orders", "orders has no column town.")
STATES = [
    StateText(1, ["select_column orders.city"], "Which cities are there?", "grown: 1 worked"),
    StateText(2, ["select_column orders.city", "group_by orders.city"]),
]
CHOSEN = {
    "reasoning": "So.",
    "actions": [{"state": 0, "action": "select_column", "columns": ["orders.id"], "detail": ""}],
}
DESCRIBED = {"description": "Which orders are there?", "useful": True, "objection": ""}

PROMPTS: dict[str, tuple[Any, Callable[[Model], Awaitable[Any]]]] = {
    "first choice": (
        CHOSEN,
        lambda model: explorer.choose_actions(
            model, "sqlite", SCHEMA, [], unused=["orders: id, city"], feedback=[], wanted=4
        ),
    ),
    "later choice": (
        CHOSEN,
        lambda model: explorer.choose_actions(
            model,
            "sqlite",
            SCHEMA,
            STATES,
            unused=["orders: id"],
            feedback=["orders: 2 worked, 1 in vain", "order_by orders.town: There is no column town."],
            wanted=1,
            described=True,
        ),
    ),
    "simulation": (
        {"sql": SQL},
        lambda model: simulator.write_query(model, "sqlite", SCHEMA, ["select_column orders.city"]),
    ),
    "grown simulation": (
        {"sql": SQL},
        lambda model: simulator.write_query(model, "sqlite", SCHEMA, STATES[1].steps, before="SELECT city"),
    ),
    "description": (
        DESCRIBED,
        lambda model: describer.describe(
            model, "sqlite", SCHEMA, SQL, ['["city"]', '["Ghent"]'], 100, cut=True
        ),
    ),
    "keywords": ({"keywords": ["city"]}, lambda model: info_agent.find_keywords(model, "sqlite", QUESTION)),
    "secondary keywords": (
        {"keywords": ["town"]},
        lambda model: info_agent.find_keywords(
            model, "sqlite", QUESTION, documents="A town is a city.", earlier=["city"], failed=FAILED
        ),
    ),
    "expansion": (
        {"reasoning": "So.", "add": []},
        lambda model: context_expander.expand(
            model,
            "sqlite",
            QUESTION,
            schema=SCHEMA,
            found="orders.city",
            more_tables="table customers",
            documents="A town is a city.",
        ),
    ),
    "generation": (
        {"reasoning": "So.", "sql": SQL},
        lambda model: gen_agent.write_sql(
            model,
            CONTEXT,
            QUESTION,
            examples=[Example("Which cities are there?", "SELECT 1")],
            earlier=[FAILED],
        ),
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
async def test_the_prompt(name: str, snapshot: SnapshotAssertion) -> None:
    reply, ask = PROMPTS[name]
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> Any:
        seen.append(prompt)
        return reply

    await ask(make_model(scripted(answer)))
    assert "\n".join(f"=== {kind}\n{said}" for kind, said in seen[0].messages) == snapshot
