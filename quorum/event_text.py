"""A trace's events in a few words, the same in live progress, terminal and page.

A role declares the words for its own events (``quorum.agents.role.Role.gist``). ``WORDS`` has the words for
what is not a reply, and for replies that are good or bad news.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from quorum.agents.role import Role, find_role
from quorum.text import Tone, bytes_read, count, dollars, duration, listed, one_line, text_of

Event = dict[str, Any]
Gist = tuple[str, Tone]
"""Words and their tone; in ``WORDS`` the event's fields stand in braces, as in ``Role.gist``."""

LOW_LEVEL = frozenset({"model_call", "query"})
"""Kinds that stand under a step."""

NAMES = {
    "bigquery": "BigQuery", "duckdb": "DuckDB", "mysql": "MySQL", "oracle": "Oracle",
    "postgres": "PostgreSQL", "snowflake": "Snowflake", "sqlite": "SQLite", "tsql": "SQL Server",
}  # fmt: skip
"""Engines by dialect, as people write them."""

_TITLES = {"knowledge_retriever": "Knowledge Retriever", "presql_linker": "PreSQL Linking"}


@dataclass(frozen=True)
class Step:
    """An event for people.

    Attributes:
        t: Seconds since the run's start.
        agent: Its name as people read it.
        candidate: Id, empty for what all candidates share.
        gist: What happened or was decided, on one line.
        origin: Where it comes from: graph node, recipe and prompt file, as far as the event names them.
    """

    t: float
    kind: str
    agent: str
    candidate: str
    gist: str
    tone: Tone = "plain"
    origin: str = ""

    @property
    def live(self) -> bool:
        """Whether live progress shows it: what stands under another step only when it fails."""
        return bool(self.gist) and (self.kind not in LOW_LEVEL or self.tone == "bad")


def title_of(agent: str) -> str:
    """An agent's name for people: a role's title."""
    role = find_role(agent)
    return role.title if role else _TITLES.get(agent, agent.replace("_", " ").capitalize())


def step_of(event: Event, width: int = 100) -> Step:
    """Describe an event; one of a kind unknown here shows its kind and its short fields."""
    agent = str(event.get("agent") or event.get("role") or "")
    gist, tone = _gist(event, find_role(agent))
    origin = " · ".join(text_of(event[name]) for name in ("node", "recipe", "prompt") if event.get(name))
    return Step(
        t=float(event.get("t", 0.0)),
        kind=str(event["kind"]),
        agent=title_of(_judge(event) if event["kind"] in ("query", "result") else agent),
        candidate=str(event.get("candidate") or ""),
        gist=one_line(gist, width),
        tone=tone,
        origin=one_line(origin, 200),
    )


def _judge(event: Event) -> str:
    """Who answered a query: the guard or the lint if they refused it, else the database."""
    error = event.get("error")
    return str(error.get("by") or "database") if isinstance(error, dict) else "database"


def _gist(event: Event, role: Role[Any] | None) -> Gist:
    replied = role is not None and bool(role.reply.model_fields.keys() & event.keys())
    kind, error = _error(event.get("error"))
    if role and not replied and error and not kind:
        return error, "warn"
    how: Words | None = WORDS.get(event["kind"])
    while isinstance(how, Fork):
        how = how.yes if event.get(how.field) else how.no
    if callable(how):
        return how(event)
    if how:
        return _filled(how[0], event), how[1]
    short = [f"{k}={v}" for k, v in event.items() if k not in _COMMON and isinstance(v, str | int | float)]
    if role and replied:
        gist = _filled(role.gist, event)
        return gist if "{" in role.gist else " ".join([f"{gist}:", *short]), "plain"
    return " ".join([str(event["kind"]).replace("_", " "), *short]), "plain"


def _filled(template: str, event: Event) -> str:
    return template.format_map(_Fields(event)).strip(" :;")


class _Fields(dict[str, Any]):
    """An event's fields for a template."""

    def __getitem__(self, name: str) -> _Field:
        return _Field(self.get(name))


