"""What the offline model answers in each role: one function from the prompt to the reply's JSON."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema_text import parse_schema
from quorum.tools.offline.explorers import EXPLORERS
from quorum.tools.offline.judging import JUDGES
from quorum.tools.offline.lexicon import stems
from quorum.tools.offline.looping import LOOPERS
from quorum.tools.offline.reading import Reading
from quorum.tools.offline.rules import read
from quorum.tools.offline.schema import Schema

NOTE = "This is a demonstration: rules, no language model."
CUES = {"date": "[0-9]{4}-[0-9]{2}|month|year", "json": "json", "set": "union"}  # for a topic of that word


class Prompt(NamedTuple):
    """The text of a conversation, and how the reply is to be sampled."""

    text: str
    temperature: float = 0.0
    seed: int = 0

    def all(self, tag: str) -> list[str]:
        """What stands in each ``<tag>`` that opens a line, in order, without the fence round foreign tags."""
        found = re.findall(rf"^<{tag}(?:\s[^<>]*)?>(.*?)</{tag}>", self.text, re.DOTALL | re.MULTILINE)
        return [re.sub(r"<\\(?=/|\w)", "<", content).strip() for content in found]

    def get(self, tag: str) -> str:
        """What stands in the last ``<tag>``; empty if there is none."""
        return next(reversed(self.all(tag)), "")

    def read(self, question: str = "", other: int = 0) -> Reading:
        """The reading of the question that sampling asks for, or with ``other`` one that is further off."""
        schema, temperature = schema_of(self.get("schema")), 1.0 if other else self.temperature
        return read(schema, question or self.get("question"), temperature, self.seed + other)

    def other_sql(self, shown: list[str]) -> str | None:
        """The first further reading that is none of the queries ``shown``."""
        further = (self.read(other=n).sql() for n in range(1, 25))
        return next((sql for sql in further if sql.split() not in [text.split() for text in shown]), None)


@lru_cache(maxsize=16)
def schema_of(text: str) -> Schema:
    schema = Schema(parse_schema(text))
    if not schema.tables:
        raise ConfigurationError("The schema in the prompt has no table with columns to ask about.")
    return schema


def answer(prompt: Prompt) -> dict[str, Any]:
    """The reply for the prompt's ``<task>``.

    Raises:
        ConfigurationError: The role is not one of those that the rules can play.
    """
    if role := ROLES.get(prompt.get("task")):
        return role(prompt)
    message = f"The offline model cannot play the role {prompt.get('task')!r}."
    raise ConfigurationError(message, hint=f"It knows: {', '.join(ROLES)}. Choose a real model for others.")


def planner(prompt: Prompt) -> dict[str, Any]:
    """The plan is read off the query that the rules would write."""
    reading = prompt.read()
    steps = [f"{' '.join(clause.split())}." for clause in re.split(r"\n(?=[A-Z])", reading.sql())[1:]]
    shown = [text.rpartition(" AS ")[2] for _, (text, _) in sorted(reading.items.items())]
    return {"steps": [*steps, NOTE], "expected_format": ", ".join(shown)}


def plan_critique(prompt: Prompt) -> dict[str, Any]:
    """A plan passes if it names a table of the schema; more the rules cannot judge."""
    tables = [table.name for table in prompt.read().schema.tables]
    named = any(name.casefold() in prompt.get("plan").casefold() for name in tables)
    return {"update_plan": not named, "feedback": "" if named else f"Name tables: {', '.join(tables)}."}


def syntax_retriever(prompt: Prompt) -> dict[str, Any]:
    """The topics that are named after what the plan uses."""
    topics = [line.removeprefix("- ") for line in prompt.get("topics").splitlines()]
    words = [word for word, cue in CUES.items() if re.search(cue, prompt.get("plan").lower())]
    return {"features": [topic for topic in topics if any(word in topic.lower() for word in words)][:3]}


def action(prompt: Prompt) -> dict[str, Any]:
    """First the query; if its result was questioned, another reading of the question; else an end."""
    reading, said = prompt.read(), prompt.all("step")
    why, sql = "The rules read the question so.", prompt.other_sql(said) if said else reading.sql()
    if reading.unread:
        why, sql = "Hardly a word of the question resembles anything in the schema.", None
    elif said and not prompt.get("feedback"):
        why, sql = "The result stands.", None
    return {"thought": f"{why} {NOTE}", "action": "sql" if sql else "terminate", "sql": sql, "command": None}


def sql_writer(prompt: Prompt) -> dict[str, Any]:
    """The reading that sampling asks for; no query where hardly a word is understood."""
    reading = prompt.read()
    if reading.unread:
        return {
            "reasoning": f"Hardly a word of the question resembles anything in the schema. {NOTE}",
            "sql": "",
            "other_reading": None,
        }
    return {
        "reasoning": f"The rules read the question so. {NOTE}",
        "sql": reading.sql(),
        "other_reading": None,
    }


def sql_critique(prompt: Prompt) -> dict[str, Any]:
    """Whether every value that the question names stands in the query; more the rules cannot judge."""
    own, sql = prompt.read().sql(), prompt.get("sql").lower()
    missing = [value for value in re.findall(r"'([^'%]+)'", own) if value.lower() not in sql]
    reason = f"Values left out: {', '.join(missing) or 'none'}. {NOTE}"
    return {"reasoning": reason, "correct": not missing, "sql": own if missing else None}


def schema_linker(prompt: Prompt) -> dict[str, Any]:
    """Read the file whose name is most like the question, and give its columns."""
    words, files = {*stems(prompt.get("question"))}, re.findall(r"(?m)^[^\s:]+\.txt", prompt.get("files"))
    command = f"cat {max(files, key=lambda file: len(words & {*stems(file)}))}" if files else "ls"
    tables = re.findall(r"(?m)^tables? (\S+).*((?:\n  .+)*)", prompt.get("result"))
    columns = {name: re.findall(r"\n  (\w+) (\w+)", body) for name, body in tables}
    linked = "; ".join(f"{name}({', '.join(map(':'.join, found))})" for name, found in columns.items())
    if not prompt.all("step"):
        return {"thought": NOTE, "command": command, "linked_schema": None}
    return {"thought": NOTE, "command": None, "linked_schema": linked or "none"}


def self_refiner(prompt: Prompt) -> dict[str, Any]:
    """Take the suggested name, look for values inside longer texts, or read the question anew."""
    question, sql, shown = prompt.get("question"), prompt.get("sql"), prompt.all("earlier_sql")
    unknown = re.search(r"no column (\w+)\b.*Did you mean: (?:\w+\.)*(\w+)", prompt.get("error"), re.DOTALL)
    inside = re.sub(r"(LOWER\(\S+\)) = '((?:[^']|'')*)'", r"\1 LIKE '%\2%'", sql)
    if unknown and unknown[1] in question:
        thought, fixed = (
            f"{unknown[2]} is meant.",
            prompt.read(question.replace(unknown[1], unknown[2])).sql(),
        )
    elif '<error kind="empty_result">' in prompt.text and inside not in (sql, *shown):
        thought, fixed = "The values may be part of a longer text.", inside
    else:
        thought, fixed = "Is there another reading?", prompt.other_sql([sql, *shown]) or sql
    return {"explanation": f"{thought} {NOTE}", "sql": fixed}


def validator(prompt: Prompt) -> dict[str, Any]:
    """Reject only what is plain to see in the summary: no rows, or nothing but NULLs."""
    rows = int("0" + "".join(re.findall(r"^rows: (\d+)", prompt.get("result"))))
    nulls = re.findall(r"\): (\d+) NULL", prompt.get("result"))
    empty = rows == 0 or (bool(nulls) and all(int(count) >= rows for count in nulls))
    fix = "Loosen the filters: look for the values inside longer texts." if empty else ""
    return {"valid_result": not empty, "columns_not_needed": [], "result_empty": empty, "suggest_fix": fix}


ALL = (
    planner,
    plan_critique,
    syntax_retriever,
    action,
    sql_writer,
    sql_critique,
    schema_linker,
    self_refiner,
    validator,
)
ROLES = {role.__name__: role for role in (*ALL, *EXPLORERS, *JUDGES, *LOOPERS)}
