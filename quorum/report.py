"""A run as people read it: steps grouped by candidate, votes, cost per agent.

Built once from a run folder; ``quorum/render.py`` prints it, ``quorum/page.py`` makes a page of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from typing import Any, Literal

from quorum.event_text import LOW_LEVEL, ORIGIN, EventText, step_of
from quorum.graph.answer import Answer, AnswerCandidate
from quorum.graph.recipes import RECIPES, find_recipe
from quorum.graph.runs import Event, RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.text import agreement, clusters_of, count, laid_out, listed, one_line
from quorum.tools.sql import KNOWN_DIALECTS
from quorum.tools.sql.writing import format_sql

_GIST = 400  # characters; pages and terminals wrap
DetailKind = Literal["sql", "diff", "text", "prompt", "table"]

_SQL_FIELDS = {"sql", "executed"}
_TELLING = {("action", "sql"), ("writing", "sql"), ("result", "rows"), ("finding", "sql")}
_TELLING |= {("query", "parts")}
_TELLING |= {("exploration_given_up", "sql")}
_REPAIRS = {"sql_review", "refinement", "stage_review", "correction", "revision"}
_ROUND_ENDS = {"vote", "linking"}
_HIDDEN = {
    *("t", "kind", "agent", "role", "candidate", "usage", "messages", "reply", "parsed", "preview"),
    *("columns", "types", "nulls", "file", "fingerprint", "blank", "seconds", "attempt", "method", "seed"),
    *("temperature", "finish_reason", "model", "row_count", "truncated", "action", "correct", "result"),
    *("rows", "cached", *ORIGIN, "run", "ordered_fingerprint", "distinct"),
    *("task", "request", "ref", "dialect", "style", "remarks", "sources"),
}
"""Fields that are not unfolded: other words of the step say them, or they are for programs (``--json``)."""

_REPEATS = {"candidate", "answer", "result"}
"""Kinds whose query stands in a step before."""

_VOTED = {"notes", "clusters", "vote"}


@dataclass(frozen=True)
class Detail:
    """Something to unfold under a step: a text, a ``table``'s rows, or a ``diff``'s (sign, line) pairs."""

    label: str
    kind: DetailKind
    text: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """A step with its details."""

    step: EventText
    details: list[Detail]

    @property
    def is_low_level(self) -> bool:
        """True if it is a call under a step rather than a step."""
        return self.step.kind in LOW_LEVEL

    def is_telling(self, detail: Detail) -> bool:
        """Return True if a detail is shown without ``--full``: each query once, each result once."""
        return detail.kind == "diff" or (self.step.kind, detail.label) in _TELLING


@dataclass(frozen=True)
class Standing:
    """An answer of the vote, the winner's first: who gave it, and the query and first rows of one of them."""

    candidates: list[str]
    share: float
    sql: str
    row_count: int | None
    rows: Detail | None = None


@dataclass(frozen=True)
class StepGroup:
    """Steps that belong together: before the candidates, one candidate, after them."""

    title: str
    candidate: str
    entries: list[Entry]
    outcome: AnswerCandidate | None = None

    @property
    def heading(self) -> list[str]:
        """The title, and of a candidate its model and its repairs."""
        if self.outcome is None:
            return [self.title]
        repairs = count(self.outcome.repairs, "repair") if self.outcome.repairs else ""
        return [text for text in (self.title, self.outcome.model, repairs) if text]


@dataclass
class _Round:
    """Candidates that run side by side, and what follows: ``over`` once that is a vote, or a linking."""

    candidates: dict[str, list[Entry]] = field(default_factory=dict)
    after: list[Entry] = field(default_factory=list)
    over: bool = False


@dataclass(frozen=True)
class Report:
    """All that is shown of a run.

    Attributes:
        answer: None while there is none; its SQL is laid out.
        voices: The answer's candidates, the winner's first, each with the number of the cluster that it voted
            for (1 is the winner's, 0 none).
        question: As it was answered; ``asked`` is how it was put, if that differs (``--clarify``).
        accounts: What each used, by ``agent``, and by ``model`` where several were asked.
        error: What ended it, if an error did.
        exploration: Of an exploration (``quorum explore``), which has no answer: how far it came.
    """

    run_id: str
    folder: str
    question: str
    asked: str
    started: str
    options: dict[str, Any]
    answer: Answer | None
    sections: list[StepGroup]
    voices: list[tuple[AnswerCandidate, int]]
    standings: list[Standing]
    agreement: str
    usage: dict[str, Any]
    accounts: dict[str, dict[str, dict[str, Any]]]
    error: str = ""
    exploration: str = ""

    @property
    def about(self) -> list[str]:
        """The options that people look for: ``database sample``, ``recipe quorum``, ``models a, b``."""
        names = [name for name in ("database", "recipe", "votes", "models") if self.options.get(name)]
        values = [self.options[name] for name in names]
        texts = [", ".join(value) if isinstance(value, list) else str(value) for value in values]
        roles = (self.options.get("model_for") or {}).items()
        return [f"{name} {text}" for name, text in [*zip(names, texts, strict=True), *roles]]

    @property
    def how_to_go_on(self) -> str:
        """The command that goes on with a run without an answer."""
        return "quorum explore --resume" if self.exploration else f"quorum ask --resume {self.run_id}"