@dataclass(frozen=True)
class _Field:
    value: Any

    def __format__(self, how: str) -> str:
        """``{n:,}`` formats a number, ``{tables:table|tables}`` counts; a list is joined."""
        value = self.value
        if "|" in how:
            return count(len(value) if isinstance(value, list | str) else int(value or 0), *how.split("|"))
        if isinstance(value, list):
            return ", ".join(map(text_of, value))
        return format(value or 0, how) if how and isinstance(value, int | float | None) else text_of(value)


def _schema(e: Event) -> Gist:
    dialect = text_of(e.get("dialect"))
    left_out = "; too large to show whole, left out: {left_out}" if e.get("left_out") else ""
    opened = "opened {database} ({dialect}, {tables:table|tables})" + left_out
    return _filled(opened, e | {"dialect": NAMES.get(dialect, dialect)}), "warn" if left_out else "plain"


def _action(e: Event) -> Gist:
    templates = {"sql": "{sql}", "look": "looks: {command}"}
    if template := templates.get(text_of(e.get("action"))):
        return _filled(template, e), "plain"
    return (_filled(_LACKING[0], e), "warn") if e.get("missing") else (_filled("ends: {thought}", e), "plain")


def _query(e: Event) -> Gist:
    if error := e.get("error"):
        return ": ".join(filter(None, _error(error))), "bad"
    usage = e.get("usage") or {}
    seconds = float(e.get("seconds") or usage.get("query_seconds") or 0.0)
    text = f"{count(int(e.get('rows') or usage.get('rows') or 0), 'row')} in {duration(seconds)}"
    text = ", ".join([text, *bytes_read(usage)])
    text += f", {count(len(e['parts']), 'part')} read" if e.get("parts") else ""
    return f"{text}, asked before" if e.get("cached") else text, "good"


def _result(e: Event) -> Gist:
    cut = " (cut)" if e.get("truncated") else ""
    return _filled("{row_count:row|rows}" + cut + ": {columns}", e), "good" if e.get("row_count") else "warn"


def _candidate(e: Event) -> Gist:
    if e.get("result"):
        verdicts = {
            "approved": {True: "approved by the Validator", False: "not accepted by the Validator"},
            "confirmed": {True: "its result came twice", False: "no result came twice"},
        }
        said = [words[e[name]] for name, words in verdicts.items() if e.get(name) is not None][:1]
        repairs = [_filled("{refinements:repair|repairs}", e)] if e.get("refinements") else []
        rows = _filled("{row_count:row|rows}", e["result"])
        return ", ".join([rows, *said, *repairs, "kept for the vote"]), "good"
    return f"gave up: {_error(e.get('error'))[1] or text_of(e.get('stopped_by'))}", "bad"


def _retrieval(e: Event) -> Gist:
    shown = {
        "sources": "{sources:document|documents}",
        "verified": "{verified:verified question|verified questions} like this one",
        "triplets": "{triplets:explored query|explored queries}",
    }
    parts = [words for name, words in shown.items() if e.get(name)]
    if not parts:
        return ("", "plain") if e.get("text") else ("nothing fits the question", "faint")
    named = ": {sources}" if e.get("sources") else ""
    return _filled(f"shows the model {' and '.join(parts)}{named}", e), "plain"


def _answer(e: Event) -> Gist:
    return text_of(e.get("status")).replace("_", " "), "good" if e.get("status") == "answered" else "bad"


def _validation(e: Event) -> Gist:
    if e.get("accepted", e.get("valid_result")):  # runs of earlier versions did not record ``accepted``
        return "the result can be the answer", "good"
    return _filled(
        "sends it back: {objection}" if "objection" in e else "sends it back: {suggest_fix}", e
    ), "warn"


def _vote(e: Event) -> Gist:
    vote = e["vote"] if isinstance(e.get("vote"), dict) else e
    clusters = vote.get("clusters") or []
    if not clusters:
        return "no candidate has a result to vote with", "bad"
    names = [list(map(text_of, each.get("candidates") or [])) for each in clusters]
    if len(names) == 1:
        return (f"{listed(names[0])} agree" if names[0][1:] else ""), "plain"  # a single query is no vote
    parts = [float(each.get("share", 0)) for each in clusters]
    shares = [f"{100 * part:.0f} % for {listed(own)}" for part, own in zip(parts, names, strict=True)]
    weights = ", ".join(f"{text_of(name)} {float(w):.2f}" for name, w in (vote.get("weights") or {}).items())
    tie, weighed = ", a tie" if vote.get("tie") else "", f"; weights: {weights}" if weights else ""
    return f"results differ: {' against '.join(shares)}{tie}{weighed}", "plain"


