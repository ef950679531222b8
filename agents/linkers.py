"""Roles that find the part of a schema that a question needs.

SchemaLinker reads schema files (ReCAPAgent-SQL, 3.3.4), TableLinker judges each table (ReFoRCE, paper 000,
Appendix A), DraftLinker drafts queries over each part (ours, after SSEV's PreSQL, paper 004, 3.1.1).
InfoAgent names words to search for, ContextExpander what the search missed (SQLAgent, paper 001, 3.3 and
appendix B.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import Field, model_validator

from quorum.agents.base import ask, ask_each
from quorum.agents.prompting import PromptContext
from quorum.agents.role import Form, Role
from quorum.knowledge.schema.files import SchemaFiles
from quorum.tools.models import Model

MAX_LINK_STEPS = 30  # ReCAPAgent-SQL, section 3.3.4

SHORT = 6_000
"""Characters of ``DDL.sql`` that every prompt shows at once: it saves the turn that would ask for it."""

ABOVE_TOKENS = 50_000
"""Tokens of schema text above which tables are judged one by one (ReFoRCE, section 3.2.1)."""


class LinkStep(Form):
    """A command over the schema files, or the linked schema that ends the search."""

    thought: str = Field(
        default="", description="What is still missing, or why this is enough, in one sentence."
    )
    command: str | None = Field(default=None, description="The next command; null once you know enough.")
    linked_schema: str | None = Field(
        default=None,
        description="What is needed and no more, keys for joins included, as `table1(col1:TYPE[value, "
        "value], col2:TYPE); table2(col3:TYPE)`, with sample values where they help; null with a command.",
    )

    @model_validator(mode="after")
    def _does_one_thing(self) -> LinkStep:
        if not (self.command or "").strip() and not (self.linked_schema or "").strip():
            raise ValueError("give either a command or the linked_schema")
        return self


SCHEMA_LINKER = Role("schema_linker", "SchemaLinker", "{command}{linked_schema}", LinkStep, schema=False)


async def link_files(
    model: Model,
    context: PromptContext,
    *,
    files: SchemaFiles,
    sql: str = "",
    error: str = "",
    max_steps: int = MAX_LINK_STEPS,
) -> LinkStep:
    """Explore ``files`` with the model for at most ``max_steps`` turns.

    A command that is given a second time is not run again; the model learns so.

    Args:
        sql, error: The failed query that called for linking, if one did.

    Returns:
        The last step; its ``linked_schema`` is None if the model never gave one.
    """
    history: list[dict[str, str]] = []
    listing, ddl = files.run("ls"), files.run("cat DDL.sql")
    shown = {"sql": sql, "error": error, "listing": listing, "ddl": ddl if len(ddl) <= SHORT else ""}
    for left in range(max_steps, 0, -1):
        step = await ask(model, SCHEMA_LINKER, context, **shown, history=history, steps_left=left)
        if (step.linked_schema or "").strip():
            return step
        command = " ".join((step.command or "").split())
        seen = any(look["command"] == command for look in history)
        output = "You have run this command already; see above." if seen else files.run(command)
        history.append({"command": command, "output": output})
    return LinkStep.model_construct()


class TableVerdict(Form):
    """The verdict on one table, with the columns that are needed (ReFoRCE, Figure 3)."""

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


TABLE_LINKER = Role("table_linker", "TableLinker", "{answer}: {think}", TableVerdict, schema=False)


@dataclass(frozen=True)
class TableLinking:
    """The verdicts on the tables.

    Attributes:
        needed: By the name of each table that is needed, the columns named for it.
        unjudged: Tables whose judgement could not be read; they stay whole.
    """

    needed: Mapping[str, tuple[str, ...]]
    unjudged: tuple[str, ...] = ()


async def link_tables(model: Model, context: PromptContext, *, tables: Mapping[str, str]) -> TableLinking:
    """Judge all tables, some at a time; a malformed reply costs one table's judgement alone.

    Args:
        tables: Schema text by table name.

    Raises:
        ModelUnavailable, BudgetExceeded: As ``ask``; the other calls are cancelled.
    """
    calls = [partial(ask, model, TABLE_LINKER, context, table=schema) for schema in tables.values()]
    verdicts = dict(zip(tables, await ask_each(calls), strict=True))
    needed = {
        name: tuple(verdict.columns)
        for name, verdict in verdicts.items()
        if verdict and verdict.answer == "Y"
    }
    return TableLinking(needed, tuple(name for name, verdict in verdicts.items() if verdict is None))


class ChunkDraft(Form):
    """A query over one part of the schema, or none."""

    missing: str = Field(
        default="", description="What tables of other parts must give, in one sentence; empty if nothing."
    )
    sql: str | None = Field(description="The draft; null if this part has nothing to do with the question.")


DRAFT_LINKER = Role("draft_linker", "DraftLinker", "drafts {sql}", ChunkDraft, schema=False)


@dataclass(frozen=True)
class Drafting:
    """The drafts of a schema's parts.

    Attributes:
        drafts: SQL, one text for each part that offered something, in the parts' order.
        unread: Numbers of the parts, from 0, whose reply could not be read.
    """

    drafts: tuple[str, ...]
    unread: tuple[int, ...] = ()


async def draft_chunks(model: Model, context: PromptContext, *, chunks: Sequence[str]) -> Drafting:
    """Draft against every part, some at a time; a malformed reply costs that part alone.

    The tables that the drafts use are the linked schema: what a model reaches for when it writes says more
    than what it claims to need.

    Raises:
        ModelUnavailable, BudgetExceeded: As ``ask``; the other calls are cancelled.
    """
    replies = await ask_each([partial(ask, model, DRAFT_LINKER, context, schema=chunk) for chunk in chunks])
    drafts = tuple(draft.sql.strip() for draft in replies if draft and draft.sql and draft.sql.strip())
    return Drafting(drafts, tuple(number for number, draft in enumerate(replies) if draft is None))


class Keywords(Form):
    """Words to search the columns for."""

    keywords: list[str] = Field(
        min_length=1,
        max_length=12,
        description="Names and descriptions that the columns needed may have: what is asked for, what it is "
        "filtered, grouped or sorted by, and synonyms that a database would use. One to three words each.",
    )


INFO_AGENT = Role("info_agent", "InfoAgent", "looks for {keywords}", Keywords, sql=False, schema=False)


class Additions(Form):
    """Columns that the context lacks."""

    reasoning: str = Field(default="", description="How the tables needed are joined; two sentences at most.")
    add: list[str] = Field(
        default=[],
        description="`table.column` of what is missing: keys to join by, and columns that the question "
        "needs; empty if nothing is.",
    )


CONTEXT_EXPANDER = Role(
    "context_expander", "ContextExpander", "adds {add}: {reasoning}", Additions, sql=False, schema=False
)
