"""A small shop and a scripted model for whole runs of the graph."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Literal, Self, get_args, get_origin

from langchain_core.language_models import BaseChatModel
from langgraph.types import Command, Interrupt
from pydantic import BaseModel

from quorum.agents.role import Role
from quorum.agents.role import roles as known_roles
from quorum.graph.answer import Answer, AnswerVote
from quorum.graph.approval import Approval
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.clarification import Clarification
from quorum.graph.context import Context, open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe, recipe_of
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.resources import OPENED_WITH, Resources, open_models, open_resources
from quorum.tools.models.scripted import Prompt, Script, ScriptedChatModel

QUESTION = "How many orders did each city place?"
GOOD = (
    "SELECT c.city, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.city"
)
FINE = {"valid_result": True, "columns_not_needed": [], "result_empty": False, "suggest_fix": ""}
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Count per city."}
PLAN = {
    "steps": ["Join orders to customers.", "Count per city."],
    "expected_format": "city (text), orders (int)",
}

OTHER = (
    "SELECT c.name, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
)
THIRD = "SELECT COUNT(*) AS orders FROM orders"
BROKEN = "SELECT town, COUNT(*) FROM customers GROUP BY town"
NOTHING = "SELECT city FROM customers WHERE city = 'Nowhere'"
ABOVE_SIX = GOOD.replace(" GROUP BY", " WHERE o.total > 6 GROUP BY")
RENAMED = GOOD.replace("AS orders", "AS n")

CITIES = {"purpose": "How are cities spelt?", "sql": "SELECT DISTINCT city FROM customers LIMIT 20"}
TOWNS = {"purpose": "Which towns?", "sql": "SELECT DISTINCT town FROM customers LIMIT 20"}
NAMES = {"purpose": "Who is where?", "sql": "SELECT town, name FROM customers LIMIT 20"}


def sql(text: str) -> dict[str, Any]:
    """The Action's reply that runs ``text``."""
    return {"thought": "Run it.", "action": "sql", "sql": text, "command": None}


def look(command: str = "ls") -> dict[str, Any]:
    """The reply of Action and ToolUser that looks into the schema's files."""
    return {"thought": "What is there?", "action": "look", "sql": None, "command": command}


MISSING = "No table holds answers to surveys."
LACKING: dict[str, Any] = {"reasoning": "Surveys are not stored.", "missing": MISSING, "sql": None}
"""The reply of a writer who finds that the data cannot answer."""
STOP = {"thought": "It stands.", "action": "terminate", "sql": None, "command": None}
"""The Action's reply that accepts what there is."""


def written(sql: str) -> dict[str, Any]:
    """The SqlWriter's reply."""
    return {"reasoning": "So.", "sql": sql}


def repaired(sql: str | None) -> dict[str, Any]:
    """The reply of who repairs a query."""
    return {"explanation": "So.", "sql": sql}


def unknown(prompt: Prompt) -> dict[str, Any]:
    """A SelfRefiner whose every query names another column that does not exist."""
    return repaired(f"SELECT nothing_{prompt.turn} FROM customers")


def explored(*queries: dict[str, str]) -> dict[str, Any]:
    """The ColumnExplorer's reply."""
    return {"queries": list(queries)}


def corrected(sql: str, **later: str) -> dict[str, Any]:
    """The correction of an exploration query; ``q1`` is the first of those that wait."""
    rewrites = [{"number": int(name[1:]), "sql": text} for name, text in later.items()]
    return {"fault": "The name was wrong.", "sql": sql, "later": rewrites}


def number(prompt: Prompt) -> int:
    """The number of the candidate that asks, from 1."""
    return int((prompt.candidate or "c0")[1:])


def taking_turns(*said: str | dict[str, Any], found: str = "") -> Callable[[Prompt], Any]:
    """A writer whose candidates take turns, in queries or replies; with findings it writes ``found``."""
    replies = [written(each) if isinstance(each, str) else each for each in said]

    def write(prompt: Prompt) -> Any:
        if found and "<exploration_result>" in prompt.text:
            return written(found)
        return replies[(number(prompt) - 1) % len(replies)]

    return write


