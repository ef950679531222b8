"""A trace's events in a few words, the same in live progress, terminal and page.

A role declares the words for its own events (``quorum.agents.role.Role.gist``). ``WORDS`` has the words for
what is not a reply, and for replies that are good or bad news.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

from quorum.agents.role import find_role
from quorum.text import Tone, bytes_read, count, dollars, duration, listed, one_line, text_of

Event = dict[str, Any]

LOW_LEVEL = frozenset({"model_call", "query"})
"""Kinds that are shown under a step."""

NAMES = {
    "bigquery": "BigQuery", "duckdb": "DuckDB", "mysql": "MySQL", "oracle": "Oracle",
    "postgres": "PostgreSQL", "snowflake": "Snowflake", "sqlite": "SQLite", "tsql": "SQL Server",
}  # fmt: skip
"""Engines by dialect, as people write them."""

_TITLES = {"knowledge_retriever": "Knowledge Retriever", "presql_linker": "PreSQL Linking"}
ORIGIN = ("node", "recipe", "code", "declared", "prompt")
"""Fields that say where an event comes from."""

_COMMON = {"t", "kind", "agent", "role", "candidate", "usage", *ORIGIN}
_PLACE = re.compile(r"(\w[\w/]*\.(?:py|md))(?::(\d+))?")


@dataclass(frozen=True)
class EventText:
    """An event for people.

    Attributes:
        t: Seconds since the run's start.
        agent: Its name as people read it.
        candidate: Id, empty for what all candidates share.
        gist: What happened or was decided, on one line.
        origin: Where it comes from, as far as the event names it: graph node, recipe, the step's code, its
            role's declaration and prompt file. ``link_to`` has the links.
    """

    t: float
    kind: str
    agent: str
    candidate: str
    gist: str
    tone: Tone = "plain"
    origin: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """True if live progress shows it: a call under another step only when it fails."""
        return bool(self.gist) and (self.kind not in LOW_LEVEL or self.tone == "bad")

    @property
    def code(self) -> list[str]:
        """The files and lines of its origin; a call has those of the step above it."""
        return [place for place in self.origin if ".py:" in place and self.kind not in LOW_LEVEL]


def title_of(agent: str) -> str:
    """Return an agent's name for people: a role's title."""
    role = find_role(agent)
    return role.title if role else _TITLES.get(agent, agent.replace("_", " ").capitalize())


def step_of(event: Event, width: int = 100) -> EventText:
    """Describe an event; one of a kind unknown here shows its kind and its short fields."""
    agent, kind, error = (
        str(event.get("agent") or event.get("role") or ""),
        str(event["kind"]),
        event.get("error"),
    )
    role, words, fields = find_role(agent), WORDS.get(kind), EventFields(event)
    replied = role is not None and bool(role.reply.model_fields.keys() & event.keys())
    short = [f"{k}={v}" for k, v in event.items() if k not in _COMMON and isinstance(v, str | int | float)]
    said: Gist
    if role and not replied and error and not isinstance(error, dict):
        said = text_of(error), "warn"
    elif words:
        said = words(fields)
    elif role and replied:
        said = role.gist.format_map(fields).strip(" :;")
        said = said if "{" in role.gist else " ".join([f"{said}:", *short])
    else:
        said = " ".join([kind.replace("_", " "), *short])
    plain: Tone = "plain"
    gist, tone = said if isinstance(said, tuple) else (said, plain)
    origin: tuple[str, ...] = ORIGIN
    if kind in ("query", "result"):  # the guard or the lint, if they refused it
        origin = ORIGIN[:3]
        asker = "checks" if event.get("agent") == "checks" else "database"
        agent = str(error.get("by") or asker) if isinstance(error, dict) else asker
    return EventText(
        t=float(event.get("t", 0.0)),
        kind=kind,
        agent=title_of(agent),
        candidate=str(event.get("candidate") or ""),
        gist=one_line(gist, width),
        tone=tone,
        origin=tuple(one_line(text_of(event[name]), 200) for name in origin if event.get(name)),
    )


@cache
def link_to(place: str) -> str:
    """Return the link to ``agents/role.py:99`` of this installation; empty for what is no file of it."""
    found = _PLACE.fullmatch(place)
    file = Path(__file__).parent / found[1] if found else Path()
    return f"{file.resolve().as_uri()}#{found[2] or 1}" if found and file.is_file() else ""


class EventField:
    """A field of an event; one that is not there, None, "" and [] are false and read as "".

    ``{n:,}`` formats a number, ``{tables:table|tables}`` counts; a list is joined.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return ", ".join(map(text_of, self.value)) if isinstance(self.value, list) else text_of(self.value)

    def __format__(self, how: str) -> str:
        value = self.value
        if "|" in how:
            return count(len(value) if isinstance(value, list | str) else int(value or 0), *how.split("|"))
        return format(value or 0, how) if how and isinstance(value, int | float | None) else str(self)


