"""The table that every report is made of: a row for each question asked for, a column for each figure.

``Frame(...).mean("ex")`` is execution accuracy, ``frame.by("database")["shop"].mean("ex")`` the same of one
database. The progress of a run, reports, plots and comparisons take their figures from here. What cannot be
known is None, never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from quorum.evals.records import PlannedQuestion, Record
from quorum.evals.reports.statistics import Mean, mean_of
from quorum.evals.scorers.base import EX
from quorum.graph.clarification import ASK_BELOW

QuestionRow: TypeAlias = tuple[PlannedQuestion, Record | None]
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


def category(record: Record) -> str:
    """Return why a question is not right; empty if it is, or that is not known.

    Without an answer it is ``Record.error``. Of wrong answers the first that holds counts: the result is
    empty, the SQL leaves out a table or a column that the nearest gold SQL uses, the gold has another number
    of rows.
    """
    if record.status != "answered":
        return record.error or "unknown"
    if record.match is not False:
        return ""
    linking = record.linking
    if record.rows == 0:
        return "no rows"
    if linking and linking.table_recall is not None and linking.table_recall < 1:
        return "tables missed"
    if linking and linking.column_recall is not None and linking.column_recall < 1:
        return "columns missed"
    if record.rows is None or record.gold_rows is None:
        return "result differs"
    return "values differ" if record.rows == record.gold_rows else "row count differs"


@dataclass(frozen=True)
class Figure:
    """A column: what is measured of each question.

    Attributes:
        of: Its value for a record, yes and no as 1 and 0; None leaves the record out.
        unit: ``share`` is shown in percent, ``dollars`` as such; the others name what is counted.
        everyone: Every question asked for counts, one without a record as 0.
        only: The group of questions that it is defined for; empty for all.
    """

    title: str
    of: Callable[[Record], float | None]
    unit: str = "share"
    everyone: bool = False
    only: str = ""

    def value(self, asked: PlannedQuestion, record: Record | None) -> float | None:
        """Return its value for a question."""
        if self.only and self.only not in asked.groups.values():
            return None
        if record is None:
            return 0.0 if self.everyone else None
        found = self.of(record)
        return None if found is None else float(found)


# A simulated user, who knows the gold


def _serves(record: Record, intent: int | None, *, question: bool) -> bool:
    """True if a user who means ``intent`` gets it, with ``question`` also by choosing it when asked.

    Where a question has several right readings, the user means one of them, and only that is right; else any
    accepted result is.
    """
    if (user := record.asking) is None:
        return False
    if question and any(user.suits(choice, intent) for choice in user.choices):
        return True
    return answered(record) and user.suits(record, intent)


def _got_meant(record: Record, *, question: bool = True) -> bool:
    return record.asking is not None and _serves(record, record.asking.intent, question=question)


def _share_of_meanings(record: Record) -> float:
    """Return the share of the readings that the user may mean with which they get it, when asked."""
    if (user := record.asking) is None:
        return 0.0
    intents: Sequence[int | None] = range(user.readings) if user.readings else [None]
    return sum(_serves(record, intent, question=True) for intent in intents) / len(intents)


def _was_asked(record: Record, *, below: float = 1.0) -> bool:
    return record.asking is not None and bool(record.asking.choices) and record.confidence < below


def _in_vain(record: Record) -> bool | None:
    """True if the question changed nothing: the answer was what the user means, or no choice was."""
    if not _was_asked(record):
        return None
    return _got_meant(record, question=False) or not _got_meant(record)


def _in_doubt(record: Record) -> bool:
    return _got_meant(record, question=_was_asked(record, below=ASK_BELOW))


USER = {
    "with_question": Figure("EX with one question", _got_meant, everyone=True),
    "with_question_all": Figure("the same, over all readings meant", _share_of_meanings, everyone=True),
    "user_asked": Figure("user asked", _was_asked, everyone=True),
    "in_vain": Figure("asked in vain", _in_vain),
    "with_doubtful": Figure("EX with one question where in doubt (`--clarify`)", _in_doubt, everyone=True),
    "doubtful_asked": Figure("user asked so", partial(_was_asked, below=ASK_BELOW), everyone=True),
}
"""Figures that are shown where a user was simulated (``--clarify gold``)."""


# Linking, exploration, costs


def _first_round(record: Record) -> bool | None:
    """True if some candidate of the first of two rounds is right (ReFoRCE, Table 6)."""
    known = [row.match for row in record.candidates if row.superseded and row.match is not None]
    return any(known) if known else None


def _link(what: str, part: str) -> Callable[[Record], float | None]:
    """Return the reader of a recall or precision of the answer's SQL (``linking``) or of linked schemas."""

    def read(record: Record) -> float | None:
        found = getattr(record, what) if what == "linking" or record.linked else None
        return getattr(found, part, None)

    return read


def _used(name: str, record: Record) -> float | None:
    """Return what a question took of a resource; 0 of what its ledger lacks, None without a ledger."""
    value = record.usage.get(name, 0) if record.usage else None
    return float(value) if isinstance(value, int | float) else None


LINKING = ("table_recall", "table_precision", "column_recall", "column_precision")
"""Fields of ``quorum.evals.records.Linking``."""

