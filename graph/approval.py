"""Asking before a query runs: what the user is asked, and what a reply means."""

from __future__ import annotations

from typing import Any, Literal

from quorum.graph.clarification import Asked

MAX_ASKED = 3
"""Times the user is asked about a query until it is not approved."""

YES, NO, ALL = "yes", "no", "all"
_WORDS = {
    **dict.fromkeys(("yes", "y", "ok", "true"), YES),
    **dict.fromkeys(("no", "n", "false", ""), NO),
    **dict.fromkeys(("all", "a"), ALL),
}
HOW = "Reply yes, no, or all for this query and every other one of this run."


class Approval(Asked):
    """What the user is asked before a query runs. The reply is ``yes``, ``no`` or ``all``.

    Attributes:
        why: Why the user is asked, in a sentence.
        reads: What it would read, in words.
        bytes: The same as a number; None where that cannot be told.
        rows: That it would return, as the engine guesses; None where it does not.
        billed: Whether ``bytes`` are what is charged for, not a guess.
        database: Where it would run.
        agent, candidate: Who wants it to run; ``candidate`` is empty for what all candidates share.
    """

    kind: Literal["approval"] = "approval"
    how: str = HOW
    why: str
    sql: str
    dialect: str
    database: str
    reads: str
    bytes: int | None = None
    rows: int | None = None
    billed: bool = False
    agent: str = ""
    candidate: str = ""


def read_approval(reply: Any) -> str:
    """``yes``, ``no`` or ``all``; empty if it cannot be told. ``{"reply": "yes"}`` is understood, too."""
    if isinstance(reply, dict) and len(reply) == 1:
        (reply,) = reply.values()
    if isinstance(reply, bool):
        return YES if reply else NO
    if reply is None:
        return NO
    return _WORDS.get(reply.strip(" .!'\"").casefold(), "") if isinstance(reply, str) else ""