def _readings(e: Event) -> Gist:
    outcomes = [text_of(each.get("outcome")) for each in e.get("readings") or []]
    differ = outcomes.count("differs")
    words = {"same": "the same", "blank": "nothing", "failed": "no result"}
    rest = "".join(f", {outcomes.count(name)} {word}" for name, word in words.items() if name in outcomes)
    text = (
        f"{count(len(outcomes), 'other reading')}: {differ} show{'s' if differ == 1 else ''} something else"
    )
    return f"{text}{rest}", "warn" if differ else "good"


def _judgement(e: Event) -> Gist:
    chosen = (e.get("answers") or {}).get(text_of(e.get("choice")))
    if not chosen:
        return _filled("cannot tell: {reason}", e), "warn"
    return f"chooses the answer of {listed(chosen)}: {text_of(e.get('reason'))}", "good"


def _draw(e: Event) -> Gist:
    among = "the tied answers" if e.get("among") == "tied" else "all candidates"
    winner = {"winner": listed([text_of(e.get("winner"))])}
    return _filled("draws {winner} by lot among " + among + ", seed {seed}", e | winner), "warn"


def _clarification(e: Event) -> Gist:
    replies: dict[str, Gist] = {
        "label": ("chooses answer {text}", "good"),
        "words": ("says more: {text}", "plain"),
    }
    template, tone = replies.get(text_of(e.get("reply")), ("keeps the answer", "plain"))
    return _filled(template, e), tone


def _approval(e: Event) -> Gist:
    replies: dict[str, Gist] = {
        "yes": ("approves the query", "good"),
        "all": ("approves the query, and all that follow", "good"),
    }
    return replies.get(text_of(e.get("reply")), ("does not approve the query", "warn"))


def _expansion(e: Event) -> Gist:
    if e.get("outcome") == "worked":
        return _filled("{number}. {message}", e), "good"
    return _filled("{number}. {outcome}: {step}: {message}", e), "warn"


def _model_call(e: Event) -> Gist:
    usage = e.get("usage") or {}
    cost = usage.get("usd", 0.0)
    price = f", {dollars(cost)}" if cost is not None and cost > 0 else ""
    tokens = (
        f"{int(usage.get('input_tokens') or 0):,} tokens in, {int(usage.get('output_tokens') or 0):,} out"
    )
    text = f"{text_of(e.get('model'))}: {tokens}{price}, {duration(float(e.get('seconds') or 0))}"
    return (f"{text}; {text_of(e['problem'])}", "bad") if e.get("problem") else (text, "faint")


def _model_trouble(e: Event) -> Gist:
    wait = f"; tries again in {duration(float(e['wait']))}" if e.get("wait") is not None else ""
    reason = text_of(e.get("reason") or e.get("message"))
    return f"{text_of(e.get('model'))}: {reason}{wait}", "warn" if wait else "bad"


def _error(error: Any) -> tuple[str, str]:
    """The kind, empty where there is none, and the message of what an event has as its error."""
    if isinstance(error, dict):
        return str(error.get("kind") or "").replace("_", " "), text_of(error.get("message"))
    return "", text_of(error)


@dataclass(frozen=True)
class Fork:
    """Words by whether the event has something in ``field``."""

    field: str
    yes: Words
    no: Words


Words: TypeAlias = Gist | Fork | Callable[[Event], Gist]