FIGURES = {
    "answered": Figure("answered", answered, everyone=True),
    "ex": Figure("EX", right, everyone=True),
    "ex_sound": Figure("EX where the gold is usable", lambda it: right(it) if it.gold == "ok" else None),
    "ex_effort": Figure("EX, best efforts counted as answers", lambda it: it.match is True, everyone=True),
    "possible": Figure("some candidate right (pass@k)", lambda it: it.possible is True, everyone=True),
    "some_reading": Figure(
        "answer or a reading shown right",
        lambda it: answered(it) and it.some_reading is True,
        everyone=True,
    ),
    "executes": Figure("SQL that executes", lambda it: it.executes if it.sql else None),
    "valid": Figure("SQL that passes guard and lint", lambda it: it.valid if it.sql else None),
    **{name: Figure(f"{name.replace('_', ' ')} of answers", _link("linking", name)) for name in LINKING},
    **{
        f"linked_{name}": Figure(f"{name.replace('_', ' ')} of linked schemas", _link("schema_linking", name))
        for name in LINKING
    },
    "explored": Figure("questions explored", lambda it: it.course.explored if it.course else None),
    "first_tie": Figure("first votes that were a tie", lambda it: it.course.first_tie if it.course else None),
    "first_round": Figure("pass@k of the first of two rounds", _first_round),
    "model_calls": Figure("model calls", partial(_used, "model_calls"), "calls"),
    "queries": Figure("database calls", partial(_used, "queries"), "calls"),
    "input_tokens": Figure("input tokens", partial(_used, "input_tokens"), "tokens"),
    "output_tokens": Figure("output tokens", partial(_used, "output_tokens"), "tokens"),
    "read_bytes": Figure(
        "bytes read, where an engine says", lambda it: _used("read_bytes", it) or None, "bytes"
    ),
    "seconds": Figure("seconds", partial(_used, "seconds"), "seconds"),
    "usd": Figure("price", partial(_used, "usd"), "dollars"),
}
"""All figures by name, in the order of reports; a suite's scorer adds its metrics."""


def _metric(name: str, record: Record) -> float | None:
    """Return a question's value in a metric's mean: 0 without an answer that can be judged."""
    return record.metrics.get(name) if answered(record) and record.match is not None else 0.0


class Frame:
    """Questions asked for, as the rows of a table.

    Args:
        metrics: The scorer's, as a manifest declares them.

    Attributes:
        columns: The figures that its questions may have, by name.
    """

    def __init__(
        self,
        rows: Iterable[QuestionRow],
        metrics: Sequence[Mapping[str, str]] = (),
        columns: Mapping[str, Figure] | None = None,
    ) -> None:
        self.rows = tuple(rows)
        self.records = [record for _, record in self.rows if record is not None]
        if columns is None:
            columns = FIGURES | {
                it["name"]: Figure(
                    it["title"], partial(_metric, it["name"]), everyone=True, only=it.get("only", "")
                )
                for it in metrics
                if it["name"] != EX
            }
            columns |= USER if any(record.asking for record in self.records) else {}
        self.columns = columns

    @classmethod
    def of(cls, records: Collection[Record]) -> Frame:
        """Return the table of the questions that have ended."""
        return cls(
            (PlannedQuestion(it.id, it.database, it.dialect, it.difficulty, it.external_knowledge), it)
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

    def mean(self, name: str) -> Mean:
        """Return the mean of a figure, of no values where it cannot be measured.

        Dollars are not known as soon as the price of one question is not.
        """
        if (figure := self.columns.get(name)) is None:
            return Mean(0)
        values = [figure.value(asked, record) for asked, record in self.rows]
        unpriced = figure.unit == "dollars" and any(it.usage and figure.of(it) is None for it in self.records)
        unknown = figure.everyone and name != "answered" and not self.measurable
        return Mean(0) if unpriced or unknown else mean_of(values)

    def figures(self) -> dict[str, Mean]:
        """Return every figure that is known, by name."""
        return {name: found for name in self.columns if (found := self.mean(name)).n}

    def by(self, group: str) -> dict[str, Frame]:
        """Return the rows by group (``groups``), in the order of reports."""
        members: dict[str, list[QuestionRow]] = {}
        for asked, record in self.rows:
            members.setdefault(_group_of(asked, group), []).append((asked, record))
        return {label: Frame(members[label], columns=self.columns) for label in sorted(members, key=_rank)}

    def groups(self) -> Iterator[tuple[str, dict[str, Frame]]]:
        """Yield every way to group the questions that tells some of them apart, with its groups."""
        own = dict.fromkeys(name for asked, _ in self.rows for name in asked.groups)
        for name in dict.fromkeys(("difficulty", *own, "dialect", "database", "external knowledge")):
            if len(found := self.by(name)) > 1:
                yield name, found


def _group_of(asked: PlannedQuestion, group: str) -> str:
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


def tokens_of(usage: Mapping[str, Any]) -> int | None:
    """Return the tokens in and out; None without a ledger."""
    return sum(int(usage.get(part) or 0) for part in ("input_tokens", "output_tokens")) if usage else None
