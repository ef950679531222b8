"""What the offline model answers in each role: one function from the prompt to the reply's JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from knowledge.catalog import Column, Table
from knowledge.errors import ConfigurationError
from knowledge.schema_grammar import SchemaTextError
from knowledge.schema_text import parse_schema
from tools.offline.build import draft_query
from tools.offline.draft import Draft, alias
from tools.offline.lexicon import STOP, tokenize
from tools.offline.prompt import Prompt
from tools.offline.repair import repair

_SEARCHES = 2  # of the schema linker, before it reads a file
NOTE = "Demonstration: rules, no language model."

_CLAUSES = {
    "Make one row for each": "GROUP BY",
    "Keep only groups where": "HAVING",
    "Order by": "ORDER BY",
    "Stop after this many rows:": "LIMIT",
}
# what makes a topic of the dialect's reference worth reading: cue in the plan, word in the topic's name
_TOPIC_CUES = {
    r"\b(month|year|day|date|quarter|time)\b": ("date", "time"),
    r"\bjson|payload|nested\b": ("json", "nested", "semi"),
    r"\bunion|shard|_\d{4}": ("union", "wildcard", "set"),
    r"\brank|previous|running\b": ("window",),
}


def answer(prompt: Prompt) -> dict[str, Any]:
    """The reply for the prompt's ``<task>``.

    Raises:
        ConfigurationError: The role is not one of those that the rules can play.
    """
    task = prompt.get("task")
    if task not in ROLES:
        raise ConfigurationError(
            f"The offline model cannot play the role {task!r}.",
            hint=f"It knows: {', '.join(ROLES)}. Choose a real model, such as openai:gpt-4.1.",
        )
    return ROLES[task](prompt)


def planner(prompt: Prompt) -> dict[str, Any]:
    """The plan is read off the query that the rules would write."""
    draft = draft_query(prompt.linker, prompt.question, documents=prompt.get("documents"))
    sql = draft.sql()
    steps = [f"Read {_table(draft, table)}." for table in draft.tables]
    steps += [f"Join on {condition}." for condition in re.findall(r"JOIN .* ON (.+)$", sql, re.MULTILINE)]
    steps += [f"Keep only rows where {' '.join(condition.split())}." for condition in draft.where]
    for words, clause in _CLAUSES.items():
        steps += [f"{words} {text}." for text in re.findall(rf"^{clause} (.+)$", sql, re.MULTILINE)]
    columns = [(place, f"{c.name} ({c.type.lower() or 'value'})") for place, _, c in draft.shown]
    columns += [(place, f"{alias(text)} (number)") for place, text in draft.aggregates]
    columns += [(place, f"{alias(text)} (text)") for place, text in draft.computed]
    shown = ", ".join(dict.fromkeys(text for _, text in sorted(columns)))
    return {"steps": [*steps, NOTE], "expected_format": shown}


def _table(draft: Draft, table: Table) -> str:
    shards = ", ".join(member.name for member in draft.members(table))
    return f"{table.name}, the union of {shards}" if shards else table.name


def plan_critique(prompt: Prompt) -> dict[str, Any]:
    """A plan passes if it names a table of the schema; more the rules cannot judge."""
    plan = prompt.get("plan").casefold()
    tables = [table.name for table in prompt.linker.schema.tables]  # a family by its common name
    named = any(name.casefold() in plan for name in tables)
    wish = "" if named else f"Name the tables to read; there are: {', '.join(tables[:20])}."
    return {"update_plan": not named, "feedback": wish}


def syntax_retriever(prompt: Prompt) -> dict[str, Any]:
    topics = [line.removeprefix("- ").strip() for line in prompt.get("topics").splitlines() if line.strip()]
    text = f"{prompt.get('plan')} {prompt.question}".lower()
    wanted = [word for cue, words in _TOPIC_CUES.items() if re.search(cue, text) for word in words]
    return {"features": [topic for topic in topics if any(word in topic.lower() for word in wanted)][:3]}


def action(prompt: Prompt) -> dict[str, Any]:
    """First the query; if it was questioned, another reading of the question, or an end."""
    taken = zip(prompt.attributes("step", "action"), prompt.all("step"), strict=False)
    said = [text for kind, text in taken if kind == "sql"]
    thought, sql = "No other reading is left.", None
    if not prompt.linker.knows(tokenize(prompt.question)):
        thought = "No word of the question resembles anything in the schema."
    elif not said:
        thought, sql = "The rules read the question so.", prompt.sql()
    elif prompt.get("feedback") and (other := prompt.other_sql(said)):
        thought, sql = "The result was questioned: another reading.", other
    kind = "sql" if sql else "terminate"
    return {"thought": f"{thought} {NOTE}", "action": kind, "sql": sql, "command": None}


def sql_critique(prompt: Prompt) -> dict[str, Any]:
    """Whether every value that the question quotes stands in the query; more the rules cannot judge."""
    sql = prompt.get("sql")
    quoted = [token.text for token in tokenize(prompt.question) if token.kind == "quoted"]
    missing = [value for value in quoted if value.replace("'", "''").lower() not in sql.lower()]
    better = prompt.other_sql([sql], needs=quoted) if missing else None
    if better:
        return {"reasoning": f"The query leaves out {missing[0]!r}. {NOTE}", "correct": False, "sql": better}
    return {"reasoning": f"No fault that the rules can see. {NOTE}", "correct": True, "sql": None}


def schema_linker(prompt: Prompt) -> dict[str, Any]:
    """Search the files for the question's words, read the file that answers most, and give its columns."""
    steps, results = prompt.all("step"), prompt.all("result")
    searches = [f"grep -i -r {word}" for word in _keywords(prompt)]
    ahead = [search for search in searches if search not in steps]
    if len(steps) < _SEARCHES and ahead:
        return {"thought": f"Where is it? {NOTE}", "command": ahead[0], "linked_schema": None}
    files = re.findall(r"^[^\s:]+\.txt", "\n".join([*results, prompt.get("files")]), re.MULTILINE)
    best = max(files, key=files.count, default="")
    if best and f"cat {best}" not in steps:
        return {"thought": f"Most is found there. {NOTE}", "command": f"cat {best}", "linked_schema": None}
    linked = _compact(results[-1]) if results else ""
    return {"thought": NOTE, "command": None, "linked_schema": linked or "none(found:NOTHING)"}


