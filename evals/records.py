"""What is kept of a benchmark's question: one JSON line, from which every report is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from quorum.knowledge.errors import first_in_words

ENDPOINTS = ("endpoint", "database")
"""Kinds of errors that are no answer's fault: the model's endpoint or the database could not be reached.
Such a question is asked again when the run is started again."""


class _Kept:
    """Is kept as JSON."""

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Read it again; keys of other versions are left out.

        Raises:
            ValueError: It is no object, or something that each has is missing.
        """
        kind: Any = cls
        try:
            found: Self = _adapter(kind).validate_python(values)
        except ValidationError as error:
            raise ValueError(first_in_words(error)) from None
        return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@dataclass(frozen=True)
class CandidateRow:
    """A candidate of an answer.

    Attributes:
        match: Whether its result meets the gold; None if unknown.
        error: Kind of error if it has no result (``quorum.tools.query.ErrorKind`` and others); else empty.
        superseded: A second round voted without it.
    """

    id: str
    model: str
    sql: str
    match: bool | None = None
    error: str = ""
    weight: float = 1.0
    superseded: bool = False


@dataclass(frozen=True)
class ReadingRow:
    """Another reading of the question that an answer shows with its result, beside its own.

    Attributes:
        match: Whether its result meets the gold; None if unknown.
        met: As ``Record.met``.
    """

    says: str
    sql: str
    match: bool | None = None
    met: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChoiceRow:
    """One of the answers that a user was asked to choose from; fields as ``ReadingRow``."""

    label: str
    says: str
    sql: str
    match: bool | None = None
    met: tuple[int, ...] = ()


@dataclass(frozen=True)
class SimulatedUser:
    """A simulated user who knows the gold, and may be asked one question (``eval run --clarify gold``).

    What they choose would be the answer. The run itself goes on without a reply, so that the rest of
    the record is that of an answer without a question.

    Attributes:
        readings: Right readings of the question, of which the user means one; 0 where the gold is one, or
            several ways to the same.
        intent: The place of the one that they mean, drawn by the run's seed; None where there is one only.
        choices: What they were asked; empty if they were not.
        chosen: Label of the choice that has the result they mean; empty if none has, or they were not asked.
    """

    readings: int = 0
    intent: int | None = None
    choices: tuple[ChoiceRow, ...] = ()
    chosen: str = ""

    def suits(self, found: Record | ChoiceRow, intent: int | None) -> bool:
        """Return True if a result is what a user means who has the reading ``intent`` in mind."""
        return bool(found.match) if intent is None else intent in found.met


@dataclass(frozen=True)
class Course:
    """The course of a run, by its events.

    Attributes:
        explored: Whether a column exploration was begun.
        first_tie: Whether the first vote was a tie; None without a vote.
    """

    explored: bool = False
    first_tie: bool | None = None


@dataclass(frozen=True)
class Linking:
    """The tables and columns of an answer's SQL, or of a linked schema, compared with the gold's, 0 to 1.

    Of several accepted gold queries, the one that is nearest counts. None where nothing is used.
    """

    table_recall: float | None
    table_precision: float | None
    column_recall: float | None
    column_precision: float | None


