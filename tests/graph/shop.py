"""A small shop and a scripted model for whole runs of the graph."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from quorum.graph.answer import Answer
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.context import open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import recipe_of
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.resources import Resources, open_models, open_resources
from quorum.tools.models.scripted import Script, ScriptedChatModel

QUESTION = "How many orders did each city place?"
GOOD = (
    "SELECT c.city, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.city"
)
FINE = {"valid_result": True, "columns_not_needed": [], "result_empty": False, "suggest_fix": ""}
PLAN = {
    "steps": ["Join orders to customers.", "Count per city."],
    "expected_format": "city (text), orders (int)",
}


def sql(text: str) -> dict[str, Any]:
    """The Action's reply that runs ``text``."""
    return {"thought": "Run it.", "action": "sql", "sql": text, "command": None}


def script(**roles: Any) -> dict[str, Any]:
    """Replies of a model that does everything right, but for the roles given."""
    return {
        "planner": PLAN,
        "plan_critique": {"update_plan": False, "feedback": ""},
        "syntax_retriever": {"features": []},
        "action": sql(GOOD),
        "sql_writer": {"reasoning": "Count orders by city.", "sql": GOOD},
        "sql_critique": {"reasoning": "Right.", "correct": True, "sql": None},
        "validator": FINE,
        "schema_linker": {
            "thought": "Seen.",
            "command": None,
            "linked_schema": "orders(id:INTEGER, customer_id:INTEGER); customers(id:INTEGER, city:TEXT)",
        },
        "self_refiner": {"explanation": "Repaired.", "sql": GOOD},
        "reviser": {"explanation": "The query does what was asked.", "sql": None},
        "info_agent": {"keywords": ["city", "orders"]},
        "context_expander": {"reasoning": "All is there.", "add": []},
        "gen_agent": {"reasoning": "Count orders by city.", "sql": GOOD},
        **roles,
    }


def make_shop(path: Path) -> Path:
    """A SQLite file with customers and orders."""
    with sqlite3.connect(path) as database:
        database.executescript(
            """
            PRAGMA synchronous = OFF;  -- hundreds of tests make one
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                                 total REAL, note TEXT);
            INSERT INTO customers VALUES (1, 'Ada', 'Ghent'), (2, 'Bo', 'Lyon'), (3, 'Cy', 'Lyon');
            INSERT INTO orders VALUES (1, 1, 10, NULL), (2, 2, 20, NULL), (3, 3, 5, NULL), (4, 3, 7, NULL);
            """
        )
    database.close()
    return path


@dataclass(frozen=True)
class Ran:
    """A finished run: its answer and the events of its trace."""

    answer: Answer
    events: list[dict[str, Any]]

    def calls(self) -> Counter[str]:
        """Model calls per role."""
        return Counter(event["agent"] for event in self.events if event["kind"] == "model_call")

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind."""
        return [event for event in self.events if event["kind"] == kind]

    def prompt(self, role: str, turn: int = 0) -> str:
        """The whole prompt of a role's call."""
        asked = [e for e in self.events if e["kind"] == "model_call" and e["agent"] == role]
        return "\n".join(message["content"] for message in asked[turn]["messages"])


Run = Callable[..., Awaitable[Ran]]


class Opened:
    """The database, opened once for all runs of a test that ask for the same: that takes its time."""

    def __init__(self, closing: AsyncExitStack) -> None:
        self._closing = closing
        self._resources: dict[Any, Resources] = {}

    async def resources(self, options: RunOptions, chat_models: Mapping[str, BaseChatModel]) -> Resources:
        """Open ones with these models."""
        of_models = {"models", "model_for", "votes", "strategy", "stopping", "temperature", "seed"}
        of_recipes = {"recipe", "preset", "switches"}
        of_runs = {
            "max_calls",
            "max_usd",
            "deadline",
            "max_rows",
            "max_run_bytes",
            "approve",
            "result_bytes",
            "query_timeout",
            "abstain_below",
        }
        others = of_models | of_recipes | of_runs | {"link_above"}
        key = json.dumps({k: v for k, v in options.as_dict().items() if k not in others}, sort_keys=True)
        if key not in self._resources:
            self._resources[key] = await open_resources(options, chat_models=chat_models)
            self._closing.push_async_callback(self._resources[key].aclose)
        asked = await open_models(options, chat_models=chat_models)
        return replace(self._resources[key], models=asked.models, role_models=asked.role_models)


async def run_graph(
    home: Path,
    url: str,
    replies: Script | Mapping[str, Script],
    *,
    question: str = QUESTION,
    opened: Opened | None = None,
    **given: Any,
) -> Ran:
    """Run the graph over the database with scripted replies (by model, where ``models`` are given)."""
    by_model = replies if "models" in given else {"scripted:test": replies}
    usual = {"models": list(by_model), "votes": 1, "recipe": "recap"}
    options = RunOptions(database=url, home=str(home), **(usual | given))
    chat_models = {spec: ScriptedChatModel(script=said, source=spec) for spec, said in by_model.items()}
    return await run_options(options, question, chat_models, opened)


async def run_options(
    options: RunOptions,
    question: str,
    chat_models: Mapping[str, BaseChatModel] | None = None,
    opened: Opened | None = None,
    *,
    recipe: Recipe | None = None,
) -> Ran:
    """Run the graph as the options say, with real models (``offline``) where none are given."""
    shared = await opened.resources(options, chat_models) if opened and chat_models else None
    context = await open_context(
        options,
        recipe or recipe_of(options),
        question,
        chat_models=chat_models,
        resources=shared,
    )
    try:
        config: Any = {"configurable": {"thread_id": context.trace.run_id}}
        async with open_checkpoints(context.trace.checkpoint) as saver:
            graph = build_graph(context.recipe, checkpointer=saver)
            output = await graph.ainvoke({"question": question}, config, context=context, durability="sync")
        await context.trace.aflush()
        events = list(context.trace.events())
        return Ran(Answer.model_validate(output["answer"]), events)
    finally:
        await context.aclose()
