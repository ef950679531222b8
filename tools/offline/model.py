"""The ``offline`` chat model: rules behind LangChain's interface that fill in the form of a prompt."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.offline.grammar import ParsedQuestion, read
from quorum.tools.offline.schema import ShownTable, read_tables

NOTE = "This is a demonstration: rules, no language model."
UNREAD = "Hardly a word of the question resembles anything in the schema."

GIVEN: dict[str, Any] = {
    "valid_result": True,
    "correct": True,
    "accept": True,
    "useful": True,
    "answer": "Y",
    "steps": [NOTE],
}
"""Values of fields whose smallest value would refuse another role's work, or is not allowed."""

_FORM = re.compile(r"^Reply with one JSON object:\n((?: *- `.*(?:\n|\Z))+)", re.MULTILINE)
_FIELD = re.compile(r"- `(\w+)` \((.+?)\)(?::|$)(.*(?:\n +- .*)*)", re.MULTILINE)
_MEANT = re.compile(r"no column (\w+)\b.*Did you mean: (?:\w+\.)*(\w+)", re.DOTALL)


class OfflineChatModel(BaseChatModel):
    """A rule-based chat model that reads Quorum's tagged prompts; it needs no key and no network.

    It replies with the JSON form of the prompt's role. At a temperature above 0 the
    seed chooses where a word fits two tables that are equally near; nothing else varies.

    Raises:
        ConfigurationError: The prompt has a role without a rule and asks for no form,
            or the schema in the prompt has no table.
    """

    @property
    def _llm_type(self) -> str:
        return "offline"

    def _generate(self, messages: list[BaseMessage], *_: Any, **sampling: Any) -> ChatResult:
        text = "\n\n".join(str(message.text) for message in messages if message.type != "ai")
        prompt = PromptText(text, sampling.get("seed") or 0 if sampling.get("temperature") else 0)
        reply = json.dumps(answer(prompt), ensure_ascii=False) if prompt.get("task") else NOTE
        read, written = len(text) // 4 + 1, len(reply) // 4 + 1  # tokens, of four characters
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        about = {"model_name": "offline:demo", "finish_reason": "stop", "demonstration": True}
        message = AIMessage(content=reply, usage_metadata=usage, response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=message)])


class PromptText(NamedTuple):
    """The text of a conversation, and the seed of a reply that is sampled."""

    text: str
    seed: int = 0

    def all(self, tag: str) -> list[str]:
        """Return the content of each ``<tag>`` that opens a line, with foreign tags unescaped."""
        found = re.findall(rf"^<{tag}(?:\s[^<>]*)?>(.*?)</{tag}>", self.text, re.DOTALL | re.MULTILINE)
        return [re.sub(r"<\\(?=/|\w)", "<", content).strip() for content in found]

    def get(self, tag: str) -> str:
        """Return the content of the last ``<tag>``; empty if there is none."""
        return next(reversed(self.all(tag)), "")

    def read(self, question: str = "") -> ParsedQuestion:
        """Read the question by the grammar."""
        return read(tables_of(self.get("schema")), question or self.get("question"), self.seed)


@lru_cache(maxsize=16)
def tables_of(text: str) -> list[ShownTable]:
    """Return the tables of the schema in a prompt.

    Raises:
        ConfigurationError: There are none.
    """
    if tables := read_tables(text):
        return tables
    raise ConfigurationError("The schema in the prompt has no table with columns to ask about.")


def answer(prompt: PromptText) -> dict[str, Any]:
    """Return the reply for the prompt's ``<task>``: by its own rule, else by the form that it asks for.

    Raises:
        ConfigurationError: There is neither.
    """
    task = prompt.get("task")
    if rule := RULES.get(task):
        return rule(prompt)
    if form := _FORM.search(prompt.text, prompt.text.rfind("<task>")):
        return _filled(form[1], prompt)
    message = f"The offline model cannot play the role {task!r}: its prompt has no reply form."
    raise ConfigurationError(message, hint="Put {{ reply_form }} into its template.")


