"""Repairs: what the rules do about each kind of failed query."""

from __future__ import annotations

import difflib
import re

from tools.offline.prompt import Prompt
from tools.offline.reader import Choice

_TEXT_EQUALS = re.compile(r"(?P<column>[\w.\"`]+) = '(?P<value>(?:[^']|'')*)'")
_LOWERED_EQUALS = re.compile(r"(?P<column>LOWER\([\w.\"`]+\)) = '(?P<value>(?:[^']|'')*)'")


def repair(prompt: Prompt) -> tuple[str, str]:
    """What was wrong, in a sentence, and the repaired query.

    A query that no rule can change comes back as it was, and the sentence says so.
    """
    sql, error = prompt.get("sql"), prompt.get("error")
    kind = next(iter(prompt.attributes("error", "kind")), "")
    shown = [sql, *prompt.all("earlier_sql")]
    fixed = None
    if kind in ("column_not_found", "table_not_found"):
        fixed = _rename(prompt, sql, error)
    elif kind == "empty_result":
        fixed = _relax(sql, shown)
    if fixed and fixed[1] not in shown:
        return fixed
    other = prompt.other_sql(shown)
    if other:
        return "The question can be read another way; this query takes that reading.", other
    return "The rules know no other reading of the question.", sql


def _rename(prompt: Prompt, sql: str, error: str) -> tuple[str, str] | None:
    """Put the nearest existing name in the place of the unknown one, and read the question again with it."""
    known = {c.name for t in prompt.linker.schema.tables for c in t.columns}
    known |= {t.name for t in prompt.linker.schema.tables}
    folded = {name.casefold() for name in known}
    quoted = [word for word in re.findall(r"\w+(?:\.\w+)*", error) if word in sql]
    unknown = next((w for word in quoted for w in reversed(word.split(".")) if _stranger(w, folded)), None)
    if unknown is None:
        return None
    suggested = re.findall(r"\w+(?:\.\w+)*", error.partition("Did you mean:")[2])
    names = [name.split(".")[-1] for name in suggested if name.split(".")[-1].casefold() in folded]
    near = names or difflib.get_close_matches(unknown, sorted(known), n=1, cutoff=0.3)
    if not near:
        return None
    question = re.sub(rf"\b{re.escape(unknown)}\b", near[0], prompt.question)
    fixed = re.sub(rf"\b{re.escape(unknown)}\b", near[0], sql)
    if question != prompt.question:  # the name came from the question: its table may be another
        fixed = prompt.sql(question, Choice())
    return f"There is no {unknown}; the schema calls it {near[0]}.", fixed


def _stranger(word: str, known: set[str]) -> bool:
    return len(word) > 2 and word.casefold() not in known and not word.isdigit() and "_" in word


def _relax(sql: str, shown: list[str]) -> tuple[str, str] | None:
    """Compare text without regard to case; if that was tried, look for the value inside the text."""
    steps = (
        (
            _TEXT_EQUALS,
            "The values may differ in case.",
            lambda m: f"LOWER({m['column']}) = '{m['value'].lower()}'",
        ),
        (
            _LOWERED_EQUALS,
            "The values may be part of a longer text.",
            lambda m: f"{m['column']} LIKE '%{m['value']}%'",
        ),
    )
    for pattern, reason, change in steps:
        relaxed = pattern.sub(change, sql)
        if relaxed not in shown:
            return reason, relaxed
    return None