class EventFields(SimpleNamespace):
    """An event's fields, by key for a role's gist and by attribute for ``WORDS``; ``get`` gives values."""

    def __init__(self, event: Event) -> None:
        super().__init__(**{name: EventField(value) for name, value in event.items()}, get=event.get)

    def __getattr__(self, name: str) -> EventField:
        return EventField(None)

    def __getitem__(self, name: str) -> EventField:
        found: EventField = vars(self).get(name, EventField(None))
        return found


def _query(e: EventFields) -> Gist:
    if error := e.get("error"):
        kind = str(error.get("kind") or "").replace("_", " ") if isinstance(error, dict) else ""
        return ": ".join(filter(None, (kind, _message(error)))), "bad"
    usage = e.get("usage") or {}
    seconds = float(e.get("seconds") or usage.get("query_seconds") or 0.0)
    text = f"{count(int(e.get('rows') or usage.get('rows') or 0), 'row')} in {duration(seconds)}"
    text = ", ".join([text, *bytes_read(usage)]) + (f", {e.parts:part|parts} read" if e.parts else "")
    return f"{text}, asked before" if e.cached else text, "good"


def _candidate(e: EventFields) -> Gist:
    if not e.result:
        return f"gave up: {_message(e.get('error')) or e.stopped_by}", "bad"
    approved, confirmed = e.get("approved"), e.get("confirmed")
    if approved is not None:
        said = "approved by the Validator" if approved else "not accepted by the Validator"
    else:
        said = {None: "", True: "its result came twice"}.get(confirmed, "no result came twice")
    repairs = f"{e.refinements:repair|repairs}" if e.refinements else ""
    rows = f"{EventFields(e.get('result') or {}).row_count:row|rows}"
    return ", ".join(filter(None, [rows, said, repairs, "kept for the vote"])), "good"


def _retrieval(e: EventFields) -> Gist:
    parts = [
        *([f"{e.sources:document|documents}"] if e.sources else []),
        *([f"{e.verified:verified question|verified questions} like this one"] if e.verified else []),
        *([f"{e.triplets:explored query|explored queries}"] if e.triplets else []),
    ]
    if not parts:
        return "" if e.text else ("nothing fits the question", "faint")
    return f"shows the model {' and '.join(parts)}" + (f": {e.sources}" if e.sources else "")


def _vote(e: EventFields) -> Gist:
    clusters = e.get("clusters") or []
    if not clusters:
        return "no candidate has a result to vote with", "bad"
    names = [list(map(text_of, each.get("candidates") or [])) for each in clusters]
    if len(names) == 1:
        return f"{listed(names[0])} agree" if names[0][1:] else ""  # a single query is no vote
    parts = [float(each.get("share", 0)) for each in clusters]
    lacks = [" (the data lacks it)" * (each.get("key") == "unanswerable") for each in clusters]
    voices = zip(parts, map(listed, names), lacks, strict=True)
    shares = [f"{100 * part:.0f} % for {own}{lacking}" for part, own, lacking in voices]
    weights = ", ".join(f"{text_of(name)} {float(w):.2f}" for name, w in (e.get("weights") or {}).items())
    tie, weighed = ", a tie" if e.tie else "", f"; weights: {weights}" if weights else ""
    return f"results differ: {' against '.join(shares)}{tie}{weighed}"


def _readings(e: EventFields) -> Gist:
    outcomes = [text_of(each.get("outcome")) for each in e.get("readings") or []]
    differ = outcomes.count("differs")
    words = {"same": "the same", "blank": "nothing", "failed": "no result"}
    rest = "".join(f", {outcomes.count(name)} {word}" for name, word in words.items() if name in outcomes)
    show = "shows" if differ == 1 else "show"
    text = f"{count(len(outcomes), 'other reading')}: {differ} {show} something else{rest}"
    return text, "warn" if differ else "good"


