"""SchemaLinker: explores schema files and ends with the few columns needed (ReCAPAgent-SQL, 3.3.4)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, model_validator

from quorum.agents.base import ask
from quorum.agents.role import Form, Role
from quorum.knowledge.schema.files import SchemaFiles
from quorum.tools.models import Model

MAX_STEPS = 30  # ReCAPAgent-SQL, section 3.3.4

SHORT = 6_000
"""Characters of ``DDL.sql`` that every prompt shows at once: it saves the turn that would ask for it."""


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


ROLE = Role("schema_linker", "SchemaLinker", "{command}{linked_schema}", LinkStep)


@dataclass(frozen=True)
class Look:
    """A command that was run and what it printed."""

    command: str
    output: str


async def link_schema(
    model: Model,
    dialect: str,
    question: str,
    files: SchemaFiles,
    *,
    sql: str = "",
    error: str = "",
    max_steps: int = MAX_STEPS,
) -> str:
    """Explore ``files`` with the model for at most ``max_steps`` turns.

    ``sql`` and ``error`` name the failed query that called for linking, if one did. A command
    given a second time is not run again; the model is told so.

    Returns:
        The compact form ``table(col:TYPE[values], ...); ...``; empty if the model never gave it.
    """
    history: list[Look] = []
    listing, ddl = files.run("ls"), files.run("cat DDL.sql")
    for steps_left in range(max_steps, 0, -1):
        step = await ask(
            model,
            ROLE,
            dialect=dialect,
            question=question,
            sql=sql,
            error=error,
            listing=listing,
            ddl=ddl if len(ddl) <= SHORT else "",
            history=history,
            steps_left=steps_left,
        )
        if (step.linked_schema or "").strip():
            return (step.linked_schema or "").strip()
        command = " ".join((step.command or "").split())
        seen = any(look.command == command for look in history)
        output = "You have run this command already; see above." if seen else files.run(command)
        history.append(Look(command, output))
    return ""
