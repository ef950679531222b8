"""What the offline model answers: a role in the form that its prompt asks for, some by rules of their own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema_text import parse_schema
from quorum.tools.offline.lexicon import STOP, stems
from quorum.tools.offline.reading import Reading
from quorum.tools.offline.rules import read
from quorum.tools.offline.schema import Schema

NOTE = "This is a demonstration: rules, no language model."
READ = "The rules read the question so."
UNREAD = "Hardly a word of the question resembles anything in the schema."
CUES = {"date": "[0-9]{4}-[0-9]{2}|month|year", "json": "json", "set": "union"}  # for a topic of that word

_FORM = re.compile(r"^Reply with one JSON object:\n((?: *- `.*(?:\n|\Z))+)", re.MULTILINE)
_FIELD = re.compile(r"- `(\w+)` \((.+?)\)(?::|$)(.*(?:\n +- .*)*)", re.MULTILINE)


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
    """The reply for the prompt's ``<task>``: by its own rule, else by the form that the prompt asks for.

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


def _filled(form: str, prompt: Prompt) -> dict[str, Any]:
    """A reply for the form of ``quorum.tools.models.structured.form_of``, field by field."""
    return {name: _value(name, kind, below, prompt) for name, kind, below in _FIELD.findall(form)}


def _value(name: str, kind: str, below: str, prompt: Prompt) -> Any:
    """What commits to least: no, none, the last choice; for a query the one shown, else the one read."""
    if name == "missing" and "null" in kind and not prompt.get("sql"):
        return UNREAD if prompt.read().unread else None
    if name == "sql" or name.endswith("_sql"):
        shown, nullable = prompt.get("sql"), "null" in kind
        sql = shown or ("" if prompt.read().unread else prompt.read().sql())
        return None if nullable and (shown or not sql) else sql
    if choices := re.findall('"([^"]*)"', kind):
        return choices[-1]
    if "null" in kind:
        return None
    if kind == "object":
        return _filled(re.sub("(?m)^  ", "", below), prompt)
    if name == "summary":
        return ""
    if kind == "string":
        return f"{_why(prompt.read())} {NOTE}" if prompt.get("schema") and not prompt.get("sql") else NOTE
    return {"true or false": False, "integer": 0, "number": 0.0}.get(kind, [])


def _why(reading: Reading) -> str:
    return UNREAD if reading.unread else READ


def _header(reading: Reading) -> str:
    """The names of the columns that the query would show."""
    return ", ".join(text.rpartition(" AS ")[2] for _, (text, _) in sorted(reading.items.items()))


def _inside(sql: str) -> str:
    """The query that looks for its values inside longer texts."""
    return re.sub(r"(LOWER\(\S+\)) = '((?:[^']|'')*)'", r"\1 LIKE '%\2%'", sql)


def planner(prompt: Prompt) -> dict[str, Any]:
    """The plan is read off the query that the rules would write."""
    reading = prompt.read()
    steps = [f"{' '.join(clause.split())}." for clause in re.split(r"\n(?=[A-Z])", reading.sql())[1:]]
    return {"steps": [*steps, NOTE], "expected_format": _header(reading)}


def format_writer(prompt: Prompt) -> dict[str, Any]:
    """What the query would show."""
    return {"header": _header(prompt.read()), "rows": ""}


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
    reading, steps = prompt.read(), prompt.all("step")
    questioned = "was rejected: " in "".join(prompt.all("result")[-1:])
    why, sql = READ, prompt.other_sql(steps) if steps else reading.sql()
    if reading.unread:
        why, sql = UNREAD, None
    elif steps and not questioned:
        why, sql = "The result stands.", None
    return {"thought": f"{why} {NOTE}", "action": "sql" if sql else "terminate", "sql": sql, "command": None}


def tool_user(prompt: Prompt) -> dict[str, Any]:
    """Run the query; read the question again after an error or a first empty result; then answer."""
    reading, steps, results = prompt.read(), prompt.all("step"), prompt.all("result")
    empty = [result for result in results if result.endswith("\n(0 rows)")]
    failed = bool(results) and (results[-1].startswith("Error: ") or (empty == results[-1:]))
    why, sql = READ, None if steps else reading.sql()
    wider = _inside(steps[-1]) if failed and empty else ""
    if reading.unread:
        why, sql = UNREAD, None
    elif failed and (other := wider if wider not in ("", steps[-1]) else prompt.other_sql(steps)):
        why, sql = "Is there another reading?", other
    elif steps:
        why = "The result stands."
    return {"thought": f"{why} {NOTE}", "action": "sql" if sql else "answer", "sql": sql, "command": None}