def example(kind: Any, name: str = "") -> Any:
    """A value for a field of a reply: queries are right, judgements approve, what may be null mostly is."""
    if name == "sql":
        return GOOD
    if get_origin(kind) is list:
        return [example(get_args(kind)[0], name)]
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {key: example(field.annotation, key) for key, field in kind.model_fields.items()}
    if NoneType in get_args(kind) and name != "command":
        return None
    return {bool: True, int: 1}.get(kind, "city")


@cache
def usual(role: Role[Any]) -> Any:
    """The reply of a role that does everything right, by its form: what it must say, and no more."""
    if role.name in USUAL:
        return USUAL[role.name]
    if role.fallback is not None:
        return role.fallback.model_dump()
    said = {}
    for name, field in role.reply.model_fields.items():
        needed = field.is_required() or name == "sql"
        default = field.get_default(call_default_factory=True)
        said[name] = example(field.annotation, name) if needed else default
    return said


USUAL: dict[str, Any] = {
    "planner": PLAN,
    "schema_linker": {
        "linked_schema": "orders(id:INTEGER, customer_id:INTEGER); customers(id:INTEGER, city:TEXT)"
    },
    "info_agent": {"keywords": ["city", "orders"]},
    "column_explorer": explored(CITIES),
    "exploration_corrector": corrected(CITIES["sql"]),
    "format_writer": {"header": "city:text, orders:integer", "rows": "one row per city"},
    "judge": {"reason": "It counts by city.", "choice": "A"},
    "tool_user": lambda prompt: sql(GOOD) | ({"action": "answer", "sql": None} if prompt.turn else {}),
}
"""Replies that need to know the shop, or the turn."""


def script(**roles: Any) -> dict[str, Any]:
    """Replies of a model that does everything right, but for the roles given."""
    return {name: usual(role) for name, role in known_roles().items()} | roles


def writing(query: str, **roles: Any) -> dict[str, Any]:
    """Replies of a model that writes one query, whichever role is asked for one."""

    def step(prompt: Prompt) -> Any:
        return sql(query) | ({"action": "answer", "sql": None} if prompt.turn else {})

    about = {
        "action": sql(query),
        "sql_writer": written(query),
        "gen_agent": written(query),
        "tool_user": step,
    }
    return script(**about | roles)


def changed(path: Path, *statements: str) -> str:
    """Run statements on a SQLite file, which they may make; its URL."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(";".join(statements))
    return f"sqlite:///{path}"


SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                     total REAL, note TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'Ghent'), (2, 'Bo', 'Lyon'), (3, 'Cy', 'Lyon');
INSERT INTO orders VALUES (1, 1, 10, NULL), (2, 2, 20, NULL), (3, 3, 5, NULL), (4, 3, 7, NULL);
"""


def make_shop(path: Path) -> Path:
    """A SQLite file with customers and orders."""
    changed(path, "PRAGMA synchronous = OFF", SHOP)  # hundreds of tests make one
    return path


@dataclass
class Ran:
    """A finished run: its answer and the events of its trace."""

    answer: Answer
    events: list[dict[str, Any]]

    @property
    def vote(self) -> AnswerVote:
        """The answer's vote."""
        assert self.answer.vote is not None
        return self.answer.vote

    def calls(self) -> Counter[str]:
        """Model calls per role."""
        return Counter(event["agent"] for event in self.events if event["kind"] == "model_call")

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind."""
        return [event for event in self.events if event["kind"] == kind]

    def prompt(self, role: str, turn: int = 0, candidate: str = "") -> str:
        """The whole prompt of a role's call, for any candidate or for one."""
        calls = [event for event in self.of("model_call") if event["agent"] == role]
        asked = [event for event in calls if candidate in ("", event["candidate"])]
        return "\n".join(message["content"] for message in asked[turn]["messages"])


Run = Callable[..., Awaitable[Ran]]
Models = Mapping[str, BaseChatModel] | None


class Opened:
    """The database, opened once for all runs of a test that ask for the same: that takes its time."""

    def __init__(self, closing: AsyncExitStack) -> None:
        self._closing = closing
        self._resources: dict[Any, Resources] = {}

    async def resources(self, options: RunOptions, chat_models: Models) -> Resources:
        """Open ones with these models."""
        given = {name: options.as_dict().get(name) for name in OPENED_WITH - {"models", "model_for"}}
        key = json.dumps(given, sort_keys=True)
        if key not in self._resources:
            self._resources[key] = await open_resources(options, chat_models=chat_models)
            self._closing.push_async_callback(self._resources[key].aclose)
        asked = await open_models(options, chat_models=chat_models)
        return replace(self._resources[key], models=asked.models, role_models=asked.role_models)


