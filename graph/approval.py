"""Asks the user before queries run, by interrupts of the graph: what is asked, and what a reply means.

LangGraph runs an interrupted step again from its start, and gives it the replies in the order in which it
asked. So a step that runs again first asks again whatever it asked before, in that order: a reply never
counts for another query than the one that was shown, whatever became of the text elsewhere meanwhile. What
was asked and replied stands in the trace, which a killed process's successor reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from quorum.graph.clarification import HumanRequest, words_of
from quorum.graph.values import ALWAYS, approval_bytes
from quorum.tools.admission import Proposal
from quorum.tools.record import request_of
from quorum.tools.results.readable import size_text

if TYPE_CHECKING:
    from quorum.graph.trace import Trace

MAX_ASKED = 3
"""Times the user is asked about a query until it is not approved."""

YES, NO, ALL = "yes", "no", "all"
_WORDS = {
    **dict.fromkeys(("yes", "y", "ok", "true"), YES),
    **dict.fromkeys(("no", "n", "false", ""), NO),
    **dict.fromkeys(("all", "a"), ALL),
}
HOW = "Reply yes, no, or all for this query and every other one of this run."


class Approval(HumanRequest):
    """A question to the user before a query runs. The reply is ``yes``, ``no`` or ``all``.

    Attributes:
        why: Why the user is asked, in a sentence.
        reads: What it would read, in words.
        bytes: The same as a number; None where that cannot be told.
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
    billed: bool = False
    agent: str = ""
    candidate: str = ""

    def value(self) -> dict[str, Any]:
        """Return the interrupt's value."""
        args = {"sql": self.sql, "database": self.database, "reads": self.reads}
        return self.form("run_query", args, says=self.why)


def read_approval(reply: Any) -> str:
    """``yes``, ``no`` or ``all``; empty if it cannot be told. ``{"reply": "yes"}`` is understood, too."""
    reply = words_of(reply, approve=YES, reject=NO)
    if isinstance(reply, dict) and len(reply) == 1:
        (reply,) = reply.values()
    if isinstance(reply, bool):
        return YES if reply else NO
    if reply is None:
        return NO
    return _WORDS.get(reply.strip(" .!'\"").casefold(), "") if isinstance(reply, str) else ""


ASKED, REPLIED = "approval_asked", "approval"
"""Kinds of events."""


@dataclass
class _Attempt:
    """One execution of a step: whether it has its earlier replies, and what it ended with to ask."""

    replayed: bool = False
    ended: GraphInterrupt | None = None


_ATTEMPT: ContextVar[_Attempt | None] = ContextVar("_ATTEMPT", default=None)


@contextmanager
def one_execution() -> Iterator[None]:
    """Mark one execution of a step, which may be interrupted to ask the user and then run again."""
    token = _ATTEMPT.set(_Attempt())
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


