"""What a trace's events mean, in a few words: one wording for live progress, terminal and page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from quorum import exploring_steps, judging_steps
from quorum.text import count, dollars, duration, one_line, text_of

Event = dict[str, Any]
Tone = Literal["plain", "good", "bad", "warn", "faint"]

AGENTS = {
    "catalog": "Catalog",
    "knowledge_retriever": "Knowledge Retriever",
    "planner": "Planner",
    "plan_critique": "PlanCritique",
    "syntax_retriever": "Syntax Retriever",
    "action": "Action",
    "sql_writer": "SqlWriter",
    "tool_user": "ToolUser",
    "sql_critique": "SQLCritique",
    "schema_linker": "SchemaLinker",
    "presql_linker": "PreSQL Linking",
    "self_refiner": "SelfRefiner",
    "candidate": "Candidate",
    "database": "Database",
    "run": "Run",
    **exploring_steps.AGENTS,
    **judging_steps.AGENTS,
}

LOW_LEVEL = frozenset({"model_call", "query"})
"""Kinds that stand under a step; live progress shows them only when they fail."""


@dataclass(frozen=True)
class Step:
    """An event for people.

    Attributes:
        t: Seconds since the run's start.
        agent: Its name as people read it.
        candidate: Id, empty for what all candidates share.
        gist: What happened or was decided, on one line.
    """

    t: float
    kind: str
    agent: str
    candidate: str
    gist: str
    tone: Tone = "plain"


def step_of(event: Event, width: int = 100) -> Step:
    """Describe an event; one of a kind unknown here shows its kind and its short fields."""
    agent = str(event.get("agent") or event.get("role") or "")
    if event["kind"] in ("query", "result"):
        agent = _judge(event)
    gist, tone = _GISTS.get(event["kind"], _unknown)(event)
    return Step(
        t=float(event.get("t", 0.0)),
        kind=str(event["kind"]),
        agent=AGENTS.get(agent, agent.replace("_", " ").capitalize()),
        candidate=str(event.get("candidate") or ""),
        gist=one_line(gist, width),
        tone=tone,
    )


def _judge(event: Event) -> str:
    """Who answered a query: the guard or the lint if they refused it, else the database."""
    error = event.get("error")
    return str(error.get("by") or "database") if isinstance(error, dict) else "database"


Gist = tuple[str, Tone]


def _begun(e: Event) -> Gist:
    return f"goes on with {e.get('run')}" if e.get("resumed") else text_of(e.get("run")), "faint"


def _schema(e: Event) -> Gist:
    left = e.get("left_out") or []
    text = f"{text_of(e.get('database'))} ({e.get('dialect')}): {count(int(e.get('tables') or 0), 'table')}"
    text += f", {int(e.get('tokens') or 0):,} tokens of schema"
    return (f"{text}; left out: {', '.join(map(text_of, left))}", "warn") if left else (text, "plain")


def _retrieval(e: Event) -> Gist:
    text = e.get("text")
    size = text["chars"] if isinstance(text, dict) else len(text or "")
    return (f"{size:,} characters of documents", "plain") if size else ("nothing fits the question", "faint")


def _linking(e: Event) -> Gist:
    if e.get("error"):
        return f"found nothing: {text_of(e['error'])}", "warn"
    if tables := e.get("tables"):
        return f"keeps {count(len(tables), 'table')}: {', '.join(map(text_of, tables))}", "plain"
    return text_of(e.get("linked_schema")) or "found nothing", "plain"


def _plan(e: Event) -> Gist:
    if e.get("error"):
        return f"no plan: {text_of(e['error'])}", "warn"
    steps = e.get("steps") or []
    return f"{count(len(steps), 'step')}, to give {text_of(e.get('expected_format'))}", "plain"


def _plan_review(e: Event) -> Gist:
    if e.get("error"):
        return f"no verdict: {text_of(e['error'])}", "warn"
    if e.get("update_plan"):
        return f"asks for another plan: {text_of(e.get('feedback'))}", "warn"
    return "the plan passes", "good"


def _syntax(e: Event) -> Gist:
    features = e.get("features") or []
    return (
        (f"looked up {', '.join(map(text_of, features))}", "plain") if features else ("none needed", "faint")
    )


def _action(e: Event) -> Gist:
    match e.get("action"):
        case "sql":
            return text_of(e.get("sql")), "plain"
        case "look":
            return f"looks: {text_of(e.get('command'))}", "plain"
    return f"ends: {text_of(e.get('thought'))}", "plain"


def _writing(e: Event) -> Gist:
    return text_of(e.get("sql")), "plain"


def _sample_rows(e: Event) -> Gist:
    notes = e.get("notes") or []
    tables = count(int(e.get("tables") or 0), "table")
    return (f"of {tables}; {' '.join(map(text_of, notes))}", "warn") if notes else (f"of {tables}", "plain")


def _demonstrations(e: Event) -> Gist:
    return count(len(e.get("shots") or []), "similar question"), "plain"


def _sql_review(e: Event) -> Gist:
    if e.get("error"):
        return f"no verdict: {text_of(e['error'])}", "warn"
    if e.get("correct"):
        return "the query is right", "good"
    return f"corrects it: {text_of(e.get('reasoning'))}", "warn"


def _query(e: Event) -> Gist:
    error = e.get("error")
    if error:
        kind, message = _error(error)
        return f"{kind}: {message}" if kind else message, "bad"
    usage = e.get("usage") or {}
    seconds = float(e.get("seconds") or usage.get("query_seconds") or 0.0)
    text = f"{count(int(e.get('rows') or usage.get('rows') or 0), 'row')} in {duration(seconds)}"
    return f"{text}, asked before" if e.get("cached") else text, "good"


def _result(e: Event) -> Gist:
    rows = int(e.get("row_count") or 0)
    more = " (cut)" if e.get("truncated") else ""
    columns = ", ".join(map(text_of, e.get("columns") or []))
    return f"{count(rows, 'row')}{more}: {columns}", "good" if rows else "warn"


def _refinement(e: Event) -> Gist:
    return f"repairs it: {text_of(e.get('explanation'))}", "warn"


def _candidate(e: Event) -> Gist:
    if e.get("result"):
        repairs = int(e.get("refinements") or 0)
        verdict = _VERDICTS[e.get("approved")]
        return f"done, {verdict}" + (f", {count(repairs, 'repair')}" if repairs else ""), "good"
    return f"gave up: {_error(e.get('error'))[1] or text_of(e.get('stopped_by'))}", "bad"


def _answer(e: Event) -> Gist:
    return text_of(e.get("status")).replace("_", " "), "good" if e.get("status") == "answered" else "bad"


def _model_call(e: Event) -> Gist:
    usage = e.get("usage") or {}
    tokens = f"{int(usage.get('input_tokens') or 0):,} + {int(usage.get('output_tokens') or 0):,} tokens"
    cost = usage.get("usd", 0.0)
    price = f", {dollars(cost)}" if cost is not None and cost > 0 else ""
    text = f"{text_of(e.get('model'))}: {tokens}{price}, {duration(float(e.get('seconds') or 0))}"
    return (f"{text}; {text_of(e['problem'])}", "bad") if e.get("problem") else (text, "faint")


def _model_trouble(e: Event) -> Gist:
    wait = f"; tries again in {duration(float(e['wait']))}" if e.get("wait") is not None else ""
    reason = text_of(e.get("reason") or e.get("message"))
    return f"{text_of(e.get('model'))}: {reason}{wait}", "warn" if wait else "bad"


def _model_adapted(e: Event) -> Gist:
    return f"{text_of(e.get('model'))}: {text_of(e.get('change'))}", "faint"


def _failed(e: Event) -> Gist:
    return text_of(e.get("message")), "bad"


def _unknown(e: Event) -> Gist:
    shown = [f"{k}={v}" for k, v in e.items() if k not in _COMMON and isinstance(v, str | int | float)]
    return " ".join([str(e["kind"]).replace("_", " "), *shown]), "plain"


def _error(error: Any) -> tuple[str, str]:
    if isinstance(error, dict) and "$blob" not in error:
        return str(error.get("kind") or "").replace("_", " "), text_of(error.get("message"))
    return "", text_of(error)


_VERDICTS = {True: "approved", False: "not approved", None: "not validated"}
_COMMON = {"t", "kind", "agent", "role", "candidate", "usage"}
_GISTS: dict[str, Callable[[Event], Gist]] = {
    "begun": _begun,
    "failed": _failed,
    "schema": _schema,
    "retrieval": _retrieval,
    "linking": _linking,
    "plan": _plan,
    "plan_review": _plan_review,
    "syntax": _syntax,
    "action": _action,
    "writing": _writing,
    "sample_rows": _sample_rows,
    "demonstrations": _demonstrations,
    "sql_review": _sql_review,
    "query": _query,
    "result": _result,
    "refinement": _refinement,
    "candidate": _candidate,
    "candidate_failed": _failed,
    "stopped": _failed,
    "answer": _answer,
    "model_call": _model_call,
    "model_retry": _model_trouble,
    "model_failed": _model_trouble,
    "model_adapted": _model_adapted,
    **exploring_steps.GISTS,
    **judging_steps.GISTS,
}