def of_recipe(run: Run, recipe: str, switches: Mapping[str, Any] = MappingProxyType({}), **usual: Any) -> Run:
    """``run`` of a recipe, whose switches are given by name beside the options."""
    names = find_recipe(recipe).switches()

    async def asked(said: Any, **given: Any) -> Ran:
        own = {name: given.pop(name) for name in names if name in given}
        return await run(said, **{"recipe": recipe, "switches": {**switches, **own}, **usual, **given})

    return asked


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
    options: RunOptions, question: str, chat_models: Models = None, opened: Opened | None = None, **given: Any
) -> Ran:
    """Run the graph as the options say, with real models (``offline``) where none are given."""
    shared = await opened.resources(options, chat_models) if opened and chat_models else None
    async with opened_graph(options, question, chat_models, resources=shared, **given) as (context, ask):
        output = await ask({"question": question})
        await context.trace.aflush()
        return Ran(Answer.model_validate(output["answer"]), list(context.trace.events()))


@asynccontextmanager
async def opened_graph(
    options: RunOptions, question: str, chat_models: Models, *, recipe: Recipe | None = None, **given: Any
) -> AsyncIterator[tuple[Context, Callable[..., Awaitable[dict[str, Any]]]]]:
    """A run's context, and its graph with its checkpoints: ``await ask({"question": …})``."""
    recipe = recipe or recipe_of(options)
    context = await open_context(options, recipe, question, chat_models=chat_models, **given)
    try:
        config: Any = {"configurable": {"thread_id": context.trace.run_id}}
        async with open_checkpoints(context.trace.checkpoint) as saver:
            graph: Any = build_graph(context.recipe, checkpointer=saver)
            yield context, partial(graph.ainvoke, config=config, context=context, durability="sync")
    finally:
        await context.aclose()


Replies = Callable[[Sequence[Interrupt]], dict[str, Any]]
PAYLOADS: dict[str, type[BaseModel]] = {"approval": Approval, "clarification": Clarification}


class Asked(Ran):
    """A run that asks its user: what it asked, its answer and its events.

    Attributes:
        rounds: What each interrupt asked.
    """

    def __init__(
        self, shop: Path, home: Path, replies: Mapping[str, Script], question: str = QUESTION, **given: Any
    ) -> None:
        usual = {"recipe": "recap", "models": list(replies), "votes": len(replies)}
        self.question = question
        self.options = RunOptions(database=f"sqlite:///{shop}", home=str(home), **usual | given)
        self.models = {spec: ScriptedChatModel(script=said, source=spec) for spec, said in replies.items()}
        self.rounds: list[list[Any]] = []
        self.events: list[dict[str, Any]] = []
        self.output: dict[str, Any] = {}

    def opened(self, resume: str = "") -> Any:
        return opened_graph(self.options, self.question, self.models, resume=resume)

    async def __call__(self, reply: Replies) -> Self:
        """Run to the end; ``reply`` says what the user replies to what waits, by its id."""
        start: Any = {"question": self.question}
        async with self.opened() as (context, ask):
            while start:
                self.output = await ask(start)
                waiting = self.output.get("__interrupt__", [])
                start = Command(resume=reply(waiting)) if waiting else None
                asked = [PAYLOADS[each.value["kind"]].model_validate(each.value) for each in waiting]
                self.rounds += [asked] if asked else []
            await context.trace.aflush()
            self.events = list(context.trace.events())
        self.answer = Answer.model_validate(self.output["answer"])
        return self

    async def replying(self, *replies: Any) -> dict[str, Any]:
        """The answer to a user who replies so, one after the other."""
        said = iter(replies)
        await self(lambda waiting: {waiting[0].id: next(said)})
        assert not list(said), "it was asked as often as there are replies"
        answer: dict[str, Any] = self.output["answer"]
        return answer

    @property
    def questions(self) -> list[Any]:
        """What it asked, one at a time."""
        return [question for (question,) in self.rounds]