def report_of(run: RunFolder) -> Report:
    """Read a run; an unfinished one has no answer and the usage of its events.

    Raises:
        QuorumError: Its files cannot be read.
    """
    meta, answer, events = run.meta(), run.answer(), list(run.events())
    recipe = str((meta.get("options") or {}).get("recipe", "quorum"))
    with suppress(ConfigurationError):  # a plug-in that is gone leaves its steps without their words
        _ = recipe in RECIPES or find_recipe(recipe)
    dialect = next(
        (str(event["dialect"]) for event in events if str(event.get("dialect")) in KNOWN_DIALECTS), ""
    )
    if answer is not None:
        answer.sql = laid_out(answer.sql, dialect)
    sections = _sections(events, answer, dialect)
    usage = answer.usage if answer else {}
    if not usage.keys() >= {"by_agent", "by_model"}:
        usage = run.ledger().as_dict() | usage
    asked = str(meta.get("turn") or meta.get("question", ""))
    question = answer.question if answer else asked
    return Report(
        run_id=run.run_id,
        folder=str(run.folder),
        question=question,
        asked=asked if asked != question else "",
        started=str(meta.get("started", "")),
        options=meta.get("options") or {},
        answer=answer,
        sections=sections,
        voices=_voices(answer) if answer else [],
        standings=_standings(answer, sections, dialect) if answer else [],
        agreement=agreement(answer) if answer else "",
        usage=usage,
        accounts={by: used for by in ("agent", "model") if len(used := usage[f"by_{by}"]) > (by == "model")},
        error="" if answer else run.error(),
        exploration=_exploration(events),
    )


def _exploration(events: Sequence[Event]) -> str:
    if not any(event["kind"] in ("choice", "explored") for event in events):
        return ""
    ended = next((event for event in events if event["kind"] == "explored"), None)
    return f"It {step_of(ended, width=_GIST).gist}." if ended else "It was interrupted, or is still running."


def entry_of(event: Event, dialect: str = "", before: str = "") -> Entry:
    """An event as a step with its details.

    Args:
        dialect: To lay SQL out; empty leaves it as it is.
        before: The query that a repair began from; empty if none is known.
    """
    step = step_of(event, width=_GIST)
    if event["kind"] in ("action", "writing") and event.get("sql"):  # the query itself stands below
        why = one_line(str(event.get("thought") or event.get("reasoning") or ""), _GIST)
        step = replace(step, gist=f"writes a query. {why}".removesuffix(" "))
    details = [*_messages(event), *_fields(event, step.gist, dialect, before), *_preview(event)]
    return Entry(step, details)


def _sections(events: Iterable[Event], answer: Answer | None, dialect: str) -> list[StepGroup]:
    """Group the steps by round: its candidates, then the vote that followed, and what that called for."""
    before: list[Entry] = []
    rounds: list[_Round] = []
    latest: dict[str, str] = {}
    for event in events:
        candidate = str(event.get("candidate") or "")
        entry = entry_of(event, dialect, latest.get(candidate, ""))
        if isinstance(event.get("sql"), str):
            latest[candidate] = event["sql"]
        if candidate:
            own = next((each for each in rounds if candidate in each.candidates), None)
            if own is None and (not rounds or rounds[-1].over):
                rounds.append(_Round())
            (own or rounds[-1]).candidates.setdefault(candidate, []).append(entry)
        elif not rounds or event["kind"] == "begun":
            before.append(entry)
        else:
            rounds[-1].after += [entry] if entry.step.gist else []
            rounds[-1].over |= event["kind"] in _ROUND_ENDS
    outcomes = {each.id: each for each in answer.candidates} if answer else {}
    sections = [StepGroup("Preparation" if rounds else "Steps", "", before)]
    for each in rounds:
        for name in sorted(each.candidates, key=lambda name: (len(name), name)):
            title = listed([name]).capitalize()
            sections.append(StepGroup(title, name, each.candidates[name], outcomes.get(name)))
        title = "Vote and answer" if each is rounds[-1] else "Vote"
        sections.append(StepGroup(title, "", each.after))
    return [section for section in sections if section.entries]