@dataclass(frozen=True)
class Record(_Kept):
    """One question as it ended.

    Attributes:
        status: The answer's (``quorum.graph.answer.Status``), or ``failed`` without one.
        sql: Of the answer, or the best effort.
        result: File of the answer's rows (Parquet), relative to the evaluation's folder; empty without.
        rows: Of the result; None without.
        truncated: The run's limits cut the result: ``result`` and ``rows`` are a part of it.
        executes: Whether ``sql`` ran; None where nothing can run.
        valid: Whether ``sql`` passes guard and lint; None without SQL.
        match: Whether the answer is right; None if unknown (see ``gold``).
        met: Where gold queries are one for each right reading, the places of those whose result the answer
            has.
        readings: Shown beside the answer with results of their own.
        asking: None where no user was simulated.
        metrics: Of the suite's scorer, by name; None where not defined.
        reason: The scorer's, for people.
        gold: State of the question's gold (``quorum.evals.scorers.base.GoldState``).
        gold_rows: Rows of the gold result, of several the one nearest to ``rows``; None if not known.
        error: Why there is no answer: a kind of ``ENDPOINTS``, a limit (``max_calls``, …), a kind of
            ``quorum.tools.query.ErrorKind``; empty if there is one.
        message: The error in words.
        vote: ``quorum.graph.answer.AnswerVote`` as plain values; None without.
        linking: Of the answer's SQL; None without SQL, or gold SQL that can be read.
        linked: The run linked its schema, as it does where that is large.
        schema_linking: Of the schema as linked, or of the whole where it was not linked; None without gold,
            or where what was linked is no schema text.
        restricted: The run was shown the parts of the schema that its gold needs, as ``Manifest.options``
            says under ``gold``.
        usage: The run's ledger.
        course: How the run went; None without a run.
        run: The run's folder relative to the evaluation's folder.
        resumed: It was interrupted and went on; its seconds and counts cover both.
        discarded: Why an earlier attempt could not go on and was thrown away; empty if none was.
        ended: ISO 8601, with time zone.
    """

    id: str
    question: str
    database: str
    dialect: str
    difficulty: str
    external_knowledge: bool
    status: str
    sql: str = ""
    result: str = ""
    rows: int | None = None
    truncated: bool = False
    executes: bool | None = None
    valid: bool | None = None
    match: bool | None = None
    met: tuple[int, ...] = ()
    readings: tuple[ReadingRow, ...] = ()
    asking: SimulatedUser | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    reason: str = ""
    gold: str = "ok"
    gold_rows: int | None = None
    error: str = ""
    message: str = ""
    candidates: tuple[CandidateRow, ...] = ()
    vote: dict[str, Any] | None = None
    confidence: float = 0.0
    linking: Linking | None = None
    linked: bool = False
    schema_linking: Linking | None = None
    restricted: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
    course: Course | None = None
    run: str = ""
    resumed: bool = False
    discarded: str = ""
    demonstration: bool = False
    ended: str = ""

    @property
    def finished(self) -> bool:
        """False for what failed for lack of an endpoint: it is asked again."""
        return self.error not in ENDPOINTS

    @property
    def possible(self) -> bool | None:
        """True if any candidate of the last round is right (pass@k); None if unknown."""
        known = [row.match for row in self.voters if row.match is not None]
        return any(known) if known else self.match

    @property
    def some_reading(self) -> bool | None:
        """True if the answer or another reading that it shows is right; None if unknown."""
        known = [found for found in (self.match, *(row.match for row in self.readings)) if found is not None]
        return any(known) if known else None

    @property
    def voters(self) -> tuple[CandidateRow, ...]:
        """The candidates of the last round."""
        return tuple(row for row in self.candidates if not row.superseded)


@dataclass(frozen=True)
class PlannedQuestion:
    """A question that an evaluation asks for, whether it has been answered or not.

    Attributes:
        groups: ``EvalQuestion.groups``.
        parts: ``name digest`` of its text, gold and knowledge, and of what else its scorer uses. Two
            questions of one id are the same if these are.
    """

    id: str
    database: str
    dialect: str
    difficulty: str
    external_knowledge: bool
    groups: dict[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    def changes(self, before: PlannedQuestion) -> tuple[str, ...]:
        """Return what changed, for people; () if it is the same question."""
        pairs = {
            name: (getattr(before, name), getattr(self, name))
            for name in ("database", "dialect", "difficulty")
        }
        found = [f"its {name} was {old!r} and is {new!r}" for name, (old, new) in pairs.items() if old != new]
        unlike = sorted(set(before.parts) ^ set(self.parts))
        names = dict.fromkeys(part.rpartition(" ")[0] for part in unlike)
        return (*found, *(f"its {name} changed" for name in names))


@dataclass(frozen=True)
class Manifest(_Kept):
    """A description of an evaluation: enough to go on with it, and to compare two.

    Attributes:
        suite, scorer: Names; ``rules`` says whose rules judge.
        metrics: Of the scorer: ``{"name", "title", "meaning"}`` and, of one that is defined for a
            group of questions only, ``"only"``; ``ex`` first.
        options: ``quorum.graph.options.RunOptions`` that count for answers, without database, places and
            secrets; and ``gold``, if questions saw only their gold's ``tables`` or ``columns``.
        asked: All questions of this evaluation, in order.
        shard: ``2/8``, or ``1/1``.
        missing: What the suite's folder lacked.
        version: Quorum's.
    """

    suite: str
    rules: str
    metrics: tuple[dict[str, str], ...]
    options: dict[str, Any]
    asked: tuple[PlannedQuestion, ...]
    shard: str = "1/1"
    missing: tuple[str, ...] = ()
    version: str = ""
    started: str = ""
