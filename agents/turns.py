"""What agents that work step by step share: turns taken, and queries that explore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from quorum.agents.role import SqlText


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


class ExplorationQuery(BaseModel):
    """One small query and what it is to find out."""

    purpose: str = Field(description="What it is to find out, in one sentence.")
    sql: SqlText = Field(description="The whole query.")