def sql_critique(prompt: Prompt) -> dict[str, Any]:
    """Whether every value that the question names stands in the query; more the rules cannot judge."""
    own, sql = prompt.read().sql(), prompt.get("sql").lower()
    missing = [value for value in re.findall(r"'([^'%]+)'", own) if value.lower() not in sql]
    reason = f"Values left out: {', '.join(missing) or 'none'}. {NOTE}"
    return {"reasoning": reason, "correct": not missing, "sql": own if missing else None}


def schema_linker(prompt: Prompt) -> dict[str, Any]:
    """Read the file whose name is most like the question, and give its table as it stands there, since what
    is linked may be all of the schema that the other rules get to read."""
    words, seen = {*stems(prompt.get("question"))}, prompt.get("result") or prompt.get("files")
    if tables := re.findall(r"(?m)^tables? .*(?:\n  .+)*", seen):
        dialect = re.search(r"The SQL dialect is (\w+)", prompt.text)
        linked = [f"# database linked ({dialect[1] if dialect else ''})", *tables]
        return {"thought": NOTE, "command": None, "linked_schema": "\n\n".join(linked)}
    places = re.findall(r"(?m)^\S+\.txt", seen) or re.findall(r"(?m)^\S+/(?= \()", seen) or ["README.md"]
    place = max(places, key=lambda place: len(words & {*stems(place)}))
    return {
        "thought": NOTE,
        "command": f"{'ls' if place[-1] == '/' else 'cat'} {place}",
        "linked_schema": None,
    }


def table_linker(prompt: Prompt) -> dict[str, Any]:
    """A table is needed if a word of the question names it, one of its columns or of their values."""
    hits = [hit for mention in prompt.read().mentions for hit in mention.hits]
    columns = dict.fromkeys(hit.column.name for hit in hits if hit.column)
    thought = f"{len(hits)} words of the question resemble something here."
    return {"think": thought, "answer": "Y" if hits else "N", "columns": list(columns)}


def self_refiner(prompt: Prompt) -> dict[str, Any]:
    """Take the suggested name, look for values inside longer texts, or read the question again."""
    question, sql, shown = prompt.get("question"), prompt.get("sql"), prompt.all("earlier_sql")
    unknown = re.search(r"no column (\w+)\b.*Did you mean: (?:\w+\.)*(\w+)", prompt.get("error"), re.DOTALL)
    if unknown and unknown[1] in question:
        meant = prompt.read(question.replace(unknown[1], unknown[2])).sql()
        thought, fixed = f"{unknown[2]} is meant.", meant
    elif '<error kind="empty_result">' in prompt.text and _inside(sql) not in (sql, *shown):
        thought, fixed = "The values may be part of a longer text.", _inside(sql)
    else:
        thought, fixed = "Is there another reading?", prompt.other_sql([sql, *shown]) or sql
    return {"explanation": f"{thought} {NOTE}", "sql": fixed}


def cte_refiner(prompt: Prompt) -> dict[str, Any]:
    """Whatever ran is accepted; a last stage that failed is the question read again."""
    failed = bool(prompt.get("error")) and "gives the answer" in prompt.text
    sql = prompt.read().sql() if failed else None
    return {"reasoning": "The rules read stages no better.", "accept": not failed, "sql": sql}


def validator(prompt: Prompt) -> dict[str, Any]:
    """Reject only what is plain to see in the summary: no rows, or nothing but NULLs."""
    rows = int("0" + "".join(re.findall(r"^rows: (\d+)", prompt.get("result"))))
    nulls = re.findall(r"\): (\d+) NULL", prompt.get("result"))
    empty = rows == 0 or (bool(nulls) and all(int(count) >= rows for count in nulls))
    fix = "Loosen the filters: look for the values inside longer texts." if empty else ""
    return {"valid_result": not empty, "columns_not_needed": [], "result_empty": empty, "suggest_fix": fix}


def judge(prompt: Prompt) -> dict[str, Any]:
    """The only answer that the rules would give too, or that has all values of the question in its query."""
    own = " ".join(prompt.read().sql().split())
    queries = [" ".join(sql.split()) for sql in prompt.all("answer")]
    values = re.findall(r"'([^'%]+)'", own)
    same = [place for place, sql in enumerate(queries) if sql == own]
    with_values = [
        place for place, sql in enumerate(queries) if all(v.lower() in sql.lower() for v in values)
    ]
    found = same if len(same) == 1 else with_values
    why = READ if found is same else f"Values asked for: {', '.join(values) or 'none'}."
    return {"reason": f"{why} {NOTE}", "choice": "ABC"[found[0]] if len(found) == 1 else "cannot tell"}


def column_explorer(prompt: Prompt) -> dict[str, Any]:
    """The values by which each table of the query is known, then the query itself."""
    reading = prompt.read()
    tables = {table.full_name: table for table in [reading.main, *reading.used]}.values()
    queries = [
        {"purpose": f"What {table.name} holds.", "sql": _values(reading, table.name)} for table in tables
    ]
    sql = reading.sql()
    bounded = sql if "\nLIMIT " in sql else f"{sql}\nLIMIT 20"
    return {"queries": [*queries, {"purpose": "What the rules would answer.", "sql": bounded}]}