def _voices(answer: Answer) -> list[tuple[AnswerCandidate, int]]:
    places = {name: place for place, each in enumerate(clusters_of(answer), 1) for name in each.candidates}
    voices = [(each, places.get(each.id, 0)) for each in answer.candidates]
    return sorted(voices, key=lambda voice: voice[1] or len(voices) + 1)


def _standings(answer: Answer, sections: list[StepGroup], dialect: str) -> list[Standing]:
    """Return each answer of the vote; with rows those that did not win."""
    candidates = {each.id: each for each in answer.candidates}
    results = {section.candidate: _last_rows(section) for section in sections}
    winner = answer.vote.winner if answer.vote else None
    found = []
    for cluster in clusters_of(answer):
        names, won = cluster.candidates, winner in cluster.candidates
        speaker = str(winner) if won else next((name for name in names if name in candidates), "")
        about, rows = candidates.get(speaker), None if won else results.get(speaker)
        sql, row_count = (laid_out(about.sql, dialect), about.row_count) if about else ("", 0)
        found.append(Standing(names, cluster.share, sql, row_count, rows))
    return found


def _last_rows(section: StepGroup) -> Detail | None:
    tables = [detail for entry in section.entries for detail in entry.details if detail.kind == "table"]
    return tables[-1] if tables else None


def _messages(event: Event) -> list[Detail]:
    if "messages" not in event:
        return []
    messages = [message for message in event["messages"] if isinstance(message, dict)]
    texts = [f"{message.get('role', '')}:\n{_as_text(message.get('content'))}" for message in messages]
    details = [Detail("prompt", "prompt", "\n\n".join(texts))]
    if event.get("reply") is not None:
        details.append(Detail("reply", "prompt", _as_text(event["reply"])))
    return details


def _fields(event: Event, gist: str, dialect: str, before: str) -> list[Detail]:
    """The event's texts that its gist does not show whole."""
    details = []
    for name, value in event.items():
        if name in _HIDDEN or value in (None, "", [], {}) or isinstance(value, bool | int | float):
            continue
        if name in _SQL_FIELDS and event["kind"] in _REPEATS:
            continue
        if name == "executed" and value == event.get("sql"):
            continue
        if event["kind"] in ("vote", "consensus") and name not in _VOTED:
            continue
        text = _as_text(value)
        if name not in _SQL_FIELDS and one_line(text, _GIST) in gist:
            continue
        if name == "sql" and before and event["kind"] in _REPAIRS:
            details.append(_diff(before, text, dialect))
        elif name in _SQL_FIELDS:
            details.append(Detail(name, "sql", laid_out(text, dialect)))
        else:
            details.append(Detail(name.replace("_", " "), "text", text))
    return details


def _diff(before: str, after: str, dialect: str) -> Detail:
    """Show what a repair changed in a query, with all its lines."""
    as_written = not dialect or all("\n" in sql.strip() for sql in (before, after))
    old, new = (sql if as_written else format_sql(sql, dialect) for sql in (before, after))
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=len(old) + len(new)))
    if not lines:
        return Detail("the query stays as it was", "text", new)
    return Detail("changes", "diff", rows=[[line[:1], line[1:]] for line in lines[3:]])


def _preview(event: Event) -> list[Detail]:
    result = event.get("result") if isinstance(event.get("result"), dict) else event
    if not isinstance(result, dict) or not isinstance(result.get("preview"), list):
        return []
    if event["kind"] == "candidate":  # its rows stand before it
        return []
    columns = [str(name) for name in result.get("columns") or []]
    types = result.get("types") or []
    return [Detail("rows", "table", columns=columns, rows=result["preview"], types=types)]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(f"{number}. {item}" for number, item in enumerate(value, 1))
    if isinstance(value, dict) and {"kind", "message"} <= set(value):
        near = f" Did you mean: {', '.join(value['suggestions'])}?" if value.get("suggestions") else ""
        return f"{str(value['kind']).replace('_', ' ')}: {value['message']}{near}"
    return json.dumps(value, ensure_ascii=False, indent=2)
