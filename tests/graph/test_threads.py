"""A second question on a thread: its answer is, to the byte, the one that it gets on a fresh thread."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from quorum.graph.builder import build_graph
from quorum.graph.context import open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.graph.state import RunState, fresh
from quorum.tools.models.scripted import scripted
from tests.graph.shop import FINE, GOOD, QUESTION, REJECTED, repaired, writing, written

ALL_ORDERS = "SELECT COUNT(*) AS orders FROM orders"
LONG = f"{QUESTION} Say it for every city that the table of customers names, in any order of cities at all."


def says(query: str, verdict: dict[str, Any]) -> Any:
    """A model that writes one query in every role, and judges results as told."""
    replies = writing(
        query,
        sql_writer=written(query) | {"readings": ["Another one."]},
        validator=verdict,
        self_refiner=repaired(query),
        reviser=repaired(GOOD + " ORDER BY 1"),
        reading_writer={"reasoning": "So.", "readings": [{"meaning": "Which?", "sql": ALL_ORDERS}]},
        judge={"reason": "B is by city.", "choice": "B"},
        context_expander={"reasoning": "So.", "add": []},
    )
    return scripted(replies)


def disagreeing() -> dict[str, Any]:
    """Models whose answers differ and are rejected: they leave all there is to leave in the state."""
    return {"first": says(GOOD, REJECTED), "second": says(ALL_ORDERS, REJECTED)}


def agreeing() -> dict[str, Any]:
    """A model that is right."""
    return {"first": says(GOOD, FINE)}


class Thread:
    """A graph with a checkpointer of its own and one thread."""

    def __init__(self, recipe: str, database: Path, home: Path) -> None:
        self.options = {"database": f"sqlite:///{database}", "recipe": recipe, "home": str(home)}
        self.recipe = find_recipe(recipe)
        self.graph = build_graph(self.recipe, checkpointer=InMemorySaver())

    async def ask(self, question: str, models: dict[str, Any], **given: Any) -> dict[str, Any]:
        """The answer as the graph gives it."""
        options = RunOptions(models=list(models), **self.options, **given)
        context = await open_context(options, self.recipe, question, chat_models=models)
        config: Any = {"configurable": {"thread_id": "t"}}
        try:
            output = await self.graph.ainvoke({"question": question}, config, context=context)
            return dict(output["answer"])
        finally:
            await context.aclose()


def plain(answer: dict[str, Any]) -> str:
    """An answer as text, without what names the run and the time it took."""
    text = json.dumps(answer, sort_keys=True, default=str)
    for own in (answer["trace"], answer["run_id"]):
        text = text.replace(own, "RUN")
    return re.sub(r'("\w*seconds": )[^,}]+', r"\1", text)


@pytest.mark.heavy
@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_a_second_question_on_a_thread_is_answered_as_on_a_fresh_one(
    recipe: str, shop: Path, tmp_path: Path
) -> None:
    used = Thread(recipe, shop, tmp_path / "used")
    first = await used.ask(LONG, disagreeing(), votes=4)
    second = await used.ask(QUESTION, agreeing(), votes=3)
    alone = await Thread(recipe, shop, tmp_path / "alone").ask(QUESTION, agreeing(), votes=3)
    assert len(first["candidates"]) >= 4
    assert second["status"] == "answered"
    assert plain(second) == plain(alone)


def test_a_new_question_sets_every_field_of_the_state() -> None:
    assert set(fresh("?")) == {item.name for item in fields(RunState)}
