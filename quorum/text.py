"""Text for people: safe to print, short, with numbers as one reads them.

What comes from a database or a model may hold terminal escapes and bidirectional overrides; it
goes through ``printable`` before it reaches a terminal or a page.
"""

from __future__ import annotations

from typing import Any

from quorum.evals.reports.format import count, dollars, one_line, printable
from quorum.tools.readable import readable

__all__ = [
    "agreement", "cell", "clusters_of", "count", "dollars", "duration", "one_line", "printable",
    "spent", "text_of",
]  # fmt: skip


def text_of(value: Any) -> str:
    """A text field as it lies in an event: whole, or the head of a stored one."""
    if isinstance(value, dict) and "$blob" in value:
        return f"{value.get('head', '')}…"
    return "" if value is None else str(value)


def cell(value: Any, limit: int = 60) -> str:
    """A result's value as a table shows it."""
    return one_line(readable(value), limit)


def duration(seconds: float) -> str:
    """``0.42 s``, ``12.3 s``, ``4 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def spent(usage: dict[str, Any]) -> str:
    """A usage (the ledger's fields) on one line."""
    cached = int(usage.get("cached_tokens") or 0)
    parts = [
        count(int(usage.get("model_calls") or 0), "model call"),
        f"{int(usage.get('input_tokens') or 0):,} tokens in" + (f" ({cached:,} cached)" if cached else ""),
        f"{int(usage.get('output_tokens') or 0):,} out",
        dollars(usage.get("usd", 0.0)),
        count(int(usage.get("queries") or 0), "database query", "database queries"),
        count(int(usage.get("rows") or 0), "row"),
    ]
    if usage.get("seconds") is not None:
        parts.append(duration(float(usage["seconds"])))
    return " · ".join(parts)


def clusters_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The vote's clusters: the one that gave the answer first, then by share."""
    vote = answer.get("vote") or {}
    return sorted(
        vote.get("clusters") or [],
        key=lambda cluster: (vote.get("winner") not in cluster["candidates"], -float(cluster["share"])),
    )


def agreement(answer: dict[str, Any]) -> str:
    """``2 of 3 candidates agree; 1 differs``, from an answer's vote and candidates."""
    total = len(answer.get("candidates") or [])
    clusters = clusters_of(answer)
    if not clusters:
        return f"none of {count(total, 'candidate')} has a result to vote with" if total else ""
    sizes = [len(cluster["candidates"]) for cluster in clusters]
    differing, silent = sum(sizes[1:]), total - sum(sizes)
    if total == 1:
        return "a single candidate, no vote"
    parts = [f"{sizes[0]} of {count(total, 'candidate')} {'agrees' if sizes[0] == 1 else 'agree'}"]
    if differing:
        parts.append(f"{differing} {'differs' if differing == 1 else 'differ'}")
    if silent > 0:
        parts.append(f"{silent} gave no result")
    if (answer.get("vote") or {}).get("tie"):
        parts.append("a tie")
    return "; ".join(parts)
