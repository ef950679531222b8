"""What the offline model answers where one model works in a loop with tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorum.tools.offline.roles import Prompt

NO_ROWS = r"\n\(0 rows\)$"


def tool_user(prompt: Prompt) -> dict[str, Any]:
    """Run the query; read the question anew after an error or a first empty result; then answer."""
    reading, said, results = prompt.read(), prompt.all("step"), prompt.all("result")
    empty = [result for result in results if re.search(NO_ROWS, result)]
    failed = bool(results) and (results[-1].startswith("Error: ") or (empty == results[-1:]))
    why, sql = "The rules read the question so.", None if said else reading.sql()
    if reading.unread:
        why, sql = "Hardly a word of the question resembles anything in the schema.", None
    elif failed and (other := _other(said[-1], empty) or prompt.other_sql(said)):
        why, sql = "Is there another reading?", other
    elif said:
        why = "The result stands."
    thought = f"{why} This is a demonstration: rules, no language model."
    return {"thought": thought, "action": "sql" if sql else "answer", "sql": sql, "command": None}


def _other(sql: str, empty: list[str]) -> str | None:
    """The query that finds its values inside longer texts, for one that found none."""
    inside = re.sub(r"(LOWER\(\S+\)) = '((?:[^']|'')*)'", r"\1 LIKE '%\2%'", sql)
    return inside if empty and inside != sql else None


LOOPERS = (tool_user,)
