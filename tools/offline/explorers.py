"""What the offline model answers where ReFoRCE's agents explore, link and check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from quorum.tools.offline.reading import Reading

if TYPE_CHECKING:
    from quorum.tools.offline.roles import Prompt


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
        bare = re.sub(
            r"\bWHERE\b.*?(?=\b(?:GROUP BY|ORDER BY|LIMIT)\b|$)", "", sql, count=1, flags=re.I | re.S
        )
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


def table_linker(prompt: Prompt) -> dict[str, Any]:
    """A table is needed if a word of the question names it, one of its columns or of their values."""
    hits = [hit for mention in prompt.read().mentions for hit in mention.hits]
    columns = dict.fromkeys(hit.column.name for hit in hits if hit.column)
    said = f"{len(hits)} words of the question resemble something here."
    return {"think": said, "answer": "Y" if hits else "N", "columns": list(columns)}


def draft_linker(prompt: Prompt) -> dict[str, Any]:
    """The query that the rules read, where they can read any of the question."""
    reading = prompt.read()
    return {"missing": "", "sql": None if reading.unread else reading.sql()}


def cte_refiner(prompt: Prompt) -> dict[str, Any]:
    """Whatever ran is accepted; a last stage that failed is the question read anew."""
    failed = bool(prompt.get("error")) and "gives the answer" in prompt.text
    sql = prompt.read().sql() if failed else None
    return {"reasoning": "The rules read stages no better.", "accept": not failed, "sql": sql}


def format_writer(prompt: Prompt) -> dict[str, Any]:
    """What the query would show."""
    reading = prompt.read()
    shown = [text.rpartition(" AS ")[2] for _, (text, _) in sorted(reading.items.items())]
    return {"header": ", ".join(shown), "rows": ""}


def self_checker(prompt: Prompt) -> dict[str, Any]:
    """The rules stand by what they wrote."""
    return {"reasoning": "The rules stand by it.", "sql": prompt.get("sql")}


EXPLORERS = (
    column_explorer,
    exploration_corrector,
    table_linker,
    draft_linker,
    cte_refiner,
    format_writer,
    self_checker,
)