def _judgement(e: EventFields) -> Gist:
    chosen = (e.get("answers") or {}).get(text_of(e.get("choice")))
    if not chosen:
        return f"cannot tell: {e.reason}", "warn"
    return f"chooses the answer of {listed(chosen)}: {e.reason}", "good"


def _model_call(e: EventFields) -> Gist:
    usage = e.get("usage") or {}
    cost = usage.get("usd", 0.0)
    price = f", {dollars(cost)}" if cost is not None and cost > 0 else ""
    used = [int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens")]
    text = (
        f"{e.model}: {used[0]:,} tokens in, {used[1]:,} out{price}, {duration(float(e.get('seconds') or 0))}"
    )
    return (f"{text}; {e.problem}", "bad") if e.problem else (text, "faint")


def _model_trouble(e: EventFields) -> Gist:
    wait = f"; tries again in {duration(e.wait.value)}" if e.get("wait") is not None else ""
    return f"{e.model}: {e.reason or e.message}{wait}", "warn" if wait else "bad"


def _action(e: EventFields) -> Gist:
    if text_of(e.get("action")) in ("sql", "look"):
        return str(e.sql) if e.get("action") == "sql" else f"looks: {e.command}"
    return _writing(e) if e.missing else f"ends: {e.thought}"


def _writing(e: EventFields) -> Gist:
    return (f"says that the data cannot answer: {e.missing}", "warn") if e.missing else str(e.sql)


def _correction(e: EventFields) -> Gist:
    if not e.sql:
        return f"finds nothing to correct: {e.fault}"
    more = f", and {e.later:similar query|similar queries} with it" if e.later else ""
    return f"corrects it{more}: {e.fault}", "warn"


def _message(error: Any) -> str:
    return text_of(error.get("message") if isinstance(error, dict) else error)


Gist: TypeAlias = str | tuple[str, Tone]
"""Words, and their tone where it is not ``plain``."""

WORDS: dict[str, Callable[[EventFields], Gist]] = {
    "begun": lambda e: (f"goes on with {e.run}" if e.resumed else str(e.run), "faint"),
    "failed": lambda e: (str(e.message), "bad"),
    "stopped": lambda e: (str(e.message), "bad"),
    "waiting": lambda e: (f"waits for a reply: {(e.get('asked') or {}).get('how', '')}", "warn"),
    "cancelled": lambda _: ("cancelled by the user", "warn"),
    "answer": lambda e: (str(e.status).replace("_", " "), "good" if e.get("status") == "answered" else "bad"),
    "schema": lambda e: (
        f"opened {e.database} ({NAMES.get(str(e.dialect), e.dialect)}, {e.tables:table|tables})"
        + (f"; too large to show whole, left out: {e.left_out}" if e.left_out else ""),
        "warn" if e.left_out else "plain",
    ),
    "long_context": lambda _: "the schema is long: first those tables are chosen that fit the question",
    "schema_shown": lambda e: f"the model now sees a schema of {e.tokens:,} tokens",
    "values": lambda e: (
        f"found in the data, and maybe meant: {e.values}"
        + (f"; not all values were read of {e.missing}" if e.missing else ""),
        "warn" if e.missing else "plain",
    ),
    "recall": lambda e: (f"this very question was {e.credit}: {e.file}", "good"),
    "retrieval": _retrieval,
    "linking": lambda e: (
        f"keeps {e.tables:table|tables}: {e.tables}" if e.tables else str(e.linked_schema) or "found nothing"
    ),
    "sample_rows": lambda e: (
        (f"of {e.tables:table|tables}; {e.notes}", "warn") if e.notes else f"of {e.tables:table|tables}"
    ),
    "demonstrations": lambda e: f"{e.shots:similar question|similar questions} as examples",
    "syntax": lambda e: f"looked up {e.features}" if e.features else ("none needed", "faint"),
    "plan_review": lambda e: (
        (f"asks for another plan: {e.feedback}", "warn") if e.update_plan else ("the plan passes", "good")
    ),
    "action": _action,
    "writing": _writing,
    "sql_review": lambda e: (
        ("the query is right", "good") if e.correct else (f"corrects it: {e.reasoning}", "warn")
    ),
    "query": _query,
    "result": lambda e: (
        f"{e.row_count:row|rows}{' (cut)' if e.truncated else ''}: {e.columns}",
        "good" if e.row_count else "warn",
    ),
    "refinement": lambda e: (f"repairs it: {e.explanation}", "warn"),
    "not_run": lambda e: (str(e.message), "warn"),
    "unconfirmed": lambda _: ("no result came twice; it is treated as empty", "warn"),
    "stage": lambda e: f"ran stage {e.name}",
    "stage_review": lambda e: (
        f"{'accepts' if e.accept else 'rewrites'} stage {e.name}: {e.reasoning}",
        "good" if e.accept else "warn",
    ),
    "candidate": _candidate,
    "asked_anew": lambda e: (f"asks all candidates anew: {e.message}", "warn"),
    "candidate_failed": lambda e: (str(e.message), "bad"),
    "finding": lambda e: (f"learns{' (corrected)' if e.corrected else ''}: {e.purpose}", "good"),
    "correction": _correction,
    "exploration_given_up": lambda e: (f"gives a query up: {e.message}", "warn"),
    "exploration_ended": lambda e: (f"ends early: {e.message}", "bad"),
    "grounding": lambda e: f"{e.tables:table|tables}, {e.columns:,} columns: {e.tables} ({e.embedder})",
    "pruning": lambda e: (
        f"takes away {e.columns:column|columns} that the query did not use, and {e.tables:table|tables}"
    ),
    "examples": lambda e: (
        f"{e.triplets:explored query|explored queries} as examples ({e.embedder})"
        if e.triplets
        else ("no explored query as example", "faint")
    ),
    "expansion": lambda e: (
        (f"{e.number}. {e.message}", "good")
        if e.get("outcome") == "worked"
        else (f"{e.number}. {e.outcome}: {e.step}: {e.message}", "warn")
    ),
    "explored": lambda e: (f"ends by {e.ended}: {e.coverage:.0%} of the fields covered", "good"),
    "first_answer": lambda e: (
        f"asks for more candidates: {e.why}" if e.why else ("one query is enough", "good")
    ),
    "other_readings": lambda e: (
        (f"writes {e.readings:other reading|other readings}: {e.reasoning}", "warn")
        if e.readings
        else (f"finds nothing open: {e.reasoning}", "good")
    ),
    "readings": _readings,
    "suspicion": lambda e: (f"{e.says} {e.matters}", "warn"),
    "vote": _vote,
    "draw": lambda e: (
        f"draws {listed([str(e.winner)])} by lot among "
        f"{'the tied answers' if e.get('among') == 'tied' else 'all candidates'}, seed {e.seed}",
        "warn",
    ),
    "tie_left_open": lambda _: ("leaves the tie open: random selection is off", "warn"),
    "judgement": _judgement,
    "clarification": lambda e: (
        (f"chooses answer {e.text}", "good")
        if e.get("reply") == "label"
        else f"says more: {e.text}"
        if e.get("reply") == "words"
        else "keeps the answer"
    ),
    "approval_asked": lambda e: (f"asks before its query runs (it reads: {e.reads})", "warn"),
    "approval": lambda e: (
        ("does not approve the query", "warn")
        if e.get("reply") not in ("yes", "all")
        else (f"approves the query{', and all that follow' * (e.get('reply') == 'all')}", "good")
    ),
    "validation": lambda e: (
        ("the result can be the answer", "good")
        if e.accepted
        else (f"sends it back: {e.objection or e.suggest_fix}", "warn")
    ),
    "vote_weighed": lambda e: f"after that verdict, likely to be right: {e.confidence:.0%}",
    "revision": lambda e: (
        (f"revises the query: {e.explanation}", "warn") if e.sql else f"lets the query stand: {e.explanation}"
    ),
    "model_call": _model_call,
    "model_retry": _model_trouble,
    "model_failed": _model_trouble,
    "model_replaced": lambda e: (f"asks another model: {e.message}", "warn"),
    "model_adapted": lambda e: (f"{e.model}: {e.change}", "faint"),
}
