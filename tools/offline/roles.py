"""What the offline model answers in each role: one function from the prompt to the reply's JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from knowledge.errors import ConfigurationError
from knowledge.schema_grammar import SchemaTextError
from knowledge.schema_text import parse_schema
from tools.offline.lexicon import STOP, tokenize
from tools.offline.prompt import Prompt
from tools.offline.repair import repair

_SEARCHES = 2  # of the schema linker, before it reads a file
NOTE = "Demonstration: rules, no language model."

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
    sql = prompt.sql()
    clauses = {
        "Read from": r"^FROM (\S+)$|^FROM \(\n  SELECT .* FROM (\S+)",
        "Join": r"^(?:LEFT )?JOIN (.+)$",
        "Keep only rows where": r"^WHERE (.+)$",
        "Make one row for each": r"^GROUP BY (.+)$",
        "Keep only groups where": r"^HAVING (.+)$",
        "Show": r"^SELECT (?:DISTINCT )?(.+)$",
        "Order by": r"^ORDER BY (.+)$",
        "Stop after rows:": r"^LIMIT (.+)$",
    }
    steps = [
        f"{words} {next(part for part in match if part)}."
        if isinstance(match, tuple)
        else f"{words} {match}."
        for words, pattern in clauses.items()
        for match in re.findall(pattern, sql, re.MULTILINE)
    ]
    first = re.sub(r"^SELECT (DISTINCT )?", "", sql.splitlines()[0])
    columns = [
        f"{name} ({'number' if '(' in name else 'value'})" for name in re.split(r", (?![^(]*\))", first)
    ]
    return {"steps": [*steps, NOTE], "expected_format": ", ".join(columns)}


def plan_critique(prompt: Prompt) -> dict[str, Any]:
    """A plan passes if it names a table of the schema; more the rules cannot judge."""
    plan = prompt.get("plan").casefold()
    tables = [table.name for family in _members(prompt) for table in family]
    named = any(name.casefold() in plan for name in tables)
    return {
        "update_plan": not named,
        "feedback": "" if named else f"Name the tables to read; there are: {', '.join(tables[:20])}.",
    }


def _members(prompt: Prompt) -> list[tuple[Any, ...]]:
    schema = prompt.linker.schema
    return [(*schema.families.get(table.full_name, ()), table) for table in schema.tables]


def syntax_retriever(prompt: Prompt) -> dict[str, Any]:
    topics = [line.removeprefix("- ").strip() for line in prompt.get("topics").splitlines() if line.strip()]
    text = f"{prompt.get('plan')} {prompt.question}".lower()
    wanted = [word for cue, words in _TOPIC_CUES.items() if re.search(cue, text) for word in words]
    return {"features": [topic for topic in topics if any(word in topic.lower() for word in wanted)][:3]}


def action(prompt: Prompt) -> dict[str, Any]:
    """First the query; if it was questioned, another reading of the question, or an end."""
    said = [
        text
        for kind, text in zip(prompt.attributes("step", "action"), prompt.all("step"), strict=False)
        if kind == "sql"
    ]
    sql = prompt.sql() if not said else prompt.other_sql(said) if prompt.get("feedback") else None
    if sql is None:
        return {
            "thought": f"No other reading is left. {NOTE}",
            "action": "terminate",
            "sql": None,
            "command": None,
        }
    thought = "The rules read the question so." if not said else "The result was questioned: another reading."
    return {"thought": f"{thought} {NOTE}", "action": "sql", "sql": sql, "command": None}


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
    files = [
        name for text in [*results, prompt.get("files")] for name in re.findall(r"^[^\s:]+\.txt", text, re.M)
    ]
    best = max(files, key=files.count, default="")
    if best and f"cat {best}" not in steps:
        return {
            "thought": f"Most words are found there. {NOTE}",
            "command": f"cat {best}",
            "linked_schema": None,
        }
    linked = _compact(results[-1]) if results else ""
    return {"thought": NOTE, "command": None, "linked_schema": linked or "none(found:NOTHING)"}


def _compact(text: str) -> str:
    """A schema file in the form ``table(column:TYPE[values], ...); ...``; empty if it is none."""
    try:
        tables = parse_schema(text).tables
    except SchemaTextError:
        return ""
    lines = []
    for table in tables:
        columns = (
            f"{c.name}:{c.type}" + f"[{', '.join(c.samples)}]" * bool(c.samples) for c in table.columns
        )
        lines.append(f"{table.name}({', '.join(columns)})")
    return "; ".join(lines)


def _keywords(prompt: Prompt) -> list[str]:
    """Words worth a search: of the error's unknown names first, then of the question, longest first."""
    names = [part for name in re.findall(r"\w+_\w+", prompt.get("error")) for part in name.split("_")]
    words = [token.text for token in tokenize(prompt.question) if token.kind == "word"]
    kept = [
        w for w in [*names, *sorted(words, key=len, reverse=True)] if len(w) > 3 and w.lower() not in STOP
    ]
    return list(dict.fromkeys(kept))


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
