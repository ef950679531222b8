"""What a scripted model says to ReFoRCE's roles, over the shop of ``tests.graph.shop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorum.graph.recipes.reforce import Reforce
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import GOOD, Ran, Run

OTHER = (
    "SELECT c.name, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
)
THIRD = "SELECT COUNT(*) AS orders FROM orders"
BROKEN = "SELECT town, COUNT(*) FROM customers GROUP BY town"
NOTHING = "SELECT city FROM customers WHERE city = 'Nowhere'"

CITIES = {"purpose": "How are cities spelt?", "sql": "SELECT DISTINCT city FROM customers LIMIT 20"}
TOWNS = {"purpose": "Which towns?", "sql": "SELECT DISTINCT town FROM customers LIMIT 20"}
NAMES = {"purpose": "Who is where?", "sql": "SELECT town, name FROM customers LIMIT 20"}

Said = dict[str, Any] | str | Exception


def as_reforce(run: Run) -> Run:
    """``run`` of the recipe, whose switches are given by name beside the options."""

    async def asked(said: Any, **given: Any) -> Ran:
        switches = {name: given.pop(name) for name in Reforce.switches() if name in given}
        return await run(said, recipe="reforce", switches=switches, **given)

    return asked


def written(sql: str) -> dict[str, Any]:
    """The SqlWriter's reply."""
    return {"reasoning": "So.", "sql": sql}


def explored(*queries: dict[str, str]) -> dict[str, Any]:
    """The ColumnExplorer's reply."""
    return {"queries": list(queries)}


def corrected(sql: str, **later: str) -> dict[str, Any]:
    """The correction of an exploration query; ``q1`` is the first of those that wait."""
    rewrites = [{"number": int(name[1:]), "sql": text} for name, text in later.items()]
    return {"fault": "The name was wrong.", "sql": sql, "later": rewrites}


def number(prompt: Prompt) -> int:
    """Which candidate asks, from 1."""
    return int((prompt.candidate or "c0")[1:])


def in_turn(*queries: str) -> Callable[[Prompt], Any]:
    """A writer of whose candidates each has its own query."""
    return lambda prompt: written(queries[number(prompt) - 1])


def taking_turns(*queries: str, found: str = "") -> Callable[[Prompt], Any]:
    """A writer whose candidates take turns; with findings before it, it writes ``found``."""

    def write(prompt: Prompt) -> Any:
        if found and "<exploration_result>" in prompt.text:
            return written(found)
        return written(queries[(number(prompt) - 1) % len(queries)])

    return write


def replies(**roles: Any) -> Callable[[Prompt], Any]:
    """A model that does everything right, but for the roles given: a reply, or a function of the prompt."""
    usual: dict[str, Any] = {
        "sql_writer": written(GOOD),
        "self_refiner": {"explanation": "Repaired.", "sql": GOOD},
        "column_explorer": explored(CITIES),
        "reading_writer": {"reasoning": "It is plain.", "readings": []},
        "exploration_corrector": corrected(CITIES["sql"]),
        "format_writer": {"header": "city:text, orders:integer", "rows": "one row per city"},
        "self_checker": {"reasoning": "Right.", "sql": GOOD},
        "cte_refiner": {"reasoning": "Right.", "accept": True, "sql": None},
        "table_linker": {"think": "Yes.", "answer": "Y", "columns": []},
        "draft_linker": {"missing": "", "sql": GOOD},
        "info_agent": {"keywords": ["city", "orders"]},
        "context_expander": {"reasoning": "All is there.", "add": []},
        "gen_agent": written(GOOD),
        "judge": {"reason": "It counts by city.", "choice": "A"},
        **roles,
    }

    def reply(prompt: Prompt) -> Any:
        said = usual[prompt.role]
        return said(prompt) if callable(said) else said

    return reply