def _filled(form: str, prompt: PromptText) -> dict[str, Any]:
    """Fill in the form of ``quorum.tools.models.structured.form_of``, field by field."""
    return {name: _value(name, kind, below, prompt) for name, kind, below in _FIELD.findall(form)}


def _value(name: str, kind: str, below: str, prompt: PromptText) -> Any:
    """Return the value that commits to least: no, none, the last choice; for a query the one read."""
    shown = prompt.get("sql") or "".join(prompt.all("step"))
    if name in GIVEN:
        return GIVEN[name]
    if name == "missing" and "null" in kind and not shown:
        return UNREAD if prompt.read().unread else None
    if name == "sql" or name.endswith("_sql"):
        sql = shown or ("" if prompt.read().unread else prompt.read().sql())
        return None if "null" in kind and (shown or not sql) else sql
    if name == "assumptions" and not shown:
        return [f"The rules do not know the word {word!r} and ignore it." for word in prompt.read().left_out]
    if choices := re.findall('"([^"]*)"', kind):
        return "sql" if "sql" in choices and not shown and not prompt.read().unread else choices[-1]
    if "null" in kind:
        return None
    if kind == "object":
        return _filled(re.sub("(?m)^  ", "", below), prompt)
    if kind == "string":
        return "" if name == "summary" else NOTE
    return {"true or false": False, "integer": 0, "number": 0.0}.get(kind, [])


def self_refiner(prompt: PromptText) -> dict[str, Any]:
    """Read the question again with the name that the error suggests; without one keep the query."""
    question, sql = prompt.get("question"), prompt.get("sql")
    if (unknown := _MEANT.search(prompt.get("error"))) and unknown[1] in question:
        sql = prompt.read(question.replace(unknown[1], unknown[2])).sql()
    return {"explanation": f"{unknown[2]} is meant. {NOTE}" if unknown else NOTE, "sql": sql}


def schema_linker(prompt: PromptText) -> dict[str, Any]:
    """Link all tables whose files are listed."""
    tables = re.findall(r"(?m)^(\S+)\.txt", prompt.get("files"))
    linked = "; ".join(f"{table}()" for table in tables)
    return {"thought": NOTE, "command": None if linked else "ls", "linked_schema": linked or None}


def column_explorer(prompt: PromptText) -> dict[str, Any]:
    """Look at the values of each column that the question names."""
    named = {(hit.column.name, hit.table.source): None for hit in prompt.read().hits if hit.column}
    queries = [f"SELECT DISTINCT {column}\nFROM {source}\nLIMIT 20" for column, source in named]
    return {"queries": [{"purpose": NOTE, "sql": sql} for sql in queries]}


def info_agent(prompt: PromptText) -> dict[str, Any]:
    """Return the question's own words."""
    words = re.findall(r"\w{4,}", prompt.get("question"))
    return {"keywords": [*dict.fromkeys(words)][:12] or [NOTE]}


def explorer(prompt: PromptText) -> dict[str, Any]:
    """Show unused columns of the first table that has any."""
    table, _, names = prompt.get("unused").partition("\n")[0].partition(": ")
    columns = [f"{table}.{name}" for name in names.partition(" and ")[0].split(", ")[:6]]
    return {"reasoning": NOTE, "actions": [{"state": 0, "action": "select_column", "columns": columns}]}


def simulator(prompt: PromptText) -> dict[str, Any]:
    """Select the columns of the first step from their table."""
    columns = re.findall(r"(?m)^1\. \w+ (.+?)(?: \(.*\))?$", prompt.get("steps"))[0]
    return {"sql": f"SELECT {columns}\nFROM {columns.partition(', ')[0].rpartition('.')[0]}"}


def question_rewriter(prompt: PromptText) -> dict[str, Any]:
    """Take the turn for a question that stands alone."""
    return {"reasoning": NOTE, "ask": "question", "question": prompt.get("turn")}


_OWN = (self_refiner, schema_linker, column_explorer, info_agent, explorer, simulator, question_rewriter)
RULES = {rule.__name__: rule for rule in _OWN}
"""Roles that need more than their reply's form; all others are answered by that alone."""
