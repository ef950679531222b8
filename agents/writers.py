"""Roles that write a first query for the question.

SqlWriter writes it in one call (SSEV's PreSQL and PostSQL, paper 004, 3.1.1; ReFoRCE's generation, paper
000), Action step by step (ReCAPAgent-SQL, 3.3.5), ToolUser in a loop with tools (Spider-Agent, paper 000, 3.1
and 4.1), GenAgent from a grounded schema and examples (SQLAgent, paper 001, 3.3). ReadingWriter writes what
else the question could mean (ours).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from quorum.agents.role import (
    Assumptions,
    Certainty,
    Form,
    Missing,
    NeededText,
    Ordered,
    Ours,
    Role,
    Said,
    SqlText,
    Summary,
    all_said,
    said,
    sentence,
    usable,
)

MAX_READINGS = 3

MAX_TOOL_STEPS = 20
"""Steps of one answer, Spider-Agent's own limit."""

Style: TypeAlias = Literal["", "direct", "decomposed", "plan-led"]
"""How to approach the query: as the model likes, in one piece, in CTEs, along a plan."""

APPROACHES: dict[Style, str] = {
    "": "",
    "direct": "Approach: write it directly, with no more subqueries than the question needs.",
    "decomposed": "Approach: write it in steps: CTEs with one small task and a telling name each, then a "
    "SELECT that gives the answer.",
    "plan-led": "Approach: follow the plan step by step; say in the reasoning where you had to depart "
    "from it.",
}
"""What the SqlWriter's prompt says for each style."""


def _readings(given: Any) -> Any:
    found = all_said(given)
    return found[:MAX_READINGS] if isinstance(found, list) else found


class Draft(Form):
    """A complete query with its writer's remarks, or what the data lacks for one."""

    reasoning: Annotated[str, Ours()] = Field(
        default="", description="Tables, joins and filters, and why; three sentences at most."
    )
    assumptions: Assumptions = Field(default_factory=list)
    readings: Annotated[list[str], BeforeValidator(_readings), Ours()] = Field(
        default_factory=list,
        description="What else the question's words can mean than `sql` takes them to mean, so that other "
        "rows or values are shown: one definite meaning each, in one sentence, the likeliest first; no other "
        "layout, order or column; "
        f"{MAX_READINGS} at most. Empty if only one meaning is sensible.",
    )
    missing: Missing = None
    sql: Annotated[Said, Ours("The complete query.")] = Field(
        default=None, description="The complete query; null only with `missing`."
    )
    summary: Summary = ""
    ordered: Ordered = False
    certainty: Certainty = None

    @model_validator(mode="after")
    def _sql_or_missing(self) -> Self:
        if not self.sql and not self.missing:
            raise ValueError("give the query in sql, or in missing what the data lacks for one")
        if self.sql and self.missing:
            raise ValueError("give sql, with missing null, or missing, with sql null: only one can be meant")
        return self


class Generated(Draft):
    """A query over a part of the schema, or what to search for before there can be one."""

    missing: Annotated[Said, Ours()] = Field(
        default=None,
        description="If no query over what is shown can answer: what it lacks, in one sentence. Else null.",
    )


SQL_WRITER = Role("sql_writer", "SqlWriter", "{sql}{missing}", Draft)
GEN_AGENT = Role("gen_agent", "GenAgent", "{sql}{missing}", Generated)


class Action(Form):
    """One step towards the answer."""

    thought: str = Field(default="", description="Why this step, in one sentence.")
    action: Literal["sql", "look", "terminate"]
    sql: str | None = Field(default=None, description="The complete query, for action sql; else null.")
    command: str | None = Field(default=None, description="The command, for action look; else null.")
    missing: Missing = None
    summary: Summary = ""
    ordered: Ordered = False

    @model_validator(mode="after")
    def _has_its_argument(self) -> Action:
        if self.action == "sql" and not (self.sql or "").strip():
            raise ValueError("action sql needs the query in sql")
        if self.action == "look" and not (self.command or "").strip():
            raise ValueError("action look needs a command")
        return self

    @property
    def text(self) -> str:
        """The query or the command; empty for neither."""
        return {"sql": self.sql or "", "look": self.command or "", "terminate": ""}[self.action]


ACTION = Role("action", "Action", "{action}: {sql}{command}{missing}", Action)


class ToolStep(Form):
    """A thought and the one action that follows from it."""

    thought: str = Field(
        default="", description="What is known and what is missing, in two sentences at most."
    )
    action: Literal["sql", "look", "answer"]
    sql: str | None = Field(
        default=None, description="One whole query, for action sql and mostly for answer; else null."
    )
    command: str | None = Field(default=None, description="The command, for action look; else null.")
    assumptions: Assumptions = Field(default_factory=list)
    missing: Missing = None
    summary: Summary = ""
    ordered: Ordered = False

    @model_validator(mode="after")
    def _has_its_argument(self) -> ToolStep:
        if self.action == "sql" and not self.text:
            raise ValueError("action sql needs the query in sql")
        if self.action == "look" and not self.text:
            raise ValueError("action look needs a command")
        if self.action == "answer" and self.text and self.missing:
            raise ValueError(
                "answer with sql, missing null, or with missing, sql null: only one can be meant"
            )
        return self

    @property
    def text(self) -> str:
        """The action's argument; empty for an answer that names no query."""
        return ((self.command if self.action == "look" else self.sql) or "").strip()


TOOL_USER = Role("tool_user", "ToolUser", "{action}: {sql}{command}{missing}", ToolStep)


class Reading(Form):
    """One definite other meaning of the question, and its query."""

    meaning: Annotated[NeededText, AfterValidator(sentence)] = Field(
        description="How it reads the question, in a sentence like `answered` that shows where the two "
        'differ; never "X or Y".'
    )
    sql: SqlText = Field(description="The whole query of this reading.")


class Readings(Form):
    """The readings that are open."""

    reasoning: str = Field(
        default="", description="Which words leave what open, or why nothing is; three sentences at most."
    )
    answered: Annotated[str, BeforeValidator(lambda text: said(text) or ""), AfterValidator(sentence)] = (
        Field(
            default="",
            description="How the colleague's query reads the question, in one plain sentence without SQL: "
            '"Counts each order once, by the day it was placed."; empty if nothing is open.',
        )
    )
    readings: Annotated[
        list[Reading], usable(Reading), AfterValidator(lambda found: found[:MAX_READINGS])
    ] = Field(
        default_factory=list,
        description=f"The likeliest first, {MAX_READINGS} at most; empty if nothing is open.",
    )


READING_WRITER = Role(
    "reading_writer",
    "ReadingWriter",
    "writes {readings:other reading|other readings}: {reasoning}",
    Readings,
    temperature=0.0,
)
"""It sees the answer and the writer's notes: the writer knows best what an answer rests on, and can least
tell whether that was meant. The kinds of open questions in its prompt are those of AMBROSIA (Saparina and
Lapata, 2024: scope, attachment, vagueness), and measures."""