def _compact(text: str) -> str:
    """A schema file in the form ``table(column:TYPE[values], ...); ...``; empty if it is none."""
    try:
        tables = parse_schema(text).tables
    except SchemaTextError:
        return ""

    def show(column: Column) -> str:
        return f"{column.name}:{column.type}" + f"[{', '.join(column.samples)}]" * bool(column.samples)

    return "; ".join(f"{table.name}({', '.join(map(show, table.columns))})" for table in tables)


def _keywords(prompt: Prompt) -> list[str]:
    """Words worth a search: of the error's unknown names first, then of the question, longest first."""
    names = [part for name in re.findall(r"\w+_\w+", prompt.get("error")) for part in name.split("_")]
    words = [token.text for token in tokenize(prompt.question) if token.kind == "word"]
    wanted = [*names, *sorted(words, key=len, reverse=True)]
    return list(dict.fromkeys(w for w in wanted if len(w) > 3 and w.lower() not in STOP))


def self_refiner(prompt: Prompt) -> dict[str, Any]:
    explanation, sql = repair(prompt)
    return {"explanation": f"{explanation} {NOTE}", "sql": sql}


def validator(prompt: Prompt) -> dict[str, Any]:
    """Reject only what is plain to see in the summary: no rows, or nothing but NULLs."""
    summary = prompt.get("result")
    found = re.search(r"rows: (\d+)", summary)
    rows = int(found[1]) if found else 0
    nulls = [int(count) for count in re.findall(r"\): (\d+) NULL", summary)]
    empty = rows == 0 or (bool(nulls) and all(count >= rows for count in nulls))
    fix = "Loosen the filters: compare text without regard to case." if empty else ""
    return {"valid_result": not empty, "columns_not_needed": [], "result_empty": empty, "suggest_fix": fix}


ROLES: dict[str, Callable[[Prompt], dict[str, Any]]] = {
    role.__name__: role
    for role in (
        planner,
        plan_critique,
        syntax_retriever,
        action,
        sql_critique,
        schema_linker,
        self_refiner,
        validator,
    )
}
