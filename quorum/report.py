"""A run as people read it: steps grouped by candidate, votes, cost per agent.

Built once from a run folder; ``quorum/timeline.py`` prints it, ``quorum/page.py`` makes a page of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from quorum.event_text import LOW_LEVEL, Step, step_of
from quorum.graph.runs import Event, RunFolder
from quorum.text import agreement, clusters_of, one_line

_GIST = 400  # characters; pages and terminals wrap
DetailKind = Literal["sql", "text", "prompt", "table"]

_SQL_FIELDS = {"sql", "executed"}
_TELLING = {("action", "sql"), ("sql_review", "sql"), ("refinement", "sql"), ("result", "rows")}
_HIDDEN = {
    *("t", "kind", "agent", "role", "candidate", "usage", "messages", "reply", "parsed", "preview"),
    *("columns", "types", "nulls", "file", "fingerprint", "blank", "seconds", "attempt", "method", "seed"),
    *("temperature", "finish_reason", "model", "row_count", "truncated", "action", "correct", "result"),
    *("rows", "cached", "node", "recipe", "prompt"),
}


@dataclass(frozen=True)
class Detail:
    """Something to unfold under a step; ``table`` details have rows, all others a text."""

    label: str
    kind: DetailKind
    text: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """A step with its details."""

    step: Step
    details: list[Detail]

    seconds: float = 0.0
    """How long it took, where the event says; it ended at ``step.t``."""

    @property
    def is_low_level(self) -> bool:
        """Whether it is a call under a step rather than a step."""
        return self.step.kind in LOW_LEVEL

    def is_telling(self, detail: Detail) -> bool:
        """Whether a detail is shown without being asked for: each query once, each result once."""
        return (self.step.kind, detail.label) in _TELLING


@dataclass(frozen=True)
class Section:
    """Steps that belong together: before the candidates, one candidate, after them."""

    title: str
    candidate: str
    entries: list[Entry]
    outcome: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All that is shown of a run.

    Attributes:
        voices: The answer's candidates, the winner's first, each with the ``cluster`` that it voted for (1 is
            the winner's, 0 none) and that cluster's ``share``.
        error: What ended it, if an error did.
    """

    run_id: str
    folder: str
    question: str
    started: str
    options: dict[str, Any]
    answer: dict[str, Any]
    sections: list[Section]
    voices: list[dict[str, Any]]
    agreement: str
    usage: dict[str, Any]
    by_agent: dict[str, dict[str, Any]]
    error: str = ""


def report_of(run: RunFolder) -> Report:
    """Read a run; an unfinished one has an empty answer and the usage of its events.

    Raises:
        QuorumError: Its files cannot be read.
    """
    meta, answer = run.meta(), run.answer() or {}
    spent = run.usage_so_far()
    usage = answer.get("usage") or spent.total.as_dict() | {"seconds": spent.seconds}
    by_agent = usage.get("by_agent") or {name: used.as_dict() for name, used in spent.by_agent.items()}
    return Report(
        run_id=run.run_id,
        folder=str(run.folder),
        question=str(meta.get("question", "")),
        started=str(meta.get("started", "")),
        options=meta.get("options") or {},
        answer=answer,
        sections=_sections((run.expand(event) for event in run.events()), answer),
        voices=_voices(answer),
        agreement=agreement(answer),
        usage=usage,
        by_agent=by_agent,
        error="" if answer else run.error(),
    )


def entry_of(event: Event) -> Entry:
    """An event (stored texts put back) as a step with its details."""
    step = step_of(event, width=_GIST)
    if event["kind"] == "action" and event.get("sql"):  # the query itself stands below
        step = replace(step, gist=one_line(f"writes a query. {event.get('thought') or ''}", _GIST))
    details = [*_messages(event), *_fields(event, step.gist), *_preview(event)]
    return Entry(step, details, seconds=float(event.get("seconds") or 0.0))


def _sections(events: Iterable[Event], answer: dict[str, Any]) -> list[Section]:
    before: list[Entry] = []
    after: list[Entry] = []
    candidates: dict[str, list[Entry]] = {}
    for event in events:
        entry = entry_of(event)
        if entry.step.candidate:
            candidates.setdefault(entry.step.candidate, []).append(entry)
        else:
            (after if candidates and event["kind"] != "begun" else before).append(entry)
    outcomes = {str(c.get("id")): c for c in answer.get("candidates") or []}
    named = [
        Section(f"Candidate {name}", name, candidates[name], outcomes.get(name, {}))
        for name in sorted(candidates, key=lambda name: (len(name), name))
    ]
    ends = [Section("Before the candidates", "", before), *named, Section("Consensus and answer", "", after)]
    return [section for section in ends if section.entries]


def _voices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    usual = {"model": "", "error": "", "row_count": None, "approved": None, "repairs": 0, "weight": 0.0}
    candidates = answer.get("candidates") or []
    voices = [usual | candidate | {"cluster": 0, "share": 0.0} for candidate in candidates]
    for place, cluster in enumerate(clusters_of(answer), 1):
        for voice in voices:
            if voice["id"] in cluster["candidates"]:
                voice |= {"cluster": place, "share": float(cluster["share"])}
    return sorted(voices, key=lambda voice: (voice["cluster"] or len(voices) + 1, voice["id"]))


def _messages(event: Event) -> list[Detail]:
    if "messages" not in event:
        return []
    details = [
        Detail(f"prompt ({message.get('role', '')})", "prompt", _as_text(message.get("content")))
        for message in event["messages"]
        if isinstance(message, dict)
    ]
    if event.get("reply") is not None:
        details.append(Detail("reply", "prompt", _as_text(event["reply"])))
    return details


def _fields(event: Event, gist: str) -> list[Detail]:
    """The event's texts that its gist does not show whole."""
    details = []
    for name, value in event.items():
        if name in _HIDDEN or value in (None, "", [], {}) or isinstance(value, bool | int | float):
            continue
        text = _as_text(value)
        if name not in _SQL_FIELDS and one_line(text, _GIST) in gist:
            continue
        kind: DetailKind = "sql" if name in _SQL_FIELDS else "text"
        details.append(Detail(name.replace("_", " "), kind, text))
    return details


def _preview(event: Event) -> list[Detail]:
    result = event.get("result") if isinstance(event.get("result"), dict) else event
    if not isinstance(result, dict) or not isinstance(result.get("preview"), list):
        return []
    columns = [str(name) for name in result.get("columns") or []]
    return [Detail("rows", "table", columns=columns, rows=result["preview"])]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(f"{number}. {item}" for number, item in enumerate(value, 1))
    if isinstance(value, dict) and {"kind", "message"} <= set(value):
        near = f" Did you mean: {', '.join(value['suggestions'])}?" if value.get("suggestions") else ""
        return f"{str(value['kind']).replace('_', ' ')}: {value['message']}{near}"
    return json.dumps(value, ensure_ascii=False, indent=2)