@dataclass
class Approvals:
    """The questions of a run to its user before queries run, with the replies.

    Attributes:
        rule: The option ``approve``, not ``never``.
        database, dialect: For the user.
    """

    rule: str
    database: str
    dialect: str
    trace: Trace
    _asked: defaultdict[str, dict[str, Approval]] = field(default_factory=lambda: defaultdict(dict))
    _replies: dict[tuple[str, str], str] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for event in self.trace.earlier_approvals:
            step, query = place = event.get("task", ""), event["query"]
            if event["kind"] == ASKED:
                about = {name: event[name] for name in Approval.model_fields if name in event}
                self._asked[step][query] = Approval(**about | {"kind": "approval"})
            else:
                self._keep(place, event["reply"])
                self._told |= {place} if event["reply"] == NO else set()

    def answered(self, sql: str) -> bool | None:
        self._replay()
        reply = self._replies.get(self._place(sql))
        return None if reply is None else reply != NO

    def was_recorded(self, sql: str) -> bool:
        place = self._place(sql)
        before = place in self._told
        if place[0]:
            self._told.add(place)
        return before

    def approves(self, proposal: Proposal) -> bool:
        why = self._why(proposal)
        return not why or self._approved(proposal, why) != NO

    def _why(self, proposal: Proposal) -> str:
        """Return the reason why the user is asked; empty if not."""
        if self.rule == ALWAYS:
            return "You are asked before every query."
        most, size = approval_bytes(self.rule), proposal.estimate.bytes
        assert most is not None
        if size is None:
            return "What it would read cannot be told before it runs." if proposal.estimable else ""
        asked = f"You are asked about queries that would read more than {size_text(most)}."
        return asked if size > most else ""

    def _approved(self, proposal: Proposal, why: str) -> str:
        """The reply to a query, which may have been given before.

        Raises:
            GraphInterrupt: There is none yet.
        """
        step, query = place = self._place(proposal.sql)
        if ALL in self._said.values():
            return ALL
        if said := self._said.get(query):
            return said
        attempt = _ATTEMPT.get()
        if attempt and attempt.ended:  # queries that run side by side: one is asked about at a time
            raise attempt.ended
        asked = _approval(proposal, why, self.database, self.dialect)
        self._asked[step][query] = asked
        self.trace.record(ASKED, query=query, **asked.model_dump(exclude={"kind", "how", "refused"}))
        return self._interrupted(place, asked)

    def _replay(self) -> None:
        """Ask again whatever the step asked before it was interrupted.

        Raises:
            GraphInterrupt: A reply is still missing.
        """
        attempt, step = _ATTEMPT.get(), self.trace.step()
        if attempt is None or attempt.replayed:
            return
        if attempt.ended:
            raise attempt.ended
        for query, asked in self._asked.get(step, {}).items():
            self._interrupted((step, query), asked)
        attempt.replayed = True

    def _interrupted(self, place: tuple[str, str], asked: Approval) -> str:
        """The reply to what a step asks; without one the step ends here, and runs again with it.

        Raises:
            GraphInterrupt: There is no reply yet.
        """
        known, asking = self._replies.get(place, ""), asked
        for _ in range(MAX_ASKED):
            try:
                reply = read_approval(interrupt(asking.value()))
            except GraphInterrupt as ended:
                if known:
                    return known  # of a process that was killed before LangGraph had kept the reply
                if ALL in self._said.values() or _all_is_being_said():
                    return self._keep(place, ALL)
                if attempt := _ATTEMPT.get():
                    attempt.ended = ended
                raise
            if reply:
                break
            asking = asked.model_copy(update={"refused": f"That is no reply to this. {asked.how}"})
        if known:
            return known
        about: dict[str, Any] = {"agent": "user", "candidate": asked.candidate, "query": place[1]}
        about |= {"reply": reply or NO, "sql": asked.sql, "bytes": asked.bytes}
        self.trace.record(REPLIED, **about)
        return self._keep(place, reply or NO)

    def _keep(self, place: tuple[str, str], reply: str) -> str:
        """Remember a reply; of several to the same text the one that allows more counts elsewhere."""
        order = (NO, YES, ALL)
        self._replies[place] = reply
        self._said[place[1]] = max(reply, self._said.get(place[1], NO), key=order.index)
        return reply

    def _place(self, sql: str) -> tuple[str, str]:
        return self.trace.step(), request_of(sql)


def _all_is_being_said() -> bool:
    """True if a reply that another branch is about to read is ``all``: branches go on in any order."""
    replies = get_config().get("configurable", {}).get("__pregel_resume_map") or {}
    return any(read_approval(reply) == ALL for reply in replies.values())


def _approval(proposal: Proposal, why: str, database: str, dialect: str) -> Approval:
    estimate = proposal.estimate
    reads = estimate.unknown or "unknown"
    if estimate.bytes is not None:
        reads = size_text(estimate.bytes) + ("" if estimate.billed else ", estimated")
    return Approval(
        why=why,
        sql=proposal.sql,
        dialect=dialect,
        database=database,
        reads=reads,
        bytes=estimate.bytes,
        billed=estimate.billed,
        agent=proposal.agent,
        candidate=proposal.candidate,
    )