_COMMON = {"t", "kind", "agent", "role", "candidate", "usage", "node", "recipe", "prompt"}
_LACKING: Gist = ("says that the data cannot answer: {missing}", "warn")
WORDS: dict[str, Words] = {
    "begun": Fork("resumed", ("goes on with {run}", "faint"), ("{run}", "faint")),
    "failed": ("{message}", "bad"),
    "stopped": ("{message}", "bad"),
    "answer": _answer,
    "schema": _schema,
    "long_context": ("the schema is long: first those tables are chosen that fit the question", "plain"),
    "schema_shown": ("the model now sees a schema of {tokens:,} tokens", "plain"),
    "values": Fork(
        "missing",
        (
            "found in the data, and maybe meant: {values}; not all values were read of {missing}",
            "warn",
        ),
        ("found in the data, and maybe meant: {values}", "plain"),
    ),
    "recall": ("this very question was {credit}: {file}", "good"),
    "retrieval": _retrieval,
    "linking": Fork(
        "tables",
        ("keeps {tables:table|tables}: {tables}", "plain"),
        Fork("linked_schema", ("{linked_schema}", "plain"), ("found nothing", "plain")),
    ),
    "sample_rows": Fork(
        "notes", ("of {tables:table|tables}; {notes}", "warn"), ("of {tables:table|tables}", "plain")
    ),
    "demonstrations": ("{shots:similar question|similar questions} as examples", "plain"),
    "syntax": Fork("features", ("looked up {features}", "plain"), ("none needed", "faint")),
    "plan_review": Fork(
        "update_plan", ("asks for another plan: {feedback}", "warn"), ("the plan passes", "good")
    ),
    "action": _action,
    "writing": Fork("missing", _LACKING, ("{sql}", "plain")),
    "sql_review": Fork("correct", ("the query is right", "good"), ("corrects it: {reasoning}", "warn")),
    "query": _query,
    "result": _result,
    "refinement": ("repairs it: {explanation}", "warn"),
    "not_run": ("{message}", "warn"),
    "unconfirmed": ("no result came twice; it is treated as empty", "warn"),
    "stage": ("ran stage {name}", "plain"),
    "stage_review": Fork(
        "accept",
        ("accepts stage {name}: {reasoning}", "good"),
        ("rewrites stage {name}: {reasoning}", "warn"),
    ),
    "candidate": _candidate,
    "asked_anew": ("asks all candidates anew: {message}", "warn"),
    "candidate_failed": ("{message}", "bad"),
    "finding": Fork("corrected", ("learns (corrected): {purpose}", "good"), ("learns: {purpose}", "good")),
    "correction": Fork(
        "sql",
        Fork(
            "later",
            ("corrects it, and {later:similar query|similar queries} with it: {fault}", "warn"),
            ("corrects it: {fault}", "warn"),
        ),
        ("finds nothing to correct: {fault}", "plain"),
    ),
    "exploration_given_up": ("gives a query up: {message}", "warn"),
    "exploration_ended": ("ends early: {message}", "bad"),
    "grounding": ("{tables:table|tables}, {columns:,} columns: {tables} ({embedder})", "plain"),
    "examples": Fork(
        "triplets",
        ("{triplets:explored query|explored queries} as examples ({embedder})", "plain"),
        ("no explored query as example", "faint"),
    ),
    "expansion": _expansion,
    "explored": ("ends by {ended}: {coverage:.0%} of the fields covered", "good"),
    "first_answer": Fork(
        "why",
        ("asks for more candidates: {why}", "plain"),
        ("one query is enough", "good"),
    ),
    "other_readings": Fork(
        "readings",
        ("writes {readings:other reading|other readings}: {reasoning}", "warn"),
        ("finds nothing open: {reasoning}", "good"),
    ),
    "readings": _readings,
    "suspicion": ("{says} {matters}", "warn"),
    "vote": _vote,
    "consensus": _vote,
    "draw": _draw,
    "tie_left_open": ("leaves the tie open: random selection is off", "warn"),
    "judgement": _judgement,
    "clarification": _clarification,
    "approval_asked": ("asks before its query runs (it reads: {reads})", "warn"),
    "approval": _approval,
    "validation": _validation,
    "vote_weighed": ("after that verdict, likely to be right: {confidence:.0%}", "plain"),
    "revision": Fork(
        "sql",
        ("revises the query: {explanation}", "warn"),
        ("lets the query stand: {explanation}", "plain"),
    ),
    "model_call": _model_call,
    "model_retry": _model_trouble,
    "model_failed": _model_trouble,
    "model_replaced": ("asks another model: {message}", "warn"),
    "model_adapted": ("{model}: {change}", "faint"),
}
