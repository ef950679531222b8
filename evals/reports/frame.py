"""The table that every report is made of: a row for each question asked for, and its columns by name.

A figure of a report is a column over some of the rows. ``Frame(...).share("ex")`` is execution accuracy, and
``frame.by("database")["shop"].share("ex")`` the same of one database. The progress of a run, reports, plots
and comparisons take their figures from here. What cannot be known is None, never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from quorum.evals.records import Asked, Record
from quorum.evals.reports.statistics import Mean, Share, Spread, mean_of, share_of, spread_of
from quorum.evals.scorers.base import EX
from quorum.graph.clarification import ASK_BELOW

Row: TypeAlias = tuple[Asked, Record | None]
"""A question asked for and its record, if it has one."""

UNGRADED = "not graded"
GRADES = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra", "extra hard")
"""Difficulties that benchmarks use, in their order; others follow by name."""


def answered(record: Record) -> bool:
    return record.status == "answered"


def right(record: Record) -> bool:
    """True if the question has an answer that meets the gold. A best effort is no answer."""
    return answered(record) and record.match is True


def unscorable(record: Record) -> bool:
    """True if the answer cannot be judged, because the gold is unusable."""
    return record.match is None and record.gold != "ok"


def got_meant(record: Record, *, question: bool = False) -> bool:
    """True if the simulated user gets what they mean, with ``question`` also by choosing it when asked.

    Where a question has several right readings, the user means one of them, and only that is right; else any
    accepted result is.
    """
    return record.asking is not None and _serves(record, record.asking.intent, question=question)


def share_of_meanings(record: Record, *, question: bool = False) -> float:
    """Return the share of the readings that the user may mean with which they get it."""
    if (user := record.asking) is None:
        return 0.0
    intents: Sequence[int | None] = range(user.readings) if user.readings else [None]
    return sum(_serves(record, intent, question=question) for intent in intents) / len(intents)


def _serves(record: Record, intent: int | None, *, question: bool) -> bool:
    if (user := record.asking) is None:
        return False
    if question and any(user.suits(choice, intent) for choice in user.choices):
        return True
    return answered(record) and user.suits(record, intent)


def _was_asked(record: Record, *, below: float = 1.0) -> bool:
    return record.asking is not None and bool(record.asking.choices) and record.confidence < below


def voted(record: Record) -> bool:
    """True if candidates voted. A verified query is answered without a vote."""
    return bool(record.vote) and (record.vote or {}).get("settled") != "verified"


def two_rounds(record: Record) -> tuple[bool, bool] | None:
    """Return if some candidate is right in the first round, and in the last; None without both."""
    if record.course is None:
        return None
    first = [row.match for row in record.candidates if row.superseded and row.match is not None]
    last = [row.match for row in record.voters if row.match is not None]
    return (any(first), any(last)) if first and last else None


@dataclass(frozen=True)
class Column:
    """A column of yes and no.

    Attributes:
        title: Its name in tables.
        holds: Of a record; anything true counts.
        over: The records that count. Without it every question asked for counts, and one without a record is
            a no.
    """

    title: str
    holds: Callable[[Record], object]
    over: Callable[[Record], object] | None = None


EXECUTION_ACCURACY = {
    "ex": Column("all questions asked for", right),
    "ex_answered": Column(
        "questions answered that can be scored", right, lambda it: answered(it) and it.match is not None
    ),
    "ex_sound": Column("questions with usable gold, of those recorded", right, lambda it: it.gold == "ok"),
    "ex_effort": Column("all questions, best efforts counted as answers", lambda it: it.match),
    "possible": Column("all questions: some candidate is right (pass@k)", lambda it: it.possible),
    "some_reading": Column(
        "all questions: the answer or another reading shown is right",
        lambda it: answered(it) and it.some_reading,
    ),
}
ONE_QUESTION = {
    "without_question": Column(
        "all questions: the answer is what the user means, without a question", got_meant
    ),
    "with_question": Column(
        "all questions: it is, with one question (EX with one question)", partial(got_meant, question=True)
    ),
    "user_asked": Column("all questions: the user was asked", _was_asked),
    "helped": Column(
        "asked: what they mean was not the answer, but among the choices",
        lambda it: not got_meant(it) and got_meant(it, question=True),
        _was_asked,
    ),
    "needless": Column("asked in vain: the answer was what they mean", got_meant, _was_asked),
    "unhelpful": Column(
        "asked in vain: no choice was what they mean",
        lambda it: not got_meant(it, question=True),
        _was_asked,
    ),
    "with_doubtful": Column(
        "all questions: it is, with one question only where the answer is in doubt (`--clarify`)",
        lambda it: got_meant(it, question=_was_asked(it, below=ASK_BELOW)),
    ),
    "doubtful_asked": Column("all questions: the user was asked so", partial(_was_asked, below=ASK_BELOW)),
}
SQL = {
    "with_sql": Column("is there, of all questions recorded", lambda it: it.sql, bool),
    "executes": Column(
        "executes, of SQL on live databases",
        lambda it: it.executes,
        lambda it: it.sql and it.executes is not None,
    ),
    "valid": Column(
        "passes guard and lint, of all SQL", lambda it: it.valid, lambda it: it.sql and it.valid is not None
    ),
}
EXPLORATION = {
    "explored": Column(
        "questions that were explored", lambda it: it.course and it.course.explored, lambda it: it.course
    ),
    "first_tie": Column(
        "first votes that were a tie",
        lambda it: it.course and it.course.first_tie,
        lambda it: it.course and it.course.first_tie is not None,
    ),
    "first_round": Column(
        "of two rounds: some candidate of the first is right",
        lambda it: (two_rounds(it) or (False, False))[0],
        two_rounds,
    ),
    "last_round": Column(
        "of two rounds: some candidate of the last is right (pass@k)",
        lambda it: (two_rounds(it) or (False, False))[1],
        two_rounds,
    ),
}
TIES = {"ties": Column("votes that were a tie", lambda it: (it.vote or {}).get("tie"), voted)}
SHARES = EXECUTION_ACCURACY | ONE_QUESTION | SQL | EXPLORATION | TIES

COSTS = {
    "model_calls": ("model calls", "calls"),
    "input_tokens": ("input tokens", "tokens"),
    "cached_tokens": ("of them cached", "tokens"),
    "output_tokens": ("output tokens", "tokens"),
    "tokens_per_call": ("tokens a model call, in and out", "tokens a call"),
    "queries": ("database calls", "queries"),
    "bytes": ("result size", "bytes"),
    "read_bytes": ("read, as the engine says", "bytes"),
    "estimated_bytes": ("read, as estimated", "bytes"),
    "slot_seconds": ("time of the engine's slots", "seconds"),
    "query_seconds": ("time in the database", "seconds"),
    "seconds": ("wall clock", "seconds"),
    "usd": ("price", "dollars"),
}
"""Keys of the ledger, their titles and units. ``tokens_per_call`` is a question's mean, as in paper 000,
Tables 6 and 7."""

SOMETIMES = ("read_bytes", "estimated_bytes", "slot_seconds")
"""Shown where any question has them: not every engine reports them."""


def number(value: Any) -> float | None:
    """Return a number of a ledger, None if it is missing."""
    return float(value) if isinstance(value, int | float) else None


def tokens_per_call(usage: Mapping[str, Any]) -> float | None:
    """Return the tokens in and out per model call; None without a call."""
    calls = number(usage.get("model_calls"))
    return (tokens_of(usage) or 0) / calls if calls else None


def tokens_of(usage: Mapping[str, Any]) -> int | None:
    """Return the tokens in and out; None without a ledger."""
    return sum(int(usage.get(part) or 0) for part in ("input_tokens", "output_tokens")) if usage else None


def cost_of(record: Record, name: str) -> float | None:
    """Return what a question took of a resource (``COSTS``); None if unknown."""
    return tokens_per_call(record.usage) if name == "tokens_per_call" else number(record.usage.get(name))


def costs_known(records: Iterable[Record]) -> list[str]:
    """Return the names of ``COSTS`` that the records have a figure of."""
    ledgers = [record.usage for record in records if record.usage]
    return [name for name in COSTS if name not in SOMETIMES or any(used.get(name) for used in ledgers)]


class Frame:
    """Questions asked for, as the rows of a table.

    Attributes:
        metrics: The scorer's, as a manifest declares them.
    """

    def __init__(self, rows: Iterable[Row], metrics: Sequence[Mapping[str, str]] = ()) -> None:
        self.rows = tuple(rows)
        self.metrics = metrics
        self.records = [record for _, record in self.rows if record is not None]

    @classmethod
    def of(cls, records: Collection[Record]) -> Frame:
        """Return the table of the questions that have ended."""
        return cls(
            (Asked(it.id, it.database, it.dialect, it.difficulty, it.external_knowledge), it)
            for it in records
        )

    def count(self, holds: Callable[[Record], object]) -> int:
        return sum(bool(holds(record)) for record in self.records)

    @property
    def measurable(self) -> bool:
        """False if nothing was recorded, or nothing of it can be scored."""
        return any(it.match is not None for it in self.records) or (
            not self.count(unscorable) and any(it.finished for it in self.records)
        )

    @property
    def answers(self) -> int:
        """Return the number of questions with an answer."""
        return self.count(answered)

    @property
    def simulated(self) -> bool:
        """True if a user was simulated."""
        return any(record.asking for record in self.records)

    def share(self, name: str) -> Share | None:
        """Return a column of ``SHARES`` over these rows; None if it cannot be measured."""
        column = SHARES[name]
        if column.over is not None:
            return share_of(bool(column.holds(record)) for record in self.records if column.over(record))
        if not self.measurable or (name in ONE_QUESTION and not self.simulated):
            return None
        return share_of(record is not None and bool(column.holds(record)) for _, record in self.rows)

    def cost(self, name: str) -> Spread:
        """Return a resource of ``COSTS`` over the records with a ledger."""
        return spread_of(cost_of(record, name) for record in self.records if record.usage)

    def declared(self) -> dict[str, tuple[Mapping[str, str], Mean, Mean]]:
        """Return the scorer's metrics besides EX: declaration, mean over all, over answers.

        Over all questions, what is missing, unanswered or unscorable counts as 0. An answer for which the
        metric is not defined is left out of both.
        """
        measurable, given = self.measurable, [record for record in self.records if answered(record)]
        return {
            metric["name"]: (
                metric,
                mean_of(
                    metric_of(record, metric["name"])
                    for asked, record in self.rows
                    if measurable and concerns(metric, asked)
                ),
                mean_of(record.metrics.get(metric["name"]) for record in given),
            )
            for metric in self.metrics
            if metric["name"] != EX
        }

    def by(self, group: str) -> dict[str, Frame]:
        """Return the rows by group (``groups``), in the order of reports."""
        members: dict[str, list[Row]] = {}
        for asked, record in self.rows:
            members.setdefault(group_of(asked, group), []).append((asked, record))
        return {label: Frame(members[label], self.metrics) for label in sorted(members, key=_rank)}

    def groups(self) -> Iterator[tuple[str, dict[str, Frame]]]:
        """Yield every way to group the questions that tells some of them apart, with its groups."""
        own = dict.fromkeys(name for asked, _ in self.rows for name in asked.groups)
        for name in dict.fromkeys(("difficulty", *own, "dialect", "database", "external knowledge")):
            if len(found := self.by(name)) > 1:
                yield name, found

    def figures(self) -> dict[str, Any]:
        """Return every figure by name: counts, shares, and means of the scorer's metrics."""
        return {
            "questions": len(self.rows),
            "recorded": len(self.records),
            "answered": self.answers,
            "unscorable": self.count(unscorable),
            **{name: self.share(name) for name in SHARES},
            "metrics": {name: {"asked": a, "answered": b} for name, (_, a, b) in self.declared().items()},
        }


def group_of(asked: Asked, group: str) -> str:
    """Return a question's group: its difficulty, dialect, database, knowledge, or a group of the suite."""
    if group == "external knowledge":
        return "with" if asked.external_knowledge else "without"
    if group in ("difficulty", "dialect", "database"):
        return getattr(asked, group) or UNGRADED
    return asked.groups.get(group, UNGRADED)


def _rank(label: str) -> tuple[int, str]:
    if label == UNGRADED:
        return len(GRADES) + 1, label
    return (GRADES.index(label) if label in GRADES else len(GRADES)), label


def concerns(metric: Mapping[str, str], asked: Asked) -> bool:
    """True if a metric of a manifest is defined for a question."""
    only = metric.get("only", "")
    return not only or only in asked.groups.values()


def metric_of(record: Record | None, name: str) -> float | None:
    """Return a question's value in a metric's mean; None leaves it out."""
    if record is None or not answered(record) or record.match is None:
        return 0.0
    return record.metrics.get(name)
