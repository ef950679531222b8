"""Asking back: what the user is asked when strong answers disagree, and what a reply means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

MAX_REPLY = 500
"""Characters of a reply in the user's own words; more is another question."""

ASK_BELOW = 0.65
"""Confidence below which an answer is doubtful, and the user is asked. Of 59 questions on three real
databases 24 had another reading with another result: a choice helped 8, and 11 answers were right already.
Below 0.65 were 16 of the 24, with 7 of the 8."""

MAX_ASKED = 3
"""Times the user is asked until the vote stands as it is."""


class HumanRequest(BaseModel):
    """What an interrupt of a run asks of whoever replies.

    Attributes:
        kind: ``clarification`` or ``approval``: which of the two the rest is.
        how: What a reply may be, in a sentence.
        refused: Why the reply before could not be used; empty at first.
    """

    kind: str
    how: str
    refused: str = ""

    def form(self, action: str, args: dict[str, str], *, says: str) -> dict[str, Any]:
        """Return the interrupt's value: the fields, and what chat front-ends make buttons of.

        These are LangChain's human-in-the-loop request (``action_requests``, ``review_configs``), which Agent
        Chat UI shows, and Agent Inbox's, which its older versions show.

        Args:
            action, args: What a person allows or declines, with what they should see of it.
            says: What they are asked, in Markdown.
        """
        description = "\n\n".join(part for part in (self.refused, says, self.how) if part)
        allowed = ["approve", "reject", "respond"]
        config = {"allow_accept": True, "allow_ignore": True, "allow_respond": True, "allow_edit": False}
        return self.model_dump() | {
            "action_requests": [{"name": action, "args": args, "description": description}],
            "review_configs": [{"action_name": action, "allowed_decisions": allowed}],
            "action_request": {"action": action, "args": args},
            "config": config,
            "description": description,
        }


def words_of(reply: Any, *, approve: str, reject: str) -> Any:
    """Return what a reply of such a front-end says; any other reply as it is.

    ``{"decisions": [{"type": "respond", "message": "B"}]}`` and
    ``[{"type": "response", "args": "B"}]`` mean B.
    """
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], dict):
        return reply
    said = decisions[0]
    spoken = said.get("message", said.get("args"))
    types = {
        **dict.fromkeys(("approve", "accept"), approve),
        **dict.fromkeys(("reject", "ignore"), reject),
        **dict.fromkeys(("respond", "response"), spoken),
    }
    return types.get(str(said.get("type")), reply)


class Choice(BaseModel):
    """One of the answers.

    Attributes:
        label: A, B or C; A is what the vote favours.
        says: How it reads the question, in a sentence; what the query does where no model says so.
        rows: The first few.
        candidates: How many gave it.
    """

    label: str
    says: str
    sql: str
    columns: list[str]
    types: list[str] = []
    rows: list[list[Any]]
    row_count: int
    candidates: int


class Clarification(HumanRequest):
    """A question to the user on what is meant. The reply is a label, a sentence of their own, or nothing.

    Attributes:
        differences: Sentences on how the answers differ.
        dialect: Of their SQL.
        own_words: Whether a reply other than a label is of use: it is, once.
    """

    kind: Literal["clarification"] = "clarification"
    question: str
    choices: list[Choice]
    differences: list[str]
    dialect: str
    own_words: bool = True

    def value(self) -> dict[str, Any]:
        """Return the interrupt's value, of which "approve" keeps the vote."""
        args = {"question": self.question} | {choice.label: choice.says for choice in self.choices}
        return self.form("choose_reading", args, says="\n".join(self.differences))


class UserReply(BaseModel):
    """A reply: ``label`` of an answer, ``words`` that add to the question, or ``keep`` the vote."""

    kind: Literal["label", "words", "keep", "refused"]
    text: str = ""


def how_to_reply(labels: Sequence[str], *, own_words: bool) -> str:
    """Say what a reply may be: ``Choose A, B, say it in your own words, or leave it empty to keep A.``"""
    words = " say it in your own words," if own_words else ""
    return f"Choose {', '.join(labels)},{words} or leave it empty to keep {labels[0]}."


def read_reply(reply: Any, labels: Sequence[str], *, own_words: bool) -> UserReply:
    """Understand a reply; ``refused`` says in ``text`` what is wrong with it.

    ``B``, ``b.`` and ``answer B`` are a label; so is ``{"choice": "B"}``, as a form may give it.
    """
    reply = words_of(reply, approve="", reject="")
    if isinstance(reply, dict) and set(reply) == {"choice"}:
        reply = reply["choice"]
    if reply is None:
        return UserReply(kind="keep")
    names = how_to_reply(labels, own_words=own_words)
    if not isinstance(reply, str):
        return UserReply(kind="refused", text=f"A reply is a text. {names}")
    text = " ".join(reply.split())
    bare = text.casefold().removeprefix("answer ").strip(" .:()'\"")
    label = next((label for label in labels if label.casefold() == bare), None)
    if label or not text:
        return UserReply(kind="label" if label else "keep", text=label or "")
    if not own_words:
        return UserReply(kind="refused", text=f"The question was made more precise once already. {names}")
    if len(text) > MAX_REPLY:
        refusal = f"That is too much for an addition ({len(text)} characters, {MAX_REPLY} at most): ask anew."
        return UserReply(kind="refused", text=f"{refusal} {names}")
    if len(bare) < 3:
        return UserReply(kind="refused", text=f"There is no answer {text!r}. {names}")
    return UserReply(kind="words", text=text)


def extended(question: str, words: str) -> str:
    """The question with the user's addition."""
    return f"{question.rstrip()}\n\nTo be precise: {words}"