def _values(reading: Reading, name: str) -> str:
    table = next(table for table in reading.schema.tables if table.name == name)
    column = reading.quote(reading.schema.label(table)[1].name)
    return f"SELECT DISTINCT {column} FROM {reading.source(table)} LIMIT 20"


def exploration_corrector(prompt: Prompt) -> dict[str, Any]:
    """Put the suggested name for the unknown one, here and in the queries that wait; else drop the filter.

    Where there is none, no row is the finding.
    """
    sql, waiting = prompt.get("sql"), prompt.all("waiting_sql")
    unknown = re.search(
        r"no (?:column|table) (\w+)\b.*Did you mean: (?:\w+\.)*(\w+)", prompt.get("error"), re.DOTALL
    )
    if unknown is None:
        where = r"\bWHERE\b.*?(?=\b(?:GROUP BY|ORDER BY|LIMIT)\b|$)"
        bare = re.sub(where, "", sql, count=1, flags=re.IGNORECASE | re.DOTALL)
        if bare == sql:
            return {"fault": "Nothing is wrong.", "sql": None, "later": []}
        return {"fault": "The filter may be too strict.", "sql": bare, "later": []}
    fixed = [re.sub(rf"\b{unknown[1]}\b", unknown[2], text) for text in [sql, *waiting]]
    later = [
        {"number": number, "sql": new}
        for number, (old, new) in enumerate(zip(waiting, fixed[1:], strict=True), 1)
        if new != old
    ]
    return {"fault": f"{unknown[2]} is meant.", "sql": fixed[0], "later": later}


def info_agent(prompt: Prompt) -> dict[str, Any]:
    """The question's own words."""
    words = re.findall(r"\w{3,}", prompt.get("question"))
    return {"keywords": [word for word in dict.fromkeys(words) if word.lower() not in STOP][:12] or [NOTE]}


def explorer(prompt: Prompt) -> dict[str, Any]:
    """Show unused columns of each table; grow the first states by sorting and counting."""
    wanted = int("0" + "".join(re.findall(r"Choose the (\d+) actions", prompt.text)[-1:]))
    new = []
    for line in prompt.get("unused").splitlines():
        table, _, names = line.partition(": ")
        columns = [f"{table}.{name}" for name in names.partition(" and ")[0].split(", ")[:6]]
        new.append({"state": 0, "action": "select_column", "columns": columns})
    grown = []
    for line in prompt.get("states").splitlines()[1:]:
        number, _, steps = line.partition(": ")
        if "; " not in steps and "(" not in steps:
            column = steps.removeprefix("select_column ").split(", ")[0]
            grown.append({"state": int(number), "action": "order_by", "columns": [column]})
            grown.append({"state": int(number), "action": "group_by", "columns": [column]})
    return {"reasoning": NOTE, "actions": [*new[: max(1, wanted - 1)], *grown, *new[wanted - 1 :]][:wanted]}


def simulator(prompt: Prompt) -> dict[str, Any]:
    """The steps as one query, as far as the rules know them."""
    steps = re.findall(r"(?m)^\d+\. (\w+) (.+?)(?: \(.*\))?$", prompt.get("steps"))
    by = {action: columns.split(", ") for action, columns in steps}
    shown = by.get("group_by") or by["select_column"]
    table = shown[0].rpartition(".")[0]
    items = [*shown, "COUNT(*)"] if "group_by" in by else shown
    clauses = {"GROUP BY": by.get("group_by", []), "ORDER BY": by.get("order_by", [])}
    lines = [f"{keyword} {', '.join(columns)}" for keyword, columns in clauses.items() if columns]
    return {"sql": "\n".join([f"SELECT {', '.join(items)}", f"FROM {table}", *lines])}


def describer(prompt: Prompt) -> dict[str, Any]:
    """The names of what the query shows."""
    sql = prompt.get("sql")
    items = re.findall(r"SELECT (.*)\nFROM (.*)", sql)
    shown, table = items[0] if items else (sql, "the database")
    names = ", ".join(name.rpartition(".")[2].strip('"') for name in shown.split(", "))
    how = "How many rows are there for each" if "GROUP BY" in sql else "What are the"
    return {"description": f"{how} {names} of {table}? {NOTE}", "useful": True, "objection": ""}


RULES = {
    rule.__name__: rule
    for rule in (
        *(planner, format_writer, plan_critique, syntax_retriever, action, tool_user, sql_critique, judge),
        *(schema_linker, table_linker, self_refiner, cte_refiner, validator),
        *(column_explorer, exploration_corrector, info_agent, explorer),
        *(simulator, describer),
    )
}
"""Roles that need more than their reply's form; all others are answered by that alone."""
