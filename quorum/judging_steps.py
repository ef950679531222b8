"""Votes and verdicts in a few words (see ``quorum.steps``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from quorum.text import text_of

Event = dict[str, Any]
Tone = Literal["plain", "good", "bad", "warn", "faint"]
Gist = tuple[str, Tone]

AGENTS = {
    "validator": "Validator",
    "judge": "Judge",
    "reviser": "Reviser",
    "consensus": "Consensus",
    "user": "User",
}


def _validation(e: Event) -> Gist:
    if e.get("error"):
        return f"no verdict: {text_of(e['error'])}", "warn"
    needless = e.get("columns_not_needed") or []
    if e.get("valid_result") and not e.get("result_empty") and not needless:
        return "the result can be the answer", "good"
    reason = text_of(e.get("suggest_fix")) or f"not needed: {', '.join(map(text_of, needless))}"
    return f"sends it back: {reason}", "warn"


def _revision(e: Event) -> Gist:
    if e.get("error"):
        return f"no revision: {text_of(e['error'])}", "warn"
    verdict = "revises the query" if e.get("sql") else "lets the query stand"
    return f"{verdict}: {text_of(e.get('explanation'))}", "warn" if e.get("sql") else "plain"


def _vote(e: Event) -> Gist:
    vote = e.get("vote") if isinstance(e.get("vote"), dict) else e
    clusters = (vote or {}).get("clusters") or []
    if not clusters:
        return "no candidate has a result to vote with", "bad"
    said = " against ".join(
        f"{', '.join(map(text_of, c.get('candidates') or []))} {float(c.get('share', 0)):.0%}"
        for c in clusters
    )
    weights = (vote or {}).get("weights") or {}
    weighed = ", ".join(f"{text_of(name)} {float(weight):.2f}" for name, weight in weights.items())
    tie = ", a tie" if (vote or {}).get("tie") else ""
    weighed = f"; weights: {weighed}" if weighed else ""
    return f"{text_of((vote or {}).get('strategy'))}: {said}{tie}{weighed}", "plain"


def _judgement(e: Event) -> Gist:
    if e.get("error"):
        return f"no verdict: {text_of(e['error'])}", "warn"
    answers, choice = e.get("answers") or {}, text_of(e.get("choice"))
    if choice not in answers:
        return f"cannot tell: {text_of(e.get('reason'))}", "warn"
    return f"chooses the answer of {', '.join(answers[choice])}: {text_of(e.get('reason'))}", "good"


def _clarification(e: Event) -> Gist:
    match e.get("reply"):
        case "label":
            return f"chooses answer {text_of(e.get('text'))}", "good"
        case "words":
            return f"says more: {text_of(e.get('text'))}", "plain"
    return "keeps the vote", "plain"


def _vote_weighed(e: Event) -> Gist:
    return f"the vote counts the verdict: confidence {float(e.get('confidence') or 0):.2f}", "plain"


GISTS: dict[str, Callable[[Event], Gist]] = {
    "validation": _validation,
    "revision": _revision,
    "vote": _vote,
    "consensus": _vote,
    "vote_weighed": _vote_weighed,
    "judgement": _judgement,
    "clarification": _clarification,
}
