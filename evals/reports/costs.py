"""What questions cost and how fast they were answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from quorum.evals.records import Record
from quorum.evals.reports.statistics import Spread, spread_of

COSTS = (
    ("model_calls", "model calls", "calls"),
    ("input_tokens", "input tokens", "tokens"),
    ("cached_tokens", "of them cached", "tokens"),
    ("output_tokens", "output tokens", "tokens"),
    ("tokens_per_call", "tokens a model call, in and out", "tokens a call"),
    ("queries", "database calls", "queries"),
    ("bytes", "result size", "bytes"),
    ("read_bytes", "read, as the engine says", "bytes"),
    ("estimated_bytes", "read, as estimated", "bytes"),
    ("slot_seconds", "time of the engine's slots", "seconds"),
    ("query_seconds", "time in the database", "seconds"),
    ("seconds", "wall clock", "seconds"),
    ("usd", "price", "dollars"),
)
"""Keys of the ledger, what tables call them, and their units; ``tokens_per_call`` follows from the ledger, a
question's mean as in paper 000, Tables 6 and 7."""

SOMETIMES = ("read_bytes", "estimated_bytes", "slot_seconds")
"""Shown where any question has them: not every engine tells."""

TOKENS = ("input_tokens", "output_tokens")

Span: TypeAlias = tuple[datetime, datetime]


@dataclass(frozen=True)
class Cost:
    """What one question takes of one resource.

    Attributes:
        name: Key of the ledger (``quorum.tools.ledger.Usage``), ``tokens_per_call``, or ``seconds`` of wall
            clock.
        unit: ``calls``, ``tokens``, ``tokens a call``, ``queries``, ``rows``, ``bytes``, ``seconds`` or
            ``dollars``.
        spread: Over the records with a ledger. Where a price is unknown for some of them, ``total`` is
            None and ``unknown`` counts them.
    """

    name: str
    title: str
    unit: str
    spread: Spread


@dataclass(frozen=True)
class Account:
    """What an agent, or a model, used in all questions together; ``usd`` is None if a price is unknown.

    ``tokens_per_call`` are those in and out; None without a call.
    """

    name: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    queries: int
    read_bytes: int
    estimated_bytes: int
    usd: float | None
    tokens_per_call: float | None


@dataclass(frozen=True)
class Session:
    """A process that ended questions, as seen from its records, the only trace after SIGKILL.

    Attributes:
        questions: Its records that count; a question asked again counts for the later session.
        first, last: ISO 8601: when its first question began (its end less its seconds), its last one ended.
        seconds: From ``first`` to ``last``.
        per_minute: Questions; None if no time passed.
        memory: Peak bytes of the process, its children's included.
    """

    session: str
    questions: int
    first: str
    last: str
    seconds: float
    per_minute: float | None
    memory: int


@dataclass(frozen=True)
class Throughput:
    """How fast questions were answered.

    Attributes:
        questions: Records that say when they ended.
        seconds: Wall clock during which at least one session ran.
        per_minute: ``questions`` per minute of it; None if no time passed.
        memory: The highest peak of a session, in bytes.
        resumed: Questions that were interrupted and went on.
    """

    sessions: tuple[Session, ...]
    questions: int
    seconds: float
    per_minute: float | None
    memory: int
    resumed: int


def costs(records: Iterable[Record]) -> tuple[Cost, ...]:
    """What a question takes, over the records with a ledger."""
    ledgers = [figures(record) for record in records if record.usage]
    return tuple(Cost(name, title, unit, _spread(ledgers, name)) for name, title, unit in told(ledgers))


def told(ledgers: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Those of ``COSTS`` of which the ledgers tell."""
    return [cost for cost in COSTS if cost[0] not in SOMETIMES or any(used.get(cost[0]) for used in ledgers)]


def figures(record: Record) -> dict[str, Any]:
    """A record's ledger with all of ``COSTS``."""
    return record.usage | {"tokens_per_call": _tokens_per_call(record.usage)}


def accounts(records: Iterable[Record], by: Literal["by_agent", "by_model"]) -> tuple[Account, ...]:
    """What each agent, or each model, used, the one with the most calls first; ledgers of earlier versions
    have no account of a model."""
    ledgers: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        for name, usage in (record.usage.get(by) or {}).items():
            ledgers.setdefault(name, []).append(usage)
    found = [_account(name, own) for name, own in ledgers.items()]
    return tuple(sorted(found, key=lambda each: (-each.model_calls, each.name)))


def _account(name: str, ledgers: Sequence[Mapping[str, Any]]) -> Account:
    tokens = ("input_tokens", "output_tokens", "cached_tokens")
    amounts = ("model_calls", *tokens, "queries", "read_bytes", "estimated_bytes")
    counts = {amount: int(_spread(ledgers, amount).known_total or 0) for amount in amounts}
    return Account(
        name, **counts, usd=_spread(ledgers, "usd").total, tokens_per_call=_tokens_per_call(counts)
    )


def _tokens_per_call(usage: Mapping[str, Any]) -> float | None:
    tokens = sum(_number(usage.get(part)) or 0.0 for part in TOKENS)
    calls = _number(usage.get("model_calls"))
    return tokens / calls if calls else None


def _spread(ledgers: Iterable[Mapping[str, Any]], name: str) -> Spread:
    return spread_of(_number(usage.get(name)) for usage in ledgers)


def throughput(records: Iterable[Record]) -> Throughput:
    """The sessions' speed, from their records."""
    members: dict[str, list[tuple[datetime, Record]]] = {}
    for record in records:
        if ended := _time(record.ended):
            members.setdefault(record.session, []).append((ended, record))
    spans = {session: _span(own) for session, own in members.items()}
    ordered = sorted(spans, key=lambda session: (spans[session], session))
    sessions = tuple(_session(session, members[session], *spans[session]) for session in ordered)
    questions, seconds = sum(each.questions for each in sessions), _covered(spans.values())
    return Throughput(
        sessions=sessions,
        questions=questions,
        seconds=seconds,
        per_minute=_per_minute(questions, seconds),
        memory=max((each.memory for each in sessions), default=0),
        resumed=sum(record.resumed for own in members.values() for _, record in own),
    )


def _span(own: Sequence[tuple[datetime, Record]]) -> Span:
    """From the start of the first question to the end of the last.

    The seconds of a question that was interrupted cover earlier sessions, so its start is not known.
    """
    starts = [
        ended if record.resumed else ended - timedelta(seconds=_number(record.usage.get("seconds")) or 0.0)
        for ended, record in own
    ]
    return min(starts), max(ended for ended, _ in own)


def _session(
    session: str, own: Sequence[tuple[datetime, Record]], first: datetime, last: datetime
) -> Session:
    seconds = (last - first).total_seconds()
    return Session(
        session=session,
        questions=len(own),
        first=first.isoformat(timespec="milliseconds"),
        last=last.isoformat(timespec="milliseconds"),
        seconds=seconds,
        per_minute=_per_minute(len(own), seconds),
        memory=max(record.memory for _, record in own),
    )


def _covered(spans: Iterable[Span]) -> float:
    """Seconds that lie in at least one of the spans."""
    seconds, end = 0.0, None
    for start, stop in sorted(spans):
        begin = start if end is None else max(start, end)
        seconds += max(0.0, (stop - begin).total_seconds())
        end = stop if end is None else max(end, stop)
    return seconds


def _per_minute(questions: int, seconds: float) -> float | None:
    return 60 * questions / seconds if seconds > 0 else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _time(text: str) -> datetime | None:
    """A time; None if missing or without a time zone, which cannot be compared."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None
