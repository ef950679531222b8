"""TableLinker: asks of each table whether the question needs it (ReFoRCE, paper 000, Appendix A).

Used where the schema text is longer than ``ABOVE_TOKENS``. Recall comes first: a table that could not
be judged stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from quorum.agents.base import ask, ask_each
from quorum.agents.role import Form, Role
from quorum.tools.models import Model

ABOVE_TOKENS = 50_000  # ReFoRCE, section 3.2.1


class TableVerdict(Form):
    """Whether one table is needed, and which of its columns (ReFoRCE, Figure 3)."""

    think: str = Field(
        default="",
        description="What of the question it could answer, step by step, in three sentences at most.",
    )
    answer: Literal["Y", "N"] = Field(
        description="Y if a query for the question may read the table or join through it, also where you "
        "are not sure; N if it is about something else."
    )
    columns: list[str] = Field(
        default=[],
        description="With Y those that may be needed, keys for joins included, spelt as in the schema; "
        "empty with N.",
    )


ROLE = Role("table_linker", "TableLinker", "{answer}: {think}", TableVerdict)


@dataclass(frozen=True)
class TableLinking:
    """The verdicts on the tables.

    Attributes:
        needed: By the name of each table that is needed, the columns named for it.
        unjudged: Tables whose judgement could not be read; they are kept whole.
    """

    needed: Mapping[str, tuple[str, ...]]
    unjudged: tuple[str, ...] = ()


async def judge_table(
    model: Model, dialect: str, question: str, schema: str, *, documents: str = ""
) -> TableVerdict:
    """Ask whether the question needs the one table (or group of like tables) in ``schema``."""
    return await ask(model, ROLE, dialect=dialect, question=question, table=schema, documents=documents)


async def link_tables(
    model: Model, dialect: str, question: str, tables: Mapping[str, str], *, documents: str = ""
) -> TableLinking:
    """Judge all tables, some at a time; a malformed reply costs one table's judgement alone.

    Args:
        tables: Schema text by table name.

    Raises:
        ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``; the other calls are cancelled.
    """

    async def judged(schema: str) -> TableVerdict:
        return await judge_table(model, dialect, question, schema, documents=documents)

    verdicts = dict(zip(tables, await ask_each(tables.values(), judged), strict=True))
    needed = {
        name: tuple(verdict.columns)
        for name, verdict in verdicts.items()
        if verdict and verdict.answer == "Y"
    }
    return TableLinking(needed, tuple(name for name, verdict in verdicts.items() if verdict is None))
