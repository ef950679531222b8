"""What agents share: turns taken, queries that explore, and a first query with what is said beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from quorum.agents.role import Assumptions, Form, Missing, Ordered, Said, SqlText, Summary, all_said

MAX_READINGS = 3


@dataclass(frozen=True)
class Turn:
    """An action that was taken and what came of it.

    Attributes:
        text: The query or the command.
        thought: Why it was taken, where the agent is shown its own thoughts again.
        by: The role that wrote the query, where it was another than the agent itself.
        done: False for a query that was replaced before it ran: it has not failed, and may be run yet.
    """

    action: str
    text: str
    observation: str
    thought: str = ""
    by: str = ""
    done: bool = True


@dataclass(frozen=True)
class Attempt:
    """An earlier query and what was wrong with it, so that it is not written again."""

    sql: str
    error: str


def repeats(action: str, text: str, history: Sequence[Turn]) -> bool:
    """Whether the very same action was done before; white space and a final ``;`` don't count."""

    def key(kind: str, text: str) -> tuple[str, str]:
        return kind, " ".join(text.rstrip("; \n").split())

    return key(action, text) in {key(turn.action, turn.text) for turn in history if turn.done}


@dataclass(frozen=True)
class Finding:
    """An exploration query, its result as short text, and what it was to find out."""

    sql: str
    result: str
    purpose: str = ""


def _readings(given: Any) -> Any:
    found = all_said(given)
    return found[:MAX_READINGS] if isinstance(found, list) else found


class ExplorationQuery(Form):
    """One small query and what it is to find out."""

    purpose: str = Field(default="", description="What it is to find out, in one sentence.")
    sql: SqlText = Field(description="The whole query.")


class Draft(Form):
    """A complete query with what is said beside it, or what the data lacks for one."""

    reasoning: str = Field(
        default="", description="Which tables, joins and filters, and why; three sentences at most."
    )
    assumptions: Assumptions = Field(default_factory=list)
    readings: Annotated[list[str], BeforeValidator(_readings)] = Field(
        default_factory=list,
        description="What else somebody may have meant by this very question, so that other rows or values "
        "would be shown: one definite alternative each, in one sentence, the likeliest first; not merely "
        "another layout, order or column that nobody asked for; "
        f"{MAX_READINGS} at most. Empty if there is only one sensible reading.",
    )
    missing: Missing = None
    sql: Said = Field(default=None, description="The complete query; null only with `missing`.")
    summary: Summary = ""
    ordered: Ordered = False

    @model_validator(mode="after")
    def _sql_or_missing(self) -> Self:
        if not self.sql and not self.missing:
            raise ValueError("give the query in sql, or in missing what the data lacks for one")
        if self.sql and self.missing:
            raise ValueError("give sql, with missing null, or missing, with sql null: only one can be meant")
        return self
